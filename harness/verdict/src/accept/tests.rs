//! The schedule of nodes, who meets whom, and what stages a suite gives: tables of small fleets.

use super::node_status::{Bad, NodeStatus};
use super::pairing::{Had, all, flows_of_pairs, groups, jobs_of_pairs, pairs};
use super::refusal_tests::seen;
use super::schedule::{Open, RunResult, Schedule, line};
use super::stages::{Stage, divide};
use crate::isolate::evidence::EvidenceLine;
use config::suite::Suite;
use model::artefact::Status;
use plan::Placed;
use recipes::catalogue::Catalogue;
use std::collections::{BTreeMap, BTreeSet};

fn names(prefix: &str, n: usize) -> Vec<String> {
    (1..=n).map(|at| format!("{prefix}{at}")).collect()
}

fn placements(placed: &[Placed]) -> Vec<String> {
    placed.iter().map(|job| format!("{}:{}", job.round, job.nodes.join("+"))).collect()
}

#[test]
fn partners_are_taken_in_turn_and_no_node_has_one_twice() {
    let (new, good) = (names("n", 5), names("g", 2));
    let first = pairs(&new, &good, &Had::new());
    assert_eq!(placements(&jobs_of_pairs(&first)), ["1:n1+g1", "1:n2+g2", "2:n3+g1", "2:n4+g2", "3:n5+g1"]);
    let had: Had = first.iter().map(|(node, with)| (node.clone(), BTreeSet::from([with.clone()]))).collect();
    let second = pairs(&new[..1], &good, &had);
    assert_eq!(placements(&flows_of_pairs(&second)), ["1:n1+g2", "1:g2+n1"]);
    let both: Had = BTreeMap::from([("n1".to_owned(), good.iter().cloned().collect())]);
    assert_eq!(pairs(&new[..1], &good, &both), []);
    // One that has proven itself is no partner of its own.
    assert_eq!(pairs(&names("g", 1), &names("g", 1), &Had::new()), []);
}

#[test]
fn groups_cover_all_and_are_filled_up_with_good_nodes_before_others() {
    let new = names("n", 5);
    assert_eq!(placements(&groups(&new, &names("g", 4), 4)), ["1:n1+n2+n3+n4", "1:n5+g1+g2+g3"]);
    assert_eq!(placements(&groups(&new, &names("g", 1), 4)), ["1:n1+n2+n3+n4", "2:n3+n4+n5+g1"]);
    assert_eq!(placements(&groups(&new[..2], &[], 4)), Vec::<String>::new());
    assert_eq!(placements(&groups(&[], &names("g", 4), 4)), Vec::<String>::new());
}

#[test]
fn all_are_run_on_as_many_as_there_are_numbers_for() {
    let (new, good) = (names("n", 5), names("g", 3));
    let at = |known: &[usize], good: &[String]| {
        let sets = all(&new, good, &|n| known.contains(&n));
        sets.iter().map(|set| set.nodes.len()).collect::<Vec<_>>()
    };
    assert_eq!(at(&[5], &good), [5]);
    assert_eq!(at(&[4, 8], &good), [8]);
    // No good node fills them up: in sets of fewer, if these are more than half.
    assert_eq!(at(&[4, 8], &[]), [4, 4]);
    assert_eq!(at(&[2, 8], &[]), [5]);
    assert_eq!(all(&names("n", 1), &[], &|_| true), []);
}

