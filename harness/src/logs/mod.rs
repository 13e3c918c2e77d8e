//! The verb `harness logs`: shows a person, or a program, what was read from files of measurements. How they are read is
//! `recipes::source`'s business; nothing is judged here.

pub mod mpi;
pub mod nccl;
mod nccl_shown;
pub mod nccl_tests;
pub mod steps;
#[cfg(test)]
mod testing;

use flate2::read::MultiGzDecoder;
use recipes::finding::Finding;
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

fn bytes_of(path: &Path) -> io::Result<Vec<u8>> {
    if path.as_os_str() != "-" {
        return std::fs::read(path);
    }
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A file as a stream, unpacked where it is packed; `-` is standard input.
fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let from: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(path)?),
    };
    let mut from = BufReader::with_capacity(ROOM, from);
    let is_packed = from.fill_buf()?.starts_with(&GZIP);
    match is_packed {
        true => Ok(Box::new(BufReader::with_capacity(ROOM, MultiGzDecoder::new(from)))),
        false => Ok(Box::new(from)),
    }
}

const ROOM: usize = 256 << 10;
/// With which a packed file begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// One line per file, with what was read or the reason why not.
fn write_json(out: &mut dyn Write, file: &str, read: &impl Serialize) -> io::Result<()> {
    #[derive(Serialize)]
    struct Line<'a, T> {
        file: &'a str,
        #[serde(flatten)]
        read: &'a T,
    }
    let line = serde_json::to_string(&Line { file, read })?;
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
    writeln!(out, "  finding: {}{line}: {}", shown(&finding.code), shown(&finding.message))
}

/// Text of a file without what a terminal would obey.
fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_control() => shown.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => shown.push(c),
        }
    }
    shown
}
