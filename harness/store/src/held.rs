//! Who goes on with a run: one process at a time. The kernel lets go of what a process held, however it ended, so that
//! there is no lock that could be stale.

use super::StoreError;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

pub(crate) type Held = Flock<File>;

/// Holds the folder of a run, where the file system knows of such things.
pub(crate) fn hold(folder: &Path) -> Result<Option<Held>, StoreError> {
    // A pipe that took its place since it was made would be waited for.
    let flags = nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY;
    let opened = File::options().read(true).custom_flags(flags).open(folder);
    let opened = opened.map_err(|error| StoreError::at(folder, error))?;
    match Flock::lock(opened, FlockArg::LockExclusiveNonblock) {
        Ok(held) => Ok(Some(held)),
        Err((_, Errno::EWOULDBLOCK)) => {
            let path = folder.display();
            let why = format!("another harness process is working on this run; `fuser -v {path}` names it");
            Err(StoreError::other(folder, &why))
        }
        Err(_) => Ok(None),
    }
}

/// A folder by what the file system knows it as, whatever lies under its name later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FolderId {
    device: u64,
    inode: u64,
}

impl FolderId {
    /// Nothing where there is no folder, or a link.
    pub(crate) fn from_path(folder: &Path) -> Option<FolderId> {
        let facts = fs::symlink_metadata(folder).ok().filter(fs::Metadata::is_dir)?;
        Some(FolderId { device: facts.dev(), inode: facts.ino() })
    }
}

#[cfg(test)]
mod tests {
    use crate::{Home, Store};
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn nothing_is_written_into_what_took_the_place_of_the_folder_of_a_run_that_goes_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let (elsewhere, away) = (folder.path().join("elsewhere"), folder.path().join("away"));
        fs::create_dir(&elsewhere).expect("made");
        let store = Store::create(&Home::bare(folder.path()), "run").expect("made");
        let (run, file) = (store.folder(), store.folder().join("cases/c/job.json"));
        fs::rename(&run, &away).expect("moved");
        let refused = || {
            let why = store.write_json(&file, &1).expect_err("refused").to_string();
            assert!(why.contains("not the folder in which this run began"), "{why}");
            assert!(store.event(&1).is_err());
        };
        refused();
        assert!(!run.exists(), "half a run is not made again");
        symlink(&elsewhere, &run).expect("linked");
        refused();
        assert_eq!(fs::read_dir(&elsewhere).expect("read").count(), 0);
        fs::remove_file(&run).expect("removed");
        fs::create_dir(&run).expect("made");
        refused();
        fs::remove_dir(&run).expect("removed");
        fs::rename(&away, &run).expect("moved back");
        store.write_json(&file, &1).expect("written");
    }

    #[test]
    fn a_run_is_held_by_one_process_at_a_time_and_let_go_with_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::bare(folder.path());
        let store = Store::create(&home, "run").expect("made");
        let again = store.clone();
        drop(store);
        let why = Store::open(&home, "run").expect_err("held").to_string();
        assert!(why.contains("another harness process"), "{why}");
        drop(again);
        Store::open(&home, "run").expect("let go");
    }
}
