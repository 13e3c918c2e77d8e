//! Which parts stay suspect over several runs, and what clears them: a wrong answer sends a technician to a good node.

use super::past::RunKind;
use super::suspects::{Suspect, SuspectedPart, before, suspects};
use crate::stored_runs::{Made, NIC, culprit, past};
use model::artefact::{CaseEnd, Culprit, LeftOut, Status};

pub(super) fn red(minute: usize) -> Made {
    Made::at(minute, &[]).ending(Status::Fail).naming(vec![culprit("p5-001", NIC)])
}

pub(super) fn green(minute: usize) -> Made {
    Made::at(minute, &[])
}

fn found(made: &[Made]) -> Vec<Suspect> {
    suspects(&past(made).1)
}

fn cleared(made: &[Made]) -> Vec<usize> {
    found(made).into_iter().find(|one| one.component.part == NIC).expect("a suspect").cleared
}

#[test]
fn a_nic_stays_suspect_until_its_node_passes_the_case_that_named_it() {
    let all = found(&[red(1), green(2), red(3)]);
    let [nic] = all.as_slice() else { panic!("{all:?}") };
    let component = SuspectedPart {
        simulated: false,
        inventory: "default".into(),
        node: "p5-001".into(),
        part: NIC.into(),
    };
    assert_eq!(nic.component, component);
    assert_eq!((nic.culprit.as_slice(), nic.suspect.as_slice()), ([0, 2].as_slice(), [].as_slice()));
    assert_eq!((nic.cleared.as_slice(), nic.with.as_slice()), ([1].as_slice(), [0, 1, 2].as_slice()));
    assert_eq!(nic.codes, ["HRN-NIC-SLOW"].into());
    assert!(nic.evidence.contains("4.1 GB/s"), "{}", nic.evidence);
    assert!(nic.is_open(), "named again after it passed");
    assert!(!found(&[red(1), green(2)])[0].is_open());
    assert!(found(&[red(1)])[0].is_open());
}

#[test]
fn a_canary_run_blames_no_node_and_clears_none() {
    let canary = |mut made: Made| {
        made.plan.cases[0].must_end = Some(CaseEnd::Fail);
        made
    };
    assert_eq!(found(&[canary(red(1)), canary(red(2))]), []);
    let all = found(&[red(1), canary(red(2)), canary(green(3))]);
    let [nic] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!(
        (nic.culprit.as_slice(), nic.cleared.as_slice(), nic.with.as_slice()),
        (&[0][..], &[][..], &[0][..])
    );
    assert!(nic.is_open());
}

#[test]
fn runs_of_another_kind_are_named_and_not_counted() {
    let simulated = |mut made: Made| {
        made.plan.simulated = true;
        made
    };
    let mut canary = simulated(green(3));
    canary.plan.cases[0].must_end = Some(CaseEnd::Fail);
    let made = [green(1), simulated(green(2)), canary];
    for (at, kind) in RunKind::ALL.into_iter().enumerate() {
        let (_folder, past) = past(&made);
        let past = past.only(kind);
        let ids: Vec<&str> = past.runs.iter().map(|run| run.id()).collect();
        assert_eq!(ids, [made[at].plan.run_id.as_str()]);
        assert_eq!(past.passed.len(), 2);
        assert!(past.passed.iter().all(|one| !one.why.contains(kind.name())), "{:?}", past.passed);
    }
}

#[test]
fn a_case_that_was_not_measured_or_skipped_clears_no_node() {
    for status in [Status::Fail, Status::Inconclusive, Status::Error, Status::Skipped] {
        assert!(cleared(&[red(1), green(2).ending(status)]).is_empty(), "{status}");
    }
}

#[test]
fn a_pass_of_another_node_or_of_another_case_does_not_clear_the_node() {
    let mut other_node = green(2);
    other_node.case.verdicts[0].node = Some("p5-002".into());
    assert!(cleared(&[red(1), other_node]).is_empty());
    let mut both = green(2);
    (both.case.verdicts[0].node, both.case.verdicts[0].nodes) = (None, "p5-[001-002]".into());
    assert_eq!(cleared(&[red(1), both.clone()]), [1]);
    both.case.verdicts[0].nodes = "p5-[002-003]".into();
    assert!(cleared(&[red(1), both]).is_empty());
    let mut other_case = green(2);
    other_case.plan.cases[0].name = "all-reduce".into();
    other_case.case.case = "all-reduce".into();
    assert!(cleared(&[red(1), other_case]).is_empty());
    let mut other_suite = green(2);
    (other_suite.plan.cases[0].suite, other_suite.case.suite) = ("mine".into(), "mine".into());
    assert!(cleared(&[red(1), other_suite]).is_empty());
}

#[test]
fn a_pass_in_a_run_that_blames_the_node_for_something_else_does_not_clear_it() {
    let again = green(2).naming(vec![culprit("p5-001", "gpu3")]);
    assert!(cleared(&[red(1), again]).is_empty());
    let neighbour = green(2).naming(vec![culprit("p5-002", "gpu3")]);
    assert_eq!(cleared(&[red(1), neighbour]), [1]);
}

