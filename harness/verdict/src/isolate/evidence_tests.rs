//! What stored runs name by themselves, what they only hint at, and when a search goes on nevertheless.

use super::*;

fn culprit(node: &str, part: &str, evidence: &str) -> Culprit {
    Culprit::Culprit { node: node.into(), part: part.into(), evidence: evidence.into(), code: None }
}

#[test]
fn what_names_a_part_is_evidence_and_has_a_code_with_a_page() {
    let culprits = [
        culprit("n1", "rdmap79s0", "not listed, expected by the profile of p5"),
        culprit("n2", "rdmap79s0", "listed, but moved no byte in `all` while its peers did"),
        culprit("n3", "rdmap79s0", "4.8 GB/s with n4 and n5"),
        culprit("n4", "gpu3", "`nccl.wrong` is 12"),
        culprit("n5", "gpu3", "`nccl.algbw` is 640 GB/s"),
        culprit("n6", "node", "NODE_FAIL: job 3 of `all`: n6"),
        culprit("n7", "node", "hang: job 3 of `all`: n7"),
    ];
    let left = [LeftOut { node: "n8".into(), why: "7 GPUs of 8".into(), by_folder: false, after: None }];
    let evidence = from_culprits(&culprits, &left);
    let codes: Vec<&str> = evidence.lines.iter().map(|line| line.code).collect();
    let wanted = [
        "HRN-NODE-UNFIT",
        "HRN-NIC-MISSING",
        "HRN-NIC-DEAD",
        "HRN-NIC-SLOW",
        "HRN-GPU-WRONG",
        "HRN-GPU-SLOW",
        "HRN-NODE-LOST",
        "HRN-NODE-BROKEN",
    ];
    assert_eq!(codes, wanted);
    assert!(evidence.explains_all);
    for line in &evidence.lines {
        let code = Code::find(line.code).expect("a code");
        let page = code.page();
        let drains = page.contains("scontrol update nodename=NODE state=drain");
        assert!(page.contains("cause") && drains == code.severity.asks_for_drain(), "{page}");
    }
}

#[test]
fn a_node_that_was_left_over_and_suspects_explain_nothing() {
    let slow = culprit("n2", "node", "nccl.busbw: out of bounds in job all of `all`");
    assert_eq!(from_culprits(&[slow], &[]), Evidence::default());
    let suspects = Culprit::Suspects { nodes: vec!["n1".into(), "n2".into()], evidence: "hang: x".into() };
    let both = from_culprits(&[suspects, culprit("n3", "gpu1", "`nccl.algbw` is low")], &[]);
    assert_eq!((both.lines.len(), both.explains_all), (1, false));
    assert!(!from_culprits(&[], &[]).explains_all);
}

use crate::isolate::observations::{Loss, Timeouts};
use metric::finding::Finding;
use model::artefact::{Probe, ProbedNode, Value};

fn job(kind: WorkKind, nodes: &[&str], metric: &str, failed: bool) -> JobOutcome {
    JobOutcome {
        case: "c".into(),
        kind,
        job: nodes.join("+"),
        nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
        bad: None,
        judged: [(metric.to_owned(), failed)].into(),
        worst: Default::default(),
    }
}

fn loss(nodes: &[&str], left: Option<f64>) -> Loss {
    Loss { case: "c".into(), nodes: nodes.iter().map(|node| (*node).to_owned()).collect(), left }
}

/// Pairs of which those with `bad` are slow.
fn pairs(bad: &[&str]) -> RunObservations {
    let pairs = [["n1", "n2"], ["n2", "n3"], ["n3", "n4"], ["n4", "n1"]];
    let is_bad = |pair: &[&str; 2]| pair.iter().any(|node| bad.contains(node));
    RunObservations {
        jobs: pairs.iter().map(|pair| job(WorkKind::Collective, pair, "nccl.busbw", is_bad(pair))).collect(),
        losses: pairs.iter().filter(|pair| is_bad(pair)).map(|pair| loss(pair, Some(0.5))).collect(),
        nics: 32,
        gpus: 8,
        ..RunObservations::default()
    }
}

