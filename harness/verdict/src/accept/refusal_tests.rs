//! Who is accepted though something speaks against it, and who is rejected though nothing does: both must not happen.

use super::attribution::Unattributable;
use super::node_status::{Bad, NodeStatus, Together, did_well_together, node_statuses};
use super::schedule::{RunResult, Schedule, line};
use super::stages::{Stage, divide};
use crate::isolate::evidence::EvidenceLine;
use config::suite::Suite;
use model::artefact::{BELOW_FLOOR, CaseVerdict, Plan, Status, Verdict};
use recipes::catalogue::Catalogue;
use std::collections::BTreeMap;

fn names(prefix: &str, n: usize) -> Vec<String> {
    (1..=n).map(|at| format!("{prefix}{at}")).collect()
}

pub(super) fn schedule(new: usize, good: usize) -> Schedule {
    Schedule { candidates: names("n", new), partners: names("g", good), ..Schedule::default() }
}

pub(super) fn bad(status: Status, with: &[&str]) -> Bad {
    Bad {
        name: "s::c::busbw@x".into(),
        case: "c".into(),
        status,
        message: "too slow".into(),
        metric: "nccl.busbw".into(),
        part: None,
        is_own: false,
        unattributable: None,
        is_near_miss: false,
        with: with.iter().map(|node| (*node).to_owned()).collect(),
    }
}

fn one(status: Status, with: &[&str]) -> NodeStatus {
    NodeStatus { bad: vec![bad(status, with)] }
}

pub(super) fn result(node_statuses: &[(&str, NodeStatus)], lines: &[EvidenceLine]) -> RunResult {
    let node_statuses: BTreeMap<String, NodeStatus> =
        node_statuses.iter().map(|(node, node_status)| ((*node).to_owned(), node_status.clone())).collect();
    RunResult { run: "run".into(), node_statuses, lines: lines.to_vec(), together: seen(&["g1", "g2"]) }
}

/// Each did well with another node than those of a test.
pub(super) fn seen(nodes: &[&str]) -> Vec<Together> {
    let with_another = |node: &&str| Together {
        case: "c".into(),
        nodes: [(*node).to_owned(), format!("other-than-{node}")].into(),
    };
    nodes.iter().map(with_another).collect()
}

pub(super) fn slow(node: &str) -> EvidenceLine {
    line("HRN-NIC-SLOW", node, "rdmap79s0", "4.8 GB/s")
}

#[test]
fn a_partner_that_measurements_name_is_withdrawn_and_is_no_longer_good() {
    let mut of_pairs = schedule(1, 2);
    of_pairs.first(Stage::Pairs, &result(&[("n1", one(Status::Fail, &["g1"]))], &[slow("g1")]));
    assert_eq!(of_pairs.partners, ["g2"]);
    assert!(of_pairs.is_bad("g1") && !of_pairs.is_bad("g2") && !of_pairs.is_bad("n1"));
    assert_eq!(of_pairs.good(), ["g2"]);
}

#[test]
fn half_of_a_fleet_that_cannot_run_is_judged_node_by_node() {
    let judged = |broken: usize, of: usize, also: &[Bad]| {
        let mut schedule = schedule(of, 1);
        let nodes = names("n", of);
        let node_status = |at: usize| match at < broken {
            true => NodeStatus { bad: [&[bad(Status::Error, &[])][..], also].concat() },
            false => NodeStatus::default(),
        };
        let all: Vec<(&str, NodeStatus)> =
            nodes.iter().enumerate().map(|(at, node)| (node.as_str(), node_status(at))).collect();
        let mut lines: Vec<EvidenceLine> = vec![slow("g1")];
        lines.extend(nodes.iter().take(broken).map(|node| slow(node)));
        schedule.first(Stage::Single, &result(&all, &lines));
        (schedule.rejected.len(), schedule.undecided.len(), schedule.partners.len())
    };
    // Most of them: no node is blamed, nor is the partner.
    assert_eq!(judged(3, 5, &[]), (0, 3, 1));
    assert_eq!(judged(3, 6, &[]), (3, 0, 0));
    assert_eq!(judged(2, 3, &[]), (2, 0, 0));
    // Who failed a measurement, too, did run.
    assert_eq!(judged(3, 5, &[bad(Status::Fail, &[])]), (3, 0, 0));
    assert_eq!(judged(0, 4, &[]), (0, 0, 0));
}

