//! Hardware limits: suites, profiles and baselines are checked against them before any GPU time is spent. Whether a
//! possible number is good enough is decided by baselines.

mod ceiling;
mod lint;

pub use ceiling::{algbw_ceiling, busbw_ceiling};
pub use lint::{lint, lint_baselines, lint_instance};

use crate::inventory::Instance;

/// The least time of a collective across nodes and within one: no message is so small that it takes less. Published
/// latencies are 65 to 75 us between p5 nodes and 161 us between p4de nodes; the loosest stands here.
const LATENCY_BETWEEN_NODES_US: f64 = 65.0;
const LATENCY_WITHIN_NODE_US: f64 = 10.0;

/// Published line rates, NVLink rates and memory of GPUs, each from two sources. A profile of that name that claims more
/// is wrong.
struct Published {
    name: &'static str,
    nics: usize,
    nic_gbit_s: f64,
    nvlink_gb_s: f64,
    /// Memory of a GPU, as its maker has it.
    gpu_gib: u64,
}

const PUBLISHED: [Published; 7] = [
    Published { name: "p4d", nics: 4, nic_gbit_s: 100.0, nvlink_gb_s: 300.0, gpu_gib: 40 },
    Published { name: "p4de", nics: 4, nic_gbit_s: 100.0, nvlink_gb_s: 300.0, gpu_gib: 80 },
    Published { name: "p5", nics: 32, nic_gbit_s: 100.0, nvlink_gb_s: 450.0, gpu_gib: 80 },
    Published { name: "p5e", nics: 32, nic_gbit_s: 100.0, nvlink_gb_s: 450.0, gpu_gib: 141 },
    Published { name: "p5en", nics: 16, nic_gbit_s: 200.0, nvlink_gb_s: 450.0, gpu_gib: 141 },
    Published { name: "p6-b200", nics: 8, nic_gbit_s: 400.0, nvlink_gb_s: 900.0, gpu_gib: 180 },
    Published { name: "p6-b300", nics: 16, nic_gbit_s: 400.0, nvlink_gb_s: 900.0, gpu_gib: 268 },
];

fn published(instance: &Instance) -> Option<&'static Published> {
    let name = instance.name.trim_start_matches("sim-");
    PUBLISHED.iter().find(|published| published.name == name)
}

#[cfg(test)]
mod tests;