#[test]
fn nodes_of_the_same_name_in_another_inventory_or_simulation_are_other_nodes() {
    let mut elsewhere = green(2);
    elsewhere.plan.inventory = "other".into();
    let mut simulated = green(3);
    simulated.plan.simulated = true;
    let all = found(&[red(1), elsewhere, simulated]);
    assert_eq!((all[0].cleared.as_slice(), all[0].with.as_slice()), ([].as_slice(), [0].as_slice()));
    let mut named_there = red(2);
    named_there.plan.inventory = "other".into();
    assert_eq!(found(&[red(1), named_there]).len(), 2);
}

#[test]
fn several_suspects_are_listed_without_a_code_and_a_slow_fleet_blames_no_node() {
    let nodes = vec!["p5-001".to_owned(), "p5-002".to_owned()];
    let unclear = green(1).naming(vec![
        Culprit::Suspects { nodes, evidence: "hang".into() },
        Culprit::Fleet { evidence: "all low".into() },
    ]);
    let all = found(&[unclear.clone(), green(2)]);
    let shown = |one: &Suspect| {
        (one.component.node.clone(), one.suspect.clone(), one.culprit.len(), one.cleared.clone())
    };
    assert_eq!(
        all.iter().map(shown).collect::<Vec<_>>(),
        [("p5-001".to_owned(), vec![0], 0, vec![1]), ("p5-002".to_owned(), vec![0], 0, vec![])]
    );
    assert!(all.iter().all(|one| one.codes == ["-"].into() && one.component.part == "node"));
    // The one that is blamed most often comes first.
    let mut named = green(2).naming(vec![culprit("p5-002", "gpu0")]);
    named.case.culprits.push(Culprit::Suspects { nodes: vec!["p5-002".into()], evidence: "slow".into() });
    assert_eq!(found(&[unclear, named])[0].component.node, "p5-002");
}

#[test]
fn a_node_that_a_probe_found_unfit_is_blamed_and_one_left_out_for_a_shared_folder_is_not() {
    let left = |by_folder, after: Option<&str>| LeftOut {
        node: "p5-004".into(),
        why: "7 GPUs of 8".into(),
        by_folder,
        after: after.map(str::to_owned),
    };
    let all = found(&[green(1).leaving_out(left(false, None))]);
    assert_eq!(all.len(), 1);
    assert_eq!(
        (all[0].codes.clone(), all[0].culprit.as_slice()),
        (["HRN-NODE-UNFIT"].into(), [0].as_slice())
    );
    assert_eq!(found(&[green(1).leaving_out(left(true, None))]), []);
    // Who was quarantined is named by the run itself.
    assert_eq!(found(&[green(1).leaving_out(left(false, Some("nics")))]), []);
}

#[test]
fn the_report_of_a_run_counts_how_often_its_culprit_was_named_lately() {
    let unclear =
        green(2).naming(vec![Culprit::Suspects { nodes: vec!["p5-001".into()], evidence: "slow".into() }]);
    let (_folder, past) = past(&[red(1), unclear, green(3)]);
    let report = |node: &str, part: &str| before(&past, false, "default", &[culprit(node, part)]);
    let lines = report("p5-001", NIC);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines.iter().any(|line| line.contains(NIC) && line.contains("named in 1 of the last 3")),
        "{lines:?}"
    );
    assert!(lines.iter().any(|line| line.contains(" node: suspected in 1 of the last 3")), "{lines:?}");
    assert!(lines.iter().any(|line| line.ends_with("last 2026-11-21 03:01:00 UTC")), "{lines:?}");
    // Another part of the node has only the node's own record, another node and another inventory none.
    assert_eq!(report("p5-001", "gpu0").len(), 1);
    assert_eq!(report("p5-001", "node").len(), 2);
    assert_eq!(report("p5-002", NIC).len(), 0);
    assert_eq!(before(&past, true, "default", &[culprit("p5-001", NIC)]).len(), 0);
    assert_eq!(before(&past, false, "other", &[culprit("p5-001", NIC)]).len(), 0);
    let suspected = [Culprit::Suspects { nodes: vec!["p5-001".into()], evidence: "hang".into() }];
    assert_eq!(before(&past, false, "default", &suspected).len(), 2);
    assert_eq!(before(&past, false, "default", &[Culprit::Fleet { evidence: "low".into() }]).len(), 0);
}

#[test]
fn only_the_last_five_runs_with_the_node_count_as_lately() {
    let made: Vec<Made> = [red(1)].into_iter().chain((2..8).map(green)).collect();
    let (_folder, past) = past(&made);
    assert_eq!(suspects(&past)[0].lately(5), (5, 0));
    assert_eq!(suspects(&past)[0].lately(7), (7, 1));
    assert_eq!(before(&past, false, "default", &[culprit("p5-001", NIC)]).len(), 0);
}

#[test]
fn several_suspects_are_cleared_by_the_case_that_named_them_alone() {
    let nodes = vec!["p5-001".to_owned()];
    let unclear = green(1).naming(vec![Culprit::Suspects { nodes, evidence: "hang".into() }]);
    let mut other_case = green(2);
    other_case.plan.cases[0].name = "all-reduce".into();
    other_case.case.case = "all-reduce".into();
    assert!(found(&[unclear.clone(), other_case])[0].cleared.is_empty());
    assert_eq!(found(&[unclear, green(2)])[0].cleared, [1]);
}
