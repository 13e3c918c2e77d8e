//! Numbers that are read from profiler reports: why they are missing, and whose report it is.

use super::*;
use job::profile::{Keep, NsysVersion};
use metric::finding::Finding;
use model::artefact::{PlannedProfile, ProfiledRank};

fn world(findings: &[(&str, Option<&str>)]) -> World {
    let mut world = World::new(at_least(0.95));
    world.case.assertions = vec![assertion("kernel.share", at_least(0.95))];
    let finding = |(code, node): &(&str, Option<&str>)| {
        let finding = Finding::new(code, format!("rank 8: {code}")).file("raw/j/profile.rank8.txt");
        match node {
            Some(node) => finding.node(*node),
            None => finding,
        }
    };
    world.analysis().findings = findings.iter().map(finding).collect();
    world
}

#[test]
fn a_missing_share_has_the_cause_of_its_report_and_the_node_is_named() {
    for cause in ["report-missing", "report-empty", "report-unreadable", "nsys-missing", "nsys-old"] {
        let world = world(&[("no-rows", Some("n1")), (cause, Some("n2"))]);
        let verdict = world.one();
        assert_eq!((verdict.status, verdict.cause.as_deref()), (Status::Inconclusive, Some(cause)));
        assert!(verdict.message.contains("raw/j/profile.rank8.txt: rank 8"), "{}", verdict.message);
        let outcome = &world.judged().outcomes.jobs[0];
        let bad = outcome.bad.as_ref().expect("something happened to its report");
        assert_eq!((bad.cause.as_str(), bad.node.as_deref()), (cause, Some("n2")));
    }
}

#[test]
fn a_recording_that_lacks_events_or_the_window_is_no_nodes() {
    for (cause, next) in [
        ("events-dropped", "a shorter window or fewer ranks"),
        ("target-error", "harness recipe diagnostics"),
        ("window-missed", "the findings"),
        ("outside-window", "the findings"),
    ] {
        let mut world = world(&[(cause, Some("n2"))]);
        let verdict = world.one();
        assert_eq!((verdict.status, verdict.cause.as_deref()), (Status::Inconclusive, Some(cause)));
        assert!(verdict.next.as_deref().is_some_and(|step| step.contains(next)), "{:?}", verdict.next);
        assert_eq!(world.judged().outcomes.jobs, []);
        // What the job measured besides is evidence all the same.
        world
            .case
            .assertions
            .push(PlannedAssertion { name: "other".into(), ..assertion("nccl.busbw", at_least(10.0)) });
        world.rows.push(row("nccl.busbw", 5.0, &[]));
        let outcome = world.judged().outcomes.jobs.remove(0);
        assert_eq!((outcome.bad, outcome.judged.get("nccl.busbw")), (None, Some(&true)));
    }
    // A report that cannot be read is its node's, whatever was lost elsewhere.
    let world = world(&[("events-dropped", Some("n1")), ("report-unreadable", Some("n2"))]);
    let bad = world.judged().outcomes.jobs.remove(0).bad.expect("a report is damaged");
    assert_eq!((bad.cause.as_str(), bad.node.as_deref()), ("report-unreadable", Some("n2")));
}

#[test]
fn reports_that_all_nodes_lack_alike_are_no_nodes() {
    let outcomes = |lacking: &[&str]| {
        let findings: Vec<(&str, Option<&str>)> =
            lacking.iter().map(|node| ("nsys-missing", Some(*node))).collect();
        let mut world = world(&findings);
        let ranks = ["n1", "n2"].iter().zip([0, 8]);
        world.case.jobs[0].profile = Some(PlannedProfile {
            version: NsysVersion::new(2025, 3),
            ranks: ranks.map(|(node, rank)| ProfiledRank { rank, node: (*node).into() }).collect(),
            delay_s: 30,
            keep: Keep::OnFailure,
            window: None,
        });
        world.judged().outcomes.jobs
    };
    assert_eq!(outcomes(&["n1", "n2"]), []);
    let bad = outcomes(&["n2"]).remove(0).bad.expect("one node lacks it");
    assert_eq!(bad.node.as_deref(), Some("n2"));
}

#[test]
fn what_is_wrong_with_other_files_is_no_cause_of_a_missing_share() {
    let mut world = world(&[("capture-unreadable", Some("n1"))]);
    world.collected.missing.push(missing_stdout(FileKind::NcclTests));
    let verdict = world.one();
    assert_eq!((verdict.status, verdict.cause.as_deref()), (Status::Inconclusive, Some("not-measured")));
    assert_eq!(world.judged().outcomes.jobs[0].bad, None);
}

#[test]
fn a_broken_report_is_no_cause_of_a_missing_bandwidth() {
    let mut world = world(&[("report-missing", Some("n2"))]);
    world.case.assertions = vec![assertion("nccl.busbw", at_least(1.0))];
    assert_eq!(world.one().cause.as_deref(), Some("not-measured"));
}

#[test]
fn a_share_that_was_measured_is_judged_whatever_else_was_found() {
    let mut world = world(&[("rank-elsewhere", Some("n2"))]);
    world.rows.push(row("kernel.share", 0.99, &[]));
    assert_eq!(world.status(), Status::Pass);
    world.rows.clear();
    world.rows.push(row("kernel.share", 0.5, &[]));
    assert_eq!(world.status(), Status::Fail);
    world.rows.clear();
    world.rows.push(row("kernel.share", f64::NAN, &[]));
    assert_ne!(world.status(), Status::Pass);
}
