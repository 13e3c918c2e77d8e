//! The tables of a profiler report as exports hold them: name, columns and which of them must be there. Add one by its
//! file and its line in `LIST`. How an export is opened is told in `source::nsys_export`; what the rows mean, in recipes.

mod diagnostics;
mod kernels;
mod meta;
mod strings;
pub mod write;

pub use diagnostics::DIAGNOSTIC_EVENT;
pub use kernels::{KERNEL, KernelRow};
pub use meta::META_DATA_EXPORT;
pub use strings::STRING_IDS;

/// One table, as a recipe declares that it reads it.
#[derive(Debug, PartialEq, Eq)]
pub struct TableSpec {
    pub name: &'static str,
    /// What exports of an older layout call it.
    pub older_name: Option<&'static str>,
    pub columns: &'static [ColumnSpec],
}

#[derive(Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    pub name: &'static str,
    pub kind: Kind,
    /// An export without it cannot be read; one that is not required is empty where it is absent.
    pub required: bool,
}

/// Numbers are widened to 64 bits, whatever width an export has them in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Integer,
    Text,
}

/// Every table that some recipe reads.
pub const LIST: [&TableSpec; 4] = [&KERNEL, &STRING_IDS, &DIAGNOSTIC_EVENT, &META_DATA_EXPORT];

const fn required(name: &'static str, kind: Kind) -> ColumnSpec {
    ColumnSpec { name, kind, required: true }
}

const fn optional(name: &'static str, kind: Kind) -> ColumnSpec {
    ColumnSpec { name, kind, required: false }
}
