//! What a narrow miss comes to after one repeat or two, and which jobs are repeated.

use super::node_status::{Bad, NodeStatus};
use super::refusal_tests::{bad, result, schedule, slow};
use super::repeats::OpenNodes;
use super::schedule::{Open, Schedule};
use super::stages::Stage;
use model::artefact::Status;
use plan::Placed;

fn passed() -> NodeStatus {
    NodeStatus::default()
}

fn missed(with: &[&str]) -> NodeStatus {
    NodeStatus { bad: vec![Bad { is_near_miss: true, ..bad(Status::Inconclusive, with) }] }
}

fn not_passed(status: Status, with: &[&str]) -> NodeStatus {
    NodeStatus { bad: vec![bad(status, with)] }
}

/// Two nodes that missed narrowly with each other.
fn both_missed() -> (Schedule, Vec<Open>) {
    let mut schedule = schedule(2, 0);
    let first = [("n1", missed(&["n2"])), ("n2", missed(&["n1"]))];
    let open = schedule.first(Stage::All, &result(&first, &[]));
    let open = schedule.near_misses(open);
    assert_eq!((open.near_misses.len(), open.others.len()), (2, 0));
    (schedule, open.near_misses)
}

fn repeat(schedule: &mut Schedule, open: Vec<Open>, of_both: &NodeStatus, repeat: usize) -> OpenNodes {
    let statuses = [("n1", of_both.clone()), ("n2", of_both.clone())];
    schedule.repeated(Stage::All, open, &result(&statuses, &[]), repeat)
}

#[test]
fn one_narrow_miss_of_three_runs_is_accepted_and_two_are_not() {
    let (mut good, open) = both_missed();
    let open = repeat(&mut good, open, &passed(), 1);
    assert_eq!((open.near_misses.len(), good.proven.len()), (2, 0), "one pass does not outweigh one miss");
    let open = repeat(&mut good, open.near_misses, &passed(), 2);
    assert!(open.near_misses.is_empty() && open.others.is_empty());
    assert_eq!((good.candidates.len(), good.proven.len(), good.undecided.len()), (2, 2, 0));

    let (mut low, open) = both_missed();
    let open = repeat(&mut low, open, &missed(&[]), 1);
    assert!(open.near_misses.is_empty() && open.others.is_empty(), "nothing outweighs two misses");
    assert!(low.undecided[0].why.starts_with("passed 0 of 2 runs: "), "{:?}", low.undecided);

    let (mut late, open) = both_missed();
    let open = repeat(&mut late, open, &passed(), 1);
    repeat(&mut late, open.near_misses, &missed(&[]), 2);
    assert!(late.undecided[1].why.starts_with("passed 1 of 3 runs: "), "{:?}", late.undecided);
    assert_eq!((late.candidates.len(), late.rejected.len()), (0, 0));
}

#[test]
fn what_a_repeat_shows_besides_is_not_hidden_by_its_passes() {
    // Nothing was measured in the repeat.
    let (mut broken, open) = both_missed();
    let open = repeat(&mut broken, open, &not_passed(Status::Error, &[]), 1);
    assert!(open.near_misses.is_empty() && open.others.is_empty() && broken.candidates.is_empty());
    // A failure is looked into as any other.
    let (mut failed, open) = both_missed();
    let open = repeat(&mut failed, open, &not_passed(Status::Fail, &["n2"]), 1);
    assert_eq!((open.near_misses.len(), open.others.len()), (0, 2));
    assert!(open.others[0].node_status.has_failed());
    // A node that the repeat names leaves, and the other is retried without it.
    let (mut named, open) = both_missed();
    let statuses = [("n1", missed(&["n2"])), ("n2", missed(&["n1"]))];
    let open = named.repeated(Stage::All, open, &result(&statuses, &[slow("n2")]), 1);
    assert_eq!((named.rejected[0].node.as_str(), open.others[0].node.as_str()), ("n2", "n1"));
}

#[test]
fn a_node_that_is_only_compared_with_answers_for_a_failure_and_not_for_a_narrow_miss() {
    let compared = |mut of_third: NodeStatus| {
        let mut schedule = schedule(3, 0);
        let first = [("n1", missed(&["n2"])), ("n2", missed(&["n1"])), ("n3", passed())];
        let open = schedule.first(Stage::Pairs, &result(&first, &[]));
        let open = schedule.near_misses(open);
        of_third.bad[0].is_own = true;
        let statuses = [("n1", passed()), ("n2", passed()), ("n3", of_third)];
        schedule.repeated(Stage::Pairs, open.near_misses, &result(&statuses, &[]), 1);
        schedule.is_in("n3")
    };
    assert!(compared(missed(&[])));
    assert!(!compared(not_passed(Status::Fail, &[])));
}

#[test]
fn only_narrow_misses_are_repeated() {
    let mut schedule = schedule(4, 0);
    let mut mixed = missed(&[]);
    mixed.bad.push(bad(Status::Inconclusive, &[]));
    let first = [
        ("n1", missed(&[])),
        ("n2", not_passed(Status::Inconclusive, &[])),
        ("n3", not_passed(Status::Fail, &[])),
        ("n4", mixed),
    ];
    let open = schedule.first(Stage::All, &result(&first, &[]));
    let open = schedule.near_misses(open);
    let names = |open: &[Open]| open.iter().map(|one| one.node.clone()).collect::<Vec<_>>();
    assert_eq!(names(&open.near_misses), ["n1"]);
    assert_eq!(names(&open.others), ["n2", "n3", "n4"]);
}

#[test]
fn a_repeat_runs_the_jobs_that_missed_and_a_few_to_compare_them_with() {
    let (mut schedule, open) = both_missed();
    let job = |name: &str, nodes: [&str; 2], round: u32| Placed {
        name: name.to_owned(),
        nodes: nodes.map(str::to_owned).to_vec(),
        round,
    };
    let jobs = [
        job("a", ["n5", "n6"], 1),
        job("b", ["n7", "n8"], 1),
        job("c", ["n9", "g1"], 1),
        job("d", ["n1", "n2"], 2),
        job("e", ["n3", "n4"], 2),
        job("f", ["n3", "g2"], 3),
    ];
    schedule.withdraw(Stage::Pairs, "g1", "it is slow");
    let names = |jobs: &[Placed]| jobs.iter().map(|job| job.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&schedule.repeated_jobs(&open, &jobs)), ["a", "b", "d", "e"]);
    assert_eq!(names(&schedule.repeated_jobs(&open, &jobs[3..4])), ["d"]);
    let nodes = ["g1", "n1", "n2", "n3", "n4", "n5"].map(str::to_owned);
    assert_eq!(schedule.repeated_nodes(&open, &nodes), ["n1", "n2", "n3", "n4"]);
}
