//! A file that a job left, read without following a link and with little memory: whole where it is small, else its
//! beginning and its end.

use base::digest::Sum;
use base::redact::{How, Redactor};
use nix::fcntl::OFlag;
use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Of the beginning, and of the end.
const KEPT: usize = 2 << 20;
/// What is larger is not read to its end.
const MOST_READ: u64 = 1 << 30;

/// A text without its secrets.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RawText {
    pub text: String,
    /// Bytes between its beginning and its end that were left out.
    pub cut: u64,
    pub secrets: u64,
}

/// The text, or why it is left out. Its digest must be the one that was recorded when it was collected.
pub(super) fn read(path: &Path, sha256: &str, redactor: &Redactor) -> Result<RawText, String> {
    read_up_to(path, sha256, redactor, KEPT, MOST_READ)
}

fn read_up_to(
    path: &Path,
    sha256: &str,
    redactor: &Redactor,
    kept: usize,
    most: u64,
) -> Result<RawText, String> {
    let unreadable = |error: io::Error| format!("cannot be read: {error}");
    // Opening a pipe blocks until its other end is open, unless O_NONBLOCK is set.
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let mut file = match opened {
        Err(error) if error.raw_os_error() == Some(nix::errno::Errno::ELOOP as i32) => {
            return Err("a link, which is not followed".to_owned());
        }
        opened => opened.map_err(unreadable)?,
    };
    let facts = file.metadata().map_err(unreadable)?;
    if !facts.is_file() {
        return Err("no regular file".to_owned());
    }
    if facts.len() > most {
        return Err(format!("{} bytes, limit {most}", facts.len()));
    }
    let mut sum = Sum::default();
    let mut ends = Ends { kept, head: Vec::new(), tail: VecDeque::new(), cut: 0 };
    let mut stream = redactor.stream(How::Word);
    let (mut chunk, mut out) = (vec![0; 64 << 10], Vec::new());
    let mut left = most;
    loop {
        let count = match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(unreadable(error)),
        };
        let bytes = &chunk[..count];
        left = left.checked_sub(count as u64).ok_or("it grew while it was read")?;
        if bytes.contains(&0) {
            return Err("no text: it cannot be sanitised".to_owned());
        }
        sum.update(bytes);
        stream.push(bytes, &mut out);
        ends.push(&out);
        out.clear();
    }
    stream.finish(&mut out);
    ends.push(&out);
    if sum.to_hex() != sha256 {
        return Err("its digest is not the one recorded when it was collected".to_owned());
    }
    let secrets = stream.count();
    let (text, cut) = ends.text()?;
    Ok(RawText { text, cut, secrets })
}

/// The beginning and the end of what was pushed.
struct Ends {
    kept: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    cut: u64,
}

impl Ends {
    fn push(&mut self, bytes: &[u8]) {
        let room = self.kept.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(self.kept);
        self.tail.drain(..over);
        self.cut += over as u64;
    }

    /// Whole lines alone where something was left out: a name that is cut is not found.
    fn text(self) -> Result<(String, u64), String> {
        let Ends { mut head, tail, mut cut, .. } = self;
        let mut tail: Vec<u8> = tail.into();
        let mut gap = String::new();
        if cut > 0 {
            let is_end = |byte: &u8| *byte == b'\n';
            let (Some(end), Some(begin)) = (head.iter().rposition(is_end), tail.iter().position(is_end))
            else {
                return Err("its lines are too long to be sanitised".to_owned());
            };
            cut += (head.len() - end - 1 + begin + 1) as u64;
            head.truncate(end + 1);
            tail.drain(..=begin);
            gap = format!("[{cut} bytes left out]\n");
        }
        let text = |bytes: Vec<u8>| {
            String::from_utf8(bytes).map_err(|_| "not UTF-8: it cannot be sanitised".to_owned())
        };
        match cut {
            0 => {
                // A letter may lie across both.
                head.extend(tail);
                Ok((text(head)?, 0))
            }
            _ => Ok((text(head)? + &gap + &text(tail)?, cut)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::digest::sha256;
    use std::fs;

    fn read_bytes(bytes: &[u8], kept: usize) -> Result<RawText, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        fs::write(&path, bytes).expect("written");
        read_up_to(&path, &sha256(bytes), &Redactor::default(), kept, 1 << 20)
    }

    #[test]
    fn a_letter_that_lies_across_both_parts_is_whole() {
        let whole = RawText { text: "aé\n".to_owned(), cut: 0, secrets: 0 };
        assert_eq!(read_bytes("aé\n".as_bytes(), 2), Ok(whole));
    }

    #[test]
    fn what_was_cut_is_counted_and_a_secret_across_the_cut_is_gone() {
        let token = "HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz01234567";
        let text = format!("first\n{}{token}\n{}last\n", "middle\n".repeat(100), "middle\n".repeat(100));
        for kept in 8..800 {
            let read = read_bytes(text.as_bytes(), kept).expect("text");
            assert!(!read.text.contains("klmnop"), "{kept}: {}", read.text);
            assert!(read.text.starts_with("first\n") && read.text.ends_with("last\n"), "{kept}");
            assert_eq!(read.secrets, 1);
        }
        let read = read_bytes(text.as_bytes(), 20).expect("text");
        let middle = read.text.lines().filter(|line| *line == "middle").count();
        assert!(read.text.contains("bytes left out]") && middle < 6 && read.cut > 1000, "{read:?}");
    }

    #[test]
    fn what_cannot_be_sanitised_is_left_out_with_the_reason() {
        let why = |bytes: &[u8], kept| read_bytes(bytes, kept).expect_err("refused");
        assert!(why(b"SQLite format 3\0", 100).contains("no text"));
        assert!(why(b"\xff\xfe\n", 100).contains("not UTF-8"));
        assert!(why(&[b'x'; 500], 100).contains("too long"));
        assert!(why(&vec![b'x'; (1 << 20) + 1], 100).contains("limit 1048576"));
        let folder = tempfile::tempdir().expect("a folder");
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "x").expect("written");
        std::os::unix::fs::symlink(&file, &link).expect("linked");
        let read = |path: &Path| read(path, &sha256(b"y"), &Redactor::default()).expect_err("refused");
        assert!(read(&link).contains("link"));
        assert!(read(&file).contains("digest"));
        assert!(read(folder.path()).contains("no regular file"));
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("made");
        assert!(read(&pipe).contains("no regular file"));
    }
}
