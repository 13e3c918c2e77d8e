//! What a stored run proves of a part without another run: too much blames the innocent, too little repeats the search.

use super::code::{Code, Severity};
use super::evidence::{Evidence, from_culprits, from_observations};
use super::observations::{Loss, RunObservations, Timeouts};
use metric::finding::Finding;
use model::artefact::{Bad, Culprit, JobOutcome, LeftOut, WorkKind};

fn culprit(node: &str, part: &str, evidence: &str) -> Culprit {
    Culprit::Culprit { node: node.into(), part: part.into(), evidence: evidence.into(), code: None }
}

fn left_out(node: &str, why: &str) -> LeftOut {
    LeftOut { node: node.into(), why: why.into(), by_folder: false, after: None }
}

fn codes(evidence: &Evidence) -> Vec<&'static str> {
    evidence.lines.iter().map(|line| line.code).collect()
}

#[test]
fn a_quarantined_node_or_one_without_the_shared_folder_is_not_reported_unfit() {
    let codes_of = |left: LeftOut| codes(&from_culprits(&[], &[left]));
    assert_eq!(codes_of(left_out("n1", "7 GPUs of 8")), ["HRN-NODE-UNFIT"]);
    assert!(codes_of(LeftOut { after: Some("nics".into()), ..left_out("n1", "hang") }).is_empty());
    assert!(codes_of(LeftOut { by_folder: true, ..left_out("n1", "no /fsx") }).is_empty());
}

#[test]
fn a_broken_node_with_a_named_part_is_one_line_and_another_node_has_its_own() {
    let hang = |node: &str| culprit(node, "node", "hang: job 3 of `all`");
    let nic = |node: &str| culprit(node, "rdmap79s0", "4.8 GB/s with n4 and n5");
    assert_eq!(codes(&from_culprits(&[nic("n1"), hang("n1")], &[])), ["HRN-NIC-SLOW"]);
    assert_eq!(codes(&from_culprits(&[nic("n1"), hang("n2")], &[])), ["HRN-NIC-SLOW", "HRN-NODE-BROKEN"]);
    assert_eq!(codes(&from_culprits(&[hang("n1"), nic("n1")], &[])), ["HRN-NODE-BROKEN", "HRN-NIC-SLOW"]);
    assert_eq!(codes(&from_culprits(&[nic("n1"), nic("n1")], &[])).len(), 2);
    let slow = Culprit::Culprit {
        node: "n1".into(),
        part: "node".into(),
        evidence: "all 8 GPUs at 650 GB/s".into(),
        code: Some("HRN-NODE-SLOW".into()),
    };
    assert_eq!(codes(&from_culprits(&[nic("n1"), slow], &[])), ["HRN-NIC-SLOW", "HRN-NODE-SLOW"]);
}

#[test]
fn a_node_whose_job_was_killed_or_failed_is_broken_and_one_that_is_left_over_has_no_code() {
    let code = |evidence: &str| Code::from_evidence("node", evidence).map(|code| code.name);
    for evidence in ["exit 1: job j", "signal 9: job j", "hang: job j", "stall: job j"] {
        assert_eq!(code(evidence), Some("HRN-NODE-BROKEN"), "{evidence}");
    }
    assert_eq!(code("NODE_FAIL: job j"), Some("HRN-NODE-LOST"));
    assert_eq!(code("nccl.busbw: out of bounds"), None);
}

#[test]
fn only_what_needs_a_repair_asks_for_a_drain() {
    for (severity, drains) in [
        (Severity::Replace, true),
        (Severity::Reboot, true),
        (Severity::Reset, true),
        (Severity::Configure, false),
        (Severity::Watch, false),
    ] {
        assert_eq!(severity.asks_for_drain(), drains, "{}", severity.name());
    }
}

fn job(nodes: &[&str], metric: &str, failed: bool) -> JobOutcome {
    JobOutcome {
        case: "c".into(),
        kind: WorkKind::Collective,
        job: nodes.join("+"),
        nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
        bad: None,
        judged: [(metric.to_owned(), failed)].into(),
        worst: Default::default(),
    }
}

fn timeouts(node: &str) -> Vec<Timeouts> {
    vec![Timeouts { node: node.into(), nic: "rdmap79s0".into(), events: 12 }]
}

