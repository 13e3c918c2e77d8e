//! The calls of a chunk, found side by side with other chunks: most lines of a large log are whole calls in plain
//! letters. Every other line is left to the reader, which takes all in their order.

use super::super::nccl_prefix::{self, Level};
use super::call::{self, Call};
use super::chunks::Chunk;
use super::hasher::Mixed;
use super::{line, ray};
use memchr::{memchr, memchr_iter};

/// Lines of a chunk in their order.
#[derive(Debug)]
pub(super) struct Parsed {
    pub chunk: Chunk,
    pub who: Vec<Who>,
    pub items: Vec<Item>,
}

/// Who wrote lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Who {
    pub host: String,
    pub pid: u64,
    pub device: Option<u64>,
}

#[derive(Debug)]
pub(super) enum Item {
    Call {
        /// From the chunk's first one, which is 0.
        line: u32,
        who: u32,
        /// Where the time stamp stands in the chunk, as far as there is one.
        stamp: Option<(u32, u32)>,
        call: Call,
    },
    /// Lines of which the first is that one, and where they stand.
    Others { line: u32, from: usize, to: usize },
}

pub(super) fn parse(chunk: Chunk) -> Parsed {
    let mut found = Found { bytes: &chunk.bytes, known: Mixed::default(), who: Vec::new() };
    let mut items: Vec<Item> = Vec::with_capacity(chunk.bytes.len() / 180);
    let (mut from, mut line) = (0, 0);
    for end in memchr_iter(b'\n', &chunk.bytes) {
        match found.call(from, end) {
            Some((who, stamp, call)) => items.push(Item::Call { line, who, stamp, call }),
            None => others(&mut items, line, from, end + 1),
        }
        (from, line) = (end + 1, line + 1);
    }
    if from < chunk.bytes.len() {
        // It has no end: what it says may be cut.
        others(&mut items, line, from, chunk.bytes.len());
    }
    let who = found.who;
    Parsed { chunk, who, items }
}

/// Lines that follow each other are one item.
fn others(items: &mut Vec<Item>, line: u32, from: usize, to: usize) {
    match items.last_mut() {
        Some(Item::Others { to: end, .. }) => *end = to,
        _ => items.push(Item::Others { line, from, to }),
    }
}

struct Found<'a> {
    bytes: &'a [u8],
    /// By what stands before the mark of NCCL.
    known: Mixed<&'a [u8], u32>,
    who: Vec<Who>,
}

type Place = Option<(u32, u32)>;

impl Found<'_> {
    /// Nothing for a line that is not plainly a call.
    fn call(&mut self, from: usize, end: usize) -> Option<(u32, Place, Call)> {
        let line = self.bytes.get(from..end)?;
        // Letters that a terminal obeys, and those beyond ASCII, are the reader's business. All bytes are looked at,
        // none by a branch.
        let is_plain = line.iter().fold(true, |plain, byte| plain & byte.wrapping_sub(0x20).lt(&0x5f));
        if !is_plain || ray::may_be_repeated(line) {
            return None;
        }
        let at = mark(line)?;
        let text = std::str::from_utf8(line.get(at + b"NCCL INFO ".len()..)?).ok()?;
        let call = call::quick(text.trim_end())?;
        let before = line.get(..at)?;
        let stamp_end = stamp_end(before);
        let prefix = before.get(stamp_end..)?;
        let stamp = match stamp_end {
            0 => None,
            _ => {
                let before = std::str::from_utf8(before.get(..stamp_end)?).ok()?;
                let (cells, stamp) = nccl_prefix::stamp(before)?;
                let begin = from + cells.len() + 1;
                Some((u32::try_from(begin).ok()?, u32::try_from(begin + stamp.len()).ok()?))
            }
        };
        if let Some(who) = self.known.get(prefix) {
            return Some((*who, stamp, call));
        }
        let whole = std::str::from_utf8(line.get(stamp_end..)?).ok()?;
        let split = line::split(whole).filter(|it| it.level == Level::Info && !it.host.is_empty())?;
        let who = u32::try_from(self.who.len()).ok()?;
        self.who.push(Who { host: split.host.to_owned(), pid: split.pid, device: split.device });
        self.known.insert(self.bytes.get(from + stamp_end..from + at)?, who);
        Some((who, stamp, call))
    }
}

/// Where the first mark of NCCL begins, if it is that of a line of information.
fn mark(line: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + memchr(b'N', line.get(from..)?)?;
        let rest = line.get(at..)?;
        if rest.starts_with(b"NCCL ") {
            return rest.starts_with(b"NCCL INFO ").then_some(at);
        }
        from = at + 1;
    }
}

/// Where a time stamp before the process ends; 0 where there is none. Other brackets belong to who wrote the line.
fn stamp_end(before: &[u8]) -> usize {
    let process = before.len().saturating_sub(2);
    let Some(end) = before.get(..process).and_then(|part| part.windows(2).rposition(|two| two == b"] "))
    else {
        return 0;
    };
    let open = before.get(..end).and_then(|part| part.iter().rposition(|byte| *byte == b'['));
    let begins = open.and_then(|open| before.get(open + 1)).is_some_and(u8::is_ascii_digit);
    // Of fewer letters it is the device of another line, or a rank.
    if begins && open.is_some_and(|open| end - open > 8) { end + 2 } else { 0 }
}
