//! A file of lines beside the runs that one process at a time appends to, and that outlives it however it ends.

use super::StoreError;
use super::atomic_file::private_file;
use super::held::{Held, hold};
use super::journal::{self, Appender};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// Held until it is dropped.
#[derive(Debug)]
pub struct Lines {
    path: PathBuf,
    appender: Appender,
    _held: Option<Held>,
}

impl Lines {
    /// Makes the file where it is not there yet. The error is for a person, also where another process holds it.
    pub fn open(path: &Path) -> Result<Lines, StoreError> {
        let made = journal::open(private_file().create(true).append(true), path);
        made.map_err(|error| StoreError::at(path, error))?;
        Ok(Lines { path: path.to_owned(), appender: Appender::default(), _held: hold(path)? })
    }

    /// The lines that were written to their end.
    pub fn read<T: DeserializeOwned>(&self) -> Result<Vec<T>, StoreError> {
        journal::read(&self.path)
    }

    /// Appends one line, which is on the disk when this returns.
    pub fn append<T: Serialize>(&self, entry: &T) -> Result<(), StoreError> {
        self.appender.append(&self.path, entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_and_one_process_at_a_time_holds_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("record.jsonl");
        let lines = Lines::open(&path).expect("made");
        lines.append(&1).expect("written");
        let why = Lines::open(&path).expect_err("held").to_string();
        assert!(why.contains("another harness process"), "{why}");
        drop(lines);
        let lines = Lines::open(&path).expect("let go");
        lines.append(&2).expect("written");
        assert_eq!(lines.read::<u64>().expect("read"), [1, 2]);
    }

    #[test]
    fn a_link_or_a_pipe_in_its_place_is_refused_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        std::os::unix::fs::symlink("target", path("link")).expect("linked");
        nix::unistd::mkfifo(&path("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        let why = |name: &str| Lines::open(&path(name)).expect_err("refused").to_string();
        assert!(why("link").ends_with("link: a link, which is not followed"), "{}", why("link"));
        assert!(why("pipe").ends_with("pipe: not a regular file"), "{}", why("pipe"));
        assert!(!path("target").exists(), "made through a link");
    }
}
