//! What a certificate says that nodes were compared with: each limit once, with all that was measured against it.

use super::judged::Judged;
use super::limits::{Limits, OfRun};
use model::artefact::acceptance::{Limit, NodesJudged};
use model::artefact::{BaselineNumbers, CaseVerdict, JudgedBy, Plan, PlannedBaseline, PlannedBound, Status};

/// Each of these numbers is one assertion of the fixture's first case, on its first job.
fn ran(bound: &PlannedBound, numbers: &[(Status, Option<f64>)]) -> (Plan, CaseVerdict) {
    let mut plan = fixture::plan();
    let mut case = fixture::case("nics");
    let planned = plan.cases[0].assertions[0].clone();
    plan.cases[0].assertions.clear();
    for (at, (status, observed)) in numbers.iter().enumerate() {
        let mut one = planned.clone();
        (one.name, one.bound) = (format!("nccl-p5::nics::rate@p5-001/nic{at}"), bound.clone());
        let mut verdict = fixture::verdict("nics", "rate", "p5-001", "x", *status);
        (verdict.name, verdict.observed) = (one.name.clone(), *observed);
        plan.cases[0].assertions.push(one);
        case.verdicts.push(verdict);
    }
    (plan, case)
}

fn limits(runs: &[OfRun]) -> Vec<Limit> {
    let mut limits = Limits::default();
    runs.iter().for_each(|run| limits.add(run));
    limits.list()
}

fn rows_of(bound: &PlannedBound, numbers: &[(Status, Option<f64>)]) -> Vec<Limit> {
    let (plan, case) = ran(bound, numbers);
    limits(&[OfRun { stage: "pairs", plan: &plan, verdicts: &[case] }])
}

fn at_least() -> PlannedBound {
    PlannedBound { at_least: Some(11.0), ..PlannedBound::default() }
}

#[test]
fn numbers_under_one_limit_are_one_row_with_their_least_median_and_most() {
    let numbers = [
        (Status::Pass, Some(12.0)),
        (Status::Fail, Some(4.0)),
        (Status::UnexpectedPass, Some(11.0)),
        (Status::Inconclusive, None),
        (Status::Unjudged, Some(f64::INFINITY)),
        (Status::Pass, Some(13.0)),
    ];
    let rows = rows_of(&at_least(), &numbers);
    let [row] = rows.as_slice() else { panic!("{rows:?}") };
    assert_eq!((row.stage.as_str(), row.case.as_str(), row.what.as_str()), ("pairs", "nics", "rate"));
    assert_eq!((row.limit.as_str(), row.state.as_str()), ("at least 11.00 GB/s", "stated"));
    assert_eq!((row.passed, row.failed, row.open), (2, 2, 2));
    let observed = &row.observed;
    assert_eq!(
        (observed.n, observed.least, observed.median, observed.most),
        (4, Some(4.0), Some(11.5), Some(13.0))
    );
    // 7.5, 0.5, 0.5 and 1.5 away from the middle.
    assert_eq!(observed.spread, Some(1.0 / 11.5));
    let nothing = rows_of(&at_least(), &[(Status::Error, None)]);
    assert_eq!((nothing[0].observed.n, nothing[0].observed.median, nothing[0].open), (0, None, 1));
    assert_eq!(rows_of(&at_least(), &[(Status::Pass, Some(0.0))])[0].observed.spread, None);
}

#[test]
fn runs_that_a_stage_made_again_share_their_rows_and_other_stages_do_not() {
    let (plan, case) = ran(&at_least(), &[(Status::Pass, Some(12.0))]);
    let verdicts = [case];
    let run = |stage| OfRun { stage, plan: &plan, verdicts: &verdicts };
    let rows = limits(&[run("pairs"), run("groups"), run("pairs")]);
    let shown: Vec<_> = rows.iter().map(|row| (row.stage.as_str(), row.passed)).collect();
    assert_eq!(shown, [("pairs", 2), ("groups", 1)]);
    // Verdicts of another suite's case of the same name are of something else.
    let other = CaseVerdict { suite: "mine".into(), ..verdicts[0].clone() };
    assert!(limits(&[OfRun { stage: "pairs", plan: &plan, verdicts: &[other] }]).is_empty());
    let other = CaseVerdict { case: "other".into(), ..verdicts[0].clone() };
    assert!(limits(&[OfRun { stage: "pairs", plan: &plan, verdicts: &[other] }]).is_empty());
}

#[test]
fn a_row_names_the_state_and_the_source_of_its_limit() {
    let numbers = BaselineNumbers {
        key: "k".into(),
        n: 7,
        median: 12.0,
        lower: Some(11.0),
        upper: Some(13.0),
        source: "runs of May".into(),
        spread: Some(0.01),
        fingerprint: [("nccl".to_owned(), vec!["2.28".to_owned(), "2.29".to_owned()])].into(),
        ..BaselineNumbers::default()
    };
    let baseline = |known| PlannedBound { baseline: Some(known), ..PlannedBound::default() };
    let row = |bound: &PlannedBound| rows_of(bound, &[(Status::Pass, Some(12.0))]).remove(0);
    let accepted = row(&baseline(PlannedBaseline::Accepted(numbers.clone())));
    assert_eq!((accepted.state.as_str(), accepted.n, accepted.spread), ("accepted", Some(7), Some(0.01)));
    assert_eq!(accepted.fingerprint, "nccl 2.28 or 2.29");
    assert!(
        accepted.source.contains("runs of May") && accepted.limit.contains("11.00 GB/s to 13.00"),
        "{accepted:?}"
    );
    let state = |bound: &PlannedBound| row(bound).state;
    assert_eq!(state(&baseline(PlannedBaseline::Provisional(numbers.clone()))), "provisional");
    assert_eq!(state(&baseline(PlannedBaseline::Expired(numbers))), "expired");
    assert_eq!(state(&baseline(PlannedBaseline::None { key: "k".into() })), "none");
    let peers = PlannedBound { within_peers: Some(0.1), ..PlannedBound::default() };
    assert_eq!((state(&peers), row(&peers).limit.contains("10 %")), ("peers".to_owned(), true));
    assert_eq!(state(&PlannedBound { at_most: Some(13.0), ..peers }), "stated");
    assert_eq!(row(&PlannedBound { equals: Some(0.0), ..PlannedBound::default() }).source, "the suite");
}

