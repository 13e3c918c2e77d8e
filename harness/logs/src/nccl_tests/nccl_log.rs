//! Lines of NCCL's own log, alone or in the middle of a line of nccl-tests, and where the one ends and the other begins.
//! What a warning means is `failure`'s business.

use super::super::nccl_prefix::{self, Prefix};
use super::cell::{self, Cell};
use super::row;
use std::collections::HashSet;

/// A line of NCCL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LogLine<'a> {
    pub host: &'a str,
    pub warns: bool,
    pub text: &'a str,
}

/// Hosts that lines of NCCL begin with or that the list of devices names: so many, and none that is longer than a name
/// can be.
#[derive(Debug, Default)]
pub(super) struct Hosts(HashSet<String>);

const MOST_HOSTS: usize = 1 << 17;
/// Longer words are not looked at for hosts.
const LONGEST: usize = 300;

impl Hosts {
    /// Notes the host of a line that begins with one, so that it is known where one sticks to a cell.
    pub(super) fn note(&mut self, line: &str) {
        if !line.contains("NCCL ") && !line.contains("Rank ") {
            return;
        }
        let line = line.trim_start();
        if let Some((before, log)) = split(line, None)
            && before.is_empty()
            && !log.host.is_empty()
            && !self.0.contains(log.host)
        {
            self.insert(log.host);
        } else if let Some((_, rest)) = line.split_once(" on ")
            && let Some(host) = rest.split_whitespace().next()
            && line.contains("Rank ")
        {
            self.insert(host);
        }
    }

    fn insert(&mut self, host: &str) {
        if host.len() <= LONGEST && self.0.len() < MOST_HOSTS {
            self.0.insert(host.to_owned());
        }
    }
}

/// Parts a line into what nccl-tests printed and the line of NCCL that broke into it; nothing where NCCL is not in it.
pub(super) fn split<'a>(line: &'a str, hosts: Option<&Hosts>) -> Option<(&'a str, LogLine<'a>)> {
    let Some((at, text, level)) = nccl_prefix::mark(line) else {
        let at = line.find("NCCL version ")?;
        let before = line.get(..at)?;
        // In the middle of words it is prose.
        let text = line.get(at..)?;
        let ours = before.trim().is_empty() || row::begins(&before.split_whitespace().collect::<Vec<_>>());
        return ours.then_some((before, LogLine { host: "", warns: false, text }));
    };
    let warns = level == nccl_prefix::Level::Warn;
    let text = line.get(text..)?.trim_end();
    let before = line.get(..at)?;
    let Some((before, host)) = nccl_prefix::prefix(before).and_then(|prefix| host(before, &prefix, hosts))
    else {
        // No `host:pid:tid [gpu]`: the line is NCCL's all the same.
        return Some(("", LogLine { host: "", warns, text }));
    };
    Some((before, LogLine { host, warns, text }))
}

/// Parts what stands before `:pid:tid [gpu]` into cells of nccl-tests, or a launcher's label, and the host.
pub(super) fn host<'a>(
    text: &'a str,
    prefix: &Prefix<'a>,
    hosts: Option<&Hosts>,
) -> Option<(&'a str, &'a str)> {
    let Prefix { before, word, .. } = *prefix;
    // A time stamp may stand before the host, and what it sticks to ends where its bracket opens.
    if let Some((cells, _)) = nccl_prefix::stamp(before) {
        return Some((cells, word));
    }
    let words: Vec<&str> = before.split_whitespace().collect();
    let in_a_row =
        row::begins(&words) || (!words.is_empty() && words.iter().all(|word| row::may_continue(word)));
    if !in_a_row {
        return Some((before, word));
    }
    let cut = stuck(word, hosts);
    let (cell, host) = word.split_at_checked(cut)?;
    text.get(..before.len() + cell.len()).map(|before| (before, host))
}

/// The host of a line that broke into a row of nccl-tests.
pub(crate) fn log_host<'a>(text: &'a str, prefix: &Prefix<'a>) -> &'a str {
    host(text, prefix, None).map_or(prefix.word, |(_, host)| host)
}

/// Where the host begins in a word of a cell and a host. A host that is known decides; otherwise the number does, as
/// far as it goes.
fn stuck(word: &str, hosts: Option<&Hosts>) -> usize {
    let is_cell = |text: &str| {
        text.is_empty()
            || text == "-1"
            || row::may_continue(text) && !matches!(cell::figure(text), Cell::NotANumber)
    };
    if let Some(Hosts(known)) = hosts
        && word.len() <= LONGEST
    {
        for (at, _) in word.char_indices() {
            if let Some((cell, host)) = word.split_at_checked(at)
                && known.contains(host)
                && is_cell(cell)
            {
                return at;
            }
        }
    }
    let rest = word.trim_start_matches("N/A");
    if rest.len() < word.len() {
        return word.len() - rest.len();
    }
    let rest =
        word.strip_prefix('-').unwrap_or(word).trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    word.len() - rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_sticks_to_a_cell_is_separated() {
        let mut hosts = Hosts::default();
        hosts.note("10-0-0-1:22:23 [0] NCCL INFO Bootstrap");
        let table = [
            ("  8  2  float  sum  -1mew0:64:65 [1] NCCL INFO AllReduce", "  8  2  float  sum  -1", "mew0"),
            ("  8  2  float  sum  -110-0-0-1:64:65 [1] NCCL INFO x", "  8  2  float  sum  -1", "10-0-0-1"),
            ("  8  2  float  sum  -1 a:64:65 [1] NCCL INFO x", "  8  2  float  sum  -1 ", "a"),
            (
                "  83.33  100.66  100.66      0mew0:6:6 [1] NCCL INFO x",
                "  83.33  100.66  100.66      0",
                "mew0",
            ),
            ("a:6:6 [1] NCCL INFO x", "", "a"),
            ("a:6:6 [1] net.cc:626 NCCL WARN x", "", "a"),
            (
                "  8  2  float  sum  -1[2025-01-31 12:00:00] a:6:6 [1] NCCL INFO x",
                "  8  2  float  sum  -1",
                "a",
            ),
        ];
        for (line, before, host) in table {
            let read = split(line, Some(&hosts)).map(|(before, log)| (before, log.host));
            assert_eq!(read, Some((before, host)), "{line}");
        }
    }

    #[test]
    fn the_first_cell_of_a_continued_row_may_have_a_host_stuck_to_it() {
        let read = split("39657a:6:6 [1] NCCL INFO x", None).map(|(before, log)| (before, log.host));
        assert_eq!(read, Some(("", "39657a")), "a word alone is a host, whatever it begins with");
    }
}
