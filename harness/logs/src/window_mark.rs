//! What the hook or the watcher of a window of steps leaves: the file of its marks, and the name of its ranges.

use serde::{Deserialize, Serialize};

/// The name of the ranges by which a hook marks steps; the number stands behind it.
pub const MARKS: &str = "harness step";

/// What a hook or a watcher reports of its window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// `hook` or `watch`.
    pub way: String,
    /// The first step in it.
    #[serde(default)]
    pub opened: Option<u64>,
    /// The last step that ended before it was closed.
    #[serde(default)]
    pub closed: Option<u64>,
    /// How many steps the program went through.
    #[serde(default)]
    pub steps: Option<u64>,
    /// What failed in the hook or in nsys, in one line; None where nothing did.
    #[serde(default)]
    pub error: Option<String>,
}
