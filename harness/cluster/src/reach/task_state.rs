//! What a scheduler knows of a small task that hands over a file.

/// A task of an array of Slurm, or one in a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// `never`: the reason, where waiting does not clear it.
    Waiting {
        /// Such as `JobHeldUser`; None where waiting may clear it.
        never: Option<String>,
    },
    /// On its node, or in a state that this version does not know.
    Running,
    /// How, and on which node.
    Ended {
        /// As squeue prints it: `COMPLETED`; or in the words of Kubernetes.
        state: String,
        /// It ended by itself, with 0.
        completed: bool,
        /// Where it ran; may be empty.
        node: String,
    },
}
