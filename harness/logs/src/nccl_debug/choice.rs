//! Lines of tuning: by which algorithm and protocol a call is carried out. What a choice costs is computed elsewhere.

use super::tokens::{Words, whole};

/// What was chosen for calls of so many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Choice<'a> {
    /// Not logged up to 2.22.
    pub operation: Option<&'a str>,
    /// What newer versions add in brackets, such as `Symmetric`.
    pub kind: Option<&'a str>,
    pub bytes: u64,
    pub by: By<'a>,
    /// Times and channels, as they stand.
    pub rest: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum By<'a> {
    /// Numbers up to 2.23, names from 2.24 on.
    Algorithm {
        algorithm: &'a str,
        protocol: &'a str,
    },
    Kernel(&'a str),
}

const ALGORITHMS: [&str; 7] = ["TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"];
const PROTOCOLS: [&str; 3] = ["LL", "LL128", "SIMPLE"];

impl By<'_> {
    /// With names for numbers.
    pub(super) fn named(&self) -> String {
        let name = |names: &[&str], text: &str| {
            let named = text.parse().ok().and_then(|at: usize| names.get(at).copied());
            named.unwrap_or(text).to_owned()
        };
        match self {
            By::Algorithm { algorithm, protocol } => {
                format!("{} {}", name(&ALGORITHMS, algorithm), name(&PROTOCOLS, protocol))
            }
            By::Kernel(kernel) => (*kernel).to_owned(),
        }
    }
}

pub(super) fn parse(text: &str) -> Option<Choice<'_>> {
    let (head, rest) = text.split_once(" Bytes -> ")?;
    let (operation, bytes) = match head.rsplit_once(": ") {
        Some((operation, bytes)) => (Some(operation), bytes),
        None => (None, head),
    };
    let (operation, kind) = match operation.and_then(|operation| operation.split_once(" [")) {
        Some((operation, kind)) => (Some(operation), Some(kind.strip_suffix(']')?)),
        None => (operation, None),
    };
    if operation.is_some_and(|operation| operation.is_empty() || operation.contains(' ')) {
        return None;
    }
    let bytes = whole(bytes)?;
    let mut words = Words(rest);
    let by = match words.labelled("Algo") {
        Some(algorithm) => By::Algorithm { algorithm, protocol: words.labelled("proto")? },
        None => By::Kernel(words.labelled("Kernel")?),
    };
    Some(Choice { operation, kind, bytes, by, rest: words.0.trim_start() })
}
