//! Takes what launchers put before lines off the output of one node, or of several at once: each label has a text of its
//! own.

use super::{kernel, topology};
use crate::text;
use std::collections::{BTreeMap, BTreeSet};

/// Texts by label, in the order of labels; the empty one is of lines without any.
pub(super) fn by_label(log: &str) -> BTreeMap<String, String> {
    // A label that looks like a word is known by the lines that it certainly stands before.
    let mut known: BTreeSet<(&str, String)> = BTreeSet::new();
    for line in log.lines() {
        let front = text::front(line, begins);
        if !front.tag.is_empty()
            && let Some(prefix) = line.get(..front.length)
        {
            known.insert((prefix.trim_start(), front.tag));
        }
    }
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    for line in log.lines() {
        let plain = text::plain(line, begins);
        let (tag, text) = match plain.tag.is_empty() {
            false => (plain.tag.as_str(), &*plain.text),
            true => labelled(line, &known).unwrap_or(("", &*plain.text)),
        };
        let of_label = all.entry(tag.to_owned()).or_default();
        of_label.push_str(text);
        of_label.push('\n');
    }
    all
}

/// A line that begins with a known prefix: its label, and its text.
fn labelled<'a>(line: &'a str, known: &'a BTreeSet<(&'a str, String)>) -> Option<(&'a str, &'a str)> {
    // The first of those that begin with its first word.
    let word = line.split_inclusive([' ', '\t']).next()?;
    let (prefix, tag) = known.range((word, String::new())..).next()?;
    Some((tag.as_str(), line.strip_prefix(prefix)?))
}

/// Whether a text begins as a line of these programs does.
fn begins(text: &str) -> bool {
    const FIRST: [&str; 14] = [
        "| ",
        "|--",
        "+--",
        "+==",
        "Running ",
        "SUM ",
        "STREAM version ",
        "nvbandwidth Version",
        "GPU ",
        "Tested ",
        "\"nvbandwidth\"",
        "\"fio version\"",
        "\"DCGM Diagnostic\"",
        "\"DCGM GPU Diagnostic\"",
    ];
    let bare = text.trim_start();
    // The kernel's `NVRM: GPU 0000:53:00.0: ...` has no label in front of `GPU`.
    let is_of_driver = || {
        bare.split(' ').nth(1).is_some_and(|word| bare.starts_with("GPU ") && kernel::device(word).is_some())
    };
    if is_of_driver() {
        return false;
    }
    FIRST.iter().any(|first| bare.starts_with(first))
        || bare.contains("%  proc'd:")
        || topology::is_head(bare)
        || is_of_fabric_manager(bare)
}

/// `[Jul 09 2024 18:14:07] [ERROR] [tid 12727] ...`.
fn is_of_fabric_manager(text: &str) -> bool {
    let stamped = text.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    stamped.is_some_and(|(stamp, rest)| stamp.contains(' ') && rest.contains("] [tid "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_label_has_its_own_text_with_the_lines_that_look_like_nothing() {
        let log = "[n-1] Running a.\n[n-2] Running b.\n[n-1] 0 1\n[n-2] 0 2\nsome shell\n0: SUM a 1\n0:         0  1\n";
        let texts = by_label(log);
        let expected = [
            ("", "some shell\n"),
            ("0", "SUM a 1\n        0  1\n"),
            ("n-1", "Running a.\n0 1\n"),
            ("n-2", "Running b.\n0 2\n"),
        ];
        assert_eq!(texts, expected.map(|(tag, text)| (tag.to_owned(), text.to_owned())).into());
    }

    #[test]
    fn stream_is_parted_behind_tabs_and_other_labels() {
        for between in ["\t", ": ", "  | "] {
            let of = |node: &str, rate: u32| {
                format!("{node}{between}STREAM version x\n{node}{between}Triad: {rate} 4\n")
            };
            let texts = by_label(&(of("p5-1", 1) + &of("p5-2", 2)));
            let expected = [("p5-1", 1), ("p5-2", 2)]
                .map(|(node, rate)| (node.to_owned(), format!("STREAM version x\nTriad: {rate} 4\n")));
            assert_eq!(texts, expected.into(), "{between}");
        }
    }

    #[test]
    fn json_of_several_nodes_is_parted_by_its_labels() {
        let json = "{\n\t\"nvbandwidth\" :\n\t{\n\t\t\"testcases\" : []\n\t}\n}\n";
        let label = |node: &str| json.lines().map(|line| format!("{node}: {line}\n")).collect::<String>();
        let texts = by_label(&(label("p5-1") + &label("p5-2")));
        assert_eq!(texts, ["p5-1", "p5-2"].map(|node| (node.to_owned(), json.to_owned())).into());
    }

    #[test]
    fn names_of_programs_are_no_labels() {
        let log = "Device 0: NVIDIA\n{\n  \"name\": 1\n}\nGPU 0: Tesla\n| PCIe | Pass |\nDriver Version: 5\n";
        assert_eq!(by_label(log).into_iter().collect::<Vec<_>>(), [(String::new(), log.to_owned())]);
    }
}
