//! Numbers of stored rounds, and the answers that they are: what is absent is never a value.

use super::round::{CaseRows, Probes, Tried, answers};
use super::trial::{Aim, Found, Shape, Trial};
use config::inventory::{Instances, Inventory};
use config::suite::{Case, Evidence, Suite, Workload};
use metric::op::Op;
use metric::unit::{Better, Unit};
use metric::{Dim, Dims, Metric, Metrics};
use model::artefact::{CaseJobs, Ended, Format, JobRecord};
use recipes::catalogue::Catalogue;
use std::collections::BTreeMap;

const NICS: [&str; 3] = ["a", "b", "c"];

fn row(name: &str, job: &str, value: f64, more: &[(Dim, &str)]) -> Metric {
    let mut dims = Dims::new().with(Dim::Case, "case").with(Dim::Job, job);
    for (dim, word) in more {
        match word.parse::<u64>() {
            Ok(number) if dim.is_number() => dims.set(*dim, number),
            _ => dims.set(*dim, *word),
        }
    }
    Metric { name: name.into(), dims, value, unit: Unit::GigabytesPerSecond, better: Better::Higher }
}

/// The result of a trial of that shape with these rows, its jobs having ended so.
fn found(shape: Shape, jobs: &[&str], rows: Vec<Metric>, end: Ended) -> Found {
    let record = |name: &&str| JobRecord {
        name: (*name).to_owned(),
        handle: None,
        submitted: None,
        started: None,
        ended: None,
        seconds: Some(10.0),
        end: end.clone(),
        blamed: None,
        findings: Vec::new(),
    };
    let stored = CaseRows {
        metrics: Metrics::from_rows(rows),
        jobs: CaseJobs { format: Format, skipped: None, jobs: jobs.iter().map(record).collect() },
    };
    let tried = Tried {
        trial: Trial { aim: Aim::Node(0), shape, nodes: vec![0, 1] },
        case: "case".to_owned(),
        jobs: jobs.iter().map(|job| (*job).to_owned()).collect(),
    };
    let nics = NICS.map(str::to_owned);
    let stored = BTreeMap::from([("case".to_owned(), stored)]);
    answers(&[tried], 2, &nics, &stored).remove(0).found
}

const PAIR: Shape = Shape::Together { nodes: 2, across: false };
const WELL: Ended = Ended::Exited { code: 0 };

#[test]
fn the_bandwidth_out_of_place_of_its_own_job_is_the_value_of_a_run() {
    let out = |job, value| row("nccl.busbw", job, value, &[(Dim::Place, "out")]);
    let inside = row("nccl.busbw", "run-001", 300.0, &[(Dim::Place, "in")]);
    let rows = vec![out("run-001", 400.0), inside, out("run-002", 200.0)];
    assert_eq!(found(PAIR, &["run-001"], rows, WELL), Found::Values(vec![Some(400.0)]));
}

#[test]
fn a_run_without_a_number_broke_where_its_workload_did_and_is_unknown_otherwise() {
    let of = |end| found(PAIR, &["run-001"], Vec::new(), end);
    assert_eq!(of(Ended::TimeLimit { limit_s: 9 }), Found::Broke);
    assert_eq!(of(Ended::Exited { code: 3 }), Found::Broke);
    assert_eq!(of(Ended::NodeFail), Found::Broke);
    assert_eq!(of(Ended::Preempted), Found::Unknown);
    assert_eq!(of(Ended::QueueStuck { reason: "x".into() }), Found::Unknown);
    assert_eq!(of(WELL), Found::Unknown);
}

#[test]
fn wrong_results_count_as_broken_and_on_one_gpu_as_that_ones() {
    let wrong = row("nccl.wrong", "run-001", 7.0, &[(Dim::Place, "out")]);
    let busbw = row("nccl.busbw", "run-001", 400.0, &[(Dim::Place, "out")]);
    assert_eq!(found(PAIR, &["run-001"], vec![wrong, busbw], WELL), Found::Broke);
    let gpu = |name, gpu, value| row(name, "run-001", value, &[(Dim::Gpu, gpu), (Dim::Place, "out")]);
    let rows = vec![
        gpu("nccl.algbw", "0", 1300.0),
        gpu("nccl.algbw", "1", 1290.0),
        gpu("nccl.wrong", "0", 0.0),
        gpu("nccl.wrong", "1", 4.0),
    ];
    let Found::Values(values) = found(Shape::Gpus, &["run-001"], rows, WELL) else { panic!("values") };
    assert_eq!(values[0], Some(1300.0));
    assert!(values[1].is_some_and(|value| value < 1e-3), "{values:?}");
}

