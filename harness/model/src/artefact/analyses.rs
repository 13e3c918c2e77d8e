//! Where tasks of a cluster read the reports of a run: what is needed to find their leftovers, should the process that
//! waits for them be killed.

use super::Format;
use serde::{Deserialize, Serialize};

/// `analyses.json`: written before the first of them begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Analyses {
    /// Version of this layout.
    pub format: Format<1>,
    /// The folder that all nodes see, in which each analysis has one of its own.
    pub shared: String,
    /// The folder of Slurm's commands on this machine, as `paths.slurm` names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slurm: Option<String>,
    /// Tasks are pods of this place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<AnalysisPlace>,
}

/// Where the pods of tasks are made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnalysisPlace {
    /// Of the kubeconfig; its current one, where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Of the pods.
    pub namespace: String,
    /// As in `cluster.json`; absent in older runs, and where it was unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}
