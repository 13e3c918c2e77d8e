//! Numbers that neither pass nor fail: what only warns, and what a node's software is too old to give.

use super::*;
use metric::lacks::Absent;
use model::artefact::CaseEnd;

fn drops(warn: bool, value: f64) -> World {
    let bound = PlannedBound { at_most: Some(0.0), warn, ..PlannedBound::default() };
    let mut world = World::new(at_least(1.0)).saw(2.0);
    let asked = PlannedAssertion { unit: Unit::Count, ..assertion("nic.rx_drops", bound) };
    world.case.assertions.push(asked);
    world.rows.push(row("nic.rx_drops", value, &[]));
    world
}

#[test]
fn out_of_bounds_of_what_only_warns_is_reported_and_never_fails() {
    for (warn, value, status, end, warnings) in [
        (false, 3.0, Status::Fail, CaseEnd::Fail, 0),
        (true, 3.0, Status::Skipped, CaseEnd::Pass, 1),
        (true, 0.0, Status::Pass, CaseEnd::Pass, 0),
    ] {
        let judged = drops(warn, value).judged().verdict;
        assert_eq!((judged.verdicts[1].status, judged.end), (status, end), "{warn} {value}");
        let found: Vec<_> = judged.findings.iter().filter(|finding| finding.code == "warning").collect();
        assert_eq!(found.len(), warnings);
        assert!(found.iter().all(|finding| finding.message.contains('3')), "{found:?}");
    }
    // A second one of the same metric is counted.
    let mut world = drops(true, 3.0);
    world.case.assertions.push(world.case.assertions[1].clone());
    let found = world.judged().verdict.findings;
    let messages: Vec<&str> = found.iter().map(|finding| finding.message.as_str()).collect();
    assert!(matches!(messages[..], [message] if message.ends_with("; and 1 more")), "{messages:?}");
}

#[test]
fn what_only_warns_and_was_not_measured_is_inconclusive() {
    let mut world = drops(true, 0.0);
    world.rows.pop();
    assert_eq!(world.judged().verdict.verdicts[1].status, Status::Inconclusive);
}

/// Retransmissions of both nodes, of which these lack the counter.
fn retransmissions(lacking: &[&str], measured: &[&str], node: Option<&str>) -> World {
    let bound = PlannedBound { at_most: Some(0.0), ..PlannedBound::default() };
    let mut world = World::new(at_least(1.0)).saw(2.0);
    let mut asked = assertion("nic.retrans_timeouts", bound);
    asked.node = node.map(str::to_owned);
    world.case.assertions.push(asked);
    for node in measured {
        world.rows.push(row("nic.retrans_timeouts", 0.0, &[(Dim::Node, node)]));
    }
    let absent = lacking.iter().map(|node| Absent {
        metrics: vec!["nic.retrans_timeouts".into()],
        node: (*node).to_owned(),
        why: format!("the driver of {node} is old"),
    });
    world.analysis().absent = absent.collect();
    world
}

#[test]
fn a_counter_that_the_driver_lacks_is_skipped_with_the_reason() {
    let judged = retransmissions(&["n1", "n2"], &[], None).judged().verdict;
    let verdict = &judged.verdicts[1];
    assert_eq!((verdict.status, judged.end), (Status::Skipped, CaseEnd::Pass));
    assert_eq!(verdict.cause.as_deref(), Some("source-absent"));
    assert!(verdict.message.contains("the driver of n1 is old"), "{}", verdict.message);
}

#[test]
fn a_counter_that_only_some_nodes_have_judges_those_and_never_passes_for_all() {
    let of = |node| retransmissions(&["n1"], &["n2"], node).judged().verdict.verdicts[1].status;
    assert_eq!(of(None), Status::Inconclusive);
    assert_eq!(of(Some("n1")), Status::Inconclusive);
    assert_eq!(of(Some("n2")), Status::Pass);
}

#[test]
fn an_absence_of_another_metric_is_no_reason() {
    let mut world = retransmissions(&["n1", "n2"], &[], None);
    for absent in &mut world.analysis().absent {
        absent.metrics = vec!["nic.retrans_pkts".into()];
    }
    assert_eq!(world.judged().verdict.verdicts[1].status, Status::Inconclusive);
}
