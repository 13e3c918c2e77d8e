//! Which earlier runs a page shows beside a run, and that nothing else is taken for one of them.

use super::before::{RunOf, RunsBefore};
use crate::stored_runs::{Made, NIC};
use model::artefact::{ProbedNode, Status, Value};
use std::path::Path;
use store::Scratch;

fn measuring(minute: usize, value: f64) -> Made {
    let mut made = Made::at(minute, &[value]);
    let name = made.plan.cases[0].assertions[0].name.clone();
    made.case.verdicts = vec![fixture::verdict("nics", "rate", "p5-001", NIC, Status::Pass)];
    (made.case.verdicts[0].name, made.case.verdicts[0].observed) = (name, Some(value));
    made
}

fn before_of(folder: &Path, made: &Made) -> RunsBefore {
    let run = RunOf {
        folder: &folder.join(&made.plan.run_id),
        plan: &made.plan,
        cases: std::slice::from_ref(&made.case),
        probe: None,
    };
    RunsBefore::read(&run, &|_| None)
}

/// What the runs before the last one measured.
fn numbers(all: &[Made]) -> Vec<f64> {
    let folder = Scratch::new().expect("a folder");
    all.iter().for_each(|one| one.write(folder.path()));
    let before = before_of(folder.path(), all.last().expect("a run"));
    assert!(before.unread.is_empty(), "{:?}", before.unread);
    before.numbers.into_values().next().unwrap_or_default()
}

#[test]
fn earlier_runs_of_the_same_suite_and_inventory_are_shown_oldest_first() {
    assert_eq!(numbers(&[measuring(1, 12.0), measuring(2, 11.0), measuring(3, 10.0)]), [12.0, 11.0]);
    // Later ones are not before it.
    let folder = Scratch::new().expect("a folder");
    let all = [measuring(1, 12.0), measuring(2, 11.0), measuring(3, 10.0)];
    all.iter().for_each(|one| one.write(folder.path()));
    let before = before_of(folder.path(), &all[1]);
    assert_eq!((before.runs, before.numbers.into_values().next()), (1, Some(vec![12.0])));
    assert_eq!(before.last.map(|last| last.id), Some(all[0].plan.run_id.clone()));
}

#[test]
fn what_is_not_comparable_is_not_shown() {
    let is_shown = |change: &dyn Fn(&mut Made)| {
        let mut other = measuring(1, 12.0);
        change(&mut other);
        !numbers(&[other, measuring(2, 11.0)]).is_empty()
    };
    assert!(is_shown(&|_| {}));
    assert!(!is_shown(&|made| made.plan.inventory = "other".into()));
    assert!(!is_shown(&|made| made.plan.suites = vec!["other".into()]));
    assert!(!is_shown(&|made| made.plan.instance.name = "p4d".into()));
    assert!(!is_shown(&|made| made.plan.simulated = true));
    assert!(!is_shown(&|made| made.case.simulated = true));
    assert!(!is_shown(&|made| made.plan.replayed_from = Some("judge".into())));
    // A number of other ranks, one that was contradicted, and one that is none.
    assert!(!is_shown(&|made| made.plan.cases[0].jobs[0].ranks += 8));
    assert!(!is_shown(&|made| made.case.verdicts[0].status = Status::Inconclusive));
    assert!(!is_shown(&|made| made.case.verdicts[0].observed = None));
}

#[test]
fn a_replay_has_the_past_of_the_run_whose_jobs_it_judges() {
    let (first, second, later) = (measuring(1, 12.0), measuring(2, 11.0), measuring(3, 10.0));
    let mut replay = measuring(9, 11.0);
    replay.plan.replayed_from = Some("judge".into());
    replay.plan.parent = Some(second.plan.run_id.clone());
    assert_eq!(numbers(&[first, second, later, replay]), [12.0]);
}

