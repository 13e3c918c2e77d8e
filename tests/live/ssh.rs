//! Nodes over ssh, with real sshds on loopback addresses. The tests stand in files by what they look at; what starts and
//! ends the servers is `hosts.rs`.

mod commands;
mod failing;
mod files;
mod fleet;
pub(crate) mod hosts;
mod left;
mod probe;
mod refusing;
pub(crate) mod suites;
mod worn;

use crate::fact::trials;
use libtest_mimic::Trial;

pub(crate) fn tests() -> Vec<Trial> {
    let facts = [
        commands::FACTS,
        files::FACTS,
        failing::FACTS,
        refusing::FACTS,
        suites::FACTS,
        probe::FACTS,
        left::FACTS,
    ]
    .concat();
    let mut all = trials("ssh", &facts, hosts::absent());
    all.extend(trials("ssh", files::ON_A_SMALL_DISK, hosts::absent().or_else(files::no_small_disk)));
    all
}

/// Those that need the whole machine for minutes.
pub(crate) fn nightly() -> Vec<Trial> {
    crate::fact::nightly(fleet::NIGHTLY, hosts::absent())
}

/// Those that mostly wait.
pub(crate) fn waiting() -> Vec<Trial> {
    trials("ssh", worn::FACTS, hosts::absent())
}
