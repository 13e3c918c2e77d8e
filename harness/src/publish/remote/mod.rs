//! Reports in object stores as inputs: a private folder here has the names and sizes of what lies there. Of Parquet only
//! the columns that are read are brought, each once; other exports are fetched whole before they are read.

mod columns;
mod listing;
mod run;
mod runs;

use super::failure::Failure;
use super::prefix::{Patience, Prefix};
use base::text::{count, show};
use columns::RemoteColumns;
use indicatif::BinaryBytes;
pub use listing::readable_paths;
use listing::{Listed, listing};
use nsys::export::{SourceGuard, register};
pub(crate) use run::RunFiles;
use runs::RemoteRuns;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::Stored;
use store::trust::check_temporary;
use tempfile::TempDir;
use tokio::runtime::Builder;

/// As each of them begins.
const SCHEMES: [&str; 4] = ["s3://", "gs://", "az://", "file://"];
/// How patient requests are; `publish` and `fetch` have options for it.
const PATIENCE: Patience = Patience { request_timeout_s: 120, retries: 8 };

/// Whether an input lies in a store.
pub(crate) fn is_remote(input: &Path) -> bool {
    input.to_str().is_some_and(|text| SCHEMES.iter().any(|scheme| text.starts_with(scheme)))
}

/// The run that is published at a URL, as long as the value is held.
pub(crate) fn open_run(url: &str, files: RunFiles) -> Result<Stored, Failure> {
    run::open(url, files, PATIENCE)
}

/// The newest of the runs that are published below a URL, at most so many.
pub(crate) fn open_runs(url: &str, most: usize) -> Result<RemoteRuns, Failure> {
    RemoteRuns::open(url, most, PATIENCE)
}

/// The inputs of a command, those in stores opened. What was brought is removed with this value.
pub(crate) struct RemoteInputs {
    /// In the order of the inputs: as they were given, or where they are read here.
    pub paths: Vec<PathBuf>,
    opened: Vec<Opened>,
    // Behind what names its files: a source is forgotten before its folder is removed.
    _folder: Option<TempDir>,
}

struct Opened {
    /// Where it is read, and what it was named.
    root: PathBuf,
    url: String,
    columns: Arc<RemoteColumns>,
    _guard: SourceGuard,
}

impl RemoteInputs {
    /// Looks at what lies where the inputs lead; others are left as they are.
    pub(crate) fn open(inputs: &[PathBuf]) -> Result<RemoteInputs, Failure> {
        RemoteInputs::open_with(inputs, PATIENCE)
    }

    fn open_with(inputs: &[PathBuf], patience: Patience) -> Result<RemoteInputs, Failure> {
        let mut all = RemoteInputs { paths: inputs.to_vec(), opened: Vec::new(), _folder: None };
        if !inputs.iter().any(|input| is_remote(input)) {
            return Ok(all);
        }
        let folder = private_folder()?;
        // The system may name it by a link.
        let root = folder.path().canonicalize().map_err(Failure::refused)?;
        all._folder = Some(folder);
        for (nth, path) in all.paths.iter_mut().enumerate().filter(|(_, path)| is_remote(path)) {
            let url = path.to_string_lossy().into_owned();
            let opened = Opened::new(&url, &root.join(nth.to_string()), patience)?;
            *path = opened.root.clone();
            all.opened.push(opened);
        }
        Ok(all)
    }

    /// The name of a path that is read here, as a person gave it.
    pub(crate) fn as_given(&self, text: &str) -> String {
        self.opened.iter().fold(text.to_owned(), |text, opened| {
            text.replace(&*opened.root.to_string_lossy(), &show(&opened.url))
        })
    }

    /// Whether a path is that of something that was brought here, where nothing is to be written.
    pub(crate) fn is_opened(&self, path: &Path) -> bool {
        // A report's name may be without the ending of its export.
        self.opened.iter().filter_map(|opened| opened.root.parent()).any(|folder| path.starts_with(folder))
    }

    /// What was read of each, for a person.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.opened.iter().map(Opened::note).collect()
    }
}

impl Opened {
    fn new(url: &str, folder: &Path, patience: Patience) -> Result<Opened, Failure> {
        // Connections live as long as it does.
        let runtime = Builder::new_current_thread().enable_all().build().map_err(Failure::interrupted)?;
        let prefix = Prefix::open(url, patience, false)?;
        let Listed { name, files, left_out } = runtime.block_on(async {
            prefix.check_credentials().await?;
            listing(&prefix).await
        })?;
        for what in &left_out {
            eprintln!("note: {}: {}", show(url), show(what));
        }
        // Exports are known by the name of their folder.
        let root = folder.join(&name);
        let at = |path: &Path, error: &dyn std::fmt::Display| {
            Failure::interrupted(format!("{}: {error}", path.display()))
        };
        for file in &files {
            let path = root.join(&file.path);
            let above = path.parent().unwrap_or(&root);
            fs::create_dir_all(above).map_err(|error| at(above, &error))?;
            let made = File::create_new(&path).map_err(|error| at(&path, &error))?;
            // It takes no room until something of it is written.
            made.set_len(file.bytes).map_err(|error| at(&path, &error))?;
        }
        let columns = RemoteColumns::new(runtime, prefix, &root, files);
        columns.fetch_whole()?;
        let columns = Arc::new(columns);
        let guard = register(&root, columns.clone());
        Ok(Opened { root, url: url.to_owned(), columns, _guard: guard })
    }

    fn note(&self) -> String {
        let (read, requests) = self.columns.read_so_far();
        format!(
            "{}: {} of {} read, in {}",
            show(&self.url),
            BinaryBytes(read),
            BinaryBytes(self.columns.bytes()),
            count(requests, "request")
        )
    }
}

/// Reports hold names and command lines of whoever ran them: only this user reads what is brought.
fn private_folder() -> Result<TempDir, Failure> {
    let temporary = std::env::temp_dir();
    let mut builder = tempfile::Builder::new();
    builder.prefix(".harness-inputs-").permissions(Permissions::from_mode(0o700));
    let made = check_temporary(&temporary).and_then(|()| builder.tempdir_in(&temporary));
    made.map_err(|error| Failure::refused(format!("cannot create a folder for remote inputs: {error}")))
}
