//! Sets of nodes as Slurm and ClusterShell write them (`p5-[001-003,040],login1`), and the natural order of names.
//! It knows names only; which nodes there are is the inventory's business.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// More names than any cluster has: a slip such as `[1-99999999]` must not fill the memory.
const MOST: usize = 100_000;

/// Numbers of more digits than this are read as text, so that every number fits its type.
const MOST_DIGITS: usize = 18;

/// The names that `text` stands for, in the order written. Leading zeros are kept, several brackets may stand in one
/// name, a range may have a step (`[1-9/2]`).
pub fn expand(text: &str) -> Result<Vec<String>, String> {
    if text.trim().is_empty() {
        return Err("node set is empty".to_owned());
    }
    let mut names: Vec<String> = Vec::new();
    for (at, item) in split(text)? {
        if let Some(range) = range_meant(item) {
            return Err(format!("`{}`: a range is written `{range}`", quoted(item)));
        }
        let (parts, count) = parts_of(item, at)?;
        if names.len().saturating_add(count) > MOST {
            return Err(format!("`{}`: more than {MOST} nodes", quoted(item)));
        }
        names.extend(product(&parts));
    }
    let mut seen = BTreeSet::new();
    for name in &names {
        check_name(name)?;
        if !seen.insert(name.as_str()) {
            return Err(format!("node `{}` is named twice; name it once", quoted(name)));
        }
    }
    Ok(names)
}

/// `p5-[001-004]` for `p5-001..p5-004`, or for the same with a colon.
fn range_meant(item: &str) -> Option<String> {
    let (first, last) = item.split_once("..").or_else(|| item.split_once(':'))?;
    let digits = |name: &str| name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (stem, from) = first.split_at_checked(first.len() - digits(first))?;
    let (other, to) = last.split_at_checked(last.len() - digits(last))?;
    let is_range = !from.is_empty() && !to.is_empty() && (other == stem || other.is_empty());
    Some(if is_range { format!("{}[{from}-{to}]", quoted(stem)) } else { "p5-[001-004]".to_owned() })
}

/// The items of a comma list with the place (from 1) of each; commas within brackets do not part.
pub fn split(text: &str) -> Result<Vec<(usize, &str)>, String> {
    let mut items = Vec::new();
    let mut open: Option<usize> = None;
    let mut start = 0;
    let ends = text.char_indices().chain([(text.len(), ',')]);
    for (at, character) in ends {
        match (character, open) {
            ('[', Some(_)) => {
                return Err(format!("`{}`: nested `[` at position {}", quoted(text), at + 1));
            }
            ('[', None) => open = Some(at),
            (']', None) => return Err(format!("`{}`: `]` without `[` at position {}", quoted(text), at + 1)),
            (']', Some(_)) => open = None,
            (',', None) => {
                let item = text.get(start..at).unwrap_or_default();
                let blanks = item.len() - item.trim_start().len();
                if item.trim().is_empty() {
                    let names: Vec<&str> =
                        text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
                    return Err(format!(
                        "`{}`: empty name between commas at position {}; write `{}`",
                        quoted(text),
                        start + 1,
                        quoted(&names.join(","))
                    ));
                }
                items.push((start + blanks + 1, item.trim()));
                start = at + 1;
            }
            _ => {}
        }
    }
    match open {
        Some(at) => {
            let text = quoted(text);
            Err(format!("`{text}`: `[` without `]` at position {}; write `{text}]`", at + 1))
        }
        None => Ok(items),
    }
}

/// As a message quotes it: in one line, which neither a terminal nor a CI obeys.
fn quoted(text: &str) -> String {
    text.escape_debug().to_string()
}

/// The shortest range form, sorted: `expand` of it gives the same names, sorted and each once.
pub fn fold<S: AsRef<str>>(nodes: &[S]) -> String {
    let mut names: Vec<&str> = nodes.iter().map(AsRef::as_ref).collect();
    names.sort_by(|a, b| compare(a, b));
    names.dedup();
    let mut items: Vec<String> = Vec::new();
    let mut rest = names.as_slice();
    while let Some((first, after)) = rest.split_first() {
        let bracket = after.first().and_then(|second| Bracket::between(first, second));
        let Some(bracket) = bracket else {
            items.push((*first).to_owned());
            rest = after;
            continue;
        };
        let numbers: Vec<&str> = rest.iter().map_while(|name| bracket.number_of(name)).collect();
        rest = rest.get(numbers.len()..).unwrap_or_default();
        items.push(format!("{}[{}]{}", bracket.before, ranges(&numbers), bracket.behind));
    }
    items.join(",")
}

