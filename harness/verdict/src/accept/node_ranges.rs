//! Ranges of known nodes in a text, such as `p5-[001-004,007]`, `p5-{001..004}` or `p5-001/003`: what stands for the nodes
//! that lie in them. No range is expanded: however wide, it costs as much as it holds known nodes.

use super::words::{self, taken, window};
use base::nodeset;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Numbers of more digits count as this one.
const MOST: u64 = u64::MAX;
/// Stands for every node in a range that is not known.
const ANOTHER: &str = "another";

/// Names of nodes in lower case, by each of their numbers.
#[derive(Debug, Default)]
pub(super) struct NodeRanges {
    /// By what is before and behind a number, and the number.
    parted: HashMap<(String, String), BTreeMap<u64, BTreeSet<String>>>,
    others: HashMap<String, String>,
    /// First letters of the names.
    begins: BTreeSet<u8>,
}

impl NodeRanges {
    pub(super) fn add(&mut self, node: &str, other: &str) {
        let node = node.to_ascii_lowercase();
        let mut at = 0;
        while let Some(rest) = node.get(at..).filter(|rest| !rest.is_empty()) {
            let number = taken(rest, |c| c.is_ascii_digit());
            if !number.is_empty() {
                let behind = node.get(at + number.len()..).unwrap_or_default();
                let key = (node.get(..at).unwrap_or_default().to_owned(), behind.to_owned());
                let numbers = self.parted.entry(key).or_default();
                numbers.entry(value(number)).or_default().insert(other.to_owned());
            }
            at += number.len().max(rest.chars().next().map_or(1, char::len_utf8));
        }
        self.begins.extend(node.bytes().next());
        self.others.insert(node, other.to_owned());
    }

    /// Replaces ranges alone.
    pub(super) fn text(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let begins = words::begins_here(text.as_bytes(), at);
            let length = match begins.then(|| self.at(rest)).flatten() {
                Some((length, other)) => {
                    out.push_str(&other);
                    length
                }
                None => {
                    let length = words::step(text, at);
                    out.push_str(rest.get(..length).unwrap_or_default());
                    length
                }
            };
            at += length;
        }
        out
    }

    /// The length of a range that begins here, and what stands for it.
    pub(super) fn at(&self, rest: &str) -> Option<(usize, String)> {
        if !self.begins.contains(&rest.as_bytes().first()?.to_ascii_lowercase()) {
            return None;
        }
        let word = taken(window(rest), |c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        match rest.as_bytes().get(word.len()) {
            Some(b'[' | b'{') if !word.is_empty() => self.bracket(rest, word),
            _ => self.short(rest, word),
        }
    }

    fn bracket(&self, rest: &str, before: &str) -> Option<(usize, String)> {
        let inside = rest.get(before.len() + 1..)?;
        let numbers = taken(inside, |c| c.is_ascii_digit() || "-,.".contains(c));
        let close = if rest.as_bytes().get(before.len()) == Some(&b'[') { ']' } else { '}' };
        let behind = inside.get(numbers.len()..)?.strip_prefix(close)?;
        let long =
            taken(window(behind), |c| c.is_ascii_alphanumeric() || "-_.".contains(c)).trim_end_matches('.');
        let short = taken(window(behind), |c| c.is_ascii_alphanumeric());
        for behind in [long, short] {
            let key = (before.to_ascii_lowercase(), behind.to_ascii_lowercase());
            let Some(known) = self.parted.get(&key) else { continue };
            let found = within(known, numbers);
            if !found.is_empty() {
                return Some((before.len() + numbers.len() + 2 + behind.len(), nodeset::fold(&found)));
            }
        }
        None
    }

    /// Such as `p5-001/003`: numbers of as many digits behind a name of a known node.
    fn short(&self, rest: &str, word: &str) -> Option<(usize, String)> {
        let bytes = word.as_bytes();
        let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        for end in (1..=word.len()).filter(|end| is_digit(end - 1) && !is_digit(*end)) {
            let name = word.get(..end)?.to_ascii_lowercase();
            let Some(first) = self.others.get(&name) else { continue };
            let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
            let width = name.len() - stem.len();
            let Some(known) = self.parted.get(&(stem.to_owned(), String::new())) else { continue };
            let (mut found, mut length) = (BTreeSet::from([first.clone()]), end);
            let mut last = value(name.get(stem.len()..)?);
            while let Some((sign, number)) = next_number(rest.get(length..)?, width) {
                let this = value(number);
                let more: Vec<String> = match sign {
                    ".." => range(known, last, this).into_iter().collect(),
                    "-" if known.contains_key(&this) => range(known, last, this).into_iter().collect(),
                    _ => known.get(&this).into_iter().flatten().cloned().collect(),
                };
                if more.is_empty() {
                    break;
                }
                found.extend(more);
                last = this;
                length += sign.len() + number.len();
            }
            if length > end {
                return Some((length, nodeset::fold(&Vec::from_iter(found))));
            }
        }
        None
    }
}

