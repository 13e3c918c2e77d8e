//! A rehearsal with a fault that nothing in it can see would be green, and would show nothing: it is not begun.

use super::RunArgs;
use model::artefact::Plan;
use model::fault::{Fault, NodeFault};

/// Why a run with such faults would show nothing; a line for each of them.
pub(super) fn unseen(plan: &Plan, faults: &[NodeFault], args: &RunArgs) -> Vec<String> {
    let is_profiled = plan.cases.iter().flat_map(|case| &case.jobs).any(|job| job.profile.is_some());
    let line = |fault: &NodeFault| {
        let why = match &fault.fault {
            Fault::GpuMissing { .. } | Fault::GpuBusy { .. } | Fault::DriverDiffers if !args.probe => {
                "only a probe sees it; add --probe"
            }
            Fault::ClockOffset { .. } | Fault::ClockDrift { .. } | Fault::WindowShut if !is_profiled => {
                "only profiled cases see it, and none is selected"
            }
            _ => return None,
        };
        Some(format!("--sim-fault {fault}: {why}"))
    };
    faults.iter().filter_map(line).collect()
}