#[test]
fn a_node_that_passed_by_itself_is_no_partner_yet_and_one_that_passed_a_pair_is() {
    let proven = |stage: Stage| {
        let mut schedule = schedule(1, 1);
        let passed = result(&[("n1", NodeStatus::default())], &[]);
        assert!(schedule.first(stage, &passed).is_empty());
        schedule.first(stage, &passed);
        (schedule.proven, schedule.candidates)
    };
    assert_eq!(proven(Stage::Single), (vec![], names("n", 1)));
    assert_eq!(proven(Stage::Pairs), (names("n", 1), names("n", 1)));
    let mut again = schedule(1, 2);
    let open = again.first(Stage::Single, &result(&[("n1", one(Status::Error, &[]))], &[]));
    again.second(Stage::Single, open, &result(&[("n1", NodeStatus::default())], &[]));
    assert_eq!((again.proven.len(), again.candidates.len()), (0, 1));
    let mut again = schedule(1, 2);
    let open = again.first(Stage::Pairs, &result(&[("n1", one(Status::Error, &["g1"]))], &[]));
    again.second(Stage::Pairs, open, &result(&[("n1", NodeStatus::default())], &[]));
    assert_eq!((again.good(), again.candidates.len()), (vec!["g1".into(), "g2".into(), "n1".into()], 1));
}

#[test]
fn a_rejected_node_is_neither_candidate_nor_good_partner() {
    let mut of_groups = schedule(2, 1);
    let passed = result(&[("n1", NodeStatus::default()), ("n2", NodeStatus::default())], &[]);
    of_groups.first(Stage::Pairs, &passed);
    assert!(of_groups.is_in("n1") && !of_groups.is_in("n3"));
    of_groups.first(Stage::Groups, &result(&[("n1", one(Status::Fail, &["n2"]))], &[slow("n1")]));
    assert_eq!(
        (of_groups.candidates.clone(), of_groups.good()),
        (names("n", 2)[1..].to_vec(), vec!["g1".into(), "n2".into()])
    );
    assert!(!of_groups.is_in("n1") && of_groups.is_bad("n1"));
}

#[test]
fn a_node_rejected_by_its_second_run_is_not_left_undecided_as_well() {
    let mut schedule = schedule(2, 2);
    let open = schedule.first(
        Stage::Pairs,
        &result(&[("n1", one(Status::Fail, &["g1"])), ("n2", one(Status::Fail, &["g2"]))], &[]),
    );
    let second = result(&[("n1", one(Status::Fail, &["g2"])), ("n2", NodeStatus::default())], &[slow("n1")]);
    schedule.second(Stage::Pairs, open, &second);
    let gone: Vec<&str> = schedule.rejected.iter().map(|one| one.node.as_str()).collect();
    let open: Vec<&str> = schedule.undecided.iter().map(|one| one.node.as_str()).collect();
    assert_eq!((gone, open), (vec!["n1"], vec!["n2"]));
}

#[test]
fn only_two_measured_failures_of_a_pair_reject_a_node_that_nothing_names() {
    let rejected = |stage: Stage, first: Status, second: Status| {
        let mut schedule = schedule(1, 2);
        let open = schedule.first(stage, &result(&[("n1", one(first, &["g1"]))], &[]));
        schedule.second(stage, open, &result(&[("n1", one(second, &["g2"]))], &[]));
        (schedule.rejected.len(), schedule.undecided.len())
    };
    assert_eq!(rejected(Stage::Pairs, Status::Fail, Status::Fail), (1, 0));
    assert_eq!(rejected(Stage::Groups, Status::Fail, Status::Fail), (0, 1));
    assert_eq!(rejected(Stage::Pairs, Status::Error, Status::Fail), (0, 1));
    assert_eq!(rejected(Stage::Pairs, Status::Fail, Status::Error), (0, 1));
    // A bad partner explains one of them.
    let mut explained = schedule(1, 2);
    let open = explained.first(Stage::Pairs, &result(&[("n1", one(Status::Fail, &["g1"]))], &[slow("g1")]));
    explained.second(Stage::Pairs, open, &result(&[("n1", one(Status::Fail, &["g2"]))], &[]));
    assert_eq!((explained.rejected.len(), explained.undecided.len()), (0, 1));
    let mut explained = schedule(1, 2);
    let open = explained.first(Stage::Pairs, &result(&[("n1", one(Status::Fail, &["g1"]))], &[]));
    explained.second(Stage::Pairs, open, &result(&[("n1", one(Status::Fail, &["g2"]))], &[slow("g2")]));
    assert_eq!((explained.rejected.len(), explained.undecided.len()), (0, 1));
}

