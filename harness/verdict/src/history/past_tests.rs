//! Which folders count as runs, and which of them are whole: a partial or foreign run must not pass for a good one.

use super::past::{Outlines, Past, newest, outlines, read};
use super::suspects::suspects;
use crate::stored_runs::{Made, NIC, culprit, past};
use model::artefact::{Bad, Culprit, JobOutcome, Status, WorkKind};
use store::Scratch;

fn ids(past: &Past) -> Vec<&str> {
    past.runs.iter().map(|run| run.id()).collect()
}

pub(super) fn replay_of(parent: &Made, minute: usize) -> Made {
    let mut made = Made::at(minute, &[12.0]);
    (made.plan.parent, made.plan.replayed_from) = (Some(parent.plan.run_id.clone()), Some("judge".into()));
    made
}

#[test]
fn a_run_that_did_not_end_or_was_stopped_or_lacks_a_verdict_is_partial() {
    let state = |change: &dyn Fn(&mut Made)| {
        let mut made = Made::at(1, &[12.0]);
        change(&mut made);
        let (_folder, past) = past(&[made]);
        (past.runs[0].partial.len(), past.runs[0].state())
    };
    assert_eq!(state(&|_| {}), (0, "complete".to_owned()));
    assert_eq!(state(&|made| made.record = None).0, 1);
    assert_eq!(state(&|made| made.record.as_mut().expect("a record").ended = None).0, 1);
    let stopped = |made: &mut Made| made.record.as_mut().expect("a record").stopped = Some("SIGTERM".into());
    let (reasons, state_of_it) = state(&stopped);
    assert!(reasons == 1 && state_of_it.contains("SIGTERM"), "{state_of_it}");
    assert_eq!(state(&|made| made.case.verdicts.clear()).0, 1);
    assert_eq!(state(&|made| made.plan.cases[0].name = "other".into()).0, 1);
    let skipped = |made: &mut Made| made.plan.cases[0].skip = Some("needs 8 nodes".into());
    assert_eq!(state(&skipped).0, 0);
    let (reasons, two) = state(&|made| {
        made.record = None;
        made.case.verdicts.clear();
    });
    assert!(reasons == 2 && two.ends_with("and 1 more"), "{two}");
}

#[test]
fn simulated_runs_say_so_with_their_faults() {
    let mut made = Made::at(1, &[12.0]);
    assert!(!past(&[made.clone()]).1.runs[0].is_simulated());
    made.case.simulated = true;
    made.plan.sim_faults = vec!["p5-003:nic-slow".into()];
    made.plan.cases[0].sim_faults = vec!["p5-002:gpu-slow".into()];
    let (_folder, past) = past(&[made]);
    assert!(past.runs[0].is_simulated());
    assert_eq!(past.runs[0].state(), "complete, simulated, 2 simulated faults");
}

#[test]
fn a_replayed_run_counts_once_as_it_was_judged_last() {
    let first = Made::at(1, &[12.0]);
    let other = Made::at(2, &[12.0]);
    let again = replay_of(&first, 3);
    let (_folder, past_of_all) = past(&[first.clone(), other.clone(), again.clone()]);
    assert_eq!(ids(&past_of_all), [again.plan.run_id.as_str(), other.plan.run_id.as_str()]);
    assert_eq!(past_of_all.runs[0].made, "2026-11-21 03:01:00", "its jobs ran when the first was made");
    let passed: Vec<_> = past_of_all.passed.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(passed, [first.plan.run_id.as_str()]);
    // A replay of a replay is of the same jobs.
    let third = replay_of(&again, 4);
    assert_eq!(ids(&past(&[first.clone(), again.clone(), third.clone()]).1), [third.plan.run_id.as_str()]);
    // A rerun on other jobs is a run of its own.
    let mut rerun = Made::at(5, &[12.0]);
    rerun.plan.parent = Some(first.plan.run_id.clone());
    assert_eq!(past(&[first.clone(), rerun]).1.runs.len(), 2);
    // A whole judgement counts before a later one that was cut off.
    let mut cut = again.clone();
    cut.record = None;
    assert_eq!(ids(&past(&[first.clone(), cut.clone()]).1), [first.plan.run_id.as_str()]);
    let mut cut_first = first.clone();
    cut_first.record = None;
    assert_eq!(ids(&past(&[cut_first, cut.clone()]).1), [cut.plan.run_id.as_str()]);
    // Two runs that name each other as parents do not hang the reader.
    let mut looped = first;
    (looped.plan.parent, looped.plan.replayed_from) = (Some(again.plan.run_id.clone()), Some("judge".into()));
    assert!(!past(&[looped, again]).1.runs.is_empty());
}