/// Natural order: numbers within names by their value, so that `rdmap79s0` comes before `rdmap201s0`.
pub fn compare(a: &str, b: &str) -> Ordering {
    chunks(a).cmp(&chunks(b)).then_with(|| a.cmp(b))
}

/// In natural order, as `compare` has it.
pub fn sort<S: Borrow<str>>(names: &mut [S]) {
    names.sort_by(|a, b| compare(a.borrow(), b.borrow()));
}

enum Part {
    Text(String),
    Choice(Vec<String>),
}

fn parts_of(item: &str, at: usize) -> Result<(Vec<Part>, usize), String> {
    let mut parts = Vec::new();
    let mut rest = item;
    let mut count: usize = 1;
    while let Some((text, after)) = rest.split_once('[') {
        parts.push(Part::Text(text.to_owned()));
        let (inside, after) = after.split_once(']').unwrap_or((after, ""));
        let place = at + (item.len() - rest.len()) + text.len() + 1;
        let choices =
            choices(inside).map_err(|why| format!("`{}`: {why}, at position {place}", quoted(item)))?;
        count = count.saturating_mul(choices.len());
        if count > MOST {
            return Err(format!("`{}`: more than {MOST} nodes", quoted(item)));
        }
        parts.push(Part::Choice(choices));
        rest = after;
    }
    parts.push(Part::Text(rest.to_owned()));
    Ok((parts, count))
}

fn choices(inside: &str) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for range in inside.split(',') {
        let (range, step) = match range.split_once('/') {
            Some((range, step)) => (range, number(step)?),
            None => (range, 1),
        };
        let Some((low, high)) = range.split_once('-') else {
            number(range)?;
            all.push(range.to_owned());
            continue;
        };
        let (first, last) = (number(low)?, number(high)?);
        if first > last {
            let (low, high) = (quoted(low), quoted(high));
            return Err(format!("range `{low}-{high}` runs backwards, write `{high}-{low}`"));
        }
        if low.len() > high.len() || (high.starts_with('0') && high.len() != low.len()) {
            let width = low.len().max(high.len());
            let meant = format!("{first:0width$}-{last:0width$}");
            let range = quoted(range);
            return Err(format!(
                "both ends of range `{range}` need the same number of digits, write `{meant}`"
            ));
        }
        if step == 0 {
            return Err(format!("range `{}/0` has step 0", quoted(range)));
        }
        if (last - first) / step >= MOST as u64 {
            return Err(format!("range `{}` has more than {MOST} nodes", quoted(range)));
        }
        let width = low.len();
        let mut value = first;
        while value <= last {
            all.push(format!("{value:0width$}"));
            value += step;
        }
        if all.len() > MOST {
            return Err(format!("range `{}` has more than {MOST} nodes", quoted(range)));
        }
    }
    Ok(all)
}

fn number(digits: &str) -> Result<u64, String> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("`{}` in brackets is not a number or a range of numbers", quoted(digits)));
    }
    if digits.len() > MOST_DIGITS {
        return Err(format!("number `{}` has more than {MOST_DIGITS} digits", quoted(digits)));
    }
    digits.parse().map_err(|_| format!("`{}` is not a number", quoted(digits)))
}

fn product(parts: &[Part]) -> Vec<String> {
    let mut names = vec![String::new()];
    for part in parts {
        match part {
            Part::Text(text) => names.iter_mut().for_each(|name| name.push_str(text)),
            Part::Choice(choices) => {
                names = names
                    .iter()
                    .flat_map(|name| choices.iter().map(move |choice| format!("{name}{choice}")))
                    .collect();
            }
        }
    }
    names
}

