//! The digest by which copies of a file are compared.

use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
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
    let mut file = File::open(path)?;
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

    #[test]
    fn a_file_has_the_digest_of_its_bytes() {
        let bytes = vec![7u8; (1 << 20) + 5];
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        std::fs::write(&path, &bytes).expect("written");
        assert_eq!(sha256_of_file(&path).expect("read"), sha256(&bytes));
    }
}