/// Of two files that contradict each other neither is believed.
#[test]
fn a_summary_that_names_other_parts_than_its_cases_blames_no_part() {
    let folder = Scratch::new().expect("a folder");
    let red = Made::at(1, &[12.0]).ending(Status::Fail).naming(vec![culprit("p5-001", NIC)]);
    red.write(folder.path());
    let path = folder.path().join(&red.plan.run_id).join("summary.json");
    let mut made = fixture::Made::from_cases(vec![red.case.clone()]);
    made.summary.run_id.clone_from(&red.plan.run_id);
    for (node, part, blamed) in [("p5-001", NIC, 1), ("p5-004", NIC, 0), ("p5-001", "gpu3", 0)] {
        made.summary.culprits = vec![culprit(node, part)];
        store::write_whole(&path, &serde_json::to_vec(&made.summary).expect("JSON")).expect("written");
        let past = read(folder.path()).expect("runs");
        assert_eq!((suspects(&past).len(), past.runs[0].culprits.len()), (blamed, blamed), "{node} {part}");
        let state = past.runs[0].state();
        assert_eq!(state.contains("names other parts than its cases"), blamed == 0, "{state}");
        let contradiction = past.runs[0].contradiction();
        assert_eq!(contradiction.is_some(), blamed == 0, "{contradiction:?}");
    }
    made.summary.culprits.clear();
    store::write_whole(&path, &serde_json::to_vec(&made.summary).expect("JSON")).expect("written");
    assert_eq!(read(folder.path()).expect("runs").runs[0].partial.len(), 1, "red, and none is named");
    made.summary.exit_code = model::exit_code::PASSED;
    store::write_whole(&path, &serde_json::to_vec(&made.summary).expect("JSON")).expect("written");
    let why = read(folder.path()).expect("runs").runs[0].contradiction().expect("red");
    assert!(why.starts_with("CONTRADICTORY: `summary.json` says passed, and 1 verdict is red; "), "{why}");
}

#[test]
fn bundles_from_elsewhere_and_folders_without_a_plan_are_passed_over_by_name() {
    let folder = Scratch::new().expect("a folder");
    let (own, foreign) = (Made::at(1, &[12.0]), Made::at(2, &[12.0]));
    own.write(folder.path());
    foreign.write(folder.path());
    store::mark_foreign(&folder.path().join(&foreign.plan.run_id)).expect("marked");
    for name in ["empty", ".hidden"] {
        std::fs::create_dir(folder.path().join(name)).expect("a folder");
    }
    std::fs::write(folder.path().join("notes.txt"), "x").expect("a file");
    // The link to the newest run is the harness's own.
    assert!(folder.path().join("latest").is_symlink());
    std::os::unix::fs::symlink(&own.plan.run_id, folder.path().join("linked")).expect("linked");
    let all = read(folder.path()).expect("runs");
    assert_eq!(ids(&all), [own.plan.run_id.as_str()]);
    let passed: Vec<&str> = all.passed.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(passed, [foreign.plan.run_id.as_str(), "empty", "linked"]);
    assert!(all.passed.iter().all(|one| !one.why.is_empty()));
    assert!(read(&folder.path().join(&own.plan.run_id)).is_err(), "one run is no folder of runs");
    assert!(read(&folder.path().join("absent")).is_err());
}

#[test]
fn the_newest_runs_are_read_without_those_that_are_named() {
    let made = [1, 2, 3, 4].map(|minute| Made::at(minute, &[12.0]));
    let (folder, _) = past(&made);
    let id = |at: usize| made[at].plan.run_id.as_str();
    assert_eq!(ids(&newest(folder.path(), 2, &[])), [id(2), id(3)]);
    assert_eq!(ids(&newest(folder.path(), 2, &[Some(id(3)), None])), [id(1), id(2)]);
    assert!(newest(&folder.path().join("absent"), 2, &[]).runs.is_empty());
}

#[test]
fn folders_that_are_no_runs_take_no_place_among_the_newest() {
    let made = [1, 2, 3].map(|minute| Made::at(minute, &[12.0]));
    let (folder, _) = past(&made);
    for name in ["x", "y", "z"] {
        std::fs::create_dir(folder.path().join(name)).expect("a folder");
    }
    let Outlines { past: newest, older, .. } = outlines(folder.path(), Some(2)).expect("runs");
    assert_eq!(ids(&newest), [made[1].plan.run_id.as_str(), made[2].plan.run_id.as_str()]);
    assert_eq!((older, newest.passed.len()), (1, 3));
}

/// A run of the first minute with this at the end of its id.
fn made_in_one_second(made: Made, end: &str) -> Made {
    let mut made = made;
    made.plan.run_id = format!("20261121T030100Z-nccl-p5-{end}");
    made
}

