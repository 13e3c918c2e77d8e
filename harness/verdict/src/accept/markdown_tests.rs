//! The certificate as Markdown has every fact of `acceptance.json`: who reads it signs for it.

use super::certificate::markdown;
use metric::unit::Unit;
use model::artefact::acceptance::{
    Acceptance, Coded, Limit, NodeHardware, NodesJudged, Observed, Rejected, RunOfStage, SoakRecord,
    StackPart, StageRecord, Undecided, Withdrawn,
};

fn empty() -> Acceptance {
    Acceptance {
        format: model::artefact::Format,
        harness: "0.9.7".into(),
        delivery: "delivery-7".into(),
        simulated: false,
        note: None,
        suite: "acceptance-p5".into(),
        inventory: "acme".into(),
        instance: "p5".into(),
        seed: 42,
        nodes: "p5-[001-004]".into(),
        count: 4,
        partners: String::new(),
        vouched: "each other".into(),
        began: "2026-03-01".into(),
        ended: "2026-03-02".into(),
        budget_node_hours: None,
        node_hours: 1.25,
        accepted: Vec::new(),
        rejected: Vec::new(),
        undecided: Vec::new(),
        withdrawn: Vec::new(),
        stages: Vec::new(),
        soak: None,
        limits: Vec::new(),
        judged_by: Vec::new(),
        stack: Vec::new(),
        hardware: Vec::new(),
        not_checked: Vec::new(),
        not_measured: Vec::new(),
    }
}

fn limit() -> Limit {
    Limit {
        stage: "pairs".into(),
        case: "nics".into(),
        what: "rate".into(),
        unit: Unit::GigabytesPerSecond,
        limit: "at least 11.00 GB/s".into(),
        state: "accepted".into(),
        source: "runs of May".into(),
        n: Some(7),
        spread: Some(0.012),
        fingerprint: "nccl 2.28".into(),
        observed: Observed {
            n: 3,
            least: Some(11.0),
            median: Some(12.0),
            most: Some(13.0),
            spread: Some(0.034),
        },
        passed: 2,
        failed: 1,
        open: 5,
    }
}

fn full() -> Acceptance {
    let undecided = |node: &str| Undecided { node: node.into(), stage: "pairs".into(), why: "hung".into() };
    Acceptance {
        note: Some("SIMULATED".into()),
        budget_node_hours: Some(8.0),
        accepted: vec!["p5-001".into(), "p5-002".into()],
        rejected: vec![Rejected {
            node: "p5-003".into(),
            stage: "pairs".into(),
            culprits: vec![Coded {
                code: "HRN-NIC-SLOW".into(),
                severity: "replace".into(),
                part: "rdmap79s0".into(),
                evidence: "4.8 | GB/s".into(),
            }],
            assertions: Vec::new(),
            run: None,
            soaked_s: None,
        }],
        undecided: vec![undecided("p5-004"), undecided("p5-005")],
        withdrawn: vec![Withdrawn { node: "g1".into(), stage: "groups".into(), why: "bad".into() }],
        soak: Some(SoakRecord {
            planned_s: 86_400,
            window_s: 3600,
            windows: 24,
            judged: 24,
            completed: "p5-[001-002]".into(),
            fewest_for_growth: 11,
            false_alarm: 0.01,
        }),
        stages: vec![StageRecord {
            name: "pairs".into(),
            entered: "p5-[001-004]".into(),
            passed: String::new(),
            runs: vec![RunOfStage {
                run: "run-1".into(),
                about: "first".into(),
                nodes: "p5-[001-004]".into(),
                jobs: 6,
                node_hours: 0.5,
                planned_node_hours: 0.75,
                planned_s: 900,
                seconds: 600.4,
            }],
            node_hours: 0.5,
        }],
        limits: vec![limit()],
        judged_by: vec![NodesJudged {
            nodes: "p5-[001-002]".into(),
            accepted_baseline: 1,
            peers: 2,
            most_peers: 32,
            published: 3,
            floor: 4,
            limit: 5,
            unjudged: 6,
        }],
        stack: vec![StackPart { part: "nccl".into(), value: "2.28".into(), nodes: "p5-[001-004]".into() }],
        hardware: vec![NodeHardware {
            node: "p5-001".into(),
            machine: Some("i-0123456789abcdef0".into()),
            gpus: vec!["gpu0 GPU-5e3f 165".into(), "gpu1 GPU-6e3f|x 166".into()],
            nics: vec![],
        }],
        not_checked: vec!["diagnosis (dcgmi is <absent>)".into()],
        not_measured: vec!["no <GPU> clock".into()],
        ..empty()
    }
}

#[test]
fn every_node_limit_and_run_of_a_delivery_has_its_row() {
    let text = markdown(&full());
    for row in [
        "**SIMULATED**",
        "4: p5-[001-004]",
        "2: p5-[001-002]",
        "1: p5-003",
        "2: p5-[004-005]",
        "1.25 of a budget of 8",
        "| p5-003 | pairs | HRN-NIC-SLOW | replace | rdmap79s0 | 4.8 \\| GB/s | probe.json |",
        "| p5-[004-005] | pairs | hung |",
        "| g1 | groups | bad |",
        "| pairs | p5-[001-004] | none | 1 | 0.50 |",
        "| run-1 | first | p5-[001-004] | 6 | 0.50, 0.75 | 600, 900 |",
        "| p5-[001-002] | 1 | 2, 32 | 3 | 4 | 5 | 6 |",
        "| pairs | nics | rate | at least 11.00 GB/s | accepted | 7, 1.2 % | runs of May (nccl 2.28) | \
         3; 11.00 GB/s, 12.00 GB/s, 13.00 GB/s; 3.4 % | 2, 1, 5 |",
        "| nccl | 2.28 | p5-[001-004] |",
        "- no &lt;GPU&gt; clock",
        "- diagnosis (dcgmi is &lt;absent&gt;)",
        "| not checked | diagnosis (dcgmi is &lt;absent&gt;) |",
    ] {
        assert!(text.contains(row), "{row}\n{text}");
    }
}

#[test]
fn a_delivery_without_rejected_or_open_nodes_says_none_and_shows_no_empty_table() {
    let text = markdown(&empty());
    assert_eq!(text.matches("None.").count(), 2, "{text}");
    assert!(text.contains("| 0 |") && text.contains("| 1.25 |"), "{text}");
    for absent in ["HRN-", "**", "| nodes | stage |", "| node | stage |", "budget", "published"] {
        assert!(!text.contains(absent), "{absent}\n{text}");
    }
    let unmeasured = Limit { n: None, spread: None, observed: Observed::default(), ..limit() };
    let bare = Limit { fingerprint: String::new(), n: Some(7), spread: None, ..limit() };
    let text = markdown(&Acceptance { limits: vec![unmeasured, bare], ..empty() });
    assert!(text.contains("| accepted |  | runs of May (nccl 2.28) | nothing |"), "{text}");
    assert!(text.contains("| accepted | 7 | runs of May | 3;"), "{text}");
}

#[test]
fn messages_of_certificates() {
    insta::assert_snapshot!([markdown(&empty()), markdown(&full())].join("\n"));
}
