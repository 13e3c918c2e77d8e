//! Instance ids, UUIDs, serial numbers and GUIDs of nodes that probes have read: what stands for each where others read.

use super::delivery::Delivery;
use super::stages::PROBE;
use aho_corasick::AhoCorasick;
use model::artefact::{Probe, ProbedNode, Value};
use std::collections::{BTreeSet, HashMap};

/// By number, what stands for it: the same in every text.
#[derive(Debug, Default)]
pub(crate) struct HardwareNumbers {
    /// In lower case, in each form in which it is written.
    forms: HashMap<String, String>,
    count: usize,
}

/// Finds each of them in a text.
#[derive(Debug, Default)]
pub(crate) struct NumberFinder {
    finder: Option<AhoCorasick>,
    numbers: Vec<Number>,
}

#[derive(Debug)]
struct Number {
    other: String,
    /// It is found within a word too: no other word holds it by chance.
    is_distinct: bool,
}

impl HardwareNumbers {
    /// Those that the preflight read, and those that the inventory lists.
    pub(super) fn read(delivery: &Delivery) -> HardwareNumbers {
        let probe = store::read_json::<Probe>(&delivery.folder.join(PROBE)).ok();
        let mut numbers = HardwareNumbers::default();
        numbers.add(probe.iter().flat_map(|probe| &probe.nodes), &BTreeSet::new());
        // A number that was delivered and is not there stands in the reasons of a refusal.
        let delivered = delivery.inventory.hardware.values();
        let delivered: Vec<ProbedNode> = delivered
            .map(|hardware| ProbedNode { facts: hardware.as_facts(), ..ProbedNode::default() })
            .collect();
        numbers.add(delivered.iter(), &BTreeSet::new());
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

    pub(crate) fn finder(self) -> Result<NumberFinder, String> {
        let mut forms: Vec<(String, String)> = self.forms.into_iter().collect();
        forms.sort();
        if forms.is_empty() {
            return Ok(NumberFinder::default());
        }
        let finder = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .build(forms.iter().map(|(form, _)| form.as_bytes()))
            .map_err(|error| format!("too many numbers to look for: {error}"))?;
        let number = |(form, other): (String, String)| Number { is_distinct: is_distinct(&form), other };
        Ok(NumberFinder { finder: Some(finder), numbers: forms.into_iter().map(number).collect() })
    }
}

impl NumberFinder {
    /// A text with each of them replaced: long ones wherever they stand, short ones as words.
    pub(crate) fn replaced(&self, text: &str) -> String {
        let Some(finder) = &self.finder else { return text.to_owned() };
        let mut found: Vec<(usize, usize, &Number)> = finder
            .find_overlapping_iter(text)
            .filter_map(|found| {
                let number = self.numbers.get(found.pattern().as_usize())?;
                let stands = number.is_distinct || is_word(text.as_bytes(), found.start(), found.end());
                stands.then_some((found.start(), found.end(), number))
            })
            .collect();
        found.sort_by_key(|(from, to, _)| (*from, std::cmp::Reverse(*to)));
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        for (from, to, number) in found {
            if let Some(before) = text.get(at..from) {
                out.push_str(before);
                out.push_str(&number.other);
                at = to;
            }
        }
        out.push_str(text.get(at..).unwrap_or_default());
        out
    }
}

/// Letters and digits of a number that is found within words.
const DISTINCT: usize = 12;

fn is_distinct(form: &str) -> bool {
    form.bytes().filter(u8::is_ascii_alphanumeric).count() >= DISTINCT
}

/// Neither its beginning nor its end lies within another word; a line's end in an escaped text is part of none.
fn is_word(text: &[u8], from: usize, to: usize) -> bool {
    let before = |n: usize| from.checked_sub(n).and_then(|at| text.get(at)).copied();
    let begins = match (before(2), before(1)) {
        (Some(b'\\'), Some(b'n' | b't' | b'r')) => true,
        (_, before) => !before.is_some_and(|byte| byte.is_ascii_alphanumeric()),
    };
    begins && !text.get(to).is_some_and(u8::is_ascii_alphanumeric)
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

/// As other programs write it: a UUID without its prefix or dashes, a GUID without colons, as one number, by pairs or by
/// fours.
fn other_forms(number: &str) -> Vec<String> {
    if let Some(bare) = number.strip_prefix("gpu-") {
        let digits = bare.replace('-', "");
        return match is_distinct(&digits) {
            true => vec![bare.to_owned(), digits],
            false => vec![bare.to_owned()],
        };
    }
    let plain = number.strip_prefix("0x").unwrap_or(number);
    let digits: String = plain.chars().filter(|c| !":-".contains(*c)).collect();
    if digits.len() != 16 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Vec::new();
    }
    let by = |size: usize, between: &str| -> String {
        let groups: Vec<&str> =
            (0..digits.len()).step_by(size).filter_map(|at| digits.get(at..at + size)).collect();
        groups.join(between)
    };
    let mut forms = vec![format!("0x{digits}"), by(2, ":"), by(4, ":"), by(2, "-"), by(4, "-"), by(4, "_")];
    forms.push(digits);
    forms
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
        assert_eq!(numbers.finder().expect("few").replaced(text), expected);
        assert_eq!(NumberFinder::default().replaced(text), text);
    }

    #[test]
    fn a_long_number_is_replaced_within_words_and_in_every_form() {
        let facts = BTreeMap::from([
            ("machine".to_owned(), Value::Text("i-00c687b3ee73b7354".into())),
            (
                "gpu_ids".to_owned(),
                Value::Names(vec!["gpu0 GPU-581ff15d-c741-5194-0000-51a0581ff15d 1654692887956".into()]),
            ),
            ("nic_ids".to_owned(), Value::Names(vec!["rdmap79s0 3c4922ab907bf747 0000:4f:00.0".into()])),
        ]);
        let node = ProbedNode { node: "n1".into(), facts, ..ProbedNode::default() };
        let mut numbers = HardwareNumbers::default();
        numbers.add([&node].into_iter(), &BTreeSet::new());
        let finder = numbers.finder().expect("few");
        for (text, wanted) in [
            (r#"{"m":"x\ti-00c687b3ee73b7354 y\n1654692887956"}"#, r#"{"m":"x\tid-1 y\nid-3"}"#),
            (
                "host-i-00c687b3ee73b7354 i-00c687b3ee73b7354-eth0 xI-00C687B3EE73B7354",
                "host-id-1 id-1-eth0 xid-1",
            ),
            (
                "GPU-581ff15d-c741-5194-0000-51a0581ff15d-mig 581ff15dc7415194000051a0581ff15d",
                "id-2-mig id-2",
            ),
            ("3c49:22ab:907b:f747 fe80::3c49:22ab:907b:f747", "id-4 fe80::id-4"),
            ("3c:49:22:ab:90:7b:f7:47 NIC3c4922ab907bf747 0x3C4922AB907BF747", "id-4 NICid-4 id-4"),
            ("\u{1b}[1mi-00c687b3ee73b7354", "\u{1b}[1mid-1"),
        ] {
            assert_eq!(finder.replaced(text), wanted, "{text}");
        }
    }
}
