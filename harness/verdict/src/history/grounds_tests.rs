//! Which runs put a drained node back: one that never looked at what the node is blamed for does not.

use super::grounds::{cases_that_blame, run_of_reason, run_that_names};
use super::past;
use crate::isolate::round::RECORD;
use crate::stored_runs::{Made, NIC, culprit};
use model::artefact::{JudgedBy, LeftOut, ProbedNode, Status, Verdict};
use serde_json::json;
use store::Scratch;

const NODE: &str = "p5-001";

fn red() -> Made {
    Made::at(1, &[]).ending(Status::Fail).naming(vec![culprit(NODE, NIC)])
}

fn green() -> Made {
    Made::at(2, &[])
}

fn changed(mut made: Made, change: &dyn Fn(&mut Verdict)) -> Made {
    made.case.verdicts.iter_mut().for_each(change);
    made
}

/// Another case, of another suite.
fn elsewhere(mut made: Made, change: &dyn Fn(&mut Verdict)) -> Made {
    (made.plan.suites, made.plan.cases[0].suite) = (vec!["other".into()], "other".into());
    (made.plan.cases[0].name, made.case.case) = ("here".into(), "here".into());
    made.case.suite = "other".into();
    changed(made, change)
}

/// Why the node stays drained, or nothing.
fn stays(red: &Made, later: &Made) -> Option<String> {
    let runs = Scratch::new().expect("a folder");
    red.write(runs.path());
    later.write(runs.path());
    let grounds = cases_that_blame(runs.path(), &red.plan.run_id, NODE).expect("known");
    let later = past::run(&runs.path().join(&later.plan.run_id)).expect("a run");
    grounds.check(&later, NODE).err()
}

fn unknown(runs: &Scratch, id: &str, node: &str) -> String {
    cases_that_blame(runs.path(), id, node).expect_err("unknown")
}

#[test]
fn a_slow_nic_is_good_again_only_where_its_rate_was_judged_and_passed() {
    assert_eq!(stays(&red(), &green()), None);
    let why = stays(&red(), &elsewhere(green(), &|one| one.metric = "command.exit_code".into()));
    let untested = "but has no judged pass of `nic.rate` of rdmap79s0 on it, for which run 20261121T030100Z-nccl-p5-0001 blames it; \
                    give --suite nccl-p5";
    assert_eq!(why.as_deref(), Some(untested));
    // The metric may be another case's, and of all NICs at once.
    assert_eq!(stays(&red(), &elsewhere(green(), &|_| ())), None);
    assert_eq!(stays(&red(), &changed(green(), &|one| one.part = None)), None);
    for (what, change) in [
        ("another NIC", (&|one: &mut Verdict| one.part = Some("rdmap80s0".into())) as &dyn Fn(&mut Verdict)),
        ("another number of the case", &|one| one.metric = "nic.present".into()),
        ("another node", &|one| (one.node, one.nodes) = (Some("p5-002".into()), "p5-002".into())),
        ("provisional", &|one| one.provisional = true),
        ("unjudged", &|one| one.status = Status::Unjudged),
        ("skipped", &|one| (one.status, one.observed) = (Status::Skipped, None)),
        ("expected to fail", &|one| one.status = Status::ExpectedFailure),
        ("no number", &|one| one.observed = None),
    ] {
        assert_eq!(stays(&red(), &changed(green(), change)).as_deref(), Some(untested), "{what}");
    }
}

/// With its partner alone a node is judged within a wider bound than the one that it was drained by.
#[test]
fn a_pass_by_few_peers_clears_nothing_that_was_compared() {
    let by = |of: u32| changed(green(), &|one| one.judged_by = Some(JudgedBy::Peers { of }));
    let few = "but compared `nic.rate` of rdmap79s0 on it with 1 peer only, and run 20261121T030100Z-nccl-p5-0001 blames \
               it: 3 are needed, or an accepted baseline";
    assert_eq!(stays(&red(), &by(2)).as_deref(), Some(few));
    assert!(stays(&red(), &by(3)).is_some_and(|why| why.contains("with 2 peers only")));
    assert_eq!(stays(&red(), &by(4)), None);
    // What failed without a number has run.
    let hung = changed(Made::at(1, &[]).ending(Status::Error), &|one| one.part = None);
    assert_eq!(stays(&hung, &by(2)), None);
}

#[test]
fn a_number_of_several_nodes_is_not_shown_by_one_of_a_single_node() {
    let several: &dyn Fn(&mut Verdict) = &|one| {
        (one.node, one.part, one.nodes) = (None, None, "p5-[001-002]".into());
        one.metric = "nccl.busbw".into();
    };
    let alone: &dyn Fn(&mut Verdict) =
        &|one| (one.part, one.metric, one.nodes) = (None, "nccl.busbw".into(), NODE.into());
    let by_run =
        |made: Made| Made { case: model::artefact::CaseVerdict { culprits: vec![], ..made.case }, ..made };
    let red = by_run(changed(red(), several));
    assert_eq!(stays(&red, &changed(green(), several)), None);
    assert!(
        stays(&red, &changed(green(), alone))
            .is_some_and(|why| why.contains("no judged pass of `nccl.busbw` on it"))
    );
}

#[test]
fn a_case_without_a_number_is_good_again_where_it_has_a_judged_one() {
    let hung = changed(Made::at(1, &[]).ending(Status::Error), &|one| one.part = None);
    let why = stays(&hung, &elsewhere(green(), &|_| ()));
    assert!(why.is_some_and(|why| why.contains("no judged pass of case `nics` of nccl-p5 on it")));
    assert_eq!(stays(&hung, &green()), None);
    assert!(stays(&hung, &changed(green(), &|one| one.status = Status::Unjudged)).is_some());
}

