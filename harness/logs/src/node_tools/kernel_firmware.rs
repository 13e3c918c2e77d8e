//! Errors of hardware that firmware reports to the kernel (APEI): which module of memory, which device. Servers whose
//! firmware sees errors first have no lines of EDAC and AER.

use super::NoResult;
use super::kernel::{at_host, host};
use super::output::{NodeOutput, Row};
use std::collections::{BTreeMap, BTreeSet};

const MARK: &str = "[Hardware Error]: ";
const KIND: &str = "section_type: ";
/// Where it is, in the order of trust.
const PLACES: [&str; 3] = ["device_id: ", "DIMM location: ", "fru_text: "];

/// One error of a report, as firmware describes it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Section<'a> {
    severity: &'a str,
    kind: &'a str,
    place: &'a str,
}

/// Whether a log has such a report.
pub(super) fn is_in(text: &str) -> bool {
    text.lines().filter_map(report).any(|(_, said)| said.starts_with(KIND))
}

/// Errors of memory that were not corrected, and what was fatal, are failures.
pub(super) fn read(text: &str) -> Result<NodeOutput, NoResult> {
    let mut open: BTreeMap<(&str, &str), Section<'_>> = BTreeMap::new();
    let mut all: BTreeMap<(Section<'_>, &str), u64> = BTreeMap::new();
    let mut hosts: BTreeSet<&str> = BTreeSet::new();
    for line in text.lines() {
        let Some((number, said)) = report(line) else { continue };
        let host = host(line);
        hosts.insert(host);
        if let Some(severity) = begun(said) {
            let section = Section { severity, ..Section::default() };
            if let Some(ended) = open.insert((host, number), section) {
                *all.entry((ended, host)).or_default() += 1;
            }
        } else if let Some(section) = open.get_mut(&(host, number)) {
            section.take(said);
        }
    }
    for ((host, _), ended) in open {
        *all.entry((ended, host)).or_default() += 1;
    }
    all.retain(|(section, _), _| !section.kind.is_empty());
    if all.is_empty() {
        return Err("no report of firmware about an error is complete".to_owned());
    }
    let mut output = NodeOutput { program: "the kernel, reports of firmware", ..NodeOutput::default() };
    for ((section, host), times) in &all {
        let Section { severity, kind, .. } = section;
        let place = format!("{}{}", section.place_or_none(), at_host(hosts.len(), host));
        if section.is_failure() {
            output.failures.push(format!("{place} had a {kind} that was not corrected: {severity}"));
        }
        let what = format!("{kind} of {place}: {severity}");
        output.rows.push(Row { what, value: Some(*times as f64), unit: "errors", ..Row::default() });
    }
    Ok(output)
}

/// The number of a report and what it says: `{1}[Hardware Error]:   section_type: PCIe error`.
fn report(line: &str) -> Option<(&str, &str)> {
    let (before, said) = line.split_once(MARK)?;
    let (_, number) = before.strip_suffix('}')?.rsplit_once('{')?;
    number.parse::<u64>().ok()?;
    Some((number, said.trim()))
}

/// The severity in `Error 0, type: recoverable`, with which each error begins.
fn begun(said: &str) -> Option<&str> {
    Some(said.strip_prefix("Error ")?.split_once(", type: ")?.1)
}

impl<'a> Section<'a> {
    fn take(&mut self, said: &'a str) {
        let place = PLACES.iter().find_map(|label| said.strip_prefix(*label));
        if let Some(kind) = said.strip_prefix(KIND) {
            self.kind = kind;
        } else if let Some(place) = place.filter(|place| !place.starts_with("not present"))
            && self.place.is_empty()
        {
            self.place = place;
        }
    }

    fn place_or_none(&self) -> &str {
        if self.place.is_empty() { "a part that is not named" } else { self.place }
    }

    fn is_failure(&self) -> bool {
        match self.severity {
            "fatal" => true,
            "corrected" | "info" => false,
            _ => self.kind == "memory error",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::output::read;

    #[test]
    fn what_firmware_reports_names_its_part_and_only_uncorrected_memory_and_fatal_errors_fail() {
        let lines = [
            "{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 1",
            "{1}[Hardware Error]: event severity: recoverable",
            "{1}[Hardware Error]:  Error 0, type: recoverable",
            "{1}[Hardware Error]:   section_type: PCIe error",
            "{1}[Hardware Error]:   device_id: 0000:5e:00.0",
            "{1}[Hardware Error]:   vendor_id: 0x144d, device_id: 0xa808",
            "{2}[Hardware Error]:  Error 0, type: recoverable",
            "{2}[Hardware Error]:   section_type: memory error",
            "{2}[Hardware Error]:   DIMM location: CPU 1 DIMM 5",
            "{3}[Hardware Error]:  Error 0, type: fatal",
            "{3}[Hardware Error]:   section_type: PCIe error",
            "{3}[Hardware Error]:   device_id: 0000:18:00.0",
            "mce: [Hardware Error]: Machine check events logged",
        ];
        let text: String =
            lines.iter().map(|line| format!("May  7 06:45:12 n-1 kernel: [11219.1] {line}\n")).collect();
        let outputs = read(&text).expect("read");
        let [output] = &outputs[..] else { panic!("{outputs:?}") };
        let rows: Vec<&str> = output.rows.iter().map(|row| row.what.as_str()).collect();
        let expected = [
            "PCIe error of 0000:18:00.0: fatal",
            "PCIe error of 0000:5e:00.0: recoverable",
            "memory error of CPU 1 DIMM 5: recoverable",
        ];
        assert_eq!(rows, expected);
        let failures = [
            "0000:18:00.0 had a PCIe error that was not corrected: fatal",
            "CPU 1 DIMM 5 had a memory error that was not corrected: recoverable",
        ];
        assert_eq!(output.failures, failures);
    }
}
