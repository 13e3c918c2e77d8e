//! What a plan knows of a sweep of nccl-tests, beside its operation and its sizes: the program prints it too.

use serde::{Deserialize, Serialize};

/// The options of the sweep, and the GPUs that it runs on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepFacts {
    /// Measured operations for each size.
    pub iterations: u64,
    /// Operations before those.
    pub warmup: u64,
    /// Type of the elements, such as `float`.
    pub dtype: String,
    /// What reduces them; nothing where the operation reduces nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redop: Option<String>,
    /// Root of an operation that has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<u32>,
    /// Model of the instance's GPUs, such as `H100`.
    pub gpu: String,
}
