//! A named observation that a reader or recipe makes beside its numbers: what is missing, odd or broken, and where.
//! What a finding means for a verdict is decided elsewhere (`verdict::judge`).

use serde::{Deserialize, Serialize};

/// What findings of one code mean for a verdict. Who makes a finding declares it; the judge knows no code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindingKind {
    /// As in `Finding::code`, or the cause of a failure. Stored runs have it: it never changes.
    pub code: &'static str,
    /// What the judge makes of it.
    pub means: Meaning,
}

/// What the judge makes of a finding, or of the cause of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// For people alone.
    Note,
    /// Metrics of the recipe that made it lack a number, for the reason that the code names.
    NoNumber,
    /// The same, where the recording is lacking and no node is at fault; what to do about it.
    NotRecorded(&'static str),
    /// Metrics read from the job's files lack a number, for the reason that the code names.
    NoOutput,
    /// A file of the job is damaged: numbers that it would have given are missing.
    Garbled,
    /// Nothing was counted: metrics of counters lack a number.
    NotCounted,
    /// The software or a setting, and no part: where all jobs between nodes share it, their numbers blame no node.
    Setup,
    /// A failure whose place its own output does not show: either end of a connection, or the program itself.
    NoPlace,
    /// The job did not run as declared; what to do about it.
    Advice(&'static str),
    /// Stands beside the numbers of the job in messages.
    Remark(&'static str),
}

/// Declares the findings of a recipe or reader: an enum with the stable code and the meaning of each.
#[macro_export]
macro_rules! finding_kinds {
    ($(#[$doc:meta])* $vis:vis enum $name:ident {
        $($(#[$about:meta])* $kind:ident = $code:literal: $means:expr,)+
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        $vis enum $name {
            $($(#[$about])* $kind,)+
        }

        impl $name {
            /// All of them, with their meanings.
            $vis const ALL: &'static [$crate::finding::FindingKind] = {
                use $crate::finding::Meaning::*;
                &[$($crate::finding::FindingKind { code: $code, means: $means },)+]
            };

            /// As findings and stored runs have it.
            $vis const fn code(self) -> &'static str {
                match self {
                    $($name::$kind => $code,)+
                }
            }
        }
    };
}

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