/// Names go into command lines and become folders, so nothing that a shell or a path would read is let in.
fn check_name(name: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if let Some(odd) = name.chars().find(|c| !allowed(*c)) {
        let names: Vec<&str> = name.split_whitespace().collect();
        let meant = match names.len() > 1 && names.iter().all(|name| name.chars().all(allowed)) {
            true => format!("; write `{}`", names.join(",")),
            false => String::new(),
        };
        return Err(format!(
            "node name {name:?} contains {odd:?}; allowed are letters, digits, `-`, `_` and `.`{meant}"
        ));
    }
    if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Err(format!("node name `{}` must begin with a letter or digit", quoted(name)));
    }
    if name.len() > 255 {
        return Err(format!("node name has {} characters, limit 255", name.len()));
    }
    Ok(())
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Chunk<'a> {
    Number(u64),
    Text(&'a str),
}

fn chunks(name: &str) -> Vec<Chunk<'_>> {
    runs(name)
        .into_iter()
        .map(|(start, end)| {
            let run = name.get(start..end).unwrap_or_default();
            if is_number(run) {
                run.parse().map_or(Chunk::Text(run), Chunk::Number)
            } else {
                Chunk::Text(run)
            }
        })
        .collect()
}

/// Where the runs of digits and of other characters begin and end.
fn runs(name: &str) -> Vec<(usize, usize)> {
    let bytes = name.as_bytes();
    let mut runs = Vec::new();
    let mut start = 0;
    for at in 1..=bytes.len() {
        let ends = match (bytes.get(at - 1), bytes.get(at)) {
            (Some(before), Some(here)) => before.is_ascii_digit() != here.is_ascii_digit(),
            _ => true,
        };
        if ends {
            runs.push((start, at));
            start = at;
        }
    }
    runs
}

fn is_number(run: &str) -> bool {
    !run.is_empty() && run.len() <= MOST_DIGITS && run.bytes().all(|byte| byte.is_ascii_digit())
}

/// What stands before and behind the one number in which neighbouring names differ.
struct Bracket<'a> {
    before: &'a str,
    behind: &'a str,
}

impl<'a> Bracket<'a> {
    fn between(first: &'a str, second: &str) -> Option<Bracket<'a>> {
        runs(first).into_iter().rev().find_map(|(start, end)| {
            let bracket = Bracket { before: first.get(..start)?, behind: first.get(end..)? };
            bracket.number_of(first)?;
            bracket.number_of(second)?;
            Some(bracket)
        })
    }

    fn number_of<'n>(&self, name: &'n str) -> Option<&'n str> {
        let number = name.strip_prefix(self.before)?.strip_suffix(self.behind)?;
        is_number(number).then_some(number)
    }
}

/// Numbers in natural order as ranges; one follows another only where counting on from the first would write it so.
fn ranges(numbers: &[&str]) -> String {
    let mut items: Vec<(&str, &str, u64)> = Vec::new();
    for number in numbers {
        let value: u64 = number.parse().unwrap_or_default();
        match items.last_mut() {
            Some((low, high, last)) if value == *last + 1 && follows(low, value, number) => {
                (*high, *last) = (number, value);
            }
            _ => items.push((number, number, value)),
        }
    }
    let quoted = |(low, high, _): &(&str, &str, u64)| {
        if low == high { (*low).to_owned() } else { format!("{low}-{high}") }
    };
    items.iter().map(quoted).collect::<Vec<_>>().join(",")
}