#[test]
fn a_case_is_of_the_stage_that_its_nodes_make_it_and_odd_ones_are_refused() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../suites/acceptance-p5.toml"));
    let suite = Suite::read(&text.expect("read"), "suites/acceptance-p5.toml", &Catalogue::built_in())
        .expect("a suite");
    let stages = divide(&suite).expect("stages");
    let of = |stage: &Stage| stages[stage].cases.iter().map(|case| case.name.as_str()).collect::<Vec<_>>();
    let programs = ["diagnosis", "copies", "memory", "processors", "products", "disk", "gpu-allocation"];
    assert_eq!(of(&Stage::Single), [&["gpu-each", "node-all_reduce"][..], &programs].concat());
    let between = ["pair-all_reduce", "pair-all_gather", "nic-pairs", "nic-latency", "tcp-pairs"];
    assert_eq!(of(&Stage::Pairs), between);
    assert_eq!(of(&Stage::Groups), ["group-all_gather"]);
    assert_eq!(of(&Stage::All), ["all-all_reduce", "all-all_gather", "training"]);
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../suites/canary.toml"));
    let canary =
        Suite::read(&text.expect("read"), "suites/canary.toml", &Catalogue::built_in()).expect("a suite");
    let why = divide(&canary).expect_err("refused").join("\n");
    assert!(why.contains("case `nic-slow` cannot be used to accept nodes: it has `must_end`"), "{why}");
}

fn bad(status: Status, with: &[&str]) -> NodeStatus {
    let with = with.iter().map(|node| (*node).to_owned()).collect();
    let bad = Bad {
        name: "s::c::busbw@x".into(),
        case: "c".into(),
        status,
        message: "too slow".into(),
        metric: "nccl.busbw".into(),
        part: None,
        unattributable: None,
        is_near_miss: false,
        is_own: false,
        with,
    };
    NodeStatus { bad: vec![bad] }
}

fn result(node_statuses: &[(&str, NodeStatus)]) -> RunResult {
    RunResult {
        run: "run".into(),
        node_statuses: node_statuses
            .iter()
            .map(|(node, node_status)| ((*node).to_owned(), node_status.clone()))
            .collect(),
        lines: Vec::new(),
        together: Vec::new(),
    }
}

fn schedule(new: usize, good: usize) -> Schedule {
    Schedule { candidates: names("n", new), partners: names("g", good), ..Schedule::default() }
}

/// Both rounds of the pairs of n1, which met g1 and then g2.
pub(super) fn twice(first: NodeStatus, second: NodeStatus) -> (Schedule, Vec<Open>) {
    let mut schedule = schedule(1, 2);
    let first = RunResult { together: seen(&["g1", "g2"]), ..result(&[("n1", first)]) };
    let open = schedule.first(Stage::Pairs, &first);
    let again = schedule.retry(Stage::Pairs, open);
    schedule.second(Stage::Pairs, again.clone(), &result(&[("n1", second)]));
    (schedule, again)
}

#[test]
fn who_fails_with_two_good_ones_is_rejected_and_who_fails_with_one_is_not_decided() {
    let (schedule, _) = twice(bad(Status::Fail, &["g1"]), bad(Status::Fail, &["g2"]));
    assert_eq!(schedule.rejected[0].culprits[0].code, "HRN-NODE-UNCLEAR");
    assert!(
        schedule.rejected[0].culprits[0].evidence.contains("with g1 and with g2"),
        "{:?}",
        schedule.rejected
    );
    let (schedule, _) = twice(bad(Status::Fail, &["g1"]), NodeStatus::default());
    assert!(
        schedule.undecided[0].why.contains("not with g1, of which none is known to be bad"),
        "{schedule:?}"
    );
    assert!(schedule.candidates.is_empty() && schedule.rejected.is_empty());
}

