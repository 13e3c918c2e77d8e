//! What is printed and exposed of a watch.

use super::{exposition, messages};
use fleet::{Chosen, Coverage, Event, Fall, Reason};

fn fall(node: &str, part: &str, test: &str, lower_by: f64) -> Fall {
    Fall { node: node.to_owned(), part: part.to_owned(), test: test.to_owned(), lower_by }
}

fn falls() -> [Fall; 4] {
    [
        fall("p5-002", "rdmap113s0", "nic-pairs nic.rate", 0.101),
        fall("p5-003", "gpu3", "copies nvbandwidth.from_host", 0.048),
        fall("p5-004", "node", "node-all_reduce nccl.busbw all_reduce 8GiB", 0.2),
        fall("p5-001", "gpu0", "HRN-GPU-WRONG", 0.0),
    ]
}

#[test]
fn messages_are_lines_with_the_code_that_explain_knows() {
    let [nic, gpu, node, wrong] = falls();
    for one in [&nic, &gpu, &node, &wrong] {
        assert!(verdict::isolate::code::Code::find(messages::code_of(one)).is_some(), "{one:?}");
    }
    let events = [
        Event::Suspected(nic.clone()),
        Event::Alarm(nic.clone()),
        Event::Alarm(gpu),
        Event::Alarm(node),
        Event::Alarm(wrong.clone()),
        Event::Suspected(wrong),
        Event::Cleared(nic),
        Event::Withdrawn(falls()[2].clone()),
        Event::Left(falls()[3].clone()),
        Event::Returned(falls()[0].clone()),
        Event::Unattributed {
            nodes: vec!["p5-001".to_owned(), "p5-002".to_owned()],
            why: "all alike".to_owned(),
        },
        Event::Attributed,
        Event::FleetFell { test: "copies nvbandwidth.from_host".to_owned(), nodes: 3 },
        Event::Replaced { node: "p5-001".to_owned(), parts: Vec::new() },
        Event::Replaced { node: "p5-001".to_owned(), parts: vec!["gpu3".to_owned()] },
    ];
    let mut lines: Vec<String> = events.iter().map(messages::line).collect();
    let chosen = |node: &str, reason| Chosen { node: node.to_owned(), reason };
    lines.extend(messages::chosen(&[
        chosen("p5-001", Reason::New),
        chosen("p5-002", Reason::New),
        chosen("p5-003", Reason::Suspect),
        chosen("p5-004", Reason::Control),
        chosen("p5-005", Reason::Maintenance),
        chosen("p5-006", Reason::Neighbour),
        chosen("p5-007", Reason::Age(86_400)),
    ]));
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn metrics() {
    let coverage = Coverage {
        nodes: 4,
        recent: 3,
        never: 1,
        oldest_s: 7200,
        with_past: 3,
        checks: 40,
        tried_in_vain: vec!["p5-001".to_owned()],
        node_hours: (1.5, 3.36),
    };
    let text = exposition::render(&exposition::RoundState {
        inventory: "sim\"x",
        now_s: 1_800_000_000,
        alarms: &falls(),
        suspects: 1,
        fell: 0,
        unattributed: 2,
        coverage: &coverage,
        idle: 2,
        is_complete: true,
    });
    insta::assert_snapshot!(String::from_utf8(text).expect("text"));
}
