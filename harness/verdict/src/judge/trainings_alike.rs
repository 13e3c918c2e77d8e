//! Trainings that are out of bounds although no rank keeps the others waiting: their numbers name no node.

use base::nodeset;
use metric::Role;
use model::artefact::{Culprit, JobOutcome};
use recipes::catalogue::Catalogue;
use std::collections::BTreeSet;

/// A line for each case of such trainings, by the first of its jobs of which nothing names a node: software is the
/// likelier cause.
pub(super) fn unnamed(
    alike: &[(&str, &JobOutcome)],
    explained: &BTreeSet<&str>,
    culprits: &[Culprit],
) -> Vec<Culprit> {
    let named: BTreeSet<&str> =
        culprits.iter().flat_map(Culprit::nodes).chain(explained.iter().copied()).collect();
    let is_named = |outcome: &JobOutcome| outcome.nodes.iter().any(|node| named.contains(node.as_str()));
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut lines = Vec::new();
    for (metric, outcome) in alike {
        let case = outcome.case.as_str();
        if is_named(outcome) || !seen.insert(case) {
            continue;
        }
        let worst = outcome.worst.get(*metric).map_or("out of bounds", String::as_str);
        let evidence = format!(
            "no rank of `{case}` keeps the others waiting: {metric} {worst}; look at its NCCL settings and its software: \
             `harness compare RUN`, `harness diagnose latest`; a slow NIC or link makes no rank late: `harness isolate \
             --suite SUITE --nodes {}`, with a suite of nccl-tests",
            nodeset::fold(&outcome.nodes)
        );
        lines.push(Culprit::Fleet { evidence });
    }
    lines
}

/// Whether this job compared its ranks with each other, none was late, and no share of communication failed. What another
/// job found, at another time and of another program, does not clear its nodes: one slow node may be behind it, as behind a
/// slow collective. Nor does it where communication is slow, which makes all ranks wait alike.
pub(super) fn none_is_late(outcome: &JobOutcome, catalogue: &Catalogue) -> bool {
    let has_role =
        |metric: &str, role: Role| catalogue.metric(metric).is_some_and(|(_, metric)| metric.is(role));
    let failed = |role: Role| {
        outcome.judged.iter().filter(move |(metric, _)| has_role(metric, role)).map(|(_, failed)| *failed)
    };
    let mut are_late = failed(Role::ComparesRanks).peekable();
    are_late.peek().is_some()
        && are_late.all(|is_late| !is_late)
        && failed(Role::ShowsCommunication).all(|is_slow| !is_slow)
}

/// Whether it is a number of a training as a whole.
pub(super) fn is_of_training(catalogue: &Catalogue, metric: &str) -> bool {
    catalogue.metric(metric).is_some_and(|(_, metric)| metric.is(Role::OfTraining))
}

#[cfg(test)]
mod tests {
    use super::super::culprit::{culprits_of_run, merge};
    use super::*;
    use model::artefact::WorkKind;
    use std::collections::BTreeMap;

    fn judged(nodes: &[&str], metric: &str, failed: bool) -> JobOutcome {
        JobOutcome {
            case: "c".into(),
            kind: WorkKind::Command,
            job: nodes.join("+"),
            nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
            bad: None,
            judged: BTreeMap::from([(metric.to_owned(), failed)]),
            worst: Default::default(),
        }
    }

    fn lines(outcomes: &[JobOutcome]) -> Vec<String> {
        let culprits = merge(Vec::new(), culprits_of_run(outcomes, &[], &Catalogue::built_in()));
        let head = |culprit: &Culprit| culprit.to_string().split(':').next().unwrap_or_default().to_owned();
        culprits.iter().map(head).collect()
    }

    #[test]
    fn a_slow_training_in_which_no_rank_is_late_suspects_no_node() {
        let with = |nodes: &[&str], slow: bool, late: Option<bool>| {
            let mut outcome = judged(nodes, "train.step_time", slow);
            outcome.judged.extend(late.map(|late| ("straggler.late_share".to_owned(), late)));
            outcome
        };
        let alike = |nodes: &[&str]| with(nodes, true, Some(false));
        for jobs in [
            vec![alike(&["n1", "n2"])],
            vec![alike(&["n1"])],
            vec![alike(&["n1", "n2"]), alike(&["n3", "n4"])],
        ] {
            assert_eq!(lines(&jobs), ["no culprit"], "{jobs:?}");
        }
        // One slow node may be behind it where it did not compare its ranks itself: the other job may have run while the
        // node was well.
        let other =
            |nodes: &[&str]| JobOutcome { case: "d".into(), ..judged(nodes, "straggler.late_share", false) };
        let alone = || with(&["n1", "n2"], true, None);
        for jobs in [
            vec![alone()],
            vec![alone(), other(&["n1", "n3"])],
            vec![alone(), other(&["n1", "n2"])],
            vec![alone(), other(&["n1", "n2", "n3"])],
        ] {
            assert_eq!(lines(&jobs), ["suspects n1 n2"], "{jobs:?}");
        }
        // A slow NIC or link makes all ranks wait alike.
        for share in ["gpu.exposed_comm_share", "rank.exposed_comm_share", "kernel.class_share"] {
            let with_share = |failed: bool| {
                let mut outcome = alike(&["n1", "n2"]);
                outcome.judged.insert(share.to_owned(), failed);
                lines(&[outcome])
            };
            assert_eq!(with_share(true), ["suspects n1 n2"], "{share}");
            assert_eq!(with_share(false), ["no culprit"], "{share}");
        }
        let mut several = alike(&["n1", "n2"]);
        several.judged.insert("train.mfu".into(), true);
        several.worst.insert("train.mfu".into(), "21.0 %, limit 30.0 % (job j, 2 nodes)".into());
        let [Culprit::Fleet { evidence }] = &culprits_of_run(&[several], &[], &Catalogue::built_in())[..]
        else {
            panic!("one line for each case");
        };
        let start = "no rank of `c` keeps the others waiting: train.mfu 21.0 %, limit 30.0 % (job j, 2 nodes); look at";
        assert!(evidence.starts_with(start), "{evidence}");
        let next = "`harness isolate --suite SUITE --nodes n[1-2]`, with a suite of nccl-tests";
        assert!(evidence.ends_with(next) && !evidence.contains("data loader"), "{evidence}");
        // What one of its nodes is blamed for explains it.
        let named = [Culprit::Culprit {
            node: "n2".into(),
            part: "gpu3".into(),
            evidence: "late".into(),
            code: None,
        }];
        assert_eq!(culprits_of_run(&[alike(&["n1", "n2"])], &named, &Catalogue::built_in()), []);
        // It does not explain a job on other nodes.
        let both = [alike(&["n1", "n2"]), alike(&["n3", "n4"])];
        let [Culprit::Fleet { evidence }] = &culprits_of_run(&both, &named, &Catalogue::built_in())[..]
        else {
            panic!("a line for the job that nothing explains");
        };
        assert!(evidence.contains("--nodes n[3-4]`"), "{evidence}");
        // Trainings of the case that did well separate its nodes.
        let good = |nodes: &[&str]| with(nodes, false, Some(false));
        assert_eq!(lines(&[alike(&["n1", "n2"]), good(&["n3", "n4"])]), ["suspects n1 n2"]);
        assert_eq!(lines(&[alike(&["n1"]), good(&["n2"]), good(&["n3"])]), ["culprit n1 node"]);
        // An isolation finds which node makes a collective slow.
        assert_eq!(lines(&[judged(&["n1", "n2"], "nccl.busbw", true)]), ["suspects n1 n2"]);
    }
}
