//! The stream that `rpm2cpio` gives: entries of the newer cpio format, of which packages of rpm are made.

use super::unpack::Below;
use std::io::{self, Read};
use std::path::Path;

const MAGIC: [&[u8]; 2] = [b"070701", b"070702"];
const HEADER: usize = 110;
const END: &[u8] = b"TRAILER!!!";
/// No path is longer.
const LONGEST_NAME: u64 = 4096;

pub(super) fn unpack(mut from: impl Read, folder: &Path) -> Result<(), String> {
    let cut = |error: io::Error| format!("it is truncated or damaged ({error})");
    let mut below = Below::new(folder);
    loop {
        let mut header = [0u8; HEADER];
        from.read_exact(&mut header).map_err(cut)?;
        if !MAGIC.iter().any(|magic| header.starts_with(magic)) {
            return Err("it is not a cpio archive, or damaged".to_owned());
        }
        let field = |at: usize| -> Result<u64, String> {
            let digits = header.get(6 + 8 * at..14 + 8 * at).unwrap_or_default();
            let digits = std::str::from_utf8(digits).map_err(|_| "it is damaged (a header)")?;
            u64::from_str_radix(digits, 16).map_err(|_| "it is damaged (a header)".to_owned())
        };
        let (mode, links, size, name_size) = (field(1)?, field(4)?, field(6)?, field(11)?);
        if name_size == 0 || name_size > LONGEST_NAME {
            return Err("it is damaged (the length of a name)".to_owned());
        }
        let mut name = exactly(&mut from, name_size).map_err(cut)?;
        name.pop();
        pad(&mut from, HEADER as u64 + name_size).map_err(cut)?;
        if name == END {
            return below.finish();
        }
        let kind = mode & 0o170_000;
        match kind {
            0o040_000 => below.folder(&name)?,
            // The content of a file with several names comes with the last of them.
            0o100_000 if links > 1 && size == 0 => {
                return Err(
                    "it has a file with several hard links; unpack it, and repack it as a tar".to_owned()
                );
            }
            0o100_000 => {
                below.file(&name, (mode & 0o777) as u32, size, &mut (&mut from).take(size))?;
            }
            0o120_000 if size <= LONGEST_NAME => {
                let to = exactly(&mut from, size).map_err(cut)?;
                below.link(&name, &to)?;
            }
            _ => {
                let name = String::from_utf8_lossy(&name).into_owned();
                return Err(format!(
                    "it has an entry that is neither file, folder nor link (`{}`)",
                    name.escape_debug()
                ));
            }
        }
        pad(&mut from, size).map_err(cut)?;
    }
}

fn exactly(from: &mut impl Read, bytes: u64) -> io::Result<Vec<u8>> {
    let mut read = Vec::new();
    from.take(bytes).read_to_end(&mut read)?;
    match read.len() as u64 == bytes {
        true => Ok(read),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Everything begins at places that four divides.
fn pad(from: &mut impl Read, bytes: u64) -> io::Result<()> {
    exactly(from, bytes.wrapping_neg() % 4).map(|_| ())
}
