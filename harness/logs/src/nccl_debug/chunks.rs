//! A stream in pieces of whole lines, each with the number of its first line, in bounded memory. The lines are read in
//! `quick` and by the reader.

use super::super::stream::LONGEST;
use memchr::{memchr_iter, memchr2, memrchr};
use std::io::{self, BufRead, Read};

#[derive(Debug)]
pub(super) struct Chunk {
    pub bytes: Vec<u8>,
    /// One-based, in the stream.
    pub first_line: u64,
}

#[derive(Debug)]
pub(super) struct Chunks<R> {
    from: R,
    size: usize,
    /// What follows the last line of the chunk before.
    rest: Vec<u8>,
    line: u64,
    is_open: bool,
    is_over: bool,
    /// What ended the stream; what was read before counts.
    error: Option<io::Error>,
}

impl<R: BufRead> Chunks<R> {
    /// Chunks of about so many bytes, which are to be more than the longest line.
    pub(super) fn new(from: R, size: usize) -> Self {
        Chunks { from, size, rest: Vec::new(), line: 1, is_open: false, is_over: false, error: None }
    }

    /// How many lines were seen.
    pub(super) fn lines(&self) -> u64 {
        self.line - 1 + u64::from(self.is_open)
    }

    /// Nothing at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Chunk>> {
        if self.is_over {
            return self.error.take().map_or(Ok(None), Err);
        }
        let mut bytes = std::mem::take(&mut self.rest);
        let wanted = self.size.saturating_sub(bytes.len()).max(1);
        bytes.reserve_exact(wanted);
        if let Err(error) = self.from.by_ref().take(wanted as u64).read_to_end(&mut bytes) {
            self.error = Some(error);
            self.is_over = true;
        }
        if self.is_over || bytes.len() < self.size {
            self.is_over = true;
            self.is_open = bytes.last().is_some_and(|byte| *byte != b'\n');
        } else {
            // A carriage return ends what was overwritten, too.
            match memrchr(b'\n', &bytes).or_else(|| memrchr(b'\r', &bytes)) {
                Some(end) => {
                    self.rest = bytes.split_off(end + 1);
                }
                None => self.pass_over(&mut bytes),
            }
        }
        if bytes.is_empty() {
            return self.next_or_error();
        }
        let first_line = self.line;
        self.line += memchr_iter(b'\n', &bytes).count() as u64;
        Ok(Some(Chunk { bytes, first_line }))
    }

    fn next_or_error(&mut self) -> io::Result<Option<Chunk>> {
        self.error.take().map_or(Ok(None), Err)
    }

    /// A line that is longer than any: its rest is left out.
    fn pass_over(&mut self, bytes: &mut Vec<u8>) {
        bytes.truncate(LONGEST.min(bytes.len()));
        loop {
            let (taken, end) = match self.from.fill_buf() {
                Ok([]) => {
                    (self.is_over, self.is_open) = (true, true);
                    return;
                }
                Ok(seen) => match memchr2(b'\n', b'\r', seen) {
                    Some(at) => (at + 1, seen.get(at).copied()),
                    None => (seen.len(), None),
                },
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.error = Some(error);
                    (self.is_over, self.is_open) = (true, true);
                    return;
                }
            };
            self.from.consume(taken);
            if let Some(end) = end {
                bytes.push(end);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, Cursor};

    fn all(text: &[u8], size: usize) -> (Vec<(u64, Vec<u8>)>, u64) {
        let mut chunks = Chunks::new(BufReader::with_capacity(7, Cursor::new(text.to_vec())), size);
        let mut all = Vec::new();
        while let Some(chunk) = chunks.next().expect("in memory") {
            all.push((chunk.first_line, chunk.bytes));
        }
        (all, chunks.lines())
    }

    #[test]
    fn chunks_end_where_lines_do_and_nothing_is_lost() {
        let text = b"one\ntwo two\r\n\nthree\rfour\nfive five five\nlast";
        for size in 16..60 {
            let (chunks, lines) = all(text, size);
            let joined: Vec<u8> = chunks.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
            assert_eq!((joined.as_slice(), lines), (text.as_slice(), 6), "chunks of {size}");
            let mut line = 1;
            for (at, (first, bytes)) in chunks.iter().enumerate() {
                assert_eq!(*first, line);
                line += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
                let is_last = at + 1 == chunks.len();
                assert!(is_last || bytes.ends_with(b"\n") || bytes.ends_with(b"\r"), "{bytes:?}");
            }
        }
    }

    #[test]
    fn the_beginning_of_a_line_without_end_is_kept() {
        let mut text = vec![b'x'; 3 * LONGEST];
        text.extend_from_slice(b"\nnext\n");
        let (chunks, lines) = all(&text, LONGEST + 10);
        assert_eq!((chunks.len(), lines, chunks[0].1.len(), chunks[1].0), (2, 2, LONGEST + 1, 2));
        assert_eq!(chunks[1].1, b"next\n");
        let (chunks, lines) = all(&vec![b'x'; 3 * LONGEST], LONGEST + 10);
        assert_eq!((chunks.len(), lines, chunks[0].1.len()), (1, 1, LONGEST));
        assert_eq!(all(b"", 10), (Vec::new(), 0));
    }

    /// Gives its bytes, and then fails.
    struct Breaks(Cursor<Vec<u8>>);

    impl Read for Breaks {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            match self.0.read(into)? {
                0 => Err(io::Error::other("the end of the disk")),
                bytes => Ok(bytes),
            }
        }
    }

    #[test]
    fn what_was_read_before_a_stream_broke_off_counts() {
        let breaks = BufReader::with_capacity(4, Breaks(Cursor::new(b"one\ntwo".to_vec())));
        let mut chunks = Chunks::new(breaks, 100);
        assert_eq!(chunks.next().expect("read").expect("a chunk").bytes, b"one\ntwo");
        assert_eq!((chunks.lines(), chunks.next().is_err()), (2, true));
        assert!(chunks.next().expect("an error is returned once").is_none());
    }
}
