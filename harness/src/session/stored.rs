//! Opens a stored run by its name: its folder, or a bundle that is opened first.

use crate::bundle;
use crate::memory;
use crate::publish::{RunFiles, is_remote, open_run};
use std::path::Path;
use store::vetting;
use store::{Home, Named, Stored, is_foreign};

/// Opens a run that was made here, for verbs that execute its plan.
pub(crate) fn open_own(home: &Home, word: &str) -> Result<Stored, String> {
    if is_remote(Path::new(word)) {
        return Err(foreign(word));
    }
    let stored = open(home, word)?;
    match is_foreign(stored.folder()) {
        true => Err(foreign(word)),
        false => Ok(stored),
    }
}

/// Why the plan of a run that came in a bundle is not executed.
pub(crate) fn foreign(word: &str) -> String {
    format!(
        "`{word}` came in a bundle, which is not signed: it is not cleaned, resumed, rerun, fetched for, made a baseline of or used as evidence; \
         read it with `harness replay --from analyze`, or start a new run"
    )
}

/// The id of a run whose folder lies in the project's `runs` under that id. Anything else may be a copy, and its jobs
/// another run's, which a process may be working on.
pub(crate) fn id_in_place(home: &Home, folder: &Path) -> Result<String, String> {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let runs = home.path().join("runs");
    let is_here = match (runs.join(name).canonicalize(), folder.canonicalize()) {
        (Ok(here), Ok(folder)) => !name.is_empty() && here == folder,
        _ => false,
    };
    let folder = folder.display();
    if !is_here {
        return Err(format!(
            "`{folder}` is not in `{}`: it may be a copy; work in the project where the run was started, with its id",
            runs.display()
        ));
    }
    Ok(name.to_owned())
}

/// Refuses a run that lies under another name than its plan's: it is a copy.
pub(crate) fn check_id(stored: &Stored) -> Result<(), String> {
    let (folder, id) = (stored.folder(), &stored.plan.run_id);
    match folder.file_name().is_some_and(|name| name == id.as_str()) {
        true => Ok(()),
        false => {
            let folder = base::text::show(&folder.display().to_string());
            Err(format!("`{folder}` is a copy of run `{id}`, by its plan; give that run"))
        }
    }
}

/// Opens the folder of a run for reading; the error is for a person. One in an object store is fetched for as long as
/// the value is held.
pub(crate) fn open(home: &Home, word: &str) -> Result<Stored, String> {
    open_files(home, word, RunFiles::All)
}

/// The same for who reads no file that a job left.
pub(crate) fn open_results(home: &Home, word: &str) -> Result<Stored, String> {
    open_files(home, word, RunFiles::Results)
}

fn open_files(home: &Home, word: &str, files: RunFiles) -> Result<Stored, String> {
    // A bundle of another's making unpacks to many times its size.
    memory::limit();
    if is_remote(Path::new(word)) {
        return open_run(word, files).map_err(|failure| failure.to_string());
    }
    let folder = match home.find_run(word)? {
        Named::Folder(folder) => folder,
        Named::Archive(file) => {
            let opened = bundle::open(home, &file).map_err(|error| error.to_string())?;
            eprintln!("opened: runs/{}/", opened.file_name().unwrap_or_default().display());
            opened
        }
    };
    if let Some(why) = vetting::refused(&folder) {
        return Err(format!("{}: {why}", folder.display()));
    }
    Stored::open(&folder).map_err(|error| error.to_string())
}
