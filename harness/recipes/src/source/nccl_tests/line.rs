//! A file as lines of the program, each with the rank that it is of. What a line says is not asked here.

use super::row;
use crate::source::{nccl_prefix, text};
use std::borrow::Cow;

/// One line of the program's own.
#[derive(Debug, Clone, PartialEq)]
pub struct Line<'a> {
    /// One-based.
    pub number: u64,
    /// What a launcher put before the line to say whose it is; empty where nothing did.
    pub tag: String,
    pub text: Cow<'a, str>,
    /// Whether a line break followed; without one the line may be cut.
    pub ended: bool,
}

/// The lines of a text. A carriage return ends a line too, but does not count: what it overwrote was there.
pub fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.split_inclusive('\n').zip(1..).flat_map(|(whole, number)| {
        let (bare, ended) = whole.strip_suffix('\n').map_or((whole, false), |bare| (bare, true));
        let bare = bare.trim_end_matches('\r');
        let last = bare.rfind('\r').map_or(0, |at| at + 1);
        bare.split('\r')
            .scan(0, move |at, part| {
                let begins_at = *at;
                *at += part.len() + 1;
                Some((part, ended || begins_at < last))
            })
            .map(move |(part, ended)| {
                let text::Plain { tag, text, .. } = text::plain(part, is_the_programs);
                Line { number, tag, text, ended }
            })
    })
}

/// Whether a line begins as a comment, a row, or a line of NCCL does.
fn is_the_programs(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let three: Vec<&str> = words.by_ref().take(3).collect();
    text.trim_start().starts_with('#') || row::begins(&three) || nccl_prefix::begins(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carriage_return_ends_a_line_and_does_not_count() {
        let read: Vec<_> = lines("10%\r20%\rend\r\nnext").map(|l| (l.number, l.text, l.ended)).collect();
        let expected = [(1, "10%", true), (1, "20%", true), (1, "end", true), (2, "next", false)]
            .map(|(n, t, e)| (n, t.into(), e));
        assert_eq!(read, expected);
    }
}
