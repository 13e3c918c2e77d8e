//! Removes the folder of a stored run.

use super::{Home, Store, StoreError};
use std::fs;
use std::io;

/// Removes a run and all that lies in it. One that another process holds stays, and so does a link.
pub fn remove_run(home: &Home, id: &str) -> Result<(), StoreError> {
    let store = Store::open(home, id)?;
    let (runs, folder) = (home.path().join("runs"), store.folder());
    if folder.is_symlink() {
        return Err(StoreError::other(&folder, &"a symbolic link is no run's folder"));
    }
    // Half a run is never found under its name.
    let leaving = runs.join(format!(".removed-{id}"));
    fs::rename(&folder, &leaving).map_err(|error| StoreError::at(&folder, error))?;
    let latest = runs.join("latest");
    if fs::read_link(&latest).is_ok_and(|target| target.as_os_str() == id) {
        match fs::remove_file(&latest) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(StoreError::at(&latest, error));
            }
            _ => {}
        }
    }
    fs::remove_dir_all(&leaving).map_err(|error| StoreError::at(&leaving, error))
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
}
