//! The readers, each with its seeds and the number of cases of a usual test run.

use super::mutate::Seeds;
use super::{binary, text};

/// What a reader made of some bytes.
#[derive(Debug)]
pub(crate) enum Read {
    Refused,
    Findings,
    /// Nothing is said against it. `figures` is equal where the same was read.
    Clean {
        figures: u64,
    },
    /// Nothing is said against it, and what it prints twice is not the same.
    Contradicts(String),
}

pub(crate) struct Reader {
    pub name: &'static str,
    pub is_text: bool,
    pub cases: u64,
    pub seeds: fn() -> Seeds,
    pub read: fn(&[u8]) -> Read,
}

pub(crate) fn all() -> Vec<Reader> {
    text::readers().into_iter().chain(binary::readers()).collect()
}
