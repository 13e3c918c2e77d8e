//! Numbers that are read from profiler reports: why they are missing, and whose report it is.

use super::*;
use metric::finding::Finding;

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
    for cause in
        ["report-missing", "report-empty", "report-unreadable", "nsys-missing", "nsys-old", "events-dropped"]
    {
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
