//! Folders in `runs/` in which bundles are opened, before they appear under their runs' ids. A process that was ended leaves
//! its own, with all that it had unpacked; the next one removes it.

use super::held::{Held, hold};
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

const BEGINS: &str = ".opening-";
/// Between making its folder and holding it a process needs less.
const LEAST_AGE: Duration = Duration::from_secs(60);
/// Where the file system knows of no holding.
const LEAST_AGE_UNHELD: Duration = Duration::from_secs(24 * 60 * 60);

/// A folder that goes with this value.
#[derive(Debug)]
pub struct Opening {
    place: TempDir,
    _held: Option<Held>,
}

impl Opening {
    /// Made in `runs`; what others left there is removed.
    pub fn begin(runs: &Path) -> io::Result<Opening> {
        let place = tempfile::Builder::new().prefix(BEGINS).tempdir_in(runs)?;
        let held = hold(place.path()).map_err(io::Error::other)?;
        // The time by which the others are dated: the clock of a file server may be hours from this machine's.
        sweep(runs, fs::metadata(place.path())?.modified()?);
        Ok(Opening { place, _held: held })
    }

    /// Of the folder.
    pub fn path(&self) -> &Path {
        self.place.path()
    }
}

/// What cannot be removed stays: it hinders nothing but takes space.
fn sweep(runs: &Path, now: SystemTime) {
    for entry in fs::read_dir(runs).into_iter().flatten().flatten() {
        let is_one = entry.file_name().to_string_lossy().starts_with(BEGINS)
            && entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_one {
            continue;
        }
        let path = entry.path();
        let changed = entry.metadata().and_then(|facts| facts.modified()).ok();
        let age = changed.and_then(|changed| now.duration_since(changed).ok()).unwrap_or_default();
        let least = match hold(&path) {
            Ok(Some(_)) => LEAST_AGE,
            Ok(None) => LEAST_AGE_UNHELD,
            Err(_) => continue,
        };
        if age > least {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn what_a_process_that_was_ended_left_is_removed_and_what_is_held_or_new_stays() {
        let runs = tempfile::tempdir().expect("a folder");
        let make = |name: &str, hours: u64| {
            let path = runs.path().join(name);
            fs::create_dir(&path).expect("made");
            fs::write(path.join("plan.json"), "{").expect("written");
            let when = SystemTime::UNIX_EPOCH + Duration::from_secs(hours * 3600);
            if hours > 0 {
                File::open(&path).and_then(|folder| folder.set_modified(when)).expect("dated");
            }
            path
        };
        let (left, held, new) = (make(".opening-a", 1), make(".opening-b", 1), make(".opening-c", 0));
        let holds = hold(&held).expect("held");
        let opening = Opening::begin(runs.path()).expect("begun");
        assert!(!left.exists() && held.exists() && new.exists() && opening.path().exists());
        drop((holds, opening));
        assert_eq!(fs::read_dir(runs.path()).expect("read").count(), 2);
        // On a file server whose clock is years behind, it was made just now, or later than that.
        for seconds in [3600 + 10, 10] {
            sweep(runs.path(), SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
            assert!(held.exists() && new.exists(), "{seconds}");
        }
        sweep(runs.path(), SystemTime::UNIX_EPOCH + Duration::from_secs(3600 + 61));
        assert!(!held.exists() && new.exists());
    }
}
