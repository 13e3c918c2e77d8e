//! How large a plan would be, before it is made: one that no machine could hold is refused with one error.

use super::control_run;
use config::inventory::Instance;
use config::suite::{Assertion, Case, Per, Placement, Suite, Workload};

/// Ten thousand p5 nodes of `nccl-p5` are 1.3 million, in 2.5 GiB. A file of a few lines can ask for any number.
const MOST_ASSERTIONS: u64 = 2_000_000;
/// Each has a script, and files that it leaves.
const MOST_JOBS: u64 = 500_000;
/// Above this many NICs there is one assertion per node, which names the odd NICs: JUnit readers have their limits.
pub(crate) const NICS_ONE_BY_ONE: usize = 4096;

/// Why no plan of these suites is made on so many nodes. Cases that are skipped for their preconditions count, too.
pub(crate) fn refuse(suites: &[Suite], instance: &Instance, nodes: usize) -> Option<String> {
    let cases = || suites.iter().flat_map(|suite| &suite.cases);
    let jobs: u64 = cases().map(|case| jobs(case, nodes)).fold(0, u64::saturating_add);
    let assertions = cases().map(|case| assertions(case, instance, nodes)).fold(0, u64::saturating_add);
    let too_many = match () {
        () if assertions > MOST_ASSERTIONS => {
            format!("{assertions} assertions, the limit is {MOST_ASSERTIONS}")
        }
        () if jobs > MOST_JOBS => format!("{jobs} jobs, the limit is {MOST_JOBS}"),
        () => return None,
    };
    Some(format!(
        "too large a plan: {too_many}, on {nodes} nodes; choose fewer with --nodes, or a suite with fewer cases"
    ))
}

/// Repeats and control runs are jobs as well.
fn jobs(case: &Case, nodes: usize) -> u64 {
    let controlled = control_run::cost_at_most(case).is_some();
    let times = u64::from(case.repeats.max(1))
        * (1 + u64::from(controlled))
        * (1 + u64::from(case.retry_infrastructure));
    placed(case, nodes).saturating_mul(times)
}

/// The jobs of a case that are placed on different nodes.
fn placed(case: &Case, nodes: usize) -> u64 {
    let nodes = nodes as u64;
    match (&case.workload, &case.placement) {
        // Each pair of a ring in both directions.
        (Workload::NicPairs(_), _) | (Workload::NodeTool(_), Placement::Pairs) => nodes * 2,
        (_, Placement::All | Placement::Nodes(_)) => 1,
        (_, Placement::Each | Placement::EachGpu) => nodes,
        (_, Placement::Pairs) => nodes.div_ceil(2),
        (_, Placement::Groups(size)) => nodes.div_ceil(u64::from(*size).max(1)),
    }
}

fn assertions(case: &Case, instance: &Instance, nodes: usize) -> u64 {
    let taking_part = match case.placement {
        Placement::Nodes(some) => nodes.min(some as usize),
        _ => nodes,
    };
    let subjects = |assertion: &Assertion| match assertion.per {
        Per::Job => placed(case, nodes),
        Per::Nic if taking_part.saturating_mul(instance.nics.len()) <= NICS_ONE_BY_ONE => {
            (taking_part * instance.nics.len()) as u64
        }
        Per::Node | Per::Nic => taking_part as u64,
        Per::Gpu => (taking_part as u64).saturating_mul(u64::from(instance.gpus)),
    };
    let of = |assertion: &Assertion| subjects(assertion).saturating_mul(assertion.sizes.len().max(1) as u64);
    case.assertions.iter().map(of).fold(0, u64::saturating_add)
}
