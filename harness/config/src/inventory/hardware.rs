//! `[[hardware]]` of an inventory: the numbers of nodes as they were delivered, which `harness accept` compares with
//! those that it reads.

use crate::form::{Form, Key, Type};
use crate::toml_reader::Value;
use base::suggest::nearest;
use base::text::first_few;
use model::artefact::Value as FactValue;
use std::collections::BTreeMap;

/// The numbers of one node. What is not listed is not compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveredHardware {
    /// The instance id, else the serial number of the machine.
    pub machine: Option<String>,
    /// Of each GPU its UUID, its serial number or both.
    pub gpus: Vec<Vec<String>>,
    /// Of each NIC its GUID.
    pub nics: Vec<Vec<String>>,
}

pub(super) fn form() -> Form {
    Form::new([
        Key::needed("node", Type::Text, "one of `nodes`"),
        Key::optional("machine", Type::Text, "the instance id, else the machine's serial number"),
        Key::optional(
            "gpus",
            Type::texts(),
            "of each GPU its UUID, its serial number or both: `\"GPU-5e3f... 165...\"`",
        ),
        Key::optional("nics", Type::texts(), "the GUID of each NIC"),
    ])
}

pub(super) fn read(tables: &[Value<'_>], nodes: Option<&[String]>) -> BTreeMap<String, DeliveredHardware> {
    let mut all = BTreeMap::new();
    for table in tables.iter().filter_map(|value| value.table()) {
        let name = table.need("node");
        let node = name.as_ref().and_then(|value| value.non_empty_text());
        let machine = table.get("machine").and_then(|value| value.non_empty_text());
        let numbers = |key: &'static str, is_number: fn(usize, &str) -> bool| {
            let value = table.get(key)?;
            let listed: Vec<Vec<String>> =
                value.texts().iter().map(|text| numbers_in(text, is_number)).collect();
            if listed.iter().any(Vec::is_empty) {
                value.diagnostic(format!("an entry of `{key}` has no number"));
            }
            Some(listed)
        };
        let gpus = numbers("gpus", is_gpu_number).unwrap_or_default();
        let nics = numbers("nics", is_nic_number).unwrap_or_default();
        table.close(form);
        let (Some(value), Some(node)) = (name, node) else { continue };
        if let Some(nodes) = nodes.filter(|nodes| !nodes.contains(&node)) {
            let message = format!("no such node: `{}`", node.escape_debug());
            match nearest(&node, nodes.iter().map(String::as_str)) {
                Some(near) => value.diagnostic_with(message, format!("did you mean `{near}`?")),
                None => value.diagnostic(message),
            }
        } else if all.insert(node.clone(), DeliveredHardware { machine, gpus, nics }).is_some() {
            value.diagnostic(format!("`{}` is listed twice", node.escape_debug()));
        }
    }
    all
}

/// The numbers of an entry, which may be a whole row as a probe and a certificate have it: part, numbers, address. What is
/// nothing but zeros is none: older drivers of EFA report no other GUID.
fn numbers_in(text: &str, is_number: fn(usize, &str) -> bool) -> Vec<String> {
    let all: Vec<&str> = text.split_whitespace().collect();
    // A word alone is no place, but for what is written as one.
    let begin = usize::from(all.len() == 1);
    let is_zero = |word: &str| word.chars().all(|c| c == '0' || !c.is_ascii_alphanumeric());
    let numbers = all.iter().enumerate().filter(|(at, word)| is_number(begin + at, word) && !is_zero(word));
    numbers.map(|(_, word)| (*word).to_owned()).collect()
}

/// `gpu3` says where it is.
fn is_gpu_number(_: usize, word: &str) -> bool {
    let index = word.strip_prefix("gpu").unwrap_or_default();
    index.is_empty() || !index.bytes().all(|byte| byte.is_ascii_digit())
}

/// The device comes first, and the address of PCI last.
fn is_nic_number(at: usize, word: &str) -> bool {
    let digits = word.strip_prefix("0x").unwrap_or(word);
    at > 0 && digits.chars().all(|c| c.is_ascii_hexdigit() || c == ':' || c == '-')
}

