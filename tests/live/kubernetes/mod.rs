//! Runs in pods of a real Kubernetes: nothing is left, whatever fails, objects of others are left alone, and no node is
//! blamed that was not seen to be bad. What starts and ends the cluster is `kubernetes_cluster`.

mod analysis;
pub(crate) mod bench;
mod drained;
mod facts;
mod faults;
mod first_verdict;
mod healthy;
mod killed;
mod roles;

use crate::fact::trials;
use crate::kubernetes_cluster;
use libtest_mimic::Trial;

pub(crate) fn tests() -> Vec<Trial> {
    let facts = [
        healthy::FACTS,
        first_verdict::FACTS,
        drained::FACTS,
        roles::FACTS,
        facts::FACTS,
        killed::FACTS,
        analysis::FACTS,
        faults::FACTS,
    ]
    .concat();
    trials("kubernetes", &facts, kubernetes_cluster::absent())
}
