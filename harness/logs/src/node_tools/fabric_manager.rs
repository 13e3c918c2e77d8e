//! The log of NVIDIA's Fabric Manager, its file or the journal's lines: errors of NVSwitches by switch and port, and
//! whatever else it calls an error.

use super::output::{NodeOutput, Row};
use super::{NoResult, cut};
use crate::text::count;
use std::collections::BTreeMap;

const OF_SWITCH: &str = "detected NVSwitch ";
const CONFIGURED: &str = "Successfully configured all the available";
/// Its levels of errors, and what it says of its start where the journal has no levels.
const ERRORS: [&str; 4] = ["[ERROR] [tid ", "[CRITICAL] [tid ", "failed with error", "failed to configure"];

/// Errors of one kind at one port.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct SwitchError<'a> {
    /// `fatal` or `non-fatal`.
    severity: &'a str,
    /// The SXid.
    number: u32,
    switch: &'a str,
    port: &'a str,
}

/// Fatal errors of an NVSwitch are failures; other errors are findings, since they may be of its configuration.
pub(super) fn read(text: &str) -> Result<NodeOutput, NoResult> {
    let mut of_switches: BTreeMap<SwitchError<'_>, (u32, &str)> = BTreeMap::new();
    let (mut configured, mut others) = (0, 0);
    let mut first_other: Option<&str> = None;
    for line in text.lines() {
        configured += u32::from(line.contains(CONFIGURED));
        let of_switch = line.split_once(OF_SWITCH);
        if let Some((before, rest)) = of_switch
            && let Some(error) = switch_error(rest)
        {
            let (times, last) = of_switches.entry(error).or_insert((0, ""));
            *times += 1;
            *last = stamp(before);
        } else if of_switch.is_some() || ERRORS.iter().any(|error| line.contains(error)) {
            others += 1;
            first_other = first_other.or(Some(line));
        }
    }
    let mut output = NodeOutput { program: "Fabric Manager", ..NodeOutput::default() };
    let row = |what: String, times: u32| Row {
        what,
        value: Some(f64::from(times)),
        unit: "lines",
        ..Row::default()
    };
    for (error, (times, last)) in &of_switches {
        let SwitchError { severity, number, switch, port } = error;
        output.rows.push(row(format!("{severity} error {number} of NVSwitch {switch} port {port}"), *times));
        if *severity == "fatal" {
            let when = if last.is_empty() { String::new() } else { format!(", last at {last}") };
            output.failures.push(format!("NVSwitch {switch} port {port}: fatal error {number}{when}"));
        }
    }
    if configured > 0 {
        output.rows.push(row("NVSwitches configured".to_owned(), configured));
    } else {
        output
            .findings
            .push("no line says that it configured the NVSwitches: its beginning may be cut".to_owned());
    }
    if let Some(line) = first_other {
        output.rows.push(row("other errors".to_owned(), others));
        output.findings.push(format!(
            "{}; the first: {}",
            count(others.into(), "other error"),
            cut(line.trim())
        ));
    }
    Ok(output)
}

/// `fatal error 20034 on fid 0 on NVSwitch pci bus id 00000000:86:00.0 physical id 3 port 33`; newer ones have `NodeId` for
/// `fid`.
fn switch_error(text: &str) -> Option<SwitchError<'_>> {
    let (severity, rest) = text.split_once(" error ")?;
    let (number, rest) = rest.split_once(' ')?;
    let switch = rest.split_once(" pci bus id ")?.1.split_whitespace().next()?;
    let port = rest.split_once(" port ").and_then(|(_, port)| port.split_whitespace().next()).unwrap_or("?");
    let is_severity = ["fatal", "non-fatal"].contains(&severity);
    is_severity.then_some(SwitchError { severity, number: number.parse().ok()?, switch, port })
}

