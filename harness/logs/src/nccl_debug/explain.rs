//! Where the scripts of `compat` are wrong on the given lines. The tables hold the right values.

use super::call::{self, OPERATIONS};
use super::compat::{self, ScriptFields};
use serde::Serialize;
use std::io::{self, BufRead};

/// One kind of error of the scripts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wrong {
    /// Lines with this error.
    pub lines: u64,
    /// The first.
    pub line: u64,
    /// For people: what the scripts make of such lines.
    pub what: &'static str,
}

const CHECKS: [&str; 10] = [
    "a label of the launcher is taken for the operation: the calls are counted under its name",
    "a call of zero elements is silently left out",
    "a data type unknown to the scripts: the call is silently left out",
    "more than 2147483647 bytes, which mawk prints as a power of ten; gawk prints them in full",
    "the bytes are those of one peer: what the call moves is as many times more as there are ranks",
    "the line of one rank is counted as a call: each rank writes a line of its own",
    "two lines in one: the second call is lost, or counted with the first one's words",
    "exactly at an edge: 64 KiB, 1 MiB or 16 MiB are counted in the upper bucket, which is called `>16MB` where they are not more",
    "NeMo writes the line of an iteration at its end: what follows it belongs to the next one, and the window is one late at \
     both ends",
    "an iteration line with other characters than blanks around the word opens no window",
];

/// Finds them.
#[derive(Debug, Default)]
pub struct Explain {
    found: [(u64, u64); CHECKS.len()],
    line: u64,
}

impl Explain {
    /// Reads one stream; its lines count from 1.
    pub fn read(&mut self, mut from: impl BufRead) -> io::Result<()> {
        self.line = 0;
        let mut line = Vec::new();
        while compat::next(&mut from, &mut line)? {
            self.line += 1;
            self.see(&String::from_utf8_lossy(&line));
        }
        Ok(())
    }

    fn see(&mut self, text: &str) {
        if text.contains("Training epoch") && text.contains("iteration") {
            match compat::iteration(text) {
                Some(45..=50) => self.found(8),
                Some(_) => {}
                None => self.found(9),
            }
        }
        let Some(seen) = ScriptFields::parse(text) else { return };
        let operation = OPERATIONS.iter().find(|operation| operation.name() == seen.operation);
        let is_two = text.matches("NCCL INFO").nth(1).is_some();
        let bytes = seen.bytes();
        let found = [
            (0, operation.is_none() && !seen.operation.is_empty()),
            (1, !seen.count.is_empty() && seen.elements() == 0.0),
            (2, seen.size == 0.0 && !seen.datatype.is_empty()),
            (3, bytes > 2_147_483_647.0),
            (4, named(text).is_some_and(|operation| operation.counts_one_peer())),
            (5, named(text).is_some_and(|operation| operation.is_collective())),
            (6, is_two),
            (7, [65_536.0, 1_048_576.0, 16_777_216.0].contains(&bytes)),
        ];
        found.into_iter().filter(|(_, is)| *is).for_each(|(at, _)| self.found(at));
    }

    fn found(&mut self, at: usize) {
        if let Some((lines, first)) = self.found.get_mut(at) {
            if *lines == 0 {
                *first = self.line;
            }
            *lines += 1;
        }
    }

    /// The errors that occurred, in a fixed order.
    pub fn finish(self) -> Vec<Wrong> {
        let all = self.found.into_iter().zip(CHECKS);
        let wrong = |((lines, line), what)| Wrong { lines, line, what };
        all.filter(|((lines, _), _)| *lines > 0).map(wrong).collect()
    }
}

/// The operation that the line is of, whatever stands before it.
fn named(text: &str) -> Option<call::Operation> {
    let name = text.split_once(": opCount")?.0.rsplit(' ').next()?;
    OPERATIONS.into_iter().find(|operation| operation.name() == name)
}
