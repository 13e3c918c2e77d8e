//! Instance ids, UUIDs, serial numbers and GUIDs of the nodes of a delivery: what stands for each where others read.

use super::delivery::Delivery;
use super::stages::PROBE;
use model::artefact::{Probe, Value};
use std::collections::HashMap;

/// By number, what stands for it: the same in every text.
#[derive(Debug, Default)]
pub(super) struct HardwareNumbers(HashMap<String, String>);

impl HardwareNumbers {
    /// Those that the preflight read.
    pub(super) fn read(delivery: &Delivery) -> HardwareNumbers {
        let probe = store::read_json::<Probe>(&delivery.folder.join(PROBE)).ok();
        HardwareNumbers::from_probe(probe.iter())
    }

    fn from_probe<'a>(probes: impl Iterator<Item = &'a Probe>) -> HardwareNumbers {
        let mut numbers = HashMap::new();
        for node in probes.flat_map(|probe| &probe.nodes) {
            for value in ["machine", "gpu_ids", "nic_ids"].iter().filter_map(|fact| node.facts.get(*fact)) {
                let words: Vec<&str> = match value {
                    Value::Text(machine) => vec![machine],
                    // Behind the part's name.
                    Value::Names(rows) => rows.iter().flat_map(|row| row.split(' ').skip(1)).collect(),
                    Value::Number(_) => Vec::new(),
                };
                // An address of PCI is the same on each node.
                for word in words.into_iter().filter(|word| !word.contains('.') && word.len() >= LEAST) {
                    let other = format!("id-{}", numbers.len() + 1);
                    numbers.entry(word.to_owned()).or_insert(other);
                }
            }
        }
        HardwareNumbers(numbers)
    }

    /// A text with each of them replaced, where it stands as a word.
    pub(super) fn replaced(&self, text: &str) -> String {
        if self.0.is_empty() {
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
            match self.0.get(bare) {
                Some(other) => out.push_str(other),
                // A key before it, such as `serial:16501`.
                None => {
                    let known = |part| self.0.get(part).map_or(part, String::as_str);
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

#[cfg(test)]
mod tests {
    use super::*;
    use model::artefact::{Format, ProbedNode};
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
        let probe = Probe {
            format: Format,
            harness: String::new(),
            simulated: false,
            inventory: String::new(),
            instance: String::new(),
            at: String::new(),
            nodes: vec![node],
        };
        let numbers = HardwareNumbers::from_probe([&probe].into_iter());
        assert_eq!(numbers.0.len(), 5);
        let text = "[\"gpu0 GPU-5e3f-11 16501\"] of i-0123456789abcdef0: 216501 bytes, 16501;0000:4f:00.0 0000:0000:0000:00a1 serial:16501";
        let expected = "[\"gpu0 id-2 id-3\"] of id-1: 216501 bytes, id-3;0000:4f:00.0 id-5 serial:id-3";
        assert_eq!(numbers.replaced(text), expected);
        assert_eq!(HardwareNumbers::default().replaced(text), text);
    }
}
