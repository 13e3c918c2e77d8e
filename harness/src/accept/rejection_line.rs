//! A rejection as one line of a terminal: stage, code, node and part, number and limit. The certificate has the whole evidence.

use crate::report::culprit_line::MOST_LETTERS;
use base::text::{shorten, show};
use model::artefact::acceptance::{Coded, Rejected};

/// The line about one culprit of a rejected node.
pub(super) fn rejection_line(one: &Rejected, culprit: &Coded) -> String {
    let head = format!(
        "rejected at {}: {} {} {} {}: ",
        one.stage, culprit.code, culprit.severity, one.node, culprit.part
    );
    let room = MOST_LETTERS.saturating_sub(head.chars().count());
    let evidence = show(&culprit.evidence);
    // What the probe read is a list of facts, what a run measured is a number and its reasons.
    match one.run {
        Some(_) => format!("{head}{}", measurement(&evidence, &one.node, &culprit.part, room)),
        None => format!("{head}{}", first_fact(&evidence, room)),
    }
}

const LIMIT: &str = ", limit ";

fn is_long(text: &str, room: usize) -> bool {
    text.chars().count() > room
}

/// Two values of a fact are never cut: without one of them the other says nothing.
fn first_fact(evidence: &str, room: usize) -> String {
    match evidence.split_once("; ") {
        Some((first, rest)) if is_long(evidence, room) => {
            format!("{first}; {} more", rest.split("; ").count())
        }
        _ => evidence.to_owned(),
    }
}

/// Reasons go first, then what the line has said already; number and limit stay.
fn measurement(evidence: &str, node: &str, part: &str, room: usize) -> String {
    if !is_long(evidence, room) {
        return evidence.to_owned();
    }
    let mut text = evidence.split("; ").next().unwrap_or_default();
    if is_long(text, room) && text.ends_with(')') {
        text = text.rfind(" (").map_or(text, |at| &text[..at]);
    }
    let mut text = text.to_owned();
    for (long, short) in [
        (format!(" on {node} {part}: "), ": "),
        (format!(" on {node}: "), ": "),
        (", expected at least ".to_owned(), LIMIT),
        (", expected at most ".to_owned(), LIMIT),
    ] {
        if is_long(&text, room) {
            text = text.replacen(&long, short, 1);
        }
    }
    if let Some(at) = text.find(LIMIT).filter(|_| is_long(&text, room)) {
        let behind = at + LIMIT.len();
        let end = text[behind..].find([',', ':']).map_or(text.len(), |end| behind + end);
        text.truncate(end);
    }
    let value = text.split_once(": ").map(|(_, value)| value.to_owned());
    if let Some(value) = value.filter(|value| value.contains(LIMIT) && is_long(&text, room)) {
        text = value;
    }
    while is_long(&text, room) {
        let Some(at) = text.rfind(", ").max(text.rfind(": ")) else { break };
        text.truncate(at);
    }
    shorten(&text, room)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(stage: &str, code: &str, part: &str, evidence: &str, run: Option<&str>) -> String {
        let culprit = Coded {
            code: code.to_owned(),
            severity: "replace".to_owned(),
            part: part.to_owned(),
            evidence: evidence.to_owned(),
        };
        let one = Rejected {
            node: "p5-034".to_owned(),
            stage: stage.to_owned(),
            culprits: Vec::new(),
            assertions: Vec::new(),
            run: run.map(str::to_owned),
            soaked_s: None,
        };
        rejection_line(&one, &culprit)
    }

    #[test]
    fn a_rejection_is_one_line_with_its_number_and_limit() {
        for (stage, code, part, evidence, expected) in [
            (
                "pairs",
                "HRN-NIC-SLOW",
                "rdmap113s0",
                "4.8 GB/s with p5-001, limit 11 GB/s",
                "rejected at pairs: HRN-NIC-SLOW replace p5-034 rdmap113s0: 4.8 GB/s with p5-001, limit 11 GB/s",
            ),
            (
                "single node",
                "HRN-NVLINK-SLOW",
                "nvlink",
                "nccl.busbw all_reduce 8GiB on p5-034: 190.0 GB/s, expected at least 310.0 GB/s (baseline p5 nccl.busbw \
                 all_reduce, 8GiB, 1 node, 8 ranks, placement each, n = 5, median 400.0 GB/s)",
                "rejected at single node: HRN-NVLINK-SLOW replace p5-034 nvlink: nccl.busbw all_reduce 8GiB: 190.0 GB/s, limit 310.0 GB/s",
            ),
            (
                "single node",
                "HRN-NVLINK-SLOW",
                "nvlink",
                "nccl.busbw reduce_scatter 128MiB on p5-034: 190.0 GB/s, expected at least 310.0 GB/s (baseline p5)",
                "rejected at single node: HRN-NVLINK-SLOW replace p5-034 nvlink: 190.0 GB/s, limit 310.0 GB/s",
            ),
            (
                "soak",
                "HRN-GPU-THROTTLES",
                "gpu3",
                "burn.kept on p5-034 gpu3: 0.600, expected at least 0.900: fell from 414.8 TFLOP/s to 248.7 TFLOP/s after \
                 40 min; in the soak from 40 min on, window 1 of 14",
                "rejected at soak: HRN-GPU-THROTTLES replace p5-034 gpu3: burn.kept: 0.600, limit 0.900",
            ),
        ] {
            assert_eq!(line(stage, code, part, evidence, Some("run")), expected);
        }
    }

    #[test]
    fn the_first_of_many_facts_stands_with_both_of_its_values() {
        let facts = "`machine` is i-0fedcba9876543210, delivered was i-0123456789abcdef0; `cpus` is 191, on most nodes 192; \
                     `memory` is low";
        assert_eq!(
            line("preflight", "HRN-NODE-UNFIT", "node", facts, None),
            "rejected at preflight: HRN-NODE-UNFIT replace p5-034 node: `machine` is i-0fedcba9876543210, delivered was \
             i-0123456789abcdef0; 2 more"
        );
    }
}
