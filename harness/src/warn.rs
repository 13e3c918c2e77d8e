//! Warnings of what was read: each once by a process, however often its file is read.

use config::diagnostic::Diagnostic;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

pub(crate) fn warn(warnings: &[Diagnostic]) {
    warnings.iter().map(ToString::to_string).for_each(warn_once);
}

/// The same of one line.
pub(crate) fn warn_once(warning: String) {
    static PRINTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut printed = PRINTED.lock().unwrap_or_else(PoisonError::into_inner);
    if !printed.contains(&warning) {
        eprintln!("warning: {warning}");
        printed.insert(warning);
    }
}
