//! Runs over a real Slurm cluster, and what becomes of them when jobs, nodes, the controller or the harness fail: the
//! right verdict, the right culprit, the other cases unharmed, nothing left.

mod accepted;
mod allocation;
pub(crate) mod analysis;
mod analysis_left;
pub(crate) mod bench;
mod configuring;
mod discover;
mod failures;
mod inside;
mod isolated;
mod killed;
mod left;
mod login;
mod mpi;
mod probe;
mod shared;
mod topology;
mod torch_hang;
mod whole;
mod worn;

use crate::fact::{Fact, trials};
use crate::slurm_cluster;
use crate::ssh::hosts;
use libtest_mimic::Trial;

pub(crate) fn nightly() -> Vec<Trial> {
    let mut all = crate::fact::nightly(mpi::NIGHTLY, slurm_cluster::absent().or_else(mpi::absent));
    let absent = slurm_cluster::absent().or_else(torch_hang::absent);
    all.extend(crate::fact::nightly(torch_hang::NIGHTLY, absent));
    all
}

pub(crate) fn tests() -> Vec<Trial> {
    let facts: Vec<Fact> = [
        whole::FACTS,
        failures::FACTS,
        discover::FACTS,
        probe::FACTS,
        left::FACTS,
        worn::FACTS,
        killed::FACTS,
        shared::FACTS,
        analysis::FACTS,
        analysis_left::FACTS,
        isolated::FACTS,
        accepted::FACTS,
        configuring::FACTS,
        topology::FACTS,
        inside::FACTS,
        allocation::FACTS,
        mpi::WITHOUT_MPI,
    ]
    .concat();
    let mut all = trials("slurm", &facts, slurm_cluster::absent());
    all.extend(trials("slurm", mpi::FACTS, slurm_cluster::absent().or_else(mpi::absent)));
    all.extend(trials("slurm", login::FACTS, slurm_cluster::absent().or_else(hosts::absent)));
    all
}
