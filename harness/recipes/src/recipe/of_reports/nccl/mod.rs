//! Recipes over NCCL calls in reports. `nsys::nccl` reads calls, their payloads and their kernels.

mod buckets;
mod inspected;
mod means;
mod messages;
mod msg;
mod printed;
mod projected;
mod rows;
mod sizes;
mod spread;
#[cfg(test)]
mod spread_tests;
mod sum;
#[cfg(test)]
mod tests;

pub use inspected::{Inspected, is_inspected, survey_records};
pub(super) use msg::NCCL_MSG;
pub(super) use projected::NCCL_GPU_PROJ_SUM;
pub(super) use sum::NCCL_SUM;

/// As logs of NCCL write it.
fn communicator(id: u64) -> String {
    format!("0x{id:x}")
}
