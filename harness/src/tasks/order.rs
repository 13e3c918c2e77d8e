//! What the tasks of an analysis are told: the work, who reads which part of it, and by which program. It is a file that all
//! nodes see; what a task hands back for it is told in `part.rs`.

use super::{of_jobs::OfJobs, of_reports::OfReports};
use model::artefact::PlannedRecipe;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The version of this file and of the parts that are made for it. Either is read by the program that wrote the other.
pub(super) const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
pub(super) struct Order {
    pub format: u32,
    pub program: Program,
    /// Recipes that users wrote, as far as they are asked for.
    pub own: Vec<PlannedRecipe>,
    /// What paths of reports are relative to, where they are: they are spoken of as they are written.
    pub folder: Option<PathBuf>,
    pub work: Work,
    /// Of each task, from 1, the numbers of the reports that it reads.
    pub shares: Vec<Vec<usize>>,
    /// So many reports are open at once in a task; as many as it has cores where nobody says.
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
    Reports(OfReports),
    /// Of the recipes of a case, over the reports of its jobs.
    Jobs(OfJobs),
}

impl Order {
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, String> {
        serde_json::to_vec_pretty(self)
            .map_err(|error| format!("what tasks are told cannot be written: {error}"))
    }

    pub(super) fn of_bytes(bytes: &[u8], path: &Path) -> Result<Order, String> {
        let bad = |why: String| format!("{}: {why}", path.display());
        let head: Head = serde_json::from_slice(bytes).map_err(|error| bad(error.to_string()))?;
        if head.format != FORMAT {
            return Err(bad(format!(
                "written in format {}, this harness reads {FORMAT}: use one and the same",
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
                "this node does not see the folder that reports are named from: {}: {error}",
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
    folder.map_err(|error| format!("this folder is not known: {error}"))
}