impl DeliveredHardware {
    /// How the facts of a node differ. A fact that was not read differs in nothing.
    pub fn differences(&self, facts: &BTreeMap<String, FactValue>) -> Vec<String> {
        let mut found = Vec::new();
        if let (Some(listed), Some(FactValue::Text(read))) = (&self.machine, facts.get("machine"))
            && !listed.eq_ignore_ascii_case(read)
        {
            found.push(format!("`machine` is {read}, delivered was {listed}"));
        }
        for (fact, listed, is_number) in self.parts() {
            let Some(FactValue::Names(rows)) = facts.get(fact).filter(|_| !listed.is_empty()) else {
                continue;
            };
            // A part of which no number was read may be any of those that are listed.
            let are_read = rows.iter().all(|row| is_read(row, listed, is_number));
            let gone = listed.iter().filter(|numbers| are_read && !rows.iter().any(|row| has(row, numbers)));
            let gone: Vec<String> = gone.map(|numbers| numbers.join(" ")).collect();
            let other = rows.iter().filter(|row| {
                is_read(row, listed, is_number) && !listed.iter().any(|numbers| has(row, numbers))
            });
            let other: Vec<String> = other.cloned().collect();
            let lines = [("without", gone), ("with", other)].into_iter().filter(|(_, all)| !all.is_empty());
            let lines: Vec<String> =
                lines.map(|(how, all)| format!("{how} {}", first_few(&all, MOST))).collect();
            if !lines.is_empty() {
                found.push(format!("`{fact}` is not as delivered: {}", lines.join(", ")));
            }
        }
        found
    }

    /// The facts that it lists numbers for, and that were not read: nothing is known of that hardware.
    pub fn uncompared(&self, facts: &BTreeMap<String, FactValue>) -> Vec<&'static str> {
        let is_text = matches!(facts.get("machine"), Some(FactValue::Text(_)));
        let is_unread = |(fact, listed, is_number): Part<'_>| match facts.get(fact) {
            Some(FactValue::Names(rows)) => rows.iter().any(|row| !is_read(row, listed, is_number)),
            _ => true,
        };
        let [gpus, nics] = self.parts();
        let all = [
            ("machine", self.machine.is_some() && !is_text),
            ("gpu_ids", !self.gpus.is_empty() && is_unread(gpus)),
            ("nic_ids", !self.nics.is_empty() && is_unread(nics)),
        ];
        all.into_iter().filter(|(_, is_unread)| *is_unread).map(|(fact, _)| fact).collect()
    }

    fn parts(&self) -> [Part<'_>; 2] {
        [("gpu_ids", &self.gpus, is_gpu_number), ("nic_ids", &self.nics, is_nic_number)]
    }

    /// What it lists as facts of a probe, each row with a word in place of the part.
    pub fn as_facts(&self) -> BTreeMap<String, FactValue> {
        let rows = |all: &[Vec<String>]| {
            FactValue::Names(all.iter().map(|numbers| format!("listed {}", numbers.join(" "))).collect())
        };
        let machine = self.machine.clone().map(|machine| ("machine".to_owned(), FactValue::Text(machine)));
        let parts = [("gpu_ids", &self.gpus), ("nic_ids", &self.nics)];
        machine.into_iter().chain(parts.map(|(fact, all)| (fact.to_owned(), rows(all)))).collect()
    }
}

/// The fact that lists parts of a kind, the numbers that are listed of them, and what a number of theirs is.
type Part<'a> = (&'static str, &'a [Vec<String>], fn(usize, &str) -> bool);

/// Whether a row of a probe has a number of each kind that is listed: a UUID, or one that is none.
fn is_read(row: &str, listed: &[Vec<String>], is_number: fn(usize, &str) -> bool) -> bool {
    let numbers = numbers_in(row, is_number);
    let is_uuid = |number: &String| number.get(..4).is_some_and(|head| head.eq_ignore_ascii_case("GPU-"));
    let mut kinds = listed.iter().flatten().map(is_uuid);
    kinds.all(|kind| numbers.iter().any(|number| is_uuid(number) == kind))
}

/// Whether a row of a probe has all of these numbers.
fn has(row: &str, numbers: &[String]) -> bool {
    numbers.iter().all(|number| row.split_whitespace().any(|word| word.eq_ignore_ascii_case(number)))
}

