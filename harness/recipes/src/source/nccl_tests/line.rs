//! A file as lines without what terminals, launchers and log collectors put around them.
//! What a line says is not asked here, only where it begins and which rank's it is.

use super::{cell, row};
use crate::source::terminal::without_escapes;
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
                let (tag, text) = split_prefix(without_escapes(part));
                Line { number, tag, text, ended }
            })
    })
}

/// How many prefixes may stand before one another: a collector's time, a pod's name, a rank.
const DEPTH: usize = 4;

fn split_prefix(line: Cow<'_, str>) -> (String, Cow<'_, str>) {
    let line = match repeated_tag(&line) {
        Some(text) => Cow::Owned(text),
        None => line,
    };
    let mut tag = String::new();
    let mut begin = 0;
    for _ in 0..DEPTH {
        let Some(rest) = line.get(begin..) else { break };
        let Some(prefix) = prefix(rest) else { break };
        tag.push_str(prefix.tag);
        begin += prefix.length;
    }
    match (begin, line) {
        (0, line) => (tag, line),
        (_, Cow::Borrowed(line)) => (tag, Cow::Borrowed(line.get(begin..).unwrap_or(""))),
        (_, Cow::Owned(line)) => (tag, Cow::Owned(line.get(begin..).unwrap_or("").to_owned())),
    }
}

/// A line with its tag at its beginning alone: Open MPI 4 with --tag-output writes it before each piece of a line that the
/// program flushed, and nccl-tests flushes in the middle of its rows.
fn repeated_tag(line: &str) -> Option<String> {
    let end = line.trim_start_matches(' ').starts_with('[').then(|| mpirun_tag(line))??;
    let (tag, rest) = line.split_at_checked(end)?;
    rest.contains(tag.trim_start()).then(|| format!("{tag}{}", rest.replace(tag.trim_start(), "")))
}

/// Where the tag of mpirun at the beginning of a line ends.
fn mpirun_tag(line: &str) -> Option<usize> {
    let bare = line.trim_start_matches(' ');
    let (tag, _) = bare.strip_prefix('[')?.split_once("]<std")?;
    let length = tag.len() + 1;
    let colon = bare.get(length..)?.find(">:").filter(|colon| *colon <= 9)?;
    (length <= 128).then_some(line.len() - bare.len() + length + colon + 2)
}

struct Prefix<'a> {
    tag: &'a str,
    length: usize,
}

fn prefix(line: &str) -> Option<Prefix<'_>> {
    let bare = line.trim_start_matches(' ');
    let indent = line.len() - bare.len();
    // `[1,0]<stdout>:` of mpirun --tag-output, without a blank; later versions name the job and its launcher too.
    if let Some(length) = mpirun_tag(line) {
        return Some(Prefix { tag: bare.split_once("]<std").map_or("", |(tag, _)| tag), length });
    }
    if let Some(length) = time_stamp(bare) {
        return Some(Prefix { tag: "", length: indent + length });
    }
    // ` 12: ` of srun --label.
    if let Some((label, rest)) = bare.split_once(':')
        && label.len() <= 7
        && cell::whole(label).is_some()
        && (rest.is_empty() || rest.starts_with(' '))
    {
        return Some(Prefix { tag: label, length: indent + label.len() + 1 + usize::from(!rest.is_empty()) });
    }
    // `[0] `, `[pod/launcher/main] `, `host: `, `worker-1  | `, `> `: only before what is certainly the program's.
    let separators: [(&str, bool); 4] = [("] ", true), (": ", false), ("| ", false), ("> ", false)];
    for (separator, bracket) in separators {
        if bracket != bare.starts_with('[') {
            continue;
        }
        let Some((tag, rest)) = bare.split_once(separator) else { continue };
        let tag = tag.trim_end();
        let word = tag.len() <= 128 && !tag.contains(char::is_whitespace);
        if word && !tag.starts_with('#') && is_the_programs(rest) {
            return Some(Prefix { tag, length: line.len() - rest.len() });
        }
    }
    None
}

/// Whether a line begins as a comment, a row, or a line of NCCL does.
fn is_the_programs(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let three: Vec<&str> = words.by_ref().take(3).collect();
    text.trim_start().starts_with('#') || row::begins(&three) || three.get(1..3) == Some(&["NCCL", "INFO"])
}

/// The length of `2025-01-31T12:00:00.123Z `, with or without brackets, and of whatever joins it to the line.
fn time_stamp(text: &str) -> Option<usize> {
    let bare = text.strip_prefix('[').unwrap_or(text);
    let date = bare.get(..19)?;
    if !row::shaped(date, "dddd-dd-ddTdd:dd:dd") && !row::shaped(date, "dddd-dd-dd dd:dd:dd") {
        return None;
    }
    let rest = bare.get(19..)?;
    let zone = rest
        .trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | ':' | '+' | '-' | 'Z'));
    let zone = zone.strip_prefix(']').unwrap_or(zone);
    let rest = zone.strip_prefix(' ').or_else(|| zone.is_empty().then_some(zone))?;
    Some(text.len() - rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> (String, String) {
        let line = lines(text).next().expect("a line");
        (line.tag, line.text.into_owned())
    }

    #[test]
    fn prefixes_of_launchers_and_collectors_are_taken_off() {
        let table = [
            ("0:            8", "0", "           8"),
            (" 12: # x", "12", "# x"),
            ("[1,0]<stdout>:   8", "1,0", "   8"),
            ("[1,0]<stdout>:   8  2 float[1,0]<stdout>:  sum", "1,0", "   8  2 float  sum"),
            ("[1,0]<stdout>: 8 [1,3]<stdout>: 2", "1,0", " 8 [1,3]<stdout>: 2"),
            ("[1,0]<stderr>: x", "1,0", " x"),
            ("[prterun-a-77@1,3]<stdout>: # x", "prterun-a-77@1,3", " # x"),
            ("2025-01-31T12:00:00.123456Z # x", "", "# x"),
            ("[2025-01-31 12:00:00] 3: # x", "3", "# x"),
            ("[pod/launcher-x] # nThread 1", "pod/launcher-x", "# nThread 1"),
            ("node-1:    8  2  float  sum", "node-1", "   8  2  float  sum"),
            ("worker-1  | # nThread", "worker-1", "# nThread"),
            ("\x1b[1;32m# x\x1b[0m", "", "# x"),
            ("\x1b]0;title\x07# x", "", "# x"),
            ("host: Test NCCL failure", "", "host: Test NCCL failure"),
            ("host:1:2 [0] NCCL INFO x", "", "host:1:2 [0] NCCL INFO x"),
        ];
        for (line, tag, text) in table {
            let read = one(line);
            assert_eq!((read.0.trim_start_matches('['), read.1.as_str()), (tag, text), "{line:?}");
        }
    }

    #[test]
    fn a_carriage_return_ends_a_line_and_does_not_count() {
        let read: Vec<_> = lines("10%\r20%\rend\r\nnext").map(|l| (l.number, l.text, l.ended)).collect();
        let expected = [(1, "10%", true), (1, "20%", true), (1, "end", true), (2, "next", false)]
            .map(|(n, t, e)| (n, t.into(), e));
        assert_eq!(read, expected);
    }
}
