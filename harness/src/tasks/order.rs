//! The order of an analysis for its tasks: the work, the share of each task, and the program. It is a file that all nodes see;
//! `part.rs` defines the result of a task.

use super::{job_work::JobWork, report_work::ReportWork};
use model::artefact::PlannedRecipe;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The version of this file and of the parts that are made for it. Either is read by the program that wrote the other.
pub(super) const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
pub(super) struct TaskOrder {
    pub format: u32,
    pub program: Program,
    /// Recipes that users wrote, as far as they are asked for.
    pub own: Vec<PlannedRecipe>,
    /// What paths of reports are relative to, where they are: they are spoken of as they are written.
    pub folder: Option<PathBuf>,
    pub work: Work,
    /// Of each task, from 1, the numbers of the reports that it reads.
    pub shares: Vec<Vec<usize>>,
    /// How many reports are open at once in a task; by default the number of its cores.
    pub jobs: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Program {
    pub version: String,
    pub sha256: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Work {
    /// Of recipes over reports that a person names.
    Reports(ReportWork),
    /// Of the recipes of a case, over the reports of its jobs.
    Jobs(JobWork),
}

impl TaskOrder {
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, String> {
        serde_json::to_vec_pretty(self)
            .map_err(|error| format!("cannot write the order for the tasks: {error}"))
    }

    pub(super) fn from_bytes(bytes: &[u8], path: &Path) -> Result<TaskOrder, String> {
        let bad = |why: String| format!("{}: {why}", path.display());
        let head: Head = serde_json::from_slice(bytes).map_err(|error| bad(error.to_string()))?;
        if head.format != FORMAT {
            return Err(bad(format!(
                "written in format {}, but this harness reads format {FORMAT}; use the same version",
                head.format
            )));
        }
        serde_json::from_slice(bytes).map_err(|error| bad(error.to_string()))
    }

    /// This process goes where the paths of reports lead somewhere.
    pub(super) fn enter(&self) -> Result<(), String> {
        let Some(folder) = &self.folder else { return Ok(()) };
        std::env::set_current_dir(folder).map_err(|error| {
            format!(
                "this node does not see the folder of relative report paths: {}: {error}",
                folder.display()
            )
        })
    }
}

/// All that is the same in every format.
#[derive(Deserialize)]
struct Head {
    format: u32,
}

/// Where relative paths begin, where any of these is one.
pub(super) fn folder_of<'a>(mut paths: impl Iterator<Item = &'a Path>) -> Result<Option<PathBuf>, String> {
    let folder = paths.any(Path::is_relative).then(std::env::current_dir).transpose();
    folder.map_err(|error| format!("cannot determine the current folder: {error}"))
}