#[test]
fn retransmissions_blame_a_node_only_where_a_bad_job_leaves_no_other() {
    let counts = |jobs: Vec<JobOutcome>| {
        let evidence = from_observations(&RunObservations {
            jobs,
            timeouts: timeouts("n1"),
            ..RunObservations::default()
        });
        (evidence.lines.len(), evidence.hints.len())
    };
    let slow = |nodes: &[&str]| job(nodes, "nccl.busbw", true);
    let good = |nodes: &[&str]| job(nodes, "nccl.busbw", false);
    assert_eq!(counts(vec![slow(&["n1", "n2"]), good(&["n2", "n3"])]), (1, 0));
    assert_eq!(counts(vec![slow(&["n1", "n2"])]), (0, 1), "n2 may be it as well");
    assert_eq!(counts(vec![good(&["n2", "n3"])]), (0, 1));
    assert_eq!(
        counts(vec![slow(&["n2", "n4"]), good(&["n2", "n4"]), good(&["n3", "n5"])]),
        (0, 1),
        "not its job"
    );
    assert_eq!(
        counts(vec![slow(&["n1", "n2"]), good(&["n2", "n3"]), good(&["n1", "n3"])]),
        (0, 1),
        "it did well"
    );
    // What no rate says is no slow job.
    assert_eq!(counts(vec![job(&["n1", "n2"], "nccl.wrong", true), good(&["n2", "n3"])]), (0, 1));
    let hung = JobOutcome {
        bad: Some(Bad { cause: "hang".into(), node: None, evidence: "x".into() }),
        ..good(&["n1", "n2"])
    };
    assert_eq!(counts(vec![hung, good(&["n2", "n3"])]), (1, 0));
}

#[test]
fn a_counter_that_was_out_of_bounds_itself_names_its_node_alone() {
    let lines = |metric: &str, node: &str| {
        let failed = vec![(metric.to_owned(), node.to_owned())];
        from_observations(&RunObservations { failed, timeouts: timeouts("n1"), ..RunObservations::default() })
            .lines
            .len()
    };
    assert_eq!(lines("nic.retrans_timeouts", "n1"), 1);
    assert_eq!(lines("nic.retrans_timeouts", "n2"), 0);
    assert_eq!(lines("nic.share", "n1"), 0);
}

fn down(node: &str) -> Finding {
    Finding::new("nccl-not-gdrdma", "8 pairs go through host memory").node(node)
}

#[test]
fn what_is_odd_about_a_named_node_is_added_to_its_line_once() {
    let shown = |evidence: &str| {
        let observed = RunObservations {
            culprits: vec![culprit("n1", "rdmap79s0", evidence)],
            timeouts: timeouts("n1"),
            ..RunObservations::default()
        };
        from_observations(&observed).lines[0].evidence.clone()
    };
    let oddity = RunObservations { timeouts: timeouts("n1"), ..RunObservations::default() }
        .oddities()
        .remove(0)
        .evidence;
    assert_eq!(shown("4.8 GB/s"), format!("4.8 GB/s; {oddity}"));
    let already = format!("4.8 GB/s, {oddity}");
    assert_eq!(shown(&already), already);
    let long = format!("4.8 GB/s {}", "x".repeat(300));
    assert_eq!(shown(&long), long, "a long line is not made longer");
}

#[test]
fn host_memory_explains_slow_nics_only_where_all_of_a_node_are_slow() {
    let codes_of = |code: &str, part: &str| {
        let named = Culprit::Culprit {
            node: "n1".into(),
            part: part.into(),
            evidence: "5.0 GB/s".into(),
            code: Some(code.into()),
        };
        let observed = RunObservations {
            culprits: vec![named],
            findings: vec![down("n1.local")],
            ..RunObservations::default()
        };
        codes(&from_observations(&observed))
    };
    assert_eq!(codes_of("HRN-PORT-SLOW", "fabric"), ["HRN-NET-DOWNGRADED"]);
    assert_eq!(codes_of("HRN-NIC-SLOW", "rdmap79s0"), ["HRN-NIC-SLOW"]);
}

#[test]
fn a_dead_nic_explains_no_more_than_the_share_of_a_nic() {
    let dead = Culprit::Culprit {
        node: "n1".into(),
        part: "rdmap79s0".into(),
        evidence: "moved no byte".into(),
        code: Some("HRN-NIC-DEAD".into()),
    };
    let explains = |nics: usize, gpus: usize, left: f64| {
        let observed = RunObservations {
            culprits: vec![dead.clone()],
            losses: vec![Loss { case: "c".into(), nodes: vec!["n1".into(), "n2".into()], left: Some(left) }],
            nics,
            gpus,
            ..RunObservations::default()
        };
        from_observations(&observed).explains_all
    };
    // Four NICs of each GPU: a quarter, and a little for noise.
    assert_eq!((explains(32, 8, 0.71), explains(32, 8, 0.69)), (true, false));
    // One NIC of each GPU: another one carries both.
    assert_eq!((explains(8, 8, 0.46), explains(8, 8, 0.44)), (true, false));
    assert_eq!((explains(16, 8, 0.46), explains(16, 8, 0.44)), (true, false));
}
