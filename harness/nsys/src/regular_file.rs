//! Files of folders that others can write: a pipe there would be waited for, and a device has no end.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a file for reading; anything but a regular file is an error.
pub fn open(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("not a regular file")),
    }
}

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
}
