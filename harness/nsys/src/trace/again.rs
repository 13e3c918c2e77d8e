//! A report that may be looked at a second time, in the same way: what to look for is told by all reports together for
//! some recipes, and to keep all of each until then would take more room than there is.

use super::{Filter, Trace};
use crate::export::ExportError;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Again {
    path: PathBuf,
    filter: Option<Filter>,
}

impl Again {
    pub(super) fn new(path: &Path, filter: Option<&Filter>) -> Again {
        Again { path: path.to_owned(), filter: filter.cloned() }
    }

    pub fn open(&self) -> Result<Trace, ExportError> {
        let trace = Trace::open(&self.path)?;
        match &self.filter {
            Some(filter) => trace.filtered(filter),
            None => Ok(trace),
        }
    }
}
