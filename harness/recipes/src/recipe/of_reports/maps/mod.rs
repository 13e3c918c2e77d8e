//! Heatmaps: places over time, of all reports over one window. What is measured is documented in the file of each recipe.

pub(super) mod cuda;
mod efa;
pub(super) mod gpu_metric;
pub(super) mod host_calls;
mod means;
pub(super) mod network;
mod packed;
mod shares;
#[cfg(test)]
mod tests;
mod window;

pub(super) use efa::NETWORK_MAP_AWS;
pub(crate) use efa::{NicRates, capture_files, capture_rates, report_rates};
