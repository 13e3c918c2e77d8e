//! Numbers of a load that show a slow fault by growing from one load to the next, each below every limit.

/// A number that is followed, and how much of it is worth naming.
#[derive(Debug)]
pub struct Growing {
    /// Its metric.
    pub metric: &'static str,
    /// Counted in each load, rather than a state at its beginning.
    pub is_count: bool,
    /// Of a count what all loads must have together; of a state how much it must rise.
    pub least: f64,
}

/// Every such number.
pub static GROWING: [Growing; 4] = [
    Growing { metric: "host.kernel_memory", is_count: false, least: 1_073_741_824.0 },
    Growing { metric: "gpu.memory_idle", is_count: false, least: 67_108_864.0 },
    Growing { metric: "gpu.ecc_corrected", is_count: true, least: 16.0 },
    Growing { metric: "gpu.nvlink_errors", is_count: true, least: 16.0 },
];
