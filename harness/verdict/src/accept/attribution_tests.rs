//! Which failures of runs on one node reject it: those of metrics that blame nodes, on fewer nodes than most. What names no
//! node rejects none and accepts none.

use super::attribution::Unattributable;
use super::node_status::{NodeStatus, node_statuses};
use super::refusal_tests::{bad, result, schedule};
use super::schedule::{RunResult, Schedule};
use super::stages::Stage;
use metric::Dims;
use metric::unit::{Better, Unit};
use model::artefact::{PlannedAssertion, PlannedBound, Status};
use recipes::catalogue::Catalogue;
use std::collections::BTreeMap;

const OWN: &str = "mine.of_a_user";

/// What each node's number of a metric came to.
type Numbers<'a> = (&'a str, &'a [Status]);

/// Cases with a job on each node, and what the numbers of each came to.
fn run(cases: &[&[Numbers<'_>]]) -> BTreeMap<String, NodeStatus> {
    let mut plan = fixture::plan();
    let template = plan.cases.remove(0);
    plan.cases.clear();
    let nodes: Vec<String> = (1..=cases[0][0].1.len()).map(|at| format!("n{at}")).collect();
    let mut all = Vec::new();
    for (at, metrics) in cases.iter().enumerate() {
        let mut case = template.clone();
        case.name = format!("case{at}");
        let of_node = |node: &String| {
            let mut job = template.jobs[0].clone();
            (job.name, job.nodes) = (node.clone(), vec![node.clone()]);
            job
        };
        case.jobs = nodes.iter().map(of_node).collect();
        case.assertions.clear();
        let mut found = fixture::case(&case.name);
        found.suite.clone_from(&case.suite);
        for (metric, statuses) in *metrics {
            for (node, status) in nodes.iter().zip(*statuses) {
                case.assertions.push(assertion(metric, node));
                let mut verdict = fixture::verdict(&case.name, "rate", node, "x", *status);
                (verdict.metric, verdict.part) = ((*metric).into(), None);
                verdict.name = format!("nccl-p5::nics::{metric}@{node}");
                verdict.message = format!("{metric} on {node}: 3, expected at most 0");
                found.verdicts.push(verdict);
            }
        }
        plan.cases.push(case);
        all.push(found);
    }
    node_statuses(&nodes, &plan, &all, &Catalogue::built_in())
}

fn assertion(metric: &str, node: &str) -> PlannedAssertion {
    PlannedAssertion {
        name: format!("nccl-p5::nics::{metric}@{node}"),
        metric: metric.into(),
        unit: Unit::Count,
        better: Better::Lower,
        dims: Dims::new(),
        parts: [].into(),
        jobs: vec![node.into()],
        nodes: node.into(),
        node: Some(node.into()),
        part: None,
        bound: PlannedBound { at_most: Some(0.0), ..PlannedBound::default() },
    }
}

/// How many are rejected, left open, and go on, and why the first is left open.
fn settled(metrics: &[Numbers<'_>]) -> (usize, usize, usize, String) {
    let node_statuses = run(&[metrics]);
    let mut schedule =
        Schedule { candidates: node_statuses.keys().cloned().collect(), ..Schedule::default() };
    let result = RunResult { run: "run".into(), node_statuses, ..RunResult::default() };
    let open = schedule.first(Stage::Single, &result);
    let again = schedule.settle_alone(Stage::Single, open, false);
    let why = schedule.undecided.first().map(|one| one.why.clone()).unwrap_or_default();
    assert!(again.iter().all(|one| !one.node_status.is_red()), "{again:?}");
    (schedule.rejected.len(), schedule.undecided.len(), schedule.candidates.len(), why)
}

use Status::{Error, Fail, Pass};

#[test]
fn a_metric_that_names_no_node_rejects_none_and_accepts_none() {
    let (rejected, open, on, why) = settled(&[(OWN, &[Pass, Fail, Pass, Pass])]);
    assert_eq!((rejected, open, on), (0, 1, 3));
    assert_eq!(
        why,
        "fail: mine.of_a_user on n2: 3, expected at most 0; `mine.of_a_user` names no node: look at the output of \
         `nccl-p5::nics::mine.of_a_user@n2`, or set `severity = \"warn\"` on it if it is not to decide"
    );
    // A built-in one that is declared so.
    assert_eq!(settled(&[("step.time", &[Fail, Pass, Pass])]).0, 0);
}

#[test]
fn a_metric_that_blames_nodes_rejects_the_node_also_beside_one_that_does_not() {
    let busbw: Numbers<'_> = ("nccl.busbw", &[Pass, Fail, Pass, Pass]);
    let counts = |metrics: &[Numbers<'_>]| {
        let (rejected, open, on, _) = settled(metrics);
        (rejected, open, on)
    };
    assert_eq!(counts(&[busbw]), (1, 0, 3));
    assert_eq!(counts(&[(OWN, &[Pass, Fail, Fail, Pass]), busbw]), (1, 1, 2));
    let status = &run(&[&[(OWN, &[Pass, Fail]), ("nccl.busbw", &[Pass, Fail])]])["n2"];
    assert!(status.why().contains("nccl.busbw on n2: 3"), "{}", status.why());
    // One node has none to be like.
    assert_eq!(counts(&[("nccl.busbw", &[Fail])]), (1, 0, 0));
}

#[test]
fn what_most_nodes_fail_by_rejects_none_of_them() {
    let (rejected, open, on, why) = settled(&[("nccl.busbw", &[Fail, Fail, Fail, Pass])]);
    assert_eq!((rejected, open, on), (0, 3, 1));
    assert!(
        why.contains("; 3 of 4 nodes fail `nccl.busbw`, which names none of them: check its limit"),
        "{why}"
    );
    assert_eq!(settled(&[("nccl.busbw", &[Fail, Fail, Pass, Pass])]).0, 2);
    // A program of the user: the odd one is blamed, and one that fails on half of the nodes or on the only one is not.
    let exit_code = |statuses: &[Status]| settled(&[("command.exit_code", statuses)]).0;
    assert_eq!(exit_code(&[Pass, Fail, Pass, Pass]), 1);
    assert_eq!(exit_code(&[Fail, Fail, Pass, Pass]), 0);
    assert_eq!(exit_code(&[Fail]), 0);
}

#[test]
fn a_node_that_did_well_in_another_job_is_not_one_of_those_that_fail_alike() {
    let status = &run(&[&[("nccl.busbw", &[Fail, Fail])]])["n1"];
    assert_eq!(status.bad[0].unattributable, Some(Unattributable::Shared { failed: 2, all: 2 }));
    // All GPUs together are slow on both, and each of them is good by itself.
    let statuses = run(&[&[("nccl.busbw", &[Fail, Fail])], &[("nccl.busbw", &[Pass, Pass])]]);
    assert!(statuses.values().all(NodeStatus::has_failed), "{statuses:?}");
}

#[test]
fn a_red_assertion_that_names_no_node_is_not_cured_by_a_retry() {
    // Beside what the infrastructure kept from being measured.
    let (rejected, open, on, _) = settled(&[(OWN, &[Fail, Pass]), ("nccl.busbw", &[Error, Pass])]);
    assert_eq!((rejected, open, on), (0, 1, 1));
    let of_user = |status: Status, with: &[&str]| {
        let mut red = bad(status, with);
        red.metric = OWN.into();
        red.unattributable = Some(Unattributable::Metric);
        red
    };
    // In pairs: with an error beside it, the retry passes.
    let mut pairs = schedule(1, 2);
    let both = NodeStatus { bad: vec![of_user(Fail, &["g1"]), bad(Error, &["g1"])] };
    let open = pairs.first(Stage::Pairs, &result(&[("n1", both)], &[]));
    let again = pairs.retry(Stage::Pairs, open);
    assert_eq!(again.len(), 1);
    pairs.second(Stage::Pairs, again, &result(&[("n1", NodeStatus::default())], &[]));
    assert_eq!((pairs.rejected.len(), pairs.undecided.len(), pairs.candidates.len()), (0, 1, 0), "{pairs:?}");
    // It failed with one partner by a metric that blames, and then with a good one by one that does not.
    let mut pairs = schedule(1, 2);
    let open =
        pairs.first(Stage::Pairs, &result(&[("n1", NodeStatus { bad: vec![bad(Fail, &["g1"])] })], &[]));
    let again = pairs.retry(Stage::Pairs, open);
    let then = NodeStatus { bad: vec![of_user(Fail, &["g2"])] };
    pairs.second(Stage::Pairs, again, &result(&[("n1", then)], &[]));
    assert_eq!((pairs.rejected.len(), pairs.undecided.len()), (0, 1), "{pairs:?}");
    assert!(pairs.undecided[0].why.contains("names no node"), "{pairs:?}");
    // By that metric alone nothing is retried.
    let mut pairs = schedule(1, 2);
    let alone = NodeStatus { bad: vec![of_user(Fail, &["g1"])] };
    let open = pairs.first(Stage::Pairs, &result(&[("n1", alone)], &[]));
    assert!(pairs.retry(Stage::Pairs, open).is_empty());
    assert_eq!((pairs.rejected.len(), pairs.undecided.len()), (0, 1), "{pairs:?}");
}
