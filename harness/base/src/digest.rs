//! The digest by which copies of a file are compared.

use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// In 64 hexadecimal digits, lower case.
pub fn sha256(bytes: &[u8]) -> String {
    to_hex(&Sha256::digest(bytes))
}

/// The same of bytes that come piece by piece.
#[derive(Default)]
pub struct Sum(Sha256);

impl Sum {
    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Of all bytes added, as `sha256` writes it.
    pub fn to_hex(self) -> String {
        to_hex(&self.0.finalize())
    }
}

/// The same of a file that is too large to be held at once.
pub fn sha256_of_file(path: &Path) -> io::Result<String> {
    // A file of a run may lie in a folder that others can write: a pipe is not waited for, and a file that grows as fast
    // as it is read has an end.
    let file = File::options().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path)?;
    let facts = file.metadata()?;
    if !facts.is_file() && !facts.is_dir() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut file = file.take(facts.len().saturating_add(1));
    let mut digest = Sum::default();
    let mut some = vec![0; 1 << 20];
    loop {
        match file.read(&mut some)? {
            0 => return Ok(digest.to_hex()),
            read => digest.update(&some[..read]),
        }
    }
}

fn to_hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_file_has_the_digest_of_its_bytes() {
        let bytes = vec![7u8; (1 << 20) + 5];
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        std::fs::write(&path, &bytes).expect("written");
        assert_eq!(sha256_of_file(&path).expect("read"), sha256(&bytes));
    }

    #[test]
    fn pipes_and_devices_have_no_digest_and_keep_no_reader_waiting() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        nix::unistd::mkfifo(&path("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        symlink("/dev/zero", path("device")).expect("linked");
        for name in ["pipe", "device"] {
            assert_eq!(sha256_of_file(&path(name)).expect_err(name).to_string(), "not a regular file");
        }
        let failing = sha256_of_file(Path::new("/proc/self/mem")).expect_err("no disk reads there");
        assert_eq!(failing.raw_os_error(), Some(nix::libc::EIO));
    }
}
