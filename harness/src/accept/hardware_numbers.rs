//! Instance ids, UUIDs, serial numbers and GUIDs of nodes that probes have read: what stands for each where others read.

use super::delivery::Delivery;
use super::stages::PROBE;
use model::artefact::{Probe, ProbedNode, Value};
use std::collections::{BTreeSet, HashMap};

/// By number, what stands for it: the same in every text.
#[derive(Debug, Default)]
pub(crate) struct HardwareNumbers {
    /// In lower case, in each form in which it is written.
    forms: HashMap<String, String>,
    count: usize,
}

impl HardwareNumbers {
    /// Those that the preflight read.
    pub(super) fn read(delivery: &Delivery) -> HardwareNumbers {
        let probe = store::read_json::<Probe>(&delivery.folder.join(PROBE)).ok();
        let mut numbers = HardwareNumbers::default();
        numbers.add(probe.iter().flat_map(|probe| &probe.nodes), &BTreeSet::new());
        numbers
    }

    /// Those of further nodes, but for some that stay.
    pub(crate) fn add<'a>(&mut self, nodes: impl Iterator<Item = &'a ProbedNode>, stay: &BTreeSet<String>) {
        for number in nodes.flat_map(numbers_of).filter(|number| !stay.contains(*number)) {
            let number = number.to_ascii_lowercase();
            if self.forms.contains_key(&number) {
                continue;
            }
            self.count += 1;
            let other = format!("id-{}", self.count);
            for form in other_forms(&number) {
                self.forms.entry(form).or_insert_with(|| other.clone());
            }
            self.forms.insert(number, other);
        }
    }

    /// A text with each of them replaced, where it stands as a word.
    pub(crate) fn replaced<'a>(&'a self, text: &'a str) -> String {
        if self.forms.is_empty() {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len());
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == ':';
        let mut rest = text;
        while let Some(from) = rest.find(is_part) {
            let (before, word) = rest.split_at(from);
            let (word, behind) = word.split_at(word.find(|c| !is_part(c)).unwrap_or(word.len()));
            out.push_str(before);
            // Punctuation behind a word is none of it.
            let bare = word.trim_end_matches([':', '-']);
            match self.forms.get(&bare.to_ascii_lowercase()) {
                Some(other) => out.push_str(other),
                // A key before it, such as `serial:16501`.
                None => {
                    let known = |part: &'a str| {
                        self.forms.get(&part.to_ascii_lowercase()).map_or(part, String::as_str)
                    };
                    out.push_str(&bare.split(':').map(known).collect::<Vec<_>>().join(":"));
                }
            }
            out.push_str(word.get(bare.len()..).unwrap_or_default());
            rest = behind;
        }
        out.push_str(rest);
        out
    }
}

/// Shorter ones stand for other things as well.
const LEAST: usize = 5;

/// The numbers that a probe has read of a node.
pub(crate) fn numbers_of(node: &ProbedNode) -> Vec<&str> {
    let mut numbers = Vec::new();
    for value in ["machine", "gpu_ids", "nic_ids"].iter().filter_map(|fact| node.facts.get(*fact)) {
        match value {
            Value::Text(machine) => numbers.push(machine.as_str()),
            // Behind the part's name.
            Value::Names(rows) => numbers.extend(rows.iter().flat_map(|row| row.split(' ').skip(1))),
            Value::Number(_) => {}
        }
    }
    // An address of PCI is the same on each node, and zeros alone are no number.
    let is_zero = |word: &str| word.chars().all(|c| c == '0' || !c.is_ascii_alphanumeric());
    numbers.retain(|word| !word.contains('.') && word.len() >= LEAST && !is_zero(word));
    numbers
}

/// As other programs write it: a UUID without its prefix, a GUID without colons or as one number.
fn other_forms(number: &str) -> Vec<String> {
    let digits: String = number.chars().filter(|c| *c != ':').collect();
    let is_guid = digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    match number.strip_prefix("gpu-") {
        Some(bare) => vec![bare.to_owned()],
        None if is_guid => vec![format!("0x{digits}"), digits],
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn numbers_are_replaced_as_words_and_alike_everywhere() {
        let facts = BTreeMap::from([
            ("machine".to_owned(), Value::Text("i-0123456789abcdef0".into())),
            (
                "gpu_ids".to_owned(),
                Value::Names(vec!["gpu0 GPU-5e3f-11 16501".into(), "gpu1 GPU-6e3f-22 9".into()]),
            ),
            ("nic_ids".to_owned(), Value::Names(vec!["rdmap79s0 0000:0000:0000:00a1 0000:4f:00.0".into()])),
        ]);
        let node = ProbedNode { node: "n1".into(), facts, ..ProbedNode::default() };
        let mut numbers = HardwareNumbers::default();
        numbers.add([&node].into_iter(), &BTreeSet::from(["9".to_owned()]));
        let text = "[\"gpu0 GPU-5e3f-11 16501\"] of i-0123456789abcdef0: 216501 bytes, 16501;0000:4f:00.0 0000:0000:0000:00a1 serial:16501 5E3F-11 0x00000000000000a1";
        let expected =
            "[\"gpu0 id-2 id-3\"] of id-1: 216501 bytes, id-3;0000:4f:00.0 id-5 serial:id-3 id-2 id-5";
        assert_eq!(numbers.replaced(text), expected);
        assert_eq!(HardwareNumbers::default().replaced(text), text);
    }
}
