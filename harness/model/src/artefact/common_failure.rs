//! What all jobs of a case failed by in the same way, as artefacts hold it. Whether they did is decided in `judge`.

use serde::{Deserialize, Serialize};

/// The launcher, the image or the tool is broken, and no node is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommonFailure {
    /// The case's name.
    pub case: String,
    /// Jobs that were tried, and failed.
    pub jobs: u32,
    /// Their nodes, folded.
    pub nodes: String,
    /// The ending that they share, in a word.
    pub cause: String,
    /// The last words of the tool, as the first of the jobs left them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// What to check first.
    pub check: String,
    /// The case expects to fail: the run goes on after it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expected: bool,
}

impl CommonFailure {
    /// Why nothing more was run after it.
    pub fn reason(&self) -> String {
        format!("`{}`: all jobs failed with the same cause: {}", self.case, self.cause)
    }
}
