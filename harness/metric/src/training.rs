//! What a plan knows of a training, for numbers that need it.

use serde::{Deserialize, Serialize};

/// What is stated of a training beforehand. What is not stated is not made up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TrainingFacts {
    /// How many it is to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u32>,
    /// Samples of a step of each rank, from `batch` in the suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples_per_rank: Option<u64>,
    /// Samples of a step of all ranks together, from `global_batch` in the suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// Sequence length of the model, from the suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_sample: Option<u64>,
    /// Floating point operations, forward and backward.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flops_per_token: Option<f64>,
    /// Of one GPU, at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_tflops: Option<f64>,
}