fn judged(changes: &dyn Fn(&mut Plan, &mut CaseVerdict)) -> Vec<NodesJudged> {
    let numbers = [(Status::Pass, Some(12.0)); 6];
    let (mut plan, mut case) = ran(&at_least(), &numbers);
    plan.cases[0].assertions.iter_mut().for_each(|one| one.node = None);
    let by = [
        Some(JudgedBy::AcceptedBaseline),
        Some(JudgedBy::Peers { of: 4 }),
        Some(JudgedBy::Published),
        Some(JudgedBy::Floor),
        Some(JudgedBy::Limit),
        None,
    ];
    case.verdicts.iter_mut().zip(by).for_each(|(verdict, by)| verdict.judged_by = by);
    changes(&mut plan, &mut case);
    let nodes: Vec<String> = plan.nodes[..3].to_vec();
    let mut judged = Judged::new(&nodes);
    judged.add(&OfRun { stage: "pairs", plan: &plan, verdicts: &[case] });
    let mut rows = judged.rows();
    rows.sort_by_key(|row| std::cmp::Reverse(row.limit));
    rows
}

#[test]
fn nodes_that_were_judged_by_the_same_things_stand_in_one_row() {
    let all = NodesJudged {
        nodes: "p5-[001-002]".into(),
        accepted_baseline: 1,
        peers: 1,
        most_peers: 4,
        published: 1,
        floor: 1,
        limit: 1,
        unjudged: 0,
    };
    let none = NodesJudged { nodes: "p5-003".into(), ..NodesJudged::default() };
    assert_eq!(judged(&|_, _| {}), [all.clone(), none]);
    let more_peers = judged(&|_, case| case.verdicts[0].judged_by = Some(JudgedBy::Peers { of: 8 }));
    assert_eq!((more_peers[0].peers, more_peers[0].most_peers), (2, 8));
    let unjudged = judged(&|_, case| case.verdicts[0].status = Status::Unjudged);
    assert_eq!((unjudged[0].accepted_baseline, unjudged[0].unjudged), (0, 1));
    // A number of one node is none of its partner's.
    let own = judged(&|plan, _| plan.cases[0].assertions[4].node = Some("p5-002".into()));
    let shown: Vec<_> = own.iter().map(|row| (row.nodes.as_str(), row.limit)).collect();
    assert_eq!(shown, [("p5-002", 1), ("p5-001", 0), ("p5-003", 0)]);
    for other in [
        judged(&|_, case| case.suite = "mine".into()),
        judged(&|_, case| case.case = "other".into()),
        judged(&|plan, _| plan.cases[0].assertions.iter_mut().for_each(|one| one.jobs.clear())),
    ] {
        assert_eq!(other.len(), 1);
        assert_eq!((other[0].nodes.as_str(), other[0].limit), ("p5-[001-003]", 0));
    }
}

#[test]
fn messages_of_limits() {
    let key = || "sim-p5 nccl-p5 nic.rate, 2 nodes".to_owned();
    let numbers = |lower: Option<f64>, upper: Option<f64>| BaselineNumbers {
        key: key(),
        n: 7,
        median: 12.0,
        lower,
        upper,
        source: "runs of May".into(),
        ..BaselineNumbers::default()
    };
    let between = BaselineNumbers { between: Some("1GiB and 4GiB".into()), ..numbers(Some(11.0), None) };
    let baseline = |known| PlannedBound { baseline: Some(known), ..PlannedBound::default() };
    let bounds = [
        at_least(),
        PlannedBound { at_most: Some(13.0), ..at_least() },
        PlannedBound { equals: Some(0.0), ..PlannedBound::default() },
        PlannedBound { within_peers: Some(0.1), ..PlannedBound::default() },
        PlannedBound { within_peers: Some(0.1), ..at_least() },
        baseline(PlannedBaseline::Accepted(numbers(Some(11.0), Some(13.0)))),
        baseline(PlannedBaseline::Provisional(between)),
        baseline(PlannedBaseline::Expired(numbers(None, Some(13.0)))),
        baseline(PlannedBaseline::Accepted(numbers(None, None))),
        baseline(PlannedBaseline::None { key: key() }),
    ];
    let lines = bounds.map(|bound| {
        let row = rows_of(&bound, &[(Status::Pass, Some(12.0))]).remove(0);
        format!("{}: {}; source: {}", row.state, row.limit, row.source)
    });
    insta::assert_snapshot!(lines.join("\n"));
}