#[test]
fn nodes_that_fail_together_and_meet_no_good_one_are_all_undecided() {
    let fails = |with: &[&str]| bad(Status::Fail, with);
    let settle = |schedule: &mut Schedule, first: &[(&str, NodeStatus)], second: &[(&str, NodeStatus)]| {
        let open = schedule.first(Stage::Pairs, &result(first));
        let again = schedule.retry(Stage::Pairs, open);
        schedule.second(Stage::Pairs, again, &result(second));
    };
    // Two nodes have no other to meet.
    let mut two = schedule(2, 0);
    let both = [("n1", fails(&["n2"])), ("n2", fails(&["n1"]))];
    settle(&mut two, &both, &both);
    assert_eq!((two.rejected.len(), two.undecided.len()), (0, 2), "{two:?}");
    // Two bad ones of four: each of the others met both of them.
    let mut four = schedule(4, 0);
    let first =
        [("n1", "n2"), ("n2", "n1"), ("n3", "n4"), ("n4", "n3")].map(|(one, with)| (one, fails(&[with])));
    let second =
        [("n1", "n4"), ("n4", "n1"), ("n3", "n2"), ("n2", "n3")].map(|(one, with)| (one, fails(&[with])));
    settle(&mut four, &first, &second);
    assert_eq!((four.rejected.len(), four.undecided.len()), (0, 4), "{four:?}");
    // One good partner of earlier, met after one that may be bad itself.
    let mut old = schedule(2, 1);
    settle(&mut old, &both, &[("n1", fails(&["g1"])), ("n2", fails(&["g1"]))]);
    assert_eq!((old.rejected.len(), old.undecided.len()), (0, 2), "{old:?}");
    // A good one beside the bad one from before.
    let mut mixed = schedule(4, 0);
    let first = [both.to_vec(), ["n3", "n4"].map(|one| (one, NodeStatus::default())).to_vec()].concat();
    settle(&mut mixed, &first, &[("n1", fails(&["n2", "n3"])), ("n2", fails(&["n4"]))]);
    assert_eq!(mixed.rejected.iter().map(|gone| gone.node.as_str()).collect::<Vec<_>>(), ["n2"], "{mixed:?}");
}

#[test]
fn all_that_fail_with_a_good_one_that_they_had_not_met_are_rejected_in_any_order() {
    let mut schedule = schedule(4, 0);
    let fails = |with: &[&str]| bad(Status::Fail, with);
    let passes = NodeStatus::default;
    let first = result(&[("n1", fails(&["n2"])), ("n2", fails(&["n1"])), ("n3", passes()), ("n4", passes())]);
    let open = schedule.first(Stage::Pairs, &first);
    let again = schedule.retry(Stage::Pairs, open);
    schedule.second(Stage::Pairs, again, &result(&[("n1", fails(&["n3"])), ("n2", fails(&["n4"]))]));
    assert_eq!((schedule.rejected.len(), schedule.undecided.len()), (2, 0), "{schedule:?}");
    assert_eq!(schedule.candidates, ["n3", "n4"]);
}

#[test]
fn what_the_machinery_kept_from_being_measured_may_pass_then_and_what_says_nothing_may_not() {
    let (schedule, _) = twice(bad(Status::Error, &["g1"]), NodeStatus::default());
    assert_eq!(schedule.candidates, ["n1"]);
    let (schedule, again) = twice(bad(Status::Inconclusive, &["g1"]), NodeStatus::default());
    assert!(
        again.is_empty() && schedule.undecided.len() == 1 && schedule.candidates.is_empty(),
        "{schedule:?}"
    );
    let (schedule, _) = twice(bad(Status::Error, &["g1"]), bad(Status::Error, &["g2"]));
    assert!(schedule.undecided[0].why.starts_with("tried twice, no culprit found"), "{schedule:?}");
    for status in [Status::Skipped, Status::ExpectedFailure] {
        let (schedule, _) = twice(bad(status, &["g1"]), NodeStatus::default());
        assert_eq!((schedule.candidates.len(), schedule.undecided.len()), (0, 1), "{status}");
    }
}

#[test]
fn a_partner_with_whom_all_fail_is_withdrawn_and_its_nodes_are_not_blamed() {
    let mut schedule = schedule(2, 2);
    let first = result(&[("n1", bad(Status::Fail, &["g1"])), ("n2", bad(Status::Fail, &["g1"]))]);
    let open = schedule.first(Stage::Pairs, &first);
    let again = schedule.retry(Stage::Pairs, open);
    schedule.second(
        Stage::Pairs,
        again,
        &result(&[("n1", NodeStatus::default()), ("n2", NodeStatus::default())]),
    );
    assert_eq!(schedule.withdrawn[0].node, "g1");
    assert_eq!((schedule.candidates.len(), schedule.partners.as_slice()), (2, &["g2".to_owned()][..]));
}

