//! Warnings of what was read: each once by a process, however often its file is read.

use config::diagnostic::Diagnostic;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

pub(crate) fn warn(warnings: &[Diagnostic]) {
    static PRINTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut printed = PRINTED.lock().unwrap_or_else(PoisonError::into_inner);
    for warning in warnings.iter().map(ToString::to_string) {
        if printed.insert(warning.clone()) {
            eprintln!("warning: {warning}");
        }
    }
}
