//! Brings files of one run's folder into another's, so that a run made from another is whole by itself: it can be
//! bundled, moved, or outlive its parent. Files are shared by hard links where that is possible, for reports are large
//! and a file of a run is never written twice; a copy does where it is not.

use super::{Store, StoreError};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

impl Store {
    /// Takes over every file that is wanted, by its path in the run's folder, and is not here yet.
    pub fn carry(&self, from: &Path, wanted: &dyn Fn(&Path) -> bool) -> Result<(), StoreError> {
        for file in files(from)?.iter().filter(|file| wanted(file)) {
            let target = self.folder().join(file);
            if target.exists() {
                continue;
            }
            bring(&from.join(file), &target).map_err(|error| StoreError::at(&target, error))?;
        }
        Ok(())
    }
}

/// Every file below a folder, by its path there, sorted. Links and other special things are none of a run's files, nor
/// is what a process that was ended had not finished writing.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    walk(folder, &|is_file, is_unfinished| is_file && !is_unfinished)
}

/// What lies there and is none of its files: links, sockets and the like, none of which is followed or opened.
pub fn left_out(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    walk(folder, &|is_file, _| !is_file)
}

/// Every file below a folder that is no run, whatever its name.
pub fn every_file(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    walk_all(folder, false, &|is_file, _| is_file)
}

/// What lies in a folder that is no run and is neither file nor folder.
pub fn no_files(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    walk_all(folder, false, &|is_file, _| !is_file)
}

/// The files that a process that was ended had not finished writing.
pub fn unfinished(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    walk(folder, &|is_file, is_unfinished| is_file && is_unfinished)
}

fn walk(folder: &Path, is_wanted: &dyn Fn(bool, bool) -> bool) -> Result<Vec<PathBuf>, StoreError> {
    walk_all(folder, true, is_wanted)
}

fn walk_all(
    folder: &Path,
    is_run: bool,
    is_wanted: &dyn Fn(bool, bool) -> bool,
) -> Result<Vec<PathBuf>, StoreError> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(inner) = open.pop() {
        // Joined with an empty path it would end in a slash.
        let path = if inner.as_os_str().is_empty() { folder.to_owned() } else { folder.join(&inner) };
        let entries = fs::read_dir(&path).and_then(|entries| entries.collect::<io::Result<Vec<_>>>());
        for entry in entries.map_err(|error| StoreError::at(&path, error))? {
            let kind = entry.file_type().map_err(|error| StoreError::at(&entry.path(), error))?;
            let name = entry.file_name();
            if is_run && name == super::origin::ORIGIN && inner.as_os_str().is_empty() {
                continue;
            }
            if kind.is_dir() {
                open.push(inner.join(name));
                continue;
            }
            let is_unfinished = name.to_string_lossy().starts_with(super::atomic_file::UNFINISHED);
            if is_wanted(kind.is_file(), is_unfinished) {
                found.push(inner.join(name));
            }
        }
    }
    found.sort();
    Ok(found)
}

fn bring(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        super::atomic_file::private(true).create(folder)?;
    }
    // A file that is appended to would grow in both runs.
    let grows = from.extension().is_some_and(|extension| extension == "jsonl");
    if !grows && fs::hard_link(from, to).is_ok() {
        return Ok(());
    }
    fs::copy(from, to).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Home;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn files_are_shared_but_for_those_that_grow_and_links_are_no_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let parent = folder.path().join("parent");
        for name in ["cases/c/raw/j/out", "events.jsonl", "cases/c/raw/j/.part-1", "cases/c/verdict.json"] {
            super::super::write_whole(&parent.join(name), name.as_bytes()).expect("written");
        }
        std::os::unix::fs::symlink("/etc/passwd", parent.join("cases/c/raw/j/link")).expect("linked");
        fs::create_dir_all(folder.path().join("suites")).expect("made");
        fs::create_dir_all(folder.path().join("inventory")).expect("made");
        let home = Home::find(folder.path()).expect("home");
        let child = Store::create(&home, "child").expect("made");
        child.carry(&parent, &|file| !file.ends_with("verdict.json")).expect("carried");
        let carried = files(&child.folder()).expect("read");
        assert_eq!(carried, [Path::new("cases/c/raw/j/out"), Path::new("events.jsonl")]);
        assert_eq!(left_out(&parent).expect("read"), [Path::new("cases/c/raw/j/link")]);
        let inode = |path: PathBuf| fs::metadata(path).expect("there").ino();
        let same = |name: &str| inode(parent.join(name)) == inode(child.folder().join(name));
        assert!(same("cases/c/raw/j/out") && !same("events.jsonl"));
        // What is there already stays as it is.
        fs::write(parent.join("cases/c/verdict.json"), "other").expect("written");
        child.write(&child.folder().join("cases/c/verdict.json"), b"own").expect("written");
        child.carry(&parent, &|_| true).expect("carried");
        assert_eq!(fs::read(child.folder().join("cases/c/verdict.json")).expect("read"), b"own");
    }
}
