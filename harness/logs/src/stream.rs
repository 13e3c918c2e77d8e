//! A stream as lines, in bounded memory: a log may be larger than the machine. What a line says is its reader's business.

use super::text::{without_escapes, without_tags};
use std::borrow::Cow;
use std::io::{self, BufRead};

/// Of a longer line the rest is left out.
pub(super) const LONGEST: usize = 64 << 10;

/// What stands between two line breaks, or between two carriage returns: what those overwrote was there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// One-based, of the line: carriage returns do not count.
    pub line: u64,
    /// Without its end, at most 64 KiB.
    pub text: String,
    /// Whether a line break or a carriage return followed; without one it may be cut.
    pub ended: bool,
    /// Whether its rest was left out.
    pub too_long: bool,
}

impl Piece {
    /// Its text without what terminals obey and without the tags that mpirun writes within lines. Labels and time stamps
    /// before it stay.
    pub fn plain(&self) -> Cow<'_, str> {
        match without_escapes(&self.text) {
            Cow::Borrowed(text) => without_tags(text),
            Cow::Owned(text) => Cow::Owned(without_tags(&text).into_owned()),
        }
    }
}

/// The pieces of a stream; empty ones are left out.
pub struct Pieces<R> {
    from: R,
    line: u64,
    /// Whether text stands behind the last line break.
    is_open: bool,
}

impl<R: BufRead> Pieces<R> {
    /// Counts lines from 1.
    pub fn new(from: R) -> Self {
        Pieces { from, line: 1, is_open: false }
    }

    /// How many lines were seen.
    pub(crate) fn lines(&self) -> u64 {
        self.line - 1 + u64::from(self.is_open)
    }

    /// Nothing at the end.
    pub fn next_piece(&mut self) -> io::Result<Option<Piece>> {
        let mut bytes: Vec<u8> = Vec::new();
        let mut too_long = false;
        loop {
            let (taken, end) = {
                let seen = match self.from.fill_buf() {
                    Ok(seen) => seen,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error),
                };
                if seen.is_empty() {
                    self.is_open |= !bytes.is_empty();
                    let is_any = !bytes.is_empty();
                    let piece = Piece { line: self.line, text: text(bytes), ended: false, too_long };
                    return Ok(is_any.then_some(piece));
                }
                let end = first_end(seen);
                let part = &seen[..end.unwrap_or(seen.len())];
                let room = LONGEST - bytes.len();
                too_long |= part.len() > room;
                bytes.extend_from_slice(&part[..part.len().min(room)]);
                (part.len() + usize::from(end.is_some()), end.map(|at| seen[at]))
            };
            self.from.consume(taken);
            let Some(end) = end else { continue };
            let line = self.line;
            self.line += u64::from(end == b'\n');
            if !bytes.is_empty() {
                return Ok(Some(Piece { line, text: text(bytes), ended: true, too_long }));
            }
        }
    }
}

/// Where a line or what is overwritten ends. Most of a log is none of it: pieces are looked through as a whole first.
fn first_end(bytes: &[u8]) -> Option<usize> {
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let (chunks, rest) = bytes.as_chunks::<32>();
    let has_end = |chunk: &[u8; 32]| chunk.iter().fold(false, |any, byte| any | is_end(byte));
    match chunks.iter().position(has_end) {
        Some(at) => chunks.get(at)?.iter().position(is_end).map(|within| at * 32 + within),
        None => rest.iter().position(is_end).map(|within| bytes.len() - rest.len() + within),
    }
}

/// Bytes that are no text show as such.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, Cursor};

    fn pieces(text: &str, buffer: usize) -> Vec<(u64, String, bool)> {
        let mut pieces = Pieces::new(BufReader::with_capacity(buffer, Cursor::new(text.to_owned())));
        let mut all = Vec::new();
        while let Some(piece) = pieces.next_piece().expect("a reader in memory") {
            all.push((piece.line, piece.text, piece.ended));
        }
        all
    }

    #[test]
    fn lines_and_what_carriage_returns_overwrote_are_pieces_whatever_the_buffer() {
        let text = "a\r\n10%\r20%\rdone\n\nlast";
        let expected =
            [(1, "a", true), (2, "10%", true), (2, "20%", true), (2, "done", true), (4, "last", false)];
        let expected = expected.map(|(line, text, ended)| (line, text.to_owned(), ended));
        for buffer in [1, 2, 3, 7, 100] {
            assert_eq!(pieces(text, buffer), expected, "a buffer of {buffer}");
        }
    }

    #[test]
    fn a_plain_piece_has_no_escapes_and_no_tags_of_mpirun() {
        let text = "\u{1b}[31mRank 3\u{1b}[0m[1,3]<stdout>:: x".to_owned();
        let piece = Piece { line: 1, text, ended: true, too_long: false };
        assert_eq!(piece.plain(), "Rank 3: x");
    }

    #[test]
    fn lines_of_any_length_end_where_they_end() {
        let lines: Vec<String> = (1..150).map(|length| "x".repeat(length)).collect();
        for end in ["\n", "\r"] {
            for buffer in [31, 32, 33, 64, 1 << 20] {
                let read = pieces(&(lines.join(end) + end), buffer);
                assert!(read.iter().map(|(_, text, _)| text).eq(&lines), "a buffer of {buffer}, {end:?}");
                assert!(read.iter().all(|(_, _, ended)| *ended));
            }
        }
    }

    #[test]
    fn a_line_without_an_end_takes_no_more_than_its_room() {
        let mut pieces = Pieces::new(BufReader::new(Cursor::new(vec![b'x'; 3 * LONGEST])));
        let piece = pieces.next_piece().expect("a reader in memory").expect("a piece");
        assert_eq!((piece.text.len(), piece.too_long, piece.ended), (LONGEST, true, false));
        assert_eq!(pieces.next_piece().expect("a reader in memory"), None);
        assert_eq!(pieces.lines(), 1);
    }
}
