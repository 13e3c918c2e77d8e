//! Culprits named by the profiler reports of a job.

use super::*;
use metric::finding::Finding;
use model::artefact::Culprit;
use recipes::catalogue::Catalogue;

/// A rank of one of two nodes is late.
fn late(metric: &str) -> World {
    let mut world = World::new(PlannedBound { at_most: Some(500.0), ..PlannedBound::default() });
    let asked = &mut world.case.assertions[0];
    asked.metric = metric.into();
    asked.better = Better::Lower;
    asked.node = Some("n2".into());
    asked.dims.set(Dim::Node, "n2");
    world.rows.push(row(metric, 5000.0, &[(Dim::Node, "n2"), (Dim::Rank, "11")]));
    world
}

fn culprits(world: &World) -> Vec<Culprit> {
    let judged = world.judged();
    let of_run = culprits_of_run(&judged.outcomes.jobs, &judged.verdict.culprits, &Catalogue::built_in());
    merge_culprits(judged.verdict.culprits, of_run)
}

#[test]
fn a_straggler_is_named_where_its_recipe_is_sure_of_it_and_no_other_node_is_suspected() {
    for metric in ["straggler.late", "straggler.late_share"] {
        named_by(late(metric));
    }
}

fn named_by(mut world: World) {
    assert_eq!(world.status(), Status::Fail);
    assert_eq!(culprits(&world), [], "a number out of bounds alone names no culprit");
    let finding = Finding::new("straggler", "rank 11 keeps the others waiting".to_owned());
    world.analysis().findings.push(finding.clone().node("n1"));
    assert_eq!(culprits(&world), [], "another node's");
    let mut of_gpu = finding.node("n2");
    of_gpu.part = Some("gpu3".into());
    world.analysis().findings.push(of_gpu);
    assert_eq!(
        culprits(&world),
        [Culprit::Culprit {
            node: "n2".into(),
            part: "gpu3".into(),
            evidence: "rank 11 keeps the others waiting".into(),
            code: Some("HRN-RANK-LATE".into()),
        }]
    );
}

#[test]
fn how_a_program_uses_its_gpus_speaks_against_no_node() {
    for metric in ["gpu.exposed_comm_share", "step.time_cv", "window.step_time"] {
        let mut world = World::new(PlannedBound { at_most: Some(0.3), ..PlannedBound::default() });
        world.case.assertions[0].metric = metric.into();
        world.rows.push(row(metric, 0.5, &[]));
        assert_eq!((world.status(), culprits(&world)), (Status::Fail, Vec::new()), "{metric}");
    }
}

#[test]
fn too_few_steps_or_ranks_in_the_reports_suspect_no_node() {
    for (cause, node) in
        [("stragglers-untold", None), ("stragglers-untold", Some("n2")), ("ranks-not-recorded", None)]
    {
        let mut world = late("straggler.late");
        world.rows.clear();
        let finding = Finding::new(cause, "of too few ranks");
        let finding = match node {
            Some(node) => finding.node(node),
            None => finding,
        };
        world.analysis().findings.push(finding);
        let verdict = world.one();
        assert_eq!((verdict.status, verdict.cause.as_deref()), (Status::Inconclusive, Some(cause)));
        assert!(
            verdict.next.as_deref().is_some_and(|next| next.contains("`ranks = \"all\"`")),
            "{verdict:?}"
        );
        assert_eq!(world.judged().outcomes.jobs, [], "{cause} {node:?}");
        assert_eq!(culprits(&world), [], "{cause} {node:?}");
    }
}