#[test]
fn a_simulated_or_incomplete_run_puts_no_real_node_back() {
    let simulated = |mut made: Made| {
        made.plan.simulated = true;
        made
    };
    assert_eq!(stays(&red(), &simulated(green())).as_deref(), Some("but was simulated"));
    assert_eq!(stays(&simulated(red()), &simulated(green())), None);
    assert_eq!(stays(&simulated(red()), &green()), None);
    let mut cut = green();
    cut.record.as_mut().expect("a record").ended = None;
    assert_eq!(stays(&red(), &cut).as_deref(), Some("but is incomplete: the run did not finish"));
}

#[test]
fn what_a_probe_found_is_good_again_by_a_probe_that_found_the_node_fit() {
    let why = "NICs: 31 of 32, missing: rdmap79s0".to_owned();
    let mut left =
        green().leaving_out(LeftOut { node: NODE.into(), why: why.clone(), by_folder: false, after: None });
    left.plan.run_id = "20261121T030100Z-nccl-p5-0001".into();
    let probed = |node: ProbedNode| Made { probed: vec![node], ..green() };
    let fit = ProbedNode { node: NODE.into(), ..ProbedNode::default() };
    assert_eq!(stays(&left, &probed(fit.clone())), None);
    for later in [
        green(),
        probed(ProbedNode { unfit: vec![why], ..fit.clone() }),
        probed(ProbedNode { unprobed: Some("no answer".into()), ..fit }),
    ] {
        assert!(
            stays(&left, &later).is_some_and(|why| why.contains("but has no judged pass of the probe on it"))
        );
    }
}

#[test]
fn an_isolation_stands_on_the_case_that_it_ran() {
    let runs = Scratch::new().expect("a folder");
    let (mut round, later) = (green(), changed(green(), &|one| one.metric = "nccl.wrong".into()));
    round.plan.run_id = "20261121T030100Z-nccl-p5-0001".into();
    round.write(runs.path());
    let exact = changed(later.clone(), &|one| (one.lower, one.upper) = (Some(0.0), Some(0.0)));
    let record = |case: &str, nodes: &[&str]| {
        json!({
            "format": 1, "first": round.plan.run_id, "round": 1, "tried": [],
            "fleet": { "groups": [0], "gpus": 8, "nics": 1 },
            "asked": {
                "suite": "nccl-p5", "inventory": "default", "case": case, "nodes": nodes, "groups": [],
                "budget": null, "seed": 1, "sim_faults": [],
            },
        })
    };
    let put = |record: serde_json::Value| {
        let path = runs.path().join(&round.plan.run_id).join(RECORD);
        store::write_whole(&path, &serde_json::to_vec(&record).expect("JSON")).expect("written");
    };
    put(record("nics", &[NODE]));
    let check = |later: &Made| {
        let grounds = cases_that_blame(runs.path(), &round.plan.run_id, NODE).expect("known");
        let folder = Scratch::new().expect("a folder");
        later.write(folder.path());
        grounds.check(&past::run(&folder.path().join(&later.plan.run_id)).expect("a run"), NODE).err()
    };
    assert_eq!(check(&later), None);
    assert!(
        check(&exact).is_some_and(|why| why.contains("pass of a rate of case `nics` of nccl-p5")),
        "no wrong value"
    );
    put(record("all", &[NODE]));
    assert!(check(&later).is_some_and(|why| why.contains("pass of a rate of case `all` of nccl-p5")));
    // What an earlier run had named is no part of an isolation, and that run is not known.
    put(record("nics", &["p5-002"]));
    assert_eq!(
        unknown(&runs, &round.plan.run_id, NODE),
        "run 20261121T030100Z-nccl-p5-0001 has no verdict against p5-001"
    );
}

#[test]
fn what_cannot_be_known_puts_no_node_back() {
    let runs = Scratch::new().expect("a folder");
    let red = red();
    assert_eq!(unknown(&runs, "1", NODE), "run 1 is gone");
    assert_eq!(unknown(&runs, "../x", NODE), "run ../x is gone");
    red.write(runs.path());
    let id = &red.plan.run_id;
    assert_eq!(unknown(&runs, id, "p5-004"), format!("run {id} has no verdict against p5-004"));
    std::fs::write(runs.path().join(id).join("cases/nics/verdict.json"), "{").expect("written");
    assert!(unknown(&runs, id, NODE).starts_with(&format!("run {id} cannot be read: ")));
}

#[test]
fn a_reason_names_its_run_or_the_part_that_a_stored_run_names() {
    let run = |reason| run_of_reason(reason);
    assert_eq!(run("[harness] HRN-NIC-SLOW rdmap79s0: 4.1, run a, run 20261121T0301"), Some("20261121T0301"));
    assert_eq!(run("[harness] HRN-NIC-SLOW rdmap79s0: 4.1, run 7 (SIMULATED)"), Some("7"));
    for none in [
        "[harness] HRN-NIC-SLOW rdmap79s0",
        "[harness] x, run ../7",
        "[harness] x, run ",
        "[harness] x, run a b",
    ] {
        assert_eq!(run(none), None, "{none}");
    }
    let runs = Scratch::new().expect("a folder");
    let red = red();
    red.write(runs.path());
    green().write(runs.path());
    let named = |reason: &str| run_that_names(runs.path(), "default", NODE, reason);
    assert_eq!(named("[harness] HRN-NIC-SLOW rdmap79s0"), Some(red.plan.run_id.clone()));
    for none in [
        "[harness] HRN-NIC-SLOW rdmap80s0",
        "[harness]",
        "[harness] a re-check was interrupted before it passed",
    ] {
        assert_eq!(named(none), None, "{none}");
    }
    assert_eq!(run_that_names(runs.path(), "other", NODE, "[harness] HRN-NIC-SLOW rdmap79s0"), None);
}
