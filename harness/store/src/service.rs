//! The folder of a service that goes on after it was ended at any moment: its state as one file, and the lines that it adds
//! to a journal. What is to be added stands in the state first, so that each line is written once.

use super::StoreError;
use super::atomic_file::{UNFINISHED, private, write_private_by};
use super::held::{Held, hold};
use super::journal::{self, Appender, kill_this_process};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The folder, held by one process at a time.
pub struct Service {
    folder: PathBuf,
    appender: Appender,
    _held: Option<Held>,
}

const STATE: &str = "state.json";

impl Service {
    /// Makes the folder if need be. What a process that was ended left half-written there is removed.
    pub fn open(folder: &Path) -> Result<Service, StoreError> {
        let failed = |error| StoreError::at(folder, error);
        private(true).create(folder).map_err(failed)?;
        let held = hold(folder)?;
        for entry in fs::read_dir(folder).map_err(failed)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                fs::remove_file(entry.path()).map_err(|error| StoreError::at(&entry.path(), error))?;
            }
        }
        Ok(Service { folder: folder.to_owned(), appender: Appender::default(), _held: held })
    }

    /// Of the state.
    pub fn state_path(&self) -> PathBuf {
        self.folder.join(STATE)
    }

    /// The state as it was last written; nothing the first time.
    pub fn load<T: DeserializeOwned>(&self) -> Result<Option<T>, StoreError> {
        let path = self.state_path();
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::at(&path, error)),
            Ok(_) => super::read_json(&path).map(Some),
        }
    }

    /// Writes the state, whole or not at all.
    pub fn save<T: Serialize>(&self, state: &T) -> Result<(), StoreError> {
        let path = self.state_path();
        let bytes =
            serde_json::to_vec(state).map_err(|error| StoreError::at(&path, io::Error::other(error)))?;
        let is_last = self.appender.is_last_write();
        write_private_by(&path, &mut |file| {
            if is_last {
                file.write_all(&bytes[..bytes.len() / 2])?;
                kill_this_process();
            }
            file.write_all(&bytes)
        })
    }

    /// Adds a line to the journal.
    pub fn append<T: Serialize>(&self, journal: &Path, line: &T) -> Result<(), StoreError> {
        self.appender.append(journal, line)
    }

    /// The journal's lines; one that was cut off at its end is removed.
    pub fn lines<T: DeserializeOwned>(&self, journal: &Path) -> Result<Vec<T>, StoreError> {
        journal::read(journal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_state_is_read_back_and_another_process_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state");
        let service = Service::open(&path).expect("made");
        assert_eq!(service.load::<Value>().expect("none"), None);
        service.save(&json!({"format": 1, "n": 7})).expect("written");
        assert_eq!(service.load::<Value>().expect("read"), Some(json!({"format": 1, "n": 7})));
        assert!(Service::open(&path).is_err(), "held");
        drop(service);
        fs::write(path.join(".part-x"), "half").expect("written");
        fs::write(path.join(STATE), "{").expect("written");
        let service = Service::open(&path).expect("let go");
        assert!(!path.join(".part-x").exists());
        assert!(service.load::<Value>().is_err(), "a damaged state is no first start");
    }
}
