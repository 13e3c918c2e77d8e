//! What a run says of a node: passed only where each assertion that was planned for it has a verdict, and that is a pass.

use super::*;
use metric::Dims;
use metric::unit::{Better, Unit};
use model::artefact::{PlannedAssertion, PlannedBound};

fn assertion(node: &str, job: &str) -> PlannedAssertion {
    PlannedAssertion {
        name: format!("nics@{node}"),
        metric: "nic.rate".into(),
        unit: Unit::GigabytesPerSecond,
        better: Better::Higher,
        dims: Dims::new(),
        parts: [].into(),
        jobs: vec![job.into()],
        nodes: node.into(),
        node: Some(node.into()),
        part: None,
        bound: PlannedBound { at_least: Some(1.0), ..PlannedBound::default() },
    }
}

/// Two assertions of the fixture's first case, on a node each, and what they came to.
fn passed(statuses: &[Status]) -> Vec<bool> {
    let mut plan = fixture::plan();
    plan.cases.truncate(1);
    let case = &mut plan.cases[0];
    let job = case.jobs[0].name.clone();
    let nodes: Vec<String> = case.jobs[0].nodes.iter().take(2).cloned().collect();
    case.assertions = nodes.iter().map(|node| assertion(node, &job)).collect();
    let mut found = fixture::case(&case.name);
    found.suite.clone_from(&case.suite);
    found.verdicts = statuses
        .iter()
        .zip(&nodes)
        .map(|(status, node)| fixture::verdict(&case.name, "rate", node, "rdmap79s0", *status))
        .collect();
    node_statuses(&nodes, &plan, &[found], &Catalogue::built_in())
        .values()
        .map(NodeStatus::has_passed)
        .collect()
}

#[test]
fn a_node_has_passed_where_all_that_was_planned_for_it_has() {
    assert_eq!(passed(&[Status::Pass, Status::Pass]), [true, true]);
    for status in [Status::Fail, Status::Error, Status::Inconclusive, Status::Skipped] {
        assert_eq!(passed(&[Status::Pass, status]), [true, false], "{status}");
    }
}

#[test]
fn fewer_verdicts_than_assertions_say_nothing_of_anybody() {
    assert_eq!(passed(&[Status::Pass]), [false, false]);
    assert_eq!(passed(&[]), [false, false]);
}

/// Of the fixture's case and another on the same node, whether it passed where these are skipped: dcgmi is absent.
fn passed_without(skipped: &[usize]) -> bool {
    let mut plan = fixture::plan();
    plan.cases.truncate(1);
    let (job, node) = (plan.cases[0].jobs[0].name.clone(), plan.cases[0].jobs[0].nodes[0].clone());
    plan.cases[0].assertions = vec![assertion(&node, &job)];
    plan.cases.push(PlannedCase { name: "other".into(), ..plan.cases[0].clone() });
    let mut verdicts = Vec::new();
    for (at, case) in plan.cases.iter_mut().enumerate() {
        let mut found = fixture::case(&case.name);
        found.suite.clone_from(&case.suite);
        let mut verdict = fixture::verdict(&case.name, "rate", &node, "rdmap79s0", Status::Pass);
        if skipped.contains(&at) {
            let nodes = BTreeSet::from([node.clone()]);
            let without = BTreeMap::from([("dcgmi".to_owned(), nodes.clone())]);
            case.not_installed = Some(NotInstalled { without, skipped: nodes });
            case.jobs.clear();
            (verdict.status, verdict.cause) = (Status::Skipped, Some("not-installed".to_owned()));
        }
        found.verdicts = vec![verdict];
        verdicts.push(found);
    }
    node_statuses(std::slice::from_ref(&node), &plan, &verdicts, &Catalogue::built_in())[&node].has_passed()
}

#[test]
fn an_absent_program_decides_nothing_unless_nothing_else_was_asked() {
    assert!(passed_without(&[]) && passed_without(&[1]));
    assert!(!passed_without(&[0, 1]), "nothing was checked");
}
