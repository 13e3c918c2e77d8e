//! Who goes on with a run: one process at a time. The kernel lets go of what a process held, however it ended, so that
//! there is no lock that could be stale.

use super::StoreError;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::File;
use std::path::Path;

pub(crate) type Held = Flock<File>;

/// Holds the folder of a run, where the file system knows of such things.
pub(crate) fn hold(folder: &Path) -> Result<Option<Held>, StoreError> {
    let opened = File::open(folder).map_err(|error| StoreError::at(folder, error))?;
    match Flock::lock(opened, FlockArg::LockExclusiveNonblock) {
        Ok(held) => Ok(Some(held)),
        Err((_, Errno::EWOULDBLOCK)) => {
            Err(StoreError::other(folder, &"another harness process is working on this run"))
        }
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Home, Store};

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