#[test]
fn who_ran_with_one_that_is_named_is_tried_again_and_goes_on() {
    let mut schedule = schedule(2, 0);
    let mut first = result(&[("n1", bad(Status::Fail, &["n2"])), ("n2", bad(Status::Fail, &["n1"]))]);
    first.lines = vec![line("HRN-NIC-SLOW", "n2", "rdmap79s0", "4.8 GB/s")];
    let open = schedule.first(Stage::Pairs, &first);
    assert_eq!(schedule.rejected[0].node, "n2");
    let again = schedule.retry(Stage::Pairs, open);
    schedule.second(Stage::Pairs, again, &result(&[("n1", NodeStatus::default())]));
    assert_eq!((schedule.candidates.as_slice(), schedule.undecided.len()), (&["n1".to_owned()][..], 0));
}

#[test]
fn who_fills_a_group_up_answers_for_what_is_its_own_there() {
    let filled = |own: NodeStatus, lines: Vec<EvidenceLine>| {
        let mut schedule = schedule(3, 0);
        let fails = |with: &[&str]| bad(Status::Fail, with);
        let first = result(&[("n1", fails(&["n2"])), ("n2", fails(&["n1"])), ("n3", NodeStatus::default())]);
        let open = schedule.first(Stage::Groups, &first);
        let again = schedule.retry(Stage::Groups, open);
        let mut second = result(&[("n1", NodeStatus::default()), ("n2", NodeStatus::default()), ("n3", own)]);
        second.lines = lines;
        schedule.second(Stage::Groups, again, &second);
        schedule.candidates.contains(&"n3".to_owned())
    };
    let mut own = bad(Status::Fail, &["n1"]);
    assert!(filled(own.clone(), Vec::new()), "what ran together is no proof against one of it");
    own.bad[0].is_own = true;
    assert!(!filled(own.clone(), Vec::new()));
    assert!(!filled(own, vec![line("HRN-NIC-DEAD", "n3", "rdmap79s0", "moved no byte")]));
}

#[test]
fn where_most_of_a_fleet_cannot_run_no_node_is_rejected() {
    let mut schedule = schedule(4, 0);
    let broken = |node: &'static str| (node, bad(Status::Error, &[]));
    let mut all = result(&[broken("n1"), broken("n2"), broken("n3"), ("n4", NodeStatus::default())]);
    all.lines = vec![line("HRN-NODE-BROKEN", "n1", "node", "exit 127")];
    assert!(schedule.first(Stage::Single, &all).is_empty());
    assert_eq!((schedule.rejected.len(), schedule.undecided.len(), schedule.candidates.len()), (0, 3, 1));
}

#[test]
fn a_failure_by_itself_has_the_code_of_what_it_shows() {
    let mut of_gpu = bad(Status::Fail, &[]);
    of_gpu.bad[0].part = Some("gpu3".into());
    let mut wrong = of_gpu.clone();
    wrong.bad[0].metric = "nccl.wrong".into();
    for (node_status, alone, code) in [
        (of_gpu, true, "HRN-GPU-SLOW"),
        (wrong, true, "HRN-GPU-WRONG"),
        (bad(Status::Fail, &[]), true, "HRN-NVLINK-SLOW"),
        (bad(Status::Fail, &[]), false, "HRN-NODE-UNCLEAR"),
    ] {
        let mut schedule = schedule(1, 0);
        let open = schedule.first(Stage::Single, &result(&[("n1", node_status)]));
        assert!(schedule.settle_alone(Stage::Single, open, alone).is_empty());
        assert_eq!(schedule.rejected[0].culprits[0].code, code);
    }
}