const MOST: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> BTreeMap<String, FactValue> {
        let names = |rows: &[&str]| FactValue::Names(rows.iter().map(|row| (*row).to_owned()).collect());
        BTreeMap::from([
            ("machine".to_owned(), FactValue::Text("i-01".to_owned())),
            ("gpu_ids".to_owned(), names(&["gpu0 GPU-a 1650", "gpu1 GPU-b 1651"])),
            ("nic_ids".to_owned(), names(&["rdmap79s0 00a1 0000:4f:00.0"])),
        ])
    }

    fn listed(machine: &str, gpus: &[&str], nics: &[&str]) -> DeliveredHardware {
        DeliveredHardware {
            machine: Some(machine.to_owned()),
            gpus: gpus.iter().map(|text| numbers_in(text, is_gpu_number)).collect(),
            nics: nics.iter().map(|text| numbers_in(text, is_nic_number)).collect(),
        }
    }

    #[test]
    fn numbers_in_any_place_and_whole_rows_are_the_same_hardware() {
        for (gpus, nics) in [
            (["1651", "gpu-A"], ["00A1"]),
            (["gpu7 GPU-b 1651", "GPU-a 1650"], ["rdmap113s0 00a1 0000:71:00.0"]),
        ] {
            assert_eq!(listed("I-01", &gpus, &nics).differences(&facts()), [""; 0]);
        }
        assert_eq!(DeliveredHardware::default().differences(&facts()), [""; 0]);
    }

    #[test]
    fn a_part_of_which_no_number_was_read_is_neither_as_delivered_nor_another() {
        let rows = |rows: &[&str]| FactValue::Names(rows.iter().map(|row| (*row).to_owned()).collect());
        let read = |fact: &str, value: FactValue| BTreeMap::from([(fact.to_owned(), value)]);
        let delivered = listed("i-01", &["1650", "1651"], &["00a1", "00a2"]);
        for nics in [
            rows(&[
                "rdmap79s0 0000:0000:0000:0000 0000:4f:00.0",
                "rdmap80s0 0000:0000:0000:0000 0000:50:00.0",
            ]),
            rows(&["rdmap79s0 0000:4f:00.0", "rdmap80s0 00a2 0000:50:00.0"]),
        ] {
            let facts = read("nic_ids", nics);
            assert_eq!(delivered.differences(&facts), [""; 0]);
            assert!(delivered.uncompared(&facts).contains(&"nic_ids"));
        }
        // A driver that reports no serial numbers.
        let facts = read("gpu_ids", rows(&["gpu0 GPU-a", "gpu1 GPU-b"]));
        assert_eq!(delivered.differences(&facts), [""; 0]);
        assert!(delivered.uncompared(&facts).contains(&"gpu_ids"));
        // What was read of one is enough against the node.
        let facts = read("nic_ids", rows(&["rdmap79s0 0000:4f:00.0", "rdmap80s0 00a3 0000:50:00.0"]));
        let why = "`nic_ids` is not as delivered: with rdmap80s0 00a3 0000:50:00.0";
        assert_eq!(delivered.differences(&facts), [why]);
    }

    #[test]
    fn places_and_zeros_are_no_numbers() {
        for (text, count) in [("gpu3", 0), ("1651", 1), ("gpu3 GPU-a 1651", 2), ("gpu3 GPU-a 0", 1)] {
            assert_eq!(numbers_in(text, is_gpu_number).len(), count, "{text}");
        }
        for (text, count) in [
            ("rdmap79s0", 0),
            ("0000:0000:0000:0000", 0),
            ("rdmap79s0 0000:0000:0000:0000 0000:4f:00.0", 0),
            ("rdmap79s0 0000:0000:0000:00a1 0000:4f:00.0", 1),
            ("00a1", 1),
        ] {
            assert_eq!(numbers_in(text, is_nic_number).len(), count, "{text}");
        }
    }

    #[test]
    fn other_hardware_is_named_by_what_is_gone_and_what_came() {
        let other = listed("i-02", &["GPU-a 1650", "GPU-c 1652"], &["00a1", "00a2"]);
        assert_eq!(
            other.differences(&facts()),
            [
                "`machine` is i-01, delivered was i-02",
                "`gpu_ids` is not as delivered: without GPU-c 1652, with gpu1 GPU-b 1651",
                "`nic_ids` is not as delivered: without 00a2",
            ]
        );
        assert_eq!(other.uncompared(&facts()), [""; 0]);
        // What cannot be read differs in nothing, and is as delivered in nothing.
        assert_eq!(other.differences(&BTreeMap::new()), [""; 0]);
        assert_eq!(other.uncompared(&BTreeMap::new()), ["machine", "gpu_ids", "nic_ids"]);
        assert_eq!(DeliveredHardware::default().uncompared(&BTreeMap::new()), [""; 0]);
    }
}
