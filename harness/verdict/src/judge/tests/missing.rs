//! Which files feed which metric, whose file is a reason and whose is not, and how the gates of several jobs add up.

use super::*;
use crate::judge::gate::{self, Gate};
use recipes::catalogue::Catalogue;
use std::collections::BTreeMap;

#[test]
fn each_metric_is_read_from_files_of_its_own_kind() {
    use FileKind::{
        Counters, Flow, GpuNcclTests, Log, NcclTests, ProfileAccount, ProfileReport, ProfileTable, Stderr,
    };
    for (metric, feeding) in [
        ("nccl.busbw", &[NcclTests, GpuNcclTests, FileKind::Stdout][..]),
        ("command.exit_code", &[NcclTests, GpuNcclTests, FileKind::Stdout]),
        ("nic.rate", &[Flow]),
        ("flow.rate", &[Flow]),
        ("nic.share", &[Counters]),
        ("node.efa_tx", &[Counters]),
        ("job.conservation_residual", &[Counters]),
        ("kernel.share", &[ProfileAccount, ProfileTable]),
        ("rank.kernel_class_share", &[ProfileAccount, ProfileTable]),
    ] {
        let all = [
            NcclTests,
            GpuNcclTests,
            FileKind::Stdout,
            Flow,
            Counters,
            ProfileAccount,
            ProfileTable,
            ProfileReport,
            Stderr,
            Log,
        ];
        for kind in all {
            assert_eq!(
                gate::feeds(&Catalogue::built_in(), kind, metric),
                feeding.contains(&kind),
                "{metric} from {kind:?}"
            );
        }
    }
}

fn missing(job: &str, node: Option<&str>) -> MissingFile {
    MissingFile {
        job: job.into(),
        name: "stdout".into(),
        kind: FileKind::NcclTests,
        node: node.map(str::to_owned),
        part: None,
        rank: None,
        why: "not there".into(),
        refused: false,
    }
}

#[test]
fn a_file_of_another_job_or_node_is_no_reason() {
    for (job, file_node, node, cause) in [
        ("j", None, None, "output-missing"),
        ("j", Some("n1"), None, "output-missing"),
        ("j", Some("n1"), Some("n1"), "output-missing"),
        ("j", None, Some("n1"), "output-missing"),
        ("j", Some("n2"), Some("n1"), "not-measured"),
        ("k", None, None, "not-measured"),
    ] {
        let mut world = World::new(at_least(1.0));
        world.case.assertions[0].node = node.map(str::to_owned);
        world.collected.missing.push(missing(job, file_node));
        assert_eq!(world.one().cause.as_deref(), Some(cause), "{job} {file_node:?} {node:?}");
    }
}

#[test]
fn every_kind_of_broken_output_is_a_reason_and_other_findings_are_none() {
    for (code, cause) in [
        ("not-understood", "garbled"),
        ("row-cut", "garbled"),
        ("row-of-no-reader", "not-measured"),
        ("folder-unreadable", "garbled"),
        ("capture-cut", "capture-cut"),
        ("counter-reset", "counter-reset"),
        ("clock-jump", "not-measured"),
    ] {
        let mut world = World::new(at_least(1.0));
        world.analysis().findings.push(metric::finding::Finding::new(code, "seen"));
        assert_eq!(world.one().cause.as_deref(), Some(cause), "{code}");
    }
}

fn error(cause: &str) -> Gate {
    Gate::Error { cause: cause.into(), message: "m".into(), next: "n".into() }
}

fn inconclusive(cause: &str) -> Gate {
    Gate::Inconclusive { cause: cause.into(), message: "m".into(), next: "n".into() }
}

#[test]
fn an_error_of_one_job_outweighs_an_inconclusive_other() {
    let mut about = assertion("nic.rate", at_least(1.0));
    about.jobs = vec!["a".into(), "b".into(), "c".into()];
    let shut = |gates: [Gate; 3], any: bool| {
        let [a, b, c] = gates;
        let gates = BTreeMap::from([("a", a), ("b", b), ("c", c)]);
        gate::shut(&gates, &about, any).map(|(status, cause, ..)| (status, cause))
    };
    let expected = |status, cause: &str| Some((status, cause.to_owned()));
    assert_eq!(shut([inconclusive("x"), error("y"), error("z")], false), expected(Status::Error, "y"));
    assert_eq!(shut([error("y"), inconclusive("x"), inconclusive("w")], false), expected(Status::Error, "y"));
    assert_eq!(
        shut([inconclusive("x"), inconclusive("w"), Gate::Open], false),
        expected(Status::Inconclusive, "x")
    );
    assert_eq!(shut([inconclusive("x"), error("y"), Gate::Open], true), None, "one good flow is enough");
    assert_eq!(shut([inconclusive("x"), error("y"), error("z")], true), expected(Status::Error, "y"));
    assert_eq!(shut([Gate::Open, Gate::Open, Gate::Open], false), None);
    about.jobs = Vec::new();
    assert_eq!(gate::shut(&BTreeMap::new(), &about, false).map(|(status, ..)| status), Some(Status::Error));
}

