//! Removes the folder of a stored run.

use super::{Home, Store, StoreError};
use std::fs;
use std::io;
use std::path::Path;

/// Removes a run and all that lies in it. One that another process holds stays, and so does a link.
pub fn remove_run(home: &Home, id: &str) -> Result<(), StoreError> {
    let store = Store::open(home, id)?;
    let (runs, folder) = (home.path().join("runs"), store.folder());
    if folder.is_symlink() {
        return Err(StoreError::other(&folder, &"a symbolic link is no run's folder"));
    }
    // Half a run is never found under its name.
    let leaving = runs.join(format!("{LEAVING}{id}"));
    fs::rename(&folder, &leaving).map_err(|error| StoreError::at(&folder, error))?;
    let latest = runs.join("latest");
    if fs::read_link(&latest).is_ok_and(|target| target.as_os_str() == id) {
        match home.runs().last().and_then(|newest| newest.file_name()?.to_str()) {
            Some(newest) => Store::at(&runs, newest).link_latest(),
            None => match fs::remove_file(&latest) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(StoreError::at(&latest, error));
                }
                _ => {}
            },
        }
    }
    fs::remove_dir_all(&leaving).map_err(|error| half_removed(&leaving, &error))
}

/// Removes the leftovers of runs whose removal was interrupted, or failed.
pub fn remove_leftovers(home: &Home) -> Vec<StoreError> {
    let entries = fs::read_dir(home.path().join("runs")).into_iter().flatten().flatten();
    let is_leaving = |entry: &fs::DirEntry| {
        entry.file_name().to_string_lossy().starts_with(LEAVING)
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
    };
    let folders = entries.filter(is_leaving).map(|entry| entry.path());
    folders.filter_map(|folder| Some(half_removed(&folder, &fs::remove_dir_all(&folder).err()?))).collect()
}

/// How the name of a run's folder begins while it is removed.
const LEAVING: &str = ".removed-";

fn half_removed(folder: &Path, error: &io::Error) -> StoreError {
    StoreError::other(folder, &format!("half removed: {error}; run this again when it can be removed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_run_is_gone_and_latest_with_it_and_one_that_is_held_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::bare(folder.path());
        let first = Store::create(&home, "first").expect("made");
        assert!(remove_run(&home, "first").is_err());
        drop(first);
        drop(Store::create(&home, "second").expect("made"));
        remove_run(&home, "first").expect("removed");
        assert!(folder.path().join("runs/latest").exists());
        remove_run(&home, "second").expect("removed");
        let left = fs::read_dir(folder.path().join("runs")).expect("read").count();
        assert_eq!(left, 0);
    }

    #[test]
    fn the_newest_that_remains_is_the_latest() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::bare(folder.path());
        for second in 1..4 {
            let store = Store::create(&home, &format!("20260101T00000{second}Z-a-0001")).expect("made");
            store.write(&store.folder().join("plan.json"), b"{}").expect("written");
        }
        remove_run(&home, "20260101T000003Z-a-0001").expect("removed");
        let latest = fs::read_link(folder.path().join("runs/latest")).expect("a link");
        assert_eq!(latest, Path::new("20260101T000002Z-a-0001"));
    }

    #[test]
    fn what_an_interrupted_removal_left_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::bare(folder.path());
        let runs = folder.path().join("runs");
        fs::create_dir_all(runs.join(".removed-a/cases")).expect("made");
        fs::create_dir_all(folder.path().join("mine")).expect("made");
        std::os::unix::fs::symlink(folder.path().join("mine"), runs.join(".removed-b")).expect("linked");
        assert!(remove_leftovers(&home).is_empty());
        assert!(!runs.join(".removed-a").exists() && folder.path().join("mine").exists());
    }
}
