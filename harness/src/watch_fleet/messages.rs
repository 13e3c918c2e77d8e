//! What is printed of rounds, and of what they found.

use super::readings::CheckResult;
use base::nodeset;
use base::text::{count, duration, show};
use fleet::{Chosen, Coverage, Event, Fall, Reason};
use std::collections::BTreeMap;

/// The code of a fall, for `harness explain` and for drains.
pub(super) fn code_of(fall: &Fall) -> &str {
    match fall.part.as_str() {
        _ if fall.test.starts_with("HRN-") => &fall.test,
        "node" => "HRN-NODE-SLOW",
        part if part.strip_prefix("gpu").is_some_and(|rest| rest.bytes().all(|it| it.is_ascii_digit())) => {
            "HRN-GPU-SLOW"
        }
        _ => "HRN-NIC-SLOW",
    }
}

/// What was measured of it.
pub(super) fn evidence(fall: &Fall) -> String {
    if fall.test.starts_with("HRN-") {
        return "failed in three checks in a row".to_owned();
    }
    format!("{} {:.1} % below its own past and its peers", fall.test, fall.lower_by * 100.0)
}

/// With its code, for people and for `harness explain`.
pub(super) fn alarm(fall: &Fall) -> String {
    show(&format!("{} {} {}: {}", code_of(fall), fall.node, fall.part, evidence(fall)))
}

fn what(fall: &Fall) -> String {
    match fall.test.starts_with("HRN-") {
        true => fall.test.clone(),
        false => format!("{}, {:.1} % below its past", fall.test, fall.lower_by * 100.0),
    }
}

/// One line of an event. Names of parts come from nodes.
pub(super) fn line(event: &Event) -> String {
    show(&text(event))
}

fn text(event: &Event) -> String {
    match event {
        Event::Suspected(fall) => {
            format!("suspected {} {}: {}; to be checked again", fall.node, fall.part, what(fall))
        }
        Event::Alarm(fall) => format!("ALARM {}", alarm(fall)),
        Event::Cleared(fall) => format!("cleared {} {}: {}", fall.node, fall.part, fall.test),
        Event::Withdrawn(fall) => {
            format!("withdrawn {} {}: {}: more nodes fell alike", fall.node, fall.part, fall.test)
        }
        Event::Left(fall) => {
            format!("not watched any more, and not cleared: {} {}: {}", fall.node, fall.part, what(fall))
        }
        Event::Returned(fall) => {
            format!("watched again, with its alarm: {} {}: {}", fall.node, fall.part, what(fall))
        }
        Event::Unattributed { nodes, why } => {
            format!("the suite failed on {}, and blames none of them: {why}", nodeset::fold(nodes))
        }
        Event::Attributed => "the suite fails on no node without a culprit any more".to_owned(),
        Event::FleetFell { test, nodes } => {
            format!(
                "{} fell alike in {test}: no node is blamed; was software or the fabric changed?",
                count(*nodes, "node")
            )
        }
        Event::Replaced { node, parts } if parts.is_empty() => {
            format!("{node} is other hardware now: its past is that of the hardware")
        }
        Event::Replaced { node, parts } => {
            format!("{node} has other parts now, whose past begins: {}", parts.join(", "))
        }
    }
}

fn reason(reason: &Reason) -> String {
    match reason {
        Reason::Suspect => "suspected".to_owned(),
        Reason::Control => "beside a suspect".to_owned(),
        Reason::New => "never measured".to_owned(),
        Reason::Maintenance => "back in the queue".to_owned(),
        Reason::Neighbour => "a node of its group has a fault".to_owned(),
        Reason::Age(seconds) => format!("last measured {} ago", duration(*seconds as f64)),
    }
}

/// Nodes by why they are checked.
pub(super) fn chosen(all: &[Chosen]) -> Vec<String> {
    let mut by_reason: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in all {
        by_reason.entry(reason(&one.reason)).or_default().push(one.node.clone());
    }
    by_reason.iter().map(|(reason, nodes)| format!("{}: {reason}", nodeset::fold(nodes))).collect()
}

/// What came of a round's check. What was not measured is named.
pub(super) fn checked(nodes: &[String], result: &CheckResult) -> Vec<String> {
    let is_measured = |node: &&String| result.readings.iter().any(|reading| reading.node == **node);
    let measured: Vec<String> = nodes.iter().filter(is_measured).cloned().collect();
    let left: Vec<String> = nodes.iter().filter(|node| !is_measured(node)).cloned().collect();
    let hours = result.node_s / 3600.0;
    let mut lines = Vec::new();
    if !measured.is_empty() {
        lines.push(format!("checked {}, {hours:.2} node-hours", nodeset::fold(&measured)));
    }
    if !left.is_empty() {
        lines.push(format!(
            "not measured {}: preempted, not started, or no number; it counts for nothing",
            nodeset::fold(&left)
        ));
    }
    for out in &result.left_out {
        lines.push(format!("not launched on {}: {}", out.node, show(&out.why)));
    }
    lines
}

/// How much of the fleet is known.
pub(super) fn covered(coverage: &Coverage) -> String {
    let (spent, allowed) = coverage.node_hours;
    let oldest = match coverage.never {
        0 => format!("the oldest check is {} old", duration(coverage.oldest_s as f64)),
        never => format!("{never} never"),
    };
    let in_vain = match coverage.tried_in_vain.as_slice() {
        [] => String::new(),
        nodes => format!("{} tried in vain; ", nodeset::fold(nodes)),
    };
    format!(
        "{} of {} measured within 30 days, {oldest}; {} with a past to compare with; {in_vain}{spent:.2} of {allowed:.2} node-hours in 7 days",
        coverage.recent,
        count(coverage.nodes, "node"),
        coverage.with_past
    )
}