/// A sign and a number of that many digits, which is the whole word. A number such as a count has no zero before it.
fn next_number(rest: &str, width: usize) -> Option<(&str, &str)> {
    let sign = ["..", "/", ",", "-", "+"].into_iter().find(|sign| rest.starts_with(sign))?;
    let behind = rest.get(sign.len()..)?;
    let number = taken(window(behind), |c| c.is_ascii_digit());
    let ends = !behind.as_bytes().get(number.len()).is_some_and(u8::is_ascii_alphanumeric);
    let is_like_a_node = number.starts_with('0') || (width > 2 && sign != ",");
    (ends && number.len() == width && width > 1 && is_like_a_node).then_some((sign, number))
}

/// What stands for the known nodes among `001-004,007`, each once.
fn within(known: &BTreeMap<u64, BTreeSet<String>>, numbers: &str) -> Vec<String> {
    let mut items: Vec<(u64, u64)> = numbers
        .split(',')
        .filter(|item| !item.is_empty())
        .map(|item| {
            let (first, last) =
                item.split_once("..").or_else(|| item.split_once('-')).unwrap_or((item, item));
            let (first, last) = (value(first), value(last));
            (first.min(last), first.max(last))
        })
        .collect();
    items.sort_unstable();
    let mut found = BTreeSet::new();
    let mut has_others = false;
    let mut next = 0;
    for (first, last) in items {
        // Each number once, however often it is written.
        let first = first.max(next);
        if first > last {
            continue;
        }
        let count = known.range(first..=last).count() as u64;
        has_others |= last - first >= count;
        found.extend(range(known, first, last));
        next = last.saturating_add(1);
    }
    if !found.is_empty() && has_others {
        found.insert(ANOTHER.to_owned());
    }
    found.into_iter().collect()
}

fn range(known: &BTreeMap<u64, BTreeSet<String>>, first: u64, last: u64) -> BTreeSet<String> {
    known.range(first.min(last)..=first.max(last)).flat_map(|(_, others)| others.iter().cloned()).collect()
}

fn value(digits: &str) -> u64 {
    let digits = taken(digits, |c| c.is_ascii_digit());
    if digits.is_empty() { 0 } else { digits.parse().unwrap_or(MOST) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges() -> NodeRanges {
        let mut ranges = NodeRanges::default();
        for (node, other) in [("p5-001", "peer-3"), ("p5-003", "peer-1"), ("p5-002", "p5-002"), ("r2n7", "x")]
        {
            ranges.add(node, other);
        }
        ranges
    }

    #[test]
    fn ranges_of_any_form_and_case_are_replaced() {
        for (text, wanted) in [
            ("on P5-[001-003] up", "on p5-002,peer-[1,3] up"),
            ("p5-{001..004} p5-{001,003}", "another,p5-002,peer-[1,3] peer-[1,3]"),
            ("p5-001/003 p5-001,003: p5-001..003", "peer-[1,3] peer-[1,3]: p5-002,peer-[1,3]"),
            ("p5-[001-99999999999999999999999]", "another,p5-002,peer-[1,3]"),
            ("r[1-2]n7 p5-[001].acme", "another,x peer-3.acme"),
            (
                "p5-[004-009] p5-[001]x q[1-3] p5-001,3.5 p5-001/004",
                "p5-[004-009] p5-[001]x q[1-3] p5-001,3.5 p5-001/004",
            ),
        ] {
            assert_eq!(ranges().text(text), wanted, "{text}");
        }
    }

    #[test]
    fn a_wide_range_costs_no_more_than_the_nodes_in_it() {
        let text = "x p5-[1-60000] y\n".repeat(5_000);
        assert_eq!(ranges().text(&text), "x another,p5-002,peer-[1,3] y\n".repeat(5_000));
    }
}