#[test]
fn a_gpu_without_a_number_has_no_value() {
    let rows = vec![row("nccl.algbw", "run-001", 1300.0, &[(Dim::Gpu, "1"), (Dim::Place, "out")])];
    let found = found(Shape::Gpus, &["run-001"], rows, WELL);
    assert_eq!(found, Found::Values(vec![None, Some(1300.0)]));
}

#[test]
fn a_nic_is_as_fast_as_its_slower_direction_and_failed_where_only_its_peers_moved() {
    let flow = |job, nic, direction, value| {
        row("flow.rate", job, value, &[(Dim::Nic, nic), (Dim::Direction, direction)])
    };
    let jobs = ["x-to-y", "y-to-x"];
    let mut rows = Vec::new();
    for (nic, forth, back) in [("a", 12.0, 11.9), ("b", 12.1, 5.0)] {
        for direction in ["tx", "rx"] {
            rows.push(flow(jobs[0], nic, direction, forth));
            rows.push(flow(jobs[1], nic, direction, back));
        }
    }
    let Found::Values(values) = found(Shape::Nics, &jobs, rows.clone(), WELL) else { panic!("values") };
    assert_eq!(values[..2], [Some(11.9), Some(5.0)]);
    assert!(values[2].is_some_and(|value| value < 1e-3), "{values:?}");
    // One direction alone is no evidence on a NIC, and if most have no value, none is blamed.
    rows.retain(|row| row.dims.word(Dim::Job) == Some(jobs[0]));
    assert_eq!(found(Shape::Nics, &jobs, rows, WELL), Found::Unknown);
}

/// The cases by which parts of nodes are tried after a suite: on sets of nodes, on each GPU, on each NIC.
fn cases(text: &str) -> (String, Vec<Case>) {
    let suite = Suite::read(text, "suites/x.toml", &Catalogue::built_in()).expect("a suite");
    let home = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a root");
    let instances = Instances::load(home).expect("sound instances");
    let text = "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"p5-[001-004]\"\nreach = { via = \"slurm\" }\n";
    let inventory = Inventory::read(text, "inventory/x.toml", &instances).expect("good");
    let probes = Probes::choose(&suite, &inventory, None).expect("a case over several nodes");
    let nodes = ["p5-001", "p5-002"].map(str::to_owned);
    let trials = [(Aim::Node(0), PAIR), (Aim::Gpus(0), Shape::Gpus), (Aim::Nics(0), Shape::Nics)]
        .map(|(aim, shape)| Trial { aim, shape, nodes: vec![0, 1] });
    let (suite, _, _) = probes.round(&nodes, &trials);
    (probes.case, suite.cases)
}

#[test]
fn the_case_that_loads_every_nic_and_the_suites_own_on_single_gpus_are_run_on_sets_of_nodes() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../suites/acceptance-p5.toml");
    let (case, cases) = cases(&std::fs::read_to_string(file).expect("read"));
    assert_eq!(case, "pair-all_gather");
    let of = |case: &Case| match &case.workload {
        Workload::NcclTests(tests) => (tests.op, tests.max_bytes),
        other => panic!("{other:?}"),
    };
    assert_eq!(of(&cases[0]).0, Op::AllGather);
    assert_eq!(of(&cases[1]), (Op::AllReduce, 4 << 30));
}

#[test]
fn small_runs_are_without_a_profiler_and_nics_are_judged_by_their_rate() {
    let (_, cases) = cases(
        r#"
        instance = "p5"
        about = "who comes last"
        [[case]]
        name = "arrivals"
        about = "every rank under nsys"
        placement = "all"
        workload = { kind = "nccl-tests", op = "all_reduce", from = "1MiB", to = "64MiB", factor = 4, iterations = 20 }
        recipes = ["nccl_tests", "nccl_profile", "stragglers"]
        limit_s = 600
        profile = { ranks = "all" }
        evidence = ["nsys", "inspector", "log"]
        [[case.assert]]
        metric = "straggler.late"
        per = "node"
        at_most = "500 us"
        "#,
    );
    let is_bare = |case: &Case| case.profile.is_none() && case.evidence == Evidence::default();
    assert!(cases.iter().all(is_bare), "{cases:?}");
    let metrics = cases.iter().map(|case| case.assertions[0].metric.as_str());
    assert_eq!(metrics.collect::<Vec<_>>(), ["nccl.wrong", "nccl.wrong", "nic.rate"]);
}