#[test]
fn only_the_newest_twenty_are_read_and_the_rest_is_counted() {
    let all: Vec<Made> = (0..25).map(|minute| measuring(minute, minute as f64)).collect();
    let folder = Scratch::new().expect("a folder");
    all.iter().for_each(|one| one.write(folder.path()));
    let before = before_of(folder.path(), &all[24]);
    assert_eq!((before.runs, before.is_cut), (20, true));
    assert_eq!(before.numbers.into_values().next().map(|all| (all[0], all.len())), Some((4.0, 20)));
    let before = before_of(folder.path(), &all[3]);
    assert_eq!((before.runs, before.is_cut), (3, false));
}

#[test]
fn links_foreign_runs_and_broken_ones_are_no_past() {
    let folder = Scratch::new().expect("a folder");
    let (good, own) = (measuring(1, 12.0), measuring(9, 11.0));
    let (foreign, broken, refused) = (measuring(2, 1.0), measuring(3, 1.0), measuring(4, 1.0));
    for made in [&good, &foreign, &broken, &refused, &own] {
        made.write(folder.path());
    }
    store::mark_foreign(&folder.path().join(&foreign.plan.run_id)).expect("marked");
    std::fs::write(folder.path().join(&broken.plan.run_id).join("plan.json"), "{").expect("broken");
    let link = folder.path().join("20261121T030500Z-nccl-p5-0005");
    std::os::unix::fs::symlink(folder.path().join(&good.plan.run_id), link).expect("linked");
    let path = folder.path().join(&own.plan.run_id);
    let run = RunOf { folder: &path, plan: &own.plan, cases: std::slice::from_ref(&own.case), probe: None };
    let is_refused = |path: &Path| path.ends_with(&refused.plan.run_id).then(|| "a pipe".to_owned());
    let before = RunsBefore::read(&run, &is_refused);
    assert_eq!(before.runs, 1);
    let unread: Vec<&str> = before.unread.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(unread, [refused.plan.run_id.as_str(), &broken.plan.run_id]);
    // A foreign run has no past in this folder.
    store::mark_foreign(&path).expect("marked");
    assert_eq!(RunsBefore::read(&run, &|_| None).runs, 0);
}

#[test]
fn what_differs_from_the_run_before_is_named() {
    let folder = Scratch::new().expect("a folder");
    let node = |driver: &str| ProbedNode {
        node: "p5-001".into(),
        facts: [("driver".to_owned(), Value::Text(driver.into()))].into(),
        ..ProbedNode::default()
    };
    let mut old = measuring(1, 12.0).software("nccl", "2.26");
    old.probed = vec![node("550.1")];
    old.plan.settings.insert("size".into(), "1GiB".into());
    old.plan.nodes.push("p5-099".into());
    let mut new = measuring(2, 11.0).software("nccl", "2.27");
    new.probed = vec![node("560.2")];
    for source in &mut new.plan.sources {
        source.sha256 = "f".repeat(64);
    }
    for file in &mut new.plan.cases[0].jobs[0].files {
        file.text = file.text.take().map(|text| text + "\nexport NCCL_ALGO=Ring\n");
    }
    [&old, &new].iter().for_each(|one| one.write(folder.path()));
    let path = folder.path().join(&new.plan.run_id);
    let probe = store::Stored::open(&path).expect("a run").probe().expect("read");
    let run = RunOf {
        folder: &path,
        plan: &new.plan,
        cases: std::slice::from_ref(&new.case),
        probe: probe.as_ref(),
    };
    let last = RunsBefore::read(&run, &|_| None).last.expect("a run before");
    let software: Vec<String> = last.software.iter().map(ToString::to_string).collect();
    assert!(software.contains(&"nccl 2.26 -> 2.27".to_owned()), "{software:?}");
    assert!(software.contains(&"--set size 1GiB -> unknown".to_owned()), "{software:?}");
    assert!(software.iter().any(|line| line.ends_with(" -> ffffffffffff")), "{software:?}");
    assert!(
        software.iter().any(|line| line == "variables of nics unknown -> NCCL_ALGO=Ring"),
        "{software:?}"
    );
    assert_eq!(
        (last.nodes.before.into_iter().collect::<Vec<_>>(), last.nodes.after.len()),
        (vec!["p5-099".into()], 0)
    );
    assert!(last.is_probed);
    assert_eq!((last.facts[0].fact, last.facts[0].after.as_str()), ("driver", "560.2"));
}