#[test]
fn ranks_that_are_wrong_have_their_own_advice() {
    let mut world = World::new(at_least(1.0)).saw(2.0);
    for (cause, advice) in [("wrong-ranks", "srun --mpi=list"), ("cut", "free space of the shared folder")] {
        world.analysis().not_comparable =
            Some(metric::lacks::NotComparable { cause: cause.into(), why: "seen".into() });
        let next = world.one().next.unwrap_or_default();
        assert!(next.contains(advice), "{cause}: {next}");
    }
}

#[test]
fn an_outcome_has_its_kind_its_cause_and_what_failed() {
    let mut world = World::new(at_least(10.0)).saw(5.0);
    world
        .case
        .assertions
        .push(PlannedAssertion { name: "other".into(), ..assertion("nccl.busbw", at_least(1.0)) });
    let outcome = world.judged().outcomes.jobs.remove(0);
    assert_eq!((outcome.kind, outcome.bad), (model::artefact::WorkKind::Collective, None));
    assert_eq!(
        outcome.judged,
        BTreeMap::from([("nccl.busbw".to_owned(), true)]),
        "one that failed is enough"
    );
    world.case.assertions.reverse();
    let outcome = world.judged().outcomes.jobs.remove(0);
    assert_eq!(outcome.judged, BTreeMap::from([("nccl.busbw".to_owned(), true)]));
    world.jobs.jobs[0].end = Ended::TimeLimit { limit_s: 60 };
    let bad = world.judged().outcomes.jobs.remove(0).bad.expect("it hung");
    assert_eq!((bad.cause.as_str(), bad.node), ("hang", None));
    world.jobs.jobs[0].end = Ended::Exited { code: 0 };
    world.analysis().not_comparable =
        Some(metric::lacks::NotComparable { cause: "wrong-ranks".into(), why: "seen".into() });
    let bad = world.judged().outcomes.jobs.remove(0).bad.expect("not comparable");
    assert_eq!(bad.cause, "wrong-ranks");
}

/// Slurm refuses the sampler's step on all nodes alike, or a node ends it.
#[test]
fn samplers_that_end_on_all_nodes_of_a_job_make_no_node_suspect() {
    let ended = |nodes: &[&str]| {
        let mut world = World::new(at_least(1.0));
        world.case.assertions[0].metric = "node.efa_tx".into();
        let findings =
            nodes.iter().map(|node| Finding::new("sampler-ended", "the step was refused").node(*node));
        world.analysis().findings = findings.collect();
        let judged = world.judged();
        assert_eq!(judged.verdict.verdicts[0].status, Status::Inconclusive, "{nodes:?}");
        let bad = judged.outcomes.jobs.into_iter().filter_map(|outcome| outcome.bad);
        bad.map(|bad| bad.node).collect::<Vec<_>>()
    };
    assert_eq!(ended(&["n1", "n2"]), []);
    assert_eq!(ended(&["n2"]), [Some("n2".to_owned())]);
}

#[test]
fn a_number_that_the_evidence_of_a_job_cannot_give_is_inconclusive_with_the_choice_as_reason() {
    let mut world = World::new(at_least(1.0));
    world.case.assertions[0].metric = "kernel.share".into();
    let why = "no nsys on n2: no such program: nsys".to_owned();
    let without = vec!["cuda_gpu_kern_sum".to_owned()];
    let source = Some(model::artefact::EvidenceSource::Inspector);
    world.case.jobs[0].evidence = Some(model::artefact::PlannedEvidence { source, why, without });
    let verdict = world.one();
    assert_eq!((verdict.status, verdict.cause.as_deref()), (Status::Inconclusive, Some("other-evidence")));
    let expected =
        "recipe `cuda_gpu_kern_sum` does not read `inspector`, the evidence of job j: no nsys on n2";
    assert!(verdict.message.contains(expected), "{}", verdict.message);
    let outcomes = world.judged().outcomes.jobs;
    assert!(outcomes.iter().all(|outcome| outcome.bad.is_none()), "{outcomes:?}");
}