fn follows(low: &str, value: u64, number: &str) -> bool {
    let width = low.len();
    format!("{value:0width$}") == *number
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_grammar_of_slurm_is_read_with_its_leading_zeros() {
        let sets = [
            ("p5-[001-003,040],login1", "p5-001 p5-002 p5-003 p5-040 login1"),
            ("p5-001", "p5-001"),
            ("r[1-2]n[08-10]", "r1n08 r1n09 r1n10 r2n08 r2n09 r2n10"),
            ("n[9-11]", "n9 n10 n11"),
            ("n[1-9/4]", "n1 n5 n9"),
            ("a[1], b", "a1 b"),
            ("rdmap[79-80]s0", "rdmap79s0 rdmap80s0"),
        ];
        for (text, names) in sets {
            assert_eq!(expand(text).map(|names| names.join(" ")).as_deref(), Ok(names), "{text}");
        }
    }

    const REFUSED: [(&str, &str); 22] = [
        ("n1..n4", "a range is written `n[1-4]`"),
        ("n1 n2", "write `n1,n2`"),
        ("", "empty"),
        ("a,,b", "empty name between commas at position 3"),
        ("a,", "empty name between commas at position 3"),
        ("p5-[001", "`p5-[001`: `[` without `]` at position 4"),
        ("p5-001]", "`p5-001]`: `]` without `[` at position 7"),
        ("p[[1]]", "`p[[1]]`: nested `[` at position 3"),
        ("p[]", "`` in brackets is not a number"),
        ("b,p[1-x]", "`p[1-x]`: `x` in brackets is not a number or a range of numbers, at position 5"),
        ("p[3-1]", "`p[3-1]`: range `3-1` runs backwards, write `1-3`, at position 3"),
        ("p[001-10]", "the same number of digits"),
        ("p[1-010]", "the same number of digits"),
        ("p[1-3/0]", "has step 0"),
        ("p[1-3],p2", "node `p2` is named twice"),
        ("p[1-100001]", "more than 100000 nodes"),
        ("p[1-1000][1-1000][1-1000]", "more than 100000 nodes"),
        ("p[1-99999999999999999999]", "more than 18 digits"),
        ("-rf", "must begin with a letter"),
        ("a b", "letters, digits"),
        ("a;b", "letters, digits"),
        ("\u{1b}[1]", "letters, digits"),
    ];

    #[test]
    fn messages() {
        let lines: Vec<String> = REFUSED.iter().map(|(text, _)| expand(text).expect_err(text)).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn a_diagnostic_in_a_set_says_what_and_where() {
        for (text, expected) in REFUSED {
            let message = expand(text).expect_err(text);
            assert!(message.contains(expected), "{text}: {message}");
        }
    }

    #[test]
    fn messages_quote_a_set_without_its_line_breaks_and_escapes() {
        for text in [
            "[\n::error title=x\u{1b}[2J",
            "a,\n,b",
            "p[\n::error]",
            "p[2-1\n",
            "-\n",
            "n[1-9\n/0]",
            "p[\u{1b}-2]",
        ] {
            let message = expand(text).expect_err(text);
            assert!(!message.contains(char::is_control), "{message:?}");
        }
    }

    #[test]
    fn names_are_folded_into_the_shortest_ranges() {
        let sets: [(&[&str], &str); 7] = [
            (&["p5-040", "p5-002", "p5-001", "p5-003", "login1"], "login1,p5-[001-003,040]"),
            (&["n9", "n10", "n11"], "n[9-11]"),
            (&["n09", "n10", "n9"], "n[09,9-10]"),
            (&["a1.c5", "a2.c5"], "a[1-2].c5"),
            (&["r1n1", "r1n2", "r2n1", "r2n2"], "r1n[1-2],r2n[1-2]"),
            (&["x", "x"], "x"),
            (&[], ""),
        ];
        for (names, folded) in sets {
            assert_eq!(fold(names), folded);
        }
    }

    #[test]
    fn devices_are_ordered_by_their_numbers() {
        let mut names = vec!["rdmap201s0", "rdmap79s0", "rdmap113s0"];
        sort(&mut names);
        assert_eq!(names, ["rdmap79s0", "rdmap113s0", "rdmap201s0"]);
    }

    proptest! {
        #[test]
        fn expanding_what_was_folded_gives_the_names_sorted(
            names in prop::collection::vec("[a-c]{1,2}(-?[0-9]{1,3}){0,2}[.]?[xy]?[0-9]{0,2}", 1..40)
        ) {
            let mut sorted = names.clone();
            sort(&mut sorted);
            sorted.dedup();
            prop_assert_eq!(expand(&fold(&names)), Ok(sorted));
        }

        #[test]
        fn no_text_at_all_makes_the_reader_panic(text in "[\\PC\\[\\],0-9/-]{0,40}") {
            let _ = expand(&text);
        }
    }
}
