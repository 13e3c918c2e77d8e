//! A named observation that a reader or recipe makes beside its numbers: what is missing, odd or broken, and where.
//! What a finding means for a verdict is decided elsewhere (`verdict::judge`).

use serde::{Deserialize, Serialize};

/// Something worth a person's attention, with the place it was seen at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// A stable kebab-case name, such as `counter-reset`; documented where it is made.
    pub code: String,
    /// The node's name; `None` where no single node is concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// A device name, `gpuN`, or nothing where the finding concerns the whole node or file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// One sentence: what was expected, what was seen, what to try.
    pub message: String,
    /// Path relative to the case's folder, such as `raw/JOB/FILE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// One-based line in `file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

impl Finding {
    /// A finding without a place.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Finding {
            code: code.to_owned(),
            node: None,
            part: None,
            message: message.into(),
            file: None,
            line: None,
        }
    }

    /// Sets the node's name.
    pub fn node(mut self, node: impl Into<String>) -> Self {
        self.node = Some(node.into());
        self
    }

    /// Sets the device or `gpuN`.
    pub fn part(mut self, part: impl Into<String>) -> Self {
        self.part = Some(part.into());
        self
    }

    /// Sets the file that shows it.
    pub fn file(mut self, file: impl Into<String>) -> Self {
        self.file = Some(file.into());
        self
    }

    /// Sets the line in the file, counted from 1.
    pub fn line(mut self, line: u64) -> Self {
        self.line = Some(line);
        self
    }
}
