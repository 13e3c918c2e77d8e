//! Goes through bytes that come piece by piece, and puts something else in the place of each secret: with the same
//! memory for any length, and the same result however the bytes were cut. Secrets are found by `shapes.rs` and by the
//! known values.

use super::HEAD;
use super::arguments;
use super::body::Body;
use super::known::Known;
use super::shapes::{self, LOOKS_AHEAD, LOOKS_BACK};

/// What stands where a secret stood.
pub(super) const INSTEAD: &[u8] = b"[redacted]";

/// What is put in the place of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// A word that says so.
    Word,
    /// As many asterisks, where what follows must stay where it is.
    Mask,
}

impl How {
    /// By how a file begins: in what is no text everything stays in its place.
    pub fn detect(begins: &[u8]) -> How {
        let is_text = !begins.get(..HEAD).unwrap_or(begins).contains(&0);
        if is_text { How::Word } else { How::Mask }
    }
}

/// Bytes that come piece by piece, and go on without their secrets.
pub struct Stream<'a> {
    known: &'a Known,
    how: How,
    /// Bytes received, from a little before the first one not written yet: what begins there may be incomplete.
    waiting: Vec<u8>,
    written: usize,
    body: Option<Body>,
    /// A command's password that begins further on in `waiting`, and its place.
    argument: Option<(usize, shapes::Found)>,
    count: u64,
    lines: u64,
    /// The line of the first secret, and by what it was known.
    first: Option<(u64, String)>,
}

impl<'a> Stream<'a> {
    /// At the beginning of a text; `known` are values to be hidden, whatever they look like.
    pub(crate) fn new(known: &'a Known, how: How) -> Stream<'a> {
        Stream {
            known,
            how,
            waiting: Vec::new(),
            written: 0,
            body: None,
            argument: None,
            count: 0,
            lines: 1,
            first: None,
        }
    }

    /// Takes the next bytes, and appends to `out` what can be written already.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.waiting.extend_from_slice(bytes);
        self.go_on(false, out);
    }

    /// There is no more: writes what is left.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.go_on(true, out);
    }

    /// Secrets found so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The first secret's line, from 1, and by what it is known.
    pub(crate) fn first(&self) -> Option<(u64, &str)> {
        self.first.as_ref().map(|(line, what)| (*line, what.as_str()))
    }

    /// How many bytes are held.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn go_on(&mut self, is_end: bool, out: &mut Vec<u8>) {
        let waiting = std::mem::take(&mut self.waiting);
        let ahead = LOOKS_AHEAD.max(self.known.longest());
        let end = if is_end { waiting.len() } else { waiting.len().saturating_sub(ahead) };
        let mut at = self.written;
        // What stays is written in one go.
        let mut stays = at;
        while at < end {
            let rest = &waiting[at..];
            if let Some(body) = &mut self.body {
                // Known values may go further than what they stand in seems to.
                let eaten = self.known.at(rest).map_or_else(|| body.eats(rest), |(length, _)| length);
                if eaten == 0 {
                    self.body = None;
                }
                self.hide(eaten, out);
                at += eaten;
                stays = at;
                continue;
            }
            let before = &waiting[at.saturating_sub(LOOKS_BACK)..at];
            let Some(found) = self.argument_at(at).or_else(|| self.found(before, rest)) else {
                if self.argument.is_none()
                    && let Some(found) = arguments::find(before, rest)
                {
                    let place = at + found.keep;
                    self.argument = Some((place, shapes::Found { keep: 0, ..found }));
                }
                let stop = self.argument.as_ref().map_or(end, |(place, _)| end.min(*place));
                at += 1;
                while at < stop && self.is_dull(&waiting[..at], &waiting[at..]) {
                    at += 1;
                }
                continue;
            };
            out.extend_from_slice(&waiting[stays..at + found.keep]);
            if self.how == How::Word {
                out.extend_from_slice(INSTEAD);
            }
            self.hide(found.skip, out);
            if self.first.is_none() {
                let before = waiting[self.written..at].iter().filter(|byte| **byte == b'\n').count();
                self.first = Some((self.lines + before as u64, found.what));
            }
            self.count += 1;
            self.body = found.body;
            at += found.keep + found.skip;
            stays = at;
        }
        out.extend_from_slice(&waiting[stays..at]);
        if self.first.is_none() {
            self.lines += waiting[self.written..at].iter().filter(|byte| **byte == b'\n').count() as u64;
        }
        let left = at.saturating_sub(LOOKS_BACK);
        // Bytes that are drained are behind it.
        self.argument =
            self.argument.take().and_then(|(place, found)| Some((place.checked_sub(left)?, found)));
        self.waiting = waiting;
        self.waiting.drain(..left);
        self.written = at - left;
    }

    /// The password of a command that begins here; one that lay in another secret is gone with that.
    fn argument_at(&mut self, at: usize) -> Option<shapes::Found> {
        let (place, found) = self.argument.take_if(|(place, _)| *place <= at)?;
        (place == at).then_some(found)
    }

    /// Whether nothing can begin at a byte, by what it is and what stands before it: most bytes are such.
    fn is_dull(&self, before: &[u8], rest: &[u8]) -> bool {
        !self.known.begins(rest) && !shapes::may_begin(before, rest[0])
    }

    fn found(&self, before: &[u8], rest: &[u8]) -> Option<shapes::Found> {
        match self.known.at(rest) {
            Some((skip, what)) => Some(shapes::Found { keep: 0, skip, body: None, what: what.to_owned() }),
            None => shapes::at(before, rest),
        }
    }

    fn hide(&self, bytes: usize, out: &mut Vec<u8>) {
        if self.how == How::Mask {
            out.extend(std::iter::repeat_n(b'*', bytes));
        }
    }
}
