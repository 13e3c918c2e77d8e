//! The published runs below a URL, for a command that looks at many: the newest by their names, without what jobs left.
//! Each is compared with its manifest; what is no complete run is named and not counted.

use super::super::block_on;
use super::super::failure::Failure;
use super::super::prefix::{Patience, Prefix};
use super::run::{BroughtRun, RunFiles, bring_run};
use crate::bundle;
use base::text::{count, show};
use indicatif::BinaryBytes;
use std::fs;
use std::path::Path;
use store::Scratch;

/// Runs that are brought for one command, some hundred small files each.
const MOST_RUNS: usize = 100;

/// Runs in a private folder, which is removed with this value.
pub(crate) struct RemoteRuns(Scratch);

impl RemoteRuns {
    /// Brings the newest runs below the URL, at most so many.
    pub(super) fn open(url: &str, most: usize, patience: Patience) -> Result<RemoteRuns, Failure> {
        let refused = |why: String| Failure::refused(format!("{}: {why}", show(url)));
        let scratch = Scratch::new().map_err(|error| refused(format!("no private folder: {error}")))?;
        let prefix = Prefix::open(url, patience, false)?;
        let mut names = block_on(async {
            prefix.check_credentials().await?;
            prefix.folders().await
        })?;
        // The id of a run begins with its time.
        names.sort();
        let older = names.len().saturating_sub(most.min(MOST_RUNS));
        let (mut runs, mut bytes) = (0usize, 0u64);
        for name in names.drain(older..) {
            match bring_results(&format!("{}/{name}", prefix.url()), scratch.path(), patience) {
                Ok(run) => (runs, bytes) = (runs + 1, bytes.saturating_add(run.bytes)),
                Err(Failure::Refused(why)) => eprintln!("not counted: {}", show(&why)),
                Err(other) => return Err(other),
            }
        }
        let not_read = match older {
            0 => String::new(),
            older => format!("; {older} older were not read"),
        };
        eprintln!(
            "note: {}: {}, {}, fetched for this command{not_read}",
            show(url),
            count(runs, "run"),
            BinaryBytes(bytes)
        );
        Ok(RemoteRuns(scratch))
    }

    /// The folder of the runs.
    pub(crate) fn folder(&self) -> &Path {
        self.0.path()
    }
}

/// One of them, below its id. Nothing of it is executed, so it is not marked as foreign: who names the URL wants it counted.
fn bring_results(url: &str, above: &Path, patience: Patience) -> Result<BroughtRun, Failure> {
    let run = bring_run(url, RunFiles::Results, above, patience)?;
    let folder = above.join(&run.id);
    bundle::check_id(&folder, &run.id).map_err(|error| {
        // The private folder is removed with the command in any case.
        let _ = fs::remove_dir_all(&folder);
        let why = error.to_string().replace(&folder.display().to_string(), "the run");
        Failure::refused(format!("{}: {why}", show(url)))
    })?;
    Ok(run)
}
