//! Checks the footer of a Parquet file before the library reads it: the library allocates as many elements as a list
//! claims to have, and aborts the process where memory runs out.

use super::thrift::Walk;
use std::io::{Read, Seek, SeekFrom};

/// Magic number and length behind the footer.
pub(super) const TAIL: u64 = 8;

/// In memory a footer takes about 30 times its length.
const LONGEST: u64 = 32 << 20;

/// Columns with all that they are nested in. The library goes down into each level by calling itself.
const COLUMNS: u64 = 500;

/// In which field of the footer the columns stand.
const SCHEMA: i64 = 2;

pub(super) fn check(file: &mut (impl Read + Seek)) -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    let length = file.seek(SeekFrom::End(0)).map_err(failed)?;
    if length < TAIL {
        return Err("too short for Parquet".to_owned());
    }
    file.seek(SeekFrom::Start(length - TAIL)).map_err(failed)?;
    let mut tail = [0; TAIL as usize];
    file.read_exact(&mut tail).map_err(failed)?;
    let start = start(tail, length)?;
    file.seek(SeekFrom::Start(start)).map_err(failed)?;
    let mut bytes = vec![0; (length - TAIL - start) as usize];
    file.read_exact(&mut bytes).map_err(failed)?;
    let most = |field: i64| (field == SCHEMA).then_some(COLUMNS);
    let walked = Walk::over(&bytes).message(&most, &mut |_, _, _| {});
    walked.ok_or_else(|| "damaged footer, or it claims more than it holds".to_owned())
}

/// Where the footer begins, by what stands behind it.
pub(super) fn start(tail: [u8; TAIL as usize], length: u64) -> Result<u64, String> {
    let [a, b, c, d, magic @ ..] = tail;
    if magic != *b"PAR1" {
        return Err("truncated: no Parquet magic at the end".to_owned());
    }
    let footer = u64::from(u32::from_le_bytes([a, b, c, d]));
    let before = length.checked_sub(TAIL).ok_or("too short for Parquet")?;
    match footer > LONGEST.min(before) {
        true => Err(format!("footer of {footer} bytes in a file of {length} bytes")),
        false => Ok(before - footer),
    }
}