/// Partners may have changed since they were good, by a driver or a cable: all of them, or two of three.
#[test]
fn partners_that_did_well_with_no_other_node_reject_none() {
    let judged = |first: Vec<Together>, second: Vec<Together>| {
        let mut schedule = schedule(1, 2);
        let fails = |with: &str, together: Vec<Together>| RunResult {
            together,
            ..result(&[("n1", one(Status::Fail, &[with]))], &[])
        };
        let open = schedule.first(Stage::Pairs, &fails("g1", first));
        schedule.second(Stage::Pairs, open, &fails("g2", second));
        (schedule.rejected.len(), schedule.undecided.len())
    };
    assert_eq!(judged(Vec::new(), Vec::new()), (0, 1));
    assert_eq!(judged(seen(&["g1"]), Vec::new()), (0, 1), "the second one is not known to be good");
    assert_eq!(judged(seen(&["g2"]), Vec::new()), (1, 0));
    assert_eq!(judged(Vec::new(), seen(&["g2"])), (1, 0));
    // In that case, and not in another.
    let elsewhere = seen(&["g2"]).into_iter().map(|one| Together { case: "d".into(), ..one }).collect();
    assert_eq!(judged(elsewhere, Vec::new()), (0, 1));
    // It did well itself with a third partner.
    let with_g3 = Together { case: "c".into(), nodes: ["n1".to_owned(), "g3".to_owned()].into() };
    assert_eq!(judged([seen(&["g2"]), vec![with_g3]].concat(), Vec::new()), (0, 1));
}

#[test]
fn nodes_did_well_together_where_all_that_was_judged_of_their_jobs_passed() {
    let together = |status: Status| {
        let mut plan = fixture::plan();
        plan.cases.truncate(1);
        plan.cases[0].assertions.truncate(1);
        let mut case = fixture::case("nics");
        case.verdicts = vec![fixture::verdict("nics", "rate", "p5-001", "x", status)];
        did_well_together(&plan, &[case])
    };
    let nodes = ["p5-001".to_owned(), "p5-002".to_owned()].into();
    assert_eq!(together(Status::Pass), [Together { case: "nics".into(), nodes }]);
    for status in [Status::Fail, Status::Inconclusive, Status::Error, Status::Unjudged, Status::Skipped] {
        assert_eq!(together(status), [], "{status}");
    }
}

#[test]
fn a_partner_stays_good_unless_several_measured_failures_with_it_went_away_elsewhere() {
    let partners = |first: [Status; 2], second: [Option<Status>; 2], lines: &[EvidenceLine]| {
        let mut schedule = schedule(2, 2);
        let with_g1 = |node: &'static str, status: Status| (node, one(status, &["g1"]));
        let open =
            schedule.first(Stage::Pairs, &result(&[with_g1("n1", first[0]), with_g1("n2", first[1])], lines));
        let then =
            |status: Option<Status>| status.map_or_else(NodeStatus::default, |status| one(status, &["g2"]));
        schedule.second(
            Stage::Pairs,
            open,
            &result(&[("n1", then(second[0])), ("n2", then(second[1]))], &[]),
        );
        schedule.withdrawn.iter().map(|gone| gone.node.clone()).collect::<Vec<_>>()
    };
    let (fail, error) = (Status::Fail, Status::Error);
    assert_eq!(partners([fail, fail], [None, None], &[]), ["g1"]);
    assert_eq!(partners([fail, error], [None, None], &[]), Vec::<String>::new());
    assert_eq!(partners([fail, fail], [None, Some(fail)], &[]), Vec::<String>::new());
    // Named already: it is withdrawn once.
    assert_eq!(partners([fail, fail], [None, None], &[slow("g1")]), ["g1"]);
}

#[test]
fn wrong_results_of_all_gpus_together_and_a_slow_nic_have_codes_of_their_own() {
    let code = |metric: &str, part: Option<&str>, alone: bool| {
        let mut of_single = schedule(1, 0);
        let mut node_status = one(Status::Fail, &[]);
        (node_status.bad[0].metric, node_status.bad[0].part) = (metric.into(), part.map(str::to_owned));
        let open = of_single.first(Stage::Single, &result(&[("n1", node_status)], &[]));
        of_single.settle_alone(Stage::Single, open, alone);
        let culprit = &of_single.rejected[0].culprits[0];
        (culprit.code.clone(), culprit.part.clone())
    };
    let pair = |code: &str, part: &str| (code.to_owned(), part.to_owned());
    assert_eq!(code("nccl.wrong", None, true), pair("HRN-NODE-BROKEN", "node"));
    assert_eq!(code("nccl.wrong", None, false), pair("HRN-NODE-BROKEN", "node"));
    assert_eq!(code("train.loss_finite", None, true), pair("HRN-NODE-UNCLEAR", "node"));
    assert_eq!(code("nic.share", Some("rdmap79s0"), true), pair("HRN-NODE-UNCLEAR", "rdmap79s0"));
    assert_eq!(code("nccl.busbw", None, true), pair("HRN-NVLINK-SLOW", "nvlink"));
}

