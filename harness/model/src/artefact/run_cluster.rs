//! The cluster of Kubernetes that the pods of a run are in: what is of a run is looked for, ended and drained in no other.

use super::Format;
use serde::{Deserialize, Serialize};

/// `cluster.json`: written before the first pod is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCluster {
    /// Version of this layout.
    pub format: Format<1>,
    /// The URL of the API server, without a user and a password.
    pub server: String,
    /// Of the pods.
    pub namespace: String,
    /// Of the kubeconfig, where it had one that leads there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
}
