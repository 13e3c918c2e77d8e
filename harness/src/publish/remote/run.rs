//! A published run for one command: fetched into a private folder, checked by its manifest, marked as foreign, and removed
//! with the command.

use super::super::failure::Failure;
use super::super::fetch::{bring, check_room, read_manifest};
use super::super::manifest::ManifestFile;
use super::super::prefix::{Patience, Prefix};
use super::super::{bar, block_on};
use crate::bundle;
use base::text::{count, show};
use indicatif::BinaryBytes;
use std::fmt::Display;
use std::fs;
use std::path::Path;
use store::{Scratch, Stored};

/// What a command reads of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunFiles {
    All,
    /// All but what jobs left.
    Results,
}

impl RunFiles {
    fn has(self, file: &ManifestFile) -> bool {
        let is_raw = || {
            let mut names = file.path.split('/');
            names.next() == Some("cases") && names.nth(1) == Some("raw")
        };
        self == RunFiles::All || !is_raw()
    }
}

/// What was brought of a published run.
pub(super) struct BroughtRun {
    pub(super) id: String,
    pub(super) files: usize,
    /// How many are published.
    pub(super) of: usize,
    pub(super) bytes: u64,
}

/// Fetches the run that is published there into a folder of its id below a private one. Where that fails nothing stays.
pub(super) fn bring_run(
    url: &str,
    files: RunFiles,
    above: &Path,
    patience: Patience,
) -> Result<BroughtRun, Failure> {
    let refused = |why: &dyn Display| Failure::refused(format!("{}: {why}", show(url)));
    let prefix = Prefix::open(url, patience, false)?;
    cluster::interrupt::watch();
    block_on(async {
        prefix.check_credentials().await?;
        let manifest = read_manifest(&prefix).await?;
        if !manifest.is_run() {
            return Err(refused(&format!("it holds the folder `{}`, which is no run", show(&manifest.name))));
        }
        let wanted: Vec<&ManifestFile> = manifest.files.iter().filter(|file| files.has(file)).collect();
        let bytes = wanted.iter().fold(0u64, |sum, file| sum.saturating_add(file.bytes));
        check_room(above, bytes).map_err(|why| refused(&why))?;
        let folder = above.join(&manifest.name);
        fs::create_dir(&folder).map_err(|error| refused(&format!("{}: {error}", show(&manifest.name))))?;
        let bar = bar(bytes);
        let brought = bring(&prefix, &wanted, &folder, &bar).await;
        bar.finish_and_clear();
        if let Err(failure) = brought {
            // The private folder is removed with the command in any case.
            let _ = fs::remove_dir_all(&folder);
            return Err(failure);
        }
        let (files, of) = (wanted.len(), manifest.files.len());
        Ok(BroughtRun { id: manifest.name, files, of, bytes })
    })
}

/// The run that is published there.
pub(super) fn open(url: &str, files: RunFiles, patience: Patience) -> Result<Stored, Failure> {
    let refused = |why: &dyn Display| Failure::refused(format!("{}: {why}", show(url)));
    let scratch = Scratch::new().map_err(|error| refused(&format!("no private folder: {error}")))?;
    let BroughtRun { id, files: brought, of, bytes } = bring_run(url, files, scratch.path(), patience)?;
    eprintln!(
        "note: {}: {brought} of {}, {}, fetched for this command",
        show(url),
        count(of, "file"),
        BinaryBytes(bytes)
    );
    let folder = scratch.path().join(&id);
    let here = folder.display().to_string();
    let within = |error: store::StoreError| refused(&error.to_string().replace(&here, "the run"));
    match files {
        RunFiles::All => bundle::admit(&folder, &id).map_err(within)?,
        RunFiles::Results => bundle::admit_results(&folder, &id).map_err(within)?,
    }
    Stored::open_temporary(&folder, scratch).map_err(within)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_all_but_what_jobs_left() {
        let has = |path: &str| {
            let file = ManifestFile { path: path.into(), key: path.into(), bytes: 1, sha256: String::new() };
            assert!(RunFiles::All.has(&file));
            RunFiles::Results.has(&file)
        };
        for path in
            ["plan.json", "cases/raw/verdict.json", "cases/c/metrics.parquet", "raw", "cases/c/raw.json"]
        {
            assert!(has(path), "{path}");
        }
        assert!(!has("cases/c/raw/job/stdout") && !has("cases/c/raw"));
    }
}