fn probe(odd: &str, fact: &str, value: Value) -> Probe {
    let node = |name: &str| {
        let mut node =
            ProbedNode { node: name.into(), fingerprint: Some("f".into()), ..ProbedNode::default() };
        node.facts.insert("driver".into(), Value::Text("570.1".into()));
        if name == odd {
            node.facts.insert(fact.to_owned(), value.clone());
        }
        node
    };
    Probe {
        format: model::artefact::Format,
        harness: "0".into(),
        simulated: false,
        inventory: "i".into(),
        instance: "p5".into(),
        at: "2026".into(),
        nodes: ["n1", "n2", "n3", "n4"].map(node).into(),
    }
}

/// Each kind of oddity, of this node.
fn oddities(node: &str) -> Vec<(&'static str, RunObservations)> {
    let xid = Value::Names(vec!["NVRM: Xid (PCI:0000:53:00): 79, GPU has fallen off the bus.".into()]);
    let timeouts = vec![Timeouts { node: node.into(), nic: "rdmap79s0".into(), events: 12 }];
    let finding =
        Finding::new("nccl-not-gdrdma", "8 pairs go through host memory").node(format!("{node}.local"));
    let other = Value::Text("550.2".into());
    let down = Value::Names(vec!["rdmap79s0 1: DOWN".into()]);
    vec![
        ("HRN-NIC-RETRANS", RunObservations { timeouts, ..RunObservations::default() }),
        ("HRN-NET-DOWNGRADED", RunObservations { findings: vec![finding], ..RunObservations::default() }),
        (
            "HRN-GPU-XID",
            RunObservations { probe: Some(probe(node, "xid", xid)), ..RunObservations::default() },
        ),
        (
            "HRN-NODE-DIFFERS",
            RunObservations { probe: Some(probe(node, "driver", other)), ..RunObservations::default() },
        ),
        (
            "HRN-NIC-DOWN",
            RunObservations { probe: Some(probe(node, "nics_down", down)), ..RunObservations::default() },
        ),
    ]
}

fn codes(evidence: &Evidence) -> Vec<(&str, &str)> {
    evidence.lines.iter().map(|line| (line.code, line.node.as_str())).collect()
}

#[test]
fn each_kind_of_oddity_is_named_where_the_runs_speak_against_its_node_and_ends_the_search() {
    for (code, odd) in oddities("n2") {
        let mut seen = RunObservations { jobs: Vec::new(), losses: Vec::new(), nics: 32, gpus: 8, ..odd };
        // n2 is in all that is slow, and each of its partners did well with another.
        let of_pairs = pairs(&["n2"]);
        seen.jobs = of_pairs.jobs;
        seen.losses = of_pairs.losses;
        let evidence = from_observations(&seen);
        assert_eq!(codes(&evidence), [(code, "n2")], "{evidence:?}");
        assert!(evidence.explains_all && evidence.hints.is_empty(), "{code} {evidence:?}");
        assert!(Code::find(code).is_some_and(|code| code.page().contains("cause")), "{code}");
    }
}

#[test]
fn no_kind_of_oddity_hides_a_second_fault() {
    for (code, odd) in oddities("n2") {
        // n3 is slow too: n2 does not explain its pair with n4.
        let mut seen = RunObservations { nics: 32, gpus: 8, ..odd };
        let of_pairs = pairs(&["n2", "n3"]);
        seen.jobs = of_pairs.jobs;
        seen.losses = of_pairs.losses;
        let evidence = from_observations(&seen);
        assert!(!evidence.explains_all, "{code} {evidence:?}");
        // Neither is a slow node by elimination that nothing is odd about.
        let slow = culprit("n3", "node", "nccl.busbw: out of bounds");
        let evidence = from_observations(&RunObservations { culprits: vec![slow], ..seen });
        assert!(!evidence.explains_all, "{code} {evidence:?}");
    }
}

