//! A line of a file as a line of the program, with the rank that it is of. What it says is not asked here.

use super::row;
use crate::stream::Piece;
use crate::{nccl_prefix, text};
use std::borrow::Cow;

/// One line of the program's own.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ProgramLine<'a> {
    /// One-based.
    pub number: u64,
    /// What a launcher put before the line to say whose it is; empty where nothing did.
    pub tag: String,
    pub text: Cow<'a, str>,
    /// Whether a line break followed; without one the line may be cut.
    pub ended: bool,
    /// Whether its end was left out.
    pub too_long: bool,
}

impl<'a> ProgramLine<'a> {
    pub(super) fn new(piece: &'a Piece) -> Self {
        let Piece { line: number, text, .. } = piece;
        // Some editors put a mark before the first line.
        let text = text.strip_prefix('\u{feff}').filter(|_| *number == 1).unwrap_or(text);
        let text::Plain { tag, text, .. } = text::plain(text, is_the_programs);
        ProgramLine { number: *number, tag, text, ended: piece.ended, too_long: piece.too_long }
    }

    /// `[0] ` of MPICH looks like a word of the program, and is a label only before the beginning of a line of it. Once such a
    /// label is known, it is one before the rest of a line too.
    pub(super) fn labelled(self, is_known: impl Fn(&str) -> bool) -> Self {
        let inside = self.text.strip_prefix('[').and_then(|text| text.split_once("] "));
        let label = inside.filter(|(tag, _)| tag.bytes().all(|byte| byte.is_ascii_digit()) && is_known(tag));
        let line = match label.filter(|_| self.tag.is_empty()) {
            Some((tag, rest)) => {
                ProgramLine { tag: tag.to_owned(), text: Cow::Owned(rest.to_owned()), ..self }
            }
            None => self,
        };
        match line.without_inner_labels() {
            Some(text) => ProgramLine { text: Cow::Owned(text), ..line },
            None => line,
        }
    }

    /// MPICH's launcher labels each piece that it reads, and a row is printed in pieces: `-1[0]    33594  255.70`
    /// (<https://github.com/NVIDIA/nccl/issues/1453>). NCCL's own lines have a GPU in brackets, behind a blank.
    fn without_inner_labels(&self) -> Option<String> {
        if self.tag.is_empty()
            || !self.tag.bytes().all(|byte| byte.is_ascii_digit())
            || !self.text.contains('[')
        {
            return None;
        }
        let label = format!("[{}] ", self.tag);
        let mut text = String::with_capacity(self.text.len());
        let mut rest = &*self.text;
        while let Some((before, behind)) = rest.split_once(label.as_str()) {
            // The label of another piece stands right behind the cell before.
            if before.is_empty() || before.ends_with(char::is_whitespace) {
                break;
            }
            text.push_str(before);
            text.push(' ');
            rest = behind;
        }
        text.push_str(rest);
        let words: Vec<&str> = text.split_whitespace().collect();
        let is_row = row::begins(&words) || words.iter().all(|word| row::may_continue(word));
        (is_row && text.len() < self.text.len()).then_some(text)
    }
}

/// Whether a line begins as a comment, a row, or a line of NCCL does.
fn is_the_programs(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let three: Vec<&str> = words.by_ref().take(3).collect();
    text.trim_start().starts_with('#') || row::begins(&three) || nccl_prefix::begins(text)
}
