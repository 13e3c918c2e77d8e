//! The verb `harness logs`: prints what crate `logs` read from files of measurements, for a person or a program.
//! Nothing is judged here.

pub mod efa;
pub mod flight_recorder;
pub mod inspector;
mod joint;
#[cfg(test)]
mod message_tests;
pub mod mpi;
pub mod nccl;
pub mod nccl_tests;
mod nccl_tests_csv;
mod nccl_text;
pub mod node;
pub mod ras;
pub mod steps;
#[cfg(test)]
mod testing;

use base::text::{shorten, show};
use flate2::read::MultiGzDecoder;
use logs::encoding;
use metric::finding::Finding;
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

/// A file as a stream, gunzipped where needed; other compressions are refused by name. `-` is standard input.
fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    if path.is_dir() {
        return Err(io::Error::other("a folder; give its files, such as `runs/latest/cases/*/raw/*/stdout`"));
    }
    let from: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(path)?),
    };
    let mut from = BufReader::with_capacity(BUFFER_BYTES, from);
    let is_packed = from.fill_buf()?.starts_with(&GZIP);
    let mut from: Box<dyn BufRead> = match is_packed {
        true => Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(from))),
        false => Box::new(from),
    };
    match encoding::refusal(from.fill_buf()?) {
        Some(why) => Err(io::Error::other(why)),
        None => Ok(from),
    }
}

/// `--format`.
pub(crate) fn is_json(format: &str) -> Result<bool, String> {
    match format {
        "text" => Ok(false),
        "json" => Ok(true),
        _ => Err("expected `text` or `json`".to_owned()),
    }
}

const BUFFER_BYTES: usize = 256 << 10;
/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// One line per file, with what was read or the reason why not.
fn write_json(out: &mut dyn Write, file: &str, read: &impl Serialize) -> io::Result<()> {
    #[derive(Serialize)]
    struct JsonLine<'a, T> {
        file: &'a str,
        #[serde(flatten)]
        read: &'a T,
    }
    let line = serde_json::to_string(&JsonLine { file, read })?;
    // JSON leaves alone some of what terminals obey; these stand in strings only, where an escape means the same.
    for c in line.chars() {
        match c {
            '\x7f'..='\u{9f}' => write!(out, "\\u{:04x}", u32::from(c))?,
            c => write!(out, "{c}")?,
        }
    }
    writeln!(out)
}

fn write_finding(out: &mut dyn Write, finding: &Finding) -> io::Result<()> {
    let line = finding.line.map_or_else(String::new, |line| format!(", line {line}"));
    writeln!(out, "  finding: {}{line}: {}", visible(&finding.code), visible(&finding.message))
}

/// One line of at most 120 letters, as long as a person reads it; JSON has the rest.
fn write_short_finding(out: &mut dyn Write, finding: &Finding) -> io::Result<()> {
    let line = format!("  {}: {}", finding.code, finding.message);
    writeln!(out, "{}", shorten(&show(&line), LINE_LETTERS))
}

const LINE_LETTERS: usize = 120;

/// Says that a table has more rows than are shown.
fn write_more(out: &mut dyn Write, more: usize) -> io::Result<()> {
    match more {
        0 => Ok(()),
        more => writeln!(out, "  ... and {more} more; `--format json` prints them all"),
    }
}

/// At most one byte more than is accepted, so that a larger file is noticed.
fn bytes(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(most as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Escapes control characters of a text that comes from a file.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_control() => shown.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_reads_gzip_and_refuses_other_compressions_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let read = |bytes: &[u8]| {
            std::fs::write(&path, bytes).expect("written");
            let mut read = Vec::new();
            let opened = open(&path).and_then(|mut from| from.read_to_end(&mut read));
            opened.map(|_| read).map_err(|error| error.to_string())
        };
        let packed = |bytes: &[u8]| {
            let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packed.write_all(bytes).expect("in memory");
            packed.finish().expect("in memory")
        };
        let of_folder = open(folder.path()).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(of_folder.starts_with("a folder; give its files, such as "), "{of_folder}");
        assert_eq!(read(b"a log\n"), Ok(b"a log\n".to_vec()));
        assert_eq!(read(&packed(b"a log\n")), Ok(b"a log\n".to_vec()));
        assert_eq!(read(b""), Ok(Vec::new()));
        let table: [(&[u8], &str); 5] = [
            (b"\x28\xb5\x2f\xfd rest", "a zstd file; unpack it first"),
            (b"\xfd7zXZ\0 rest", "an xz file; unpack it first"),
            (b"BZh91AY", "a bzip2 file; unpack it first"),
            (b"\xff\xfea\0", "UTF-16 text; convert it first, with `iconv -f UTF-16 -t UTF-8`"),
            (b"\xfe\xff\0a", "UTF-16 text; convert it first, with `iconv -f UTF-16 -t UTF-8`"),
        ];
        for (bytes, why) in table {
            assert_eq!(read(bytes), Err(why.to_owned()));
            assert_eq!(read(&packed(bytes)), Err(why.to_owned()), "packed too");
        }
    }
}
