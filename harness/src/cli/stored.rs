//! From the word that names a stored run to the run: its folder, or a bundle that is opened first.

use crate::bundle;
use crate::store::{Home, Named, Stored};

/// The run's folder, opened for reading; or why it cannot be, in words for a person.
pub fn open(home: &Home, word: &str) -> Result<Stored, String> {
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
