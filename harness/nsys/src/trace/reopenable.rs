//! A report that can be opened a second time with the same filter: some recipes know what to look for only after they saw
//! all reports, and keeping every report in memory until then would take too much.

use super::{Filter, Trace};
use crate::export::ExportError;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Path and filter of a report.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Reopenable {
    path: PathBuf,
    filter: Option<Filter>,
}

impl Reopenable {
    pub(super) fn new(path: &Path, filter: Option<&Filter>) -> Reopenable {
        Reopenable { path: path.to_owned(), filter: filter.cloned() }
    }

    /// Opens the report again, with its filter.
    pub fn open(&self) -> Result<Trace, ExportError> {
        let trace = Trace::open(&self.path)?;
        match &self.filter {
            Some(filter) => trace.filtered(filter),
            None => Ok(trace),
        }
    }
}