#[test]
fn runs_made_in_one_second_are_in_the_order_of_their_ends_and_a_green_one_hides_no_red_one() {
    let red = || Made::at(1, &[]).ending(Status::Fail).naming(vec![culprit("p5-001", NIC)]);
    let green = || Made::at(1, &[]);
    let newest = |made: &[Made]| past(made).1.runs.last().map(|run| run.id().to_owned()).expect("runs");
    assert!(newest(&[made_in_one_second(red(), "a"), made_in_one_second(green(), "b")]).ends_with("-a"));
    let mut later = made_in_one_second(green(), "a");
    later.record.as_mut().expect("a record").ended = Some("2026-03-01T08:03:00Z".into());
    assert!(newest(&[later.clone(), made_in_one_second(red(), "b")]).ends_with("-a"));
    let mut open = made_in_one_second(green(), "0");
    open.record.as_mut().expect("a record").ended = None;
    assert!(newest(&[open, later]).ends_with("-0"));
    let (_folder, both) = past(&[made_in_one_second(red(), "a"), made_in_one_second(green(), "b")]);
    assert!(suspects(&both)[0].is_open() && suspects(&both)[0].cleared.is_empty());
    // Nor does one that ended later clear a part, if it was made in the same second.
    let mut ended_later = made_in_one_second(green(), "c");
    ended_later.record.as_mut().expect("a record").ended = Some("2026-03-01T08:04:00Z".into());
    let (_folder, both) = past(&[made_in_one_second(red(), "a"), ended_later]);
    assert!(suspects(&both)[0].is_open());
}

fn failed(node: &str, cause: &str) -> JobOutcome {
    JobOutcome {
        case: "nics".into(),
        kind: WorkKind::Collective,
        job: node.into(),
        nodes: vec![node.into()],
        bad: Some(Bad { cause: cause.into(), node: None, evidence: "srun: error: no MPI".into() }),
        judged: Default::default(),
        worst: Default::default(),
    }
}

fn named(node: &str, part: &str, evidence: &str) -> Culprit {
    Culprit::Culprit { node: node.into(), part: part.into(), evidence: evidence.into(), code: None }
}

#[test]
fn an_old_run_in_which_all_jobs_failed_alike_blames_no_node() {
    let culprits = |outcomes: Vec<JobOutcome>, culprits: Vec<Culprit>| {
        let mut made = Made::at(1, &[]).ending(Status::Error).naming(culprits);
        made.outcomes = outcomes;
        past(&[made]).1.runs.remove(0).culprits
    };
    let alike = || vec![failed("p5-001", "exit 1"), failed("p5-002", "exit 1")];
    let node = |node: &str| named(node, "node", "exit 1: job j");
    assert_eq!(culprits(alike(), vec![node("p5-001")]), []);
    let several = |nodes: &[&str]| Culprit::Suspects {
        nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
        evidence: "exit 1: job j".into(),
    };
    assert_eq!(culprits(alike(), vec![several(&["p5-001", "p5-002"])]), []);
    assert_eq!(culprits(alike(), vec![several(&["p5-001", "p5-003"])]), [several(&["p5-003"])]);
    // What only one node shows, another cause, a node that was in no such job, a device and a slow fleet stay.
    for stays in [
        named("p5-001", "node", "hang: job j"),
        node("p5-003"),
        named("p5-001", NIC, "exit 1: job j"),
        Culprit::Fleet { evidence: "exit 1: job j".into() },
    ] {
        assert_eq!(culprits(alike(), vec![stays.clone()]), [stays]);
    }
    let one_failed = vec![failed("p5-001", "exit 1"), JobOutcome { bad: None, ..failed("p5-002", "exit 1") }];
    assert_eq!(culprits(one_failed, vec![node("p5-001")]), [node("p5-001")]);
    // What sbatch refused came to no node.
    assert_eq!(
        culprits(Vec::new(), vec![named("p5-001", "node", "launch-failed: job j could not start")]),
        []
    );
    let named_nic = named("p5-001", NIC, "launch-failed: job j could not start");
    assert_eq!(culprits(Vec::new(), vec![named_nic.clone()]), [named_nic]);
}

#[test]
fn the_culprits_of_a_run_without_a_summary_are_those_of_its_cases() {
    let (_folder, past) = past(&[Made::at(1, &[]).naming(vec![culprit("p5-001", NIC)])]);
    assert_eq!(past.runs[0].culprits, [culprit("p5-001", NIC)]);
}

#[test]
fn a_record_that_cannot_be_read_is_one_reason_to_be_partial() {
    let made = Made::at(1, &[12.0]);
    let (folder, _) = past(std::slice::from_ref(&made));
    std::fs::write(folder.path().join(&made.plan.run_id).join("run.json"), "{").expect("written");
    let again = read(folder.path()).expect("runs");
    assert_eq!(again.runs[0].partial.len(), 1, "{:?}", again.runs[0].partial);
    assert!(again.runs[0].partial[0].starts_with("run.json"), "{:?}", again.runs[0].partial);
}
