//! Simulated programs that test one node by itself, in the form in which each prints. What ails the node is in its faults.

mod dcgmi;
mod fio;
mod gpu_burn;
mod nhc;
mod nvbandwidth;
mod stream;
mod stress_ng;

pub(super) use dcgmi::run as dcgmi;
pub(super) use fio::run as fio;
pub(super) use gpu_burn::{by_torch as torch_burn, run as gpu_burn};
pub(super) use nhc::run as nhc;
pub(super) use nvbandwidth::run as nvbandwidth;
pub(super) use stream::run as stream;
pub(super) use stress_ng::run as stress_ng;

use super::CommandCall;
use model::fault::Fault;

/// The fraction that is left of a rate by these faults.
fn left(call: &CommandCall<'_>, node: usize, of: fn(&Fault) -> Option<f64>) -> f64 {
    call.active_faults.tool_faults(node).filter_map(of).fold(1.0, f64::min)
}

/// GPUs as of A100 are slower in all that these programs measure.
fn is_a100(call: &CommandCall<'_>) -> bool {
    call.cluster.gpu_name.contains("A100")
}
