//! The text of a file that a person wrote. Folders of a pull request may hold anything under such a name: a pipe would
//! never end, a device would fill the memory.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Far more than any person writes.
const MOST_BYTES: u64 = 4 << 20;

/// Of a regular file of at most 4 MiB; anything else is an error.
pub fn read(path: &Path) -> io::Result<String> {
    String::from_utf8(bytes(path)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "no text in UTF-8; save it as UTF-8"))
}

/// The same, in whatever encoding it is.
pub fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    // Asked again of what is open: it may have become another between the two.
    regular(&fs::metadata(path)?)?;
    let file = File::options().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path)?;
    regular(&file.metadata()?)?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn regular(data: &fs::Metadata) -> io::Result<()> {
    let size = data.len();
    match (data.is_file(), size > MOST_BYTES) {
        (false, _) if data.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        (false, _) => Err(io::Error::other("not a regular file")),
        (true, true) => Err(io::Error::other(format!("larger than {} MiB: {size} bytes", MOST_BYTES >> 20))),
        (true, false) => Ok(()),
    }
}
