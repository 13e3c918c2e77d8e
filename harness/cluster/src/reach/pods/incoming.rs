//! A file as it comes out of a pod: its length is announced, its digest follows it, and a stream that breaks off is
//! never a shorter file.

use crate::reach::left_file::over_limit;
use crate::reach::shell_text::{begins, ends};
use crate::reach::sink::Sink;
use base::digest::Sum;
use std::io;

/// Of what stands before and behind a file.
const LONGEST_FRAME: usize = 4 << 10;

/// Takes in what the script of a transfer prints.
pub(super) struct Incoming<'a> {
    begin: Vec<u8>,
    end: String,
    limit: u64,
    sink: &'a mut dyn Sink,
    frame: Vec<u8>,
    left: Option<u64>,
    bytes: u64,
    digest: Sum,
}

/// What came in the end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// The whole file, of so many bytes.
    Whole(u64),
    /// It was written to while it was read.
    Changed,
    /// The script ended so before the file began.
    Refused(i32),
    /// The stream broke off, or was no answer to this question.
    Cut,
}

impl<'a> Incoming<'a> {
    pub(super) fn new(mark: &str, limit: u64, sink: &'a mut dyn Sink) -> io::Result<Incoming<'a>> {
        sink.restart()?;
        let (begin, end) = (begins(mark).into_bytes(), ends(mark));
        let (frame, digest) = (Vec::new(), Sum::default());
        Ok(Incoming { begin, end, limit, sink, frame, left: None, bytes: 0, digest })
    }

    /// An error is one of the sink.
    pub(super) fn append(&mut self, mut chunk: &[u8]) -> io::Result<()> {
        if self.left.is_none() {
            self.frame.extend_from_slice(chunk);
            let Some(at) = find(&self.frame, &self.begin) else { return self.bounded() };
            let behind = at + self.begin.len();
            let line = self.frame[behind..].iter().position(|byte| *byte == b'\n');
            let Some(line) = line else { return self.bounded() };
            let text = String::from_utf8_lossy(&self.frame[behind..behind + line]).into_owned();
            let Some(size) = text.strip_prefix("size ").and_then(|size| size.parse().ok()) else {
                return self.bounded();
            };
            if size > self.limit {
                return Err(io::Error::other(over_limit(size, self.limit)));
            }
            self.left = Some(size);
            let rest = self.frame.split_off(behind + line + 1);
            self.frame.clear();
            return self.append(&rest);
        }
        let left = self.left.unwrap_or_default();
        let take = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len());
        let (file, rest) = chunk.split_at(take);
        if !file.is_empty() {
            self.sink.append(file)?;
            self.digest.update(file);
            self.bytes += file.len() as u64;
            self.left = Some(left - file.len() as u64);
        }
        chunk = rest;
        self.frame.extend_from_slice(chunk);
        self.bounded()
    }

    /// More than a frame is no answer: its end is all that counts.
    fn bounded(&mut self) -> io::Result<()> {
        if self.frame.len() > 2 * LONGEST_FRAME {
            self.frame.drain(..self.frame.len() - LONGEST_FRAME);
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Came {
        let frame = String::from_utf8_lossy(&self.frame).into_owned();
        let Some((before, code)) = frame.rsplit_once(&self.end) else { return Came::Cut };
        let Some(code) = code.strip_suffix('\n').and_then(|code| code.parse::<i32>().ok()) else {
            return Came::Cut;
        };
        match self.left {
            None if code != 0 => Came::Refused(code),
            Some(0) if code == 0 => {
                match before.trim().strip_prefix("sum ") == Some(self.digest.to_hex().as_str()) {
                    true => Came::Whole(self.bytes),
                    false => Came::Changed,
                }
            }
            // It shrank: fewer bytes came than were announced, and then what stands behind them.
            Some(_) if code == 0 => Came::Changed,
            _ => Came::Cut,
        }
    }
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::digest::sha256;

    fn text(file: &[u8], size: usize, sum: &str, code: i32) -> Vec<u8> {
        let head = format!("noise{}size {size}\n", begins("m"));
        let tail = format!("\nsum {sum}\n{}{code}\n", ends("m"));
        [head.as_bytes(), file, tail.as_bytes()].concat()
    }

    fn read(text: &[u8], chunk: usize, limit: u64) -> (Result<Came, String>, Vec<u8>) {
        let mut file = Vec::new();
        let mut incoming = Incoming::new("m", limit, &mut file).expect("begun");
        for chunk in text.chunks(chunk) {
            if let Err(error) = incoming.append(chunk) {
                return (Err(error.to_string()), file);
            }
        }
        let came = incoming.finish();
        (Ok(came), file)
    }

    #[test]
    fn a_stream_that_breaks_off_is_never_a_file() {
        let file = [b"a\0b", ends("m").as_bytes(), b"0\nmore"].concat();
        let all = text(&file, file.len(), &sha256(&file), 0);
        for chunk in [1, 7, 4096] {
            assert_eq!(read(&all, chunk, 100), (Ok(Came::Whole(file.len() as u64)), file.clone()));
        }
        for cut in 0..all.len() {
            let (came, _) = read(&all[..cut], 64, 100);
            assert_ne!(came, Ok(Came::Whole(file.len() as u64)), "{cut}");
        }
    }

    #[test]
    fn a_file_that_changes_is_too_long_or_is_refused_is_none() {
        assert_eq!(read(&text(b"abc", 3, &sha256(b"abd"), 0), 9, 100).0, Ok(Came::Changed));
        assert_eq!(read(&text(b"abc", 99, &sha256(b"abc"), 0), 9, 100).0, Ok(Came::Cut));
        let (error, file) = read(&text(b"abcde", 5, "", 0), 9, 4);
        assert_eq!((error, file), (Err("it has 5 bytes, the limit is 4".to_owned()), Vec::new()));
        let refused = format!("{}{}44\n", begins("m"), ends("m"));
        assert_eq!(read(refused.as_bytes(), 5, 100).0, Ok(Came::Refused(44)));
        let other = text(b"abc", 3, &sha256(b"abc"), 0);
        let mut file = Vec::new();
        let mut incoming = Incoming::new("n", 100, &mut file).expect("begun");
        incoming.append(&other).expect("taken");
        assert_eq!(incoming.finish(), Came::Cut);
    }

    #[test]
    fn what_goes_on_for_ever_takes_no_memory() {
        let mut file = Vec::new();
        let mut incoming = Incoming::new("m", 100, &mut file).expect("begun");
        for _ in 0..1000 {
            incoming.append(&[b'x'; 4096]).expect("taken");
        }
        assert!(incoming.frame.len() <= 2 * LONGEST_FRAME + 4096);
        assert_eq!(incoming.finish(), Came::Cut);
    }
}