#[test]
fn what_is_odd_about_a_node_that_did_well_is_a_hint_and_no_culprit() {
    for (code, odd) in oddities("n1") {
        let mut seen = RunObservations { nics: 32, gpus: 8, ..odd };
        let of_pairs = pairs(&["n2"]);
        seen.jobs = of_pairs.jobs;
        seen.losses = of_pairs.losses;
        let evidence = from_observations(&seen);
        assert_eq!(codes(&evidence), []);
        assert!(!evidence.explains_all);
        assert!(
            evidence.hints.len() == 1 && evidence.hints[0].starts_with(&format!("{code} n1 ")),
            "{evidence:?}"
        );
    }
    // One run on all nodes, which does not show which of them it was.
    for (_, odd) in oddities("n1") {
        let all = ["n1", "n2", "n3", "n4"];
        let jobs = vec![job(WorkKind::Collective, &all, "nccl.busbw", true)];
        let seen = RunObservations { jobs, losses: vec![loss(&all, Some(0.5))], nics: 32, gpus: 8, ..odd };
        let evidence = from_observations(&seen);
        assert!(evidence.lines.is_empty() && !evidence.explains_all, "{evidence:?}");
    }
}

#[test]
fn what_was_itself_out_of_bounds_on_a_node_names_it_and_answers_who_of_several_it_is() {
    let all: Vec<String> = ["n1", "n2", "n3", "n4"].map(str::to_owned).into();
    for ((code, odd), metric) in
        oddities("n2").into_iter().zip(["nic.retrans_timeouts", "nccl_log.not_gdrdma"])
    {
        let suspects =
            |about: &str| Culprit::Suspects { nodes: all.clone(), evidence: format!("{about}: of one job") };
        let failed = vec![(metric.to_owned(), "n2".to_owned())];
        let mut seen = RunObservations { culprits: vec![suspects(metric)], failed, nics: 32, gpus: 8, ..odd };
        let evidence = from_observations(&seen);
        assert_eq!((codes(&evidence), evidence.explains_all), (vec![(code, "n2")], true), "{evidence:?}");
        // It answers nothing else that is open.
        seen.culprits.push(suspects("nccl.busbw"));
        assert!(!from_observations(&seen).explains_all, "{code}");
        seen.culprits.pop();
        seen.losses = vec![loss(&["n1", "n2", "n3", "n4"], Some(0.5))];
        assert!(!from_observations(&seen).explains_all, "{code}");
    }
}

#[test]
fn a_dead_nic_explains_what_it_can_cost_and_a_greater_loss_keeps_the_search_going() {
    let all = ["n1", "n2", "n3", "n4"];
    for (left, nics, explains) in [
        (Some(0.97), 32, true),
        (Some(0.72), 32, true),
        (Some(0.5), 32, false),
        (None, 32, false),
        // With a NIC for each GPU or fewer, another one carries twice as much.
        (Some(0.5), 8, true),
        (Some(0.4), 4, false),
    ] {
        let dead = culprit("n2", "rdmap79s0", "listed, but moved no byte in `all` while its peers did");
        let jobs = vec![job(WorkKind::Collective, &all, "nccl.busbw", true)];
        let seen = RunObservations {
            culprits: vec![dead],
            jobs,
            losses: vec![loss(&all, left)],
            nics,
            gpus: 8,
            ..RunObservations::default()
        };
        let evidence = from_observations(&seen);
        assert_eq!(codes(&evidence), [("HRN-NIC-DEAD", "n2")]);
        assert_eq!(evidence.explains_all, explains, "{left:?} {nics}");
    }
}

#[test]
fn a_part_that_was_measured_by_itself_explains_where_all_others_did_well() {
    let slow = culprit("n2", "rdmap79s0", "4.8 GB/s with n1 and n3");
    let mut seen = RunObservations { culprits: vec![slow], ..pairs(&["n2"]) };
    assert!(from_observations(&seen).explains_all);
    // By themselves and on the fabric each is as good as together.
    let all = ["n1", "n2", "n3", "n4"];
    seen.jobs = vec![job(WorkKind::Collective, &all, "nccl.busbw", true)];
    seen.losses = vec![loss(&all, Some(0.5))];
    assert!(!from_observations(&seen).explains_all);
    for node in ["n1", "n3", "n4"] {
        seen.jobs.push(job(WorkKind::Collective, &[node], "nccl.busbw", false));
    }
    assert!(!from_observations(&seen).explains_all);
    seen.jobs.push(job(WorkKind::Flows, &["n3", "n4"], "nic.rate", false));
    seen.jobs.push(job(WorkKind::Flows, &["n4", "n1"], "nic.rate", false));
    assert!(from_observations(&seen).explains_all);
}

