//! Whether a run was made here. What came in a bundle is read and never obeyed: its plan may name any folder, job and
//! command, and no person has signed it.

use super::{Store, StoreError, Stored, atomic_file};
use std::path::Path;

/// Beside the plan of a run that came in a bundle, and of what was replayed from it. It is not part of the run: the
/// bundle of such a run has the same bytes as the one that it came in.
pub(super) const ORIGIN: &str = "origin";

/// Whether the run came in a bundle, or was replayed from one that did.
pub fn is_foreign(folder: &Path) -> bool {
    folder.join(ORIGIN).symlink_metadata().is_ok()
}

/// Writes what `is_foreign` looks for.
pub fn mark_foreign(folder: &Path) -> Result<(), StoreError> {
    atomic_file::write_private_by(&folder.join(ORIGIN), &mut |file| {
        std::io::Write::write_all(file, b"bundle\n")
    })
}

impl Store {
    /// What is replayed from a run of somebody else is no run of this place either.
    pub fn comes_from(&self, parent: &Stored) -> Result<(), StoreError> {
        if is_foreign(parent.folder()) { mark_foreign(&self.folder()) } else { Ok(()) }
    }
}