/// The time in `[Jul 23 2024 07:53:55] [ERROR] [tid 841] `; empty where there is none.
fn stamp(before: &str) -> &str {
    let inside = before.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or("", |(stamp, _)| stamp).trim()
}

#[cfg(test)]
mod tests {
    use super::super::output::read;

    const START: &str = "Fabric Manager Log initializing at: 7/9/2024 18:12:01.123\n\
        [Jul 09 2024 18:12:03] [INFO] [tid 7] Successfully configured all the available NVSwitches to route GPU NVLink traffic.\n";

    #[test]
    fn a_fatal_error_of_an_nvswitch_names_switch_and_port() {
        let error = |day: u32, severity: &str, number: u32, port: u32| {
            format!(
                "[Jul {day:02} 2024 07:53:55] [ERROR] [tid 841] detected NVSwitch {severity} error {number} on fid 0 on NVSwitch \
                 pci bus id 00000000:86:00.0 physical id 3 port {port}\n"
            )
        };
        let text = format!(
            "{START}{}{}{}",
            error(10, "non-fatal", 12028, 61),
            error(22, "fatal", 20034, 33),
            error(23, "fatal", 20034, 33)
        );
        let outputs = read(&text).expect("read");
        assert_eq!(outputs.len(), 1);
        assert_eq!((outputs[0].program, outputs[0].findings.len()), ("Fabric Manager", 0));
        let rows: Vec<(&str, Option<f64>)> =
            outputs[0].rows.iter().map(|row| (row.what.as_str(), row.value)).collect();
        let expected = [
            ("fatal error 20034 of NVSwitch 00000000:86:00.0 port 33", 2.0),
            ("non-fatal error 12028 of NVSwitch 00000000:86:00.0 port 61", 1.0),
            ("NVSwitches configured", 1.0),
        ];
        assert_eq!(rows, expected.map(|(what, times)| (what, Some(times))));
        assert_eq!(
            outputs[0].failures,
            ["NVSwitch 00000000:86:00.0 port 33: fatal error 20034, last at Jul 23 2024 07:53:55"]
        );
    }

    #[test]
    fn the_journal_of_several_nodes_keeps_them_apart() {
        let line =
            |node: &str, text: &str| format!("Mar 03 18:39:57 {node} nv-fabricmanager[5183]: {text}\n");
        let good = "Successfully configured all the available NVSwitches to route GPU NVLink traffic.";
        let bad = "detected NVSwitch fatal error 22013 on NodeId 0 on NVSwitch pci bus id 00000000:08:00.0 physical id 3 port 60";
        let outputs = read(&(line("n-1", good) + &line("n-2", good) + &line("n-2", bad))).expect("read");
        let failures: Vec<(&str, usize)> =
            outputs.iter().map(|output| (output.who.as_str(), output.failures.len())).collect();
        assert_eq!(failures, [("n-1", 0), ("n-2", 1)]);
        assert_eq!(outputs[1].failures, ["NVSwitch 00000000:08:00.0 port 60: fatal error 22013"]);
    }

    #[test]
    fn an_error_that_is_of_no_nvswitch_is_a_finding_and_names_no_part() {
        let text = format!(
            "{START}[Apr 17 2024 01:51:39] [ERROR] [tid 29] failed to find the GPU handle 1 in the multicast team request setup 5.\n"
        );
        let outputs = read(&text).expect("read");
        assert!(outputs[0].failures.is_empty());
        assert_eq!(
            outputs[0].findings,
            [
                "1 other error; the first: [Apr 17 2024 01:51:39] [ERROR] [tid 29] failed to find the GPU handle 1 in the multicast \
                 team request setup 5."
            ]
        );
        let none = "Nov 15 14:15:47 n-1 nv-fabricmanager[4177]: request to query NVSwitch device information from NVSwitch driver \
                    failed with error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]\n";
        let outputs = read(none).expect("read");
        assert_eq!((outputs[0].failures.len(), outputs[0].findings.len()), (0, 2));
    }
}
