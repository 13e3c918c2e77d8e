//! Nodes over ssh, with real sshds on loopback addresses. The tests stand in files by what they look at; what starts and
//! ends the servers is `hosts.rs`.

mod commands;
mod failing;
mod files;
pub mod hosts;
mod left;
mod probe;
mod suites;
mod worn;

use crate::fact::trials;
use libtest_mimic::Trial;

pub fn tests() -> Vec<Trial> {
    let facts =
        [commands::FACTS, files::FACTS, failing::FACTS, suites::FACTS, probe::FACTS, left::FACTS].concat();
    trials("ssh", &facts, hosts::absent())
}

/// Those that mostly wait.
pub fn waiting() -> Vec<Trial> {
    trials("ssh", worn::FACTS, hosts::absent())
}