#[test]
fn a_node_that_was_left_out_for_a_link_that_is_down_is_named_with_its_nic() {
    let why = "NICs whose link is not active: rdmap79s0 1: DOWN";
    let down = Value::Names(vec!["rdmap79s0 1: DOWN".into()]);
    let seen = RunObservations {
        left_out: vec![LeftOut { node: "n2".into(), why: why.into(), by_folder: false, after: None }],
        probe: Some(probe("n2", "nics_down", down)),
        ..RunObservations::default()
    };
    let evidence = from_observations(&seen);
    assert_eq!((evidence.lines[0].code, evidence.lines[0].part.as_str()), ("HRN-NIC-DOWN", "rdmap79s0"));
    assert!(evidence.explains_all);
}

#[test]
fn a_line_is_code_severity_node_part_and_evidence() {
    let evidence = from_culprits(&[culprit("n3", "rdmap79s0", "4.8 GB/s")], &[]);
    let lines: Vec<String> = evidence.lines.iter().map(ToString::to_string).collect();
    assert_eq!(lines, ["HRN-NIC-SLOW replace n3 rdmap79s0: 4.8 GB/s"]);
}

#[test]
fn only_what_slows_all_nics_explains_a_slow_port() {
    let slow_port = |code: &str| {
        let mut finding = Finding::new(code, "said so");
        finding.node = Some("n2".into());
        let culprits = vec![culprit("n2", "fabric", "all 32 NICs at 6 GB/s, healthy: 12")];
        let seen = RunObservations { culprits, findings: vec![finding], ..RunObservations::default() };
        from_observations(&seen).lines.remove(0).code
    };
    assert_eq!(slow_port("nccl-not-gdrdma"), "HRN-NET-DOWNGRADED");
    assert_eq!(slow_port("nccl-network-socket"), "HRN-NET-DOWNGRADED");
    assert_eq!(slow_port("nccl-nvls-differs"), "HRN-PORT-SLOW");
    assert_eq!(slow_port("nccl-provider"), "HRN-PORT-SLOW");
}

#[test]
fn messages() {
    let culprits = [
        culprit("n1", "rdmap79s0", "not listed, expected by the profile of p5"),
        culprit("n2", "rdmap79s0", "listed, but moved no byte in `all` while its peers did"),
        culprit("n3", "gpu3", "`nccl.wrong` is 12"),
        culprit("n4", "node", "NODE_FAIL: job 3 of `all`: n4"),
        culprit("n5", "node", "hang: job 3 of `all`: n5"),
        culprit("n6", "rank12", "keeps the others waiting: 3 ms in each iteration"),
    ];
    let left = [LeftOut { node: "n7".into(), why: "7 GPUs of 8".into(), by_folder: false, after: None }];
    let mut lines: Vec<String> =
        from_culprits(&culprits, &left).lines.iter().map(ToString::to_string).collect();
    let with_pairs = |odd: RunObservations| {
        let of_pairs = pairs(&["n2"]);
        RunObservations { jobs: of_pairs.jobs, losses: of_pairs.losses, nics: 32, gpus: 8, ..odd }
    };
    for (_, odd) in oddities("n2") {
        lines.extend(from_observations(&with_pairs(odd)).lines.iter().map(ToString::to_string));
    }
    for (_, odd) in oddities("n1") {
        let evidence = from_observations(&with_pairs(odd));
        lines.extend(evidence.hints.iter().map(|hint| format!("hint: {hint}")));
    }
    let finding = Finding::new("nccl-not-gdrdma", "8 pairs go through host memory").node("n2");
    let port = culprit("n2", "fabric", "all 32 NICs at 6.0 GB/s, healthy: 12.0");
    let both =
        RunObservations { culprits: vec![port], findings: vec![finding], ..RunObservations::default() };
    lines.extend(from_observations(&both).lines.iter().map(ToString::to_string));
    insta::assert_snapshot!(lines.join("\n"));
}