#[test]
fn a_node_status_gives_its_gravest_reason_first() {
    let mixed = NodeStatus {
        bad: [Status::Skipped, Status::Inconclusive, Status::Error, Status::Fail]
            .iter()
            .enumerate()
            .map(|(at, status)| Bad {
                name: format!("a{at}"),
                message: format!("m{at}"),
                ..bad(*status, &[])
            })
            .collect(),
    };
    assert_eq!(mixed.why(), format!("{}: m3", Status::Fail));
    assert_eq!(mixed.names(), ["a3", "a0", "a1", "a2"]);
    let skipped = NodeStatus { bad: vec![bad(Status::Skipped, &[])] };
    assert_eq!(skipped.why(), format!("{}: too slow", Status::Skipped));
    assert_eq!(NodeStatus::default().why(), "");
    let alike = NodeStatus {
        bad: vec![Bad { unattributable: Some(Unattributable::BelowFloor), ..bad(Status::Fail, &[]) }],
    };
    assert!(!alike.has_failed() && !alike.has_passed());
}

/// One assertion over the first job of the fixture's plan, with this status.
pub(super) fn statuses_after(
    status: Status,
    change: &dyn Fn(&mut Plan, &mut Verdict, &mut CaseVerdict),
) -> BTreeMap<String, NodeStatus> {
    let mut plan = fixture::plan();
    plan.cases.truncate(1);
    plan.cases[0].assertions.truncate(1);
    plan.cases[0].assertions[0].node = None;
    let mut verdict = fixture::verdict("nics", "rate", "p5-001", "x", status);
    (verdict.node, verdict.part, verdict.metric) = (None, None, "nccl.busbw".into());
    let mut case = fixture::case("nics");
    change(&mut plan, &mut verdict, &mut case);
    case.verdicts = vec![verdict];
    let nodes = plan.nodes[..2].to_vec();
    node_statuses(&nodes, &plan, &[case], &Catalogue::built_in())
}

#[test]
fn a_failure_of_a_job_speaks_of_all_its_nodes_with_each_other_as_company() {
    let statuses = statuses_after(Status::Fail, &|_, _, _| {});
    let bad = &statuses["p5-001"].bad[0];
    assert_eq!((bad.is_own, bad.unattributable.is_some()), (false, false));
    assert_eq!(bad.with, ["p5-002".to_owned()].into());
    let own =
        statuses_after(Status::Fail, &|plan, _, _| plan.cases[0].assertions[0].node = Some("p5-001".into()));
    assert!(own["p5-001"].bad[0].is_own);
    assert_eq!(own["p5-001"].bad[0].with, ["p5-002".to_owned()].into());
    let floor = statuses_after(Status::Fail, &|_, verdict, _| verdict.cause = Some(BELOW_FLOOR.into()));
    assert!(floor["p5-001"].bad[0].unattributable.is_some() && !floor["p5-001"].has_failed());
}

#[test]
fn an_unjudged_number_or_the_verdict_of_another_suite_accepts_no_node() {
    assert!(statuses_after(Status::Pass, &|_, _, _| {}).values().all(NodeStatus::has_passed));
    let unjudged = statuses_after(Status::Unjudged, &|_, _, _| {});
    assert!(unjudged.values().all(|status| !status.has_passed() && !status.has_failed()));
    let other_suite = statuses_after(Status::Pass, &|_, _, case| case.suite = "mine".into());
    assert!(other_suite.values().all(|status| !status.has_passed()));
    let other_case = statuses_after(Status::Pass, &|_, _, case| case.case = "other".into());
    assert!(other_case.values().all(|status| !status.has_passed()));
}

#[test]
fn a_suite_accepts_by_no_case_that_is_expected_to_fail_asserts_nothing_or_brings_faults() {
    let divided = |more: &str, asserts: bool| {
        let text = format!(
            "instance = \"p5\"\nabout = \"x\"\n[[case]]\nname = \"a\"\nabout = \"x\"\nplacement = 1\n{more}\n\
             workload = {{ kind = \"command\", program = \"true\" }}\nrecipes = [\"command\"]\n\
             [[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n"
        );
        let mut suite = Suite::read(&text, "suites/x.toml", &Catalogue::built_in()).expect("a suite");
        suite.cases[0].assertions.retain(|_| asserts);
        divide(&suite)
    };
    let stages = divided("", true).expect("a stage");
    assert_eq!(stages.keys().map(|stage| stage.name()).collect::<Vec<_>>(), ["single node"]);
    assert_eq!(stages[&Stage::Single].cases[0].placement, config::suite::Placement::Each);
    for (more, asserts) in [
        ("expected_failure = \"known\"", true),
        ("sim_faults = [\"p5-002:nic-slow=0.4@rdmap113s0\"]", true),
        ("", false),
    ] {
        let refused = divided(more, asserts).expect_err("refused");
        assert!(refused.len() == 1 && refused[0].contains("`a`"), "{refused:?}");
    }
}
