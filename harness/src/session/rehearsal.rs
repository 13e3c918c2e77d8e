//! Refuses a rehearsal with a fault that no check of the run can detect: it would be green and prove nothing.

use super::RunOptions;
use model::artefact::Plan;
use model::fault::{Fault, NodeFault};

/// Why a run with such faults would show nothing; a line for each of them.
pub(crate) fn undetectable(plan: &Plan, faults: &[NodeFault], options: &RunOptions) -> Vec<String> {
    let is_profiled = plan.cases.iter().flat_map(|case| &case.jobs).any(|job| job.profile.is_some());
    let line = |fault: &NodeFault| {
        let why = match &fault.fault {
            Fault::GpuMissing { .. } | Fault::GpuBusy { .. } | Fault::DriverDiffers if !options.probe => {
                "only a probe detects it; add --probe"
            }
            Fault::ClockOffset { .. } | Fault::ClockDrift { .. } | Fault::WindowShut if !is_profiled => {
                "only profiled cases detect it, and none is selected"
            }
            _ => return None,
        };
        Some(format!("--sim-fault {fault}: {why}"))
    };
    faults.iter().filter_map(line).collect()
}
