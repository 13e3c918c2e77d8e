//! From the word that names a stored run to the run: its folder, or a bundle that is opened first.

use crate::bundle;
use store::{Home, Named, Stored, is_foreign};

/// The same, but of a run that was made here: for what obeys its plan.
pub(super) fn open_own(home: &Home, word: &str) -> Result<Stored, String> {
    let stored = open(home, word)?;
    match is_foreign(stored.folder()) {
        true => Err(foreign(word)),
        false => Ok(stored),
    }
}

/// Why a run that came in a bundle is not obeyed.
pub(super) fn foreign(word: &str) -> String {
    format!(
        "this run came in a bundle, which nobody has signed: it is not cleaned, resumed, rerun, fetched for or taken for evidence; \
         read it by `--from analyze`, or begin a new run: `{word}`"
    )
}

/// The run's folder, opened for reading; or why it cannot be, in words for a person.
pub(super) fn open(home: &Home, word: &str) -> Result<Stored, String> {
    let folder = match home.find_run(word)? {
        Named::Folder(folder) => folder,
        Named::Archive(file) => {
            let opened = bundle::open(home, &file).map_err(|error| error.to_string())?;
            eprintln!("opened: runs/{}/", opened.file_name().unwrap_or_default().display());
            opened
        }
    };
    Stored::open(&folder).map_err(|error| error.to_string())
}
