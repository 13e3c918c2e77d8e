//! Files of folders that others can write: a pipe there would be waited for, and a device has no end.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Opens a file for reading; anything but a regular file is an error.
pub fn open(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("not a regular file")),
    }
}

/// What becomes another where a file is written, cut or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileVersion {
    file: (u64, u64),
    length: u64,
    modified: (i64, i64),
}

impl From<&Metadata> for FileVersion {
    fn from(metadata: &Metadata) -> FileVersion {
        FileVersion {
            file: (metadata.dev(), metadata.ino()),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

impl FileVersion {
    /// An error unless the file, looked at after it was read, is as it was before.
    pub(crate) fn check(self, after: io::Result<Metadata>) -> Result<(), String> {
        match after.is_ok_and(|after| FileVersion::from(&after) == self) {
            true => Ok(()),
            false => Err(CHANGED.to_owned()),
        }
    }
}

/// Of a file of which one part may be older than another.
pub(crate) const CHANGED: &str = "the file changed while it was read";

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;
    use std::os::unix::fs::symlink;

    #[test]
    fn pipes_devices_and_folders_are_refused_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("file"), "text").expect("written");
        symlink(path("file"), path("link")).expect("a link");
        nix::unistd::mkfifo(&path("pipe"), Mode::S_IRWXU).expect("a pipe");
        symlink("/dev/zero", path("device")).expect("a link");
        for name in ["file", "link"] {
            assert!(open(&path(name)).is_ok(), "{name}");
        }
        for path in [path("pipe"), path("device"), folder.path().to_owned()] {
            let error = open(&path).expect_err("no file").to_string();
            assert_eq!(error, "not a regular file", "{}", path.display());
        }
        assert_eq!(open(&path("absent")).expect_err("absent").kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_file_that_was_written_cut_or_replaced_has_another_version() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let look = || std::fs::metadata(&path);
        let version = || FileVersion::from(&look().expect("there"));
        std::fs::write(&path, "text").expect("written");
        let first = version();
        assert_eq!(first.check(look()), Ok(()));
        let file = File::options().write(true).open(&path).expect("opens");
        file.set_modified(std::time::UNIX_EPOCH).expect("set");
        assert_eq!(first.check(look()), Err(CHANGED.to_owned()), "written");
        let second = version();
        file.set_len(3).expect("cut");
        file.set_modified(std::time::UNIX_EPOCH).expect("set");
        assert!(second.check(look()).is_err(), "cut");
        let third = version();
        let other = folder.path().join("other");
        std::fs::write(&other, "txt").expect("written");
        File::options()
            .write(true)
            .open(&other)
            .expect("opens")
            .set_modified(std::time::UNIX_EPOCH)
            .expect("set");
        std::fs::rename(&other, &path).expect("replaced");
        assert!(third.check(look()).is_err(), "replaced");
        std::fs::remove_file(&path).expect("removed");
        assert!(third.check(look()).is_err(), "removed");
    }
}
