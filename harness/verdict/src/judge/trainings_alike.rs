//! Trainings that are out of bounds on all nodes of their case alike: their numbers name none of these.

use metric::Role;
use model::artefact::{Culprit, JobOutcome};
use recipes::catalogue::Catalogue;
use std::collections::BTreeSet;

/// A line for each case whose trainings are all out of bounds, on all of their nodes alike, where nothing names one of
/// these: each rank waits for the others, so that their numbers separate no node, and software is the likelier cause.
pub(super) fn unnamed(
    alike: &[(&str, &JobOutcome)],
    explained: &BTreeSet<&str>,
    culprits: &[Culprit],
) -> Vec<Culprit> {
    let named: BTreeSet<&str> =
        culprits.iter().flat_map(Culprit::nodes).chain(explained.iter().copied()).collect();
    let is_named = |outcome: &JobOutcome| outcome.nodes.iter().any(|node| named.contains(node.as_str()));
    let has_named = |case: &str| alike.iter().any(|(_, outcome)| outcome.case == case && is_named(outcome));
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut lines = Vec::new();
    for (metric, outcome) in alike {
        let case = outcome.case.as_str();
        if has_named(case) || !seen.insert(case) {
            continue;
        }
        let worst = outcome.worst.get(*metric).map_or("out of bounds", String::as_str);
        let evidence = format!(
            "no node of `{case}` stands out: {metric} {worst}; look at its data loader, its NCCL settings and its \
             software: `harness compare RUN`, `harness diagnose latest`"
        );
        lines.push(Culprit::Fleet { evidence });
    }
    lines
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
    fn a_training_that_is_slow_on_all_of_its_nodes_suspects_none_of_them() {
        let slow = |nodes: &[&str]| judged(nodes, "train.step_time", true);
        let good = |nodes: &[&str]| judged(nodes, "train.step_time", false);
        for jobs in [
            vec![slow(&["n1", "n2"])],
            vec![slow(&["n1"])],
            vec![slow(&["n1", "n2"]), slow(&["n3", "n4"])],
            vec![slow(&["n1"]), slow(&["n2"])],
        ] {
            assert_eq!(lines(&jobs), ["no culprit"], "{jobs:?}");
        }
        let mut several = slow(&["n1", "n2"]);
        several.judged.insert("train.mfu".into(), true);
        several.worst.insert("train.mfu".into(), "21.0 %, limit 30.0 % (job j, 2 nodes)".into());
        let [Culprit::Fleet { evidence }] = &culprits_of_run(&[several], &[], &Catalogue::built_in())[..]
        else {
            panic!("one line for each case");
        };
        let start = "no node of `c` stands out: train.mfu 21.0 %, limit 30.0 % (job j, 2 nodes); look at";
        assert!(evidence.starts_with(start), "{evidence}");
        // What one of its nodes is blamed for explains it.
        let named = [Culprit::Culprit {
            node: "n2".into(),
            part: "gpu3".into(),
            evidence: "late".into(),
            code: None,
        }];
        assert_eq!(culprits_of_run(&[slow(&["n1", "n2"])], &named, &Catalogue::built_in()), []);
        // Trainings of the case that did well separate its nodes.
        assert_eq!(lines(&[slow(&["n1", "n2"]), good(&["n3", "n4"])]), ["suspects n1 n2"]);
        assert_eq!(lines(&[slow(&["n1"]), good(&["n2"]), good(&["n3"])]), ["culprit n1 node"]);
        // An isolation finds which node makes a collective slow.
        assert_eq!(lines(&[judged(&["n1", "n2"], "nccl.busbw", true)]), ["suspects n1 n2"]);
    }
}
