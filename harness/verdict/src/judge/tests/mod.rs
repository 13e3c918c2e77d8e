//! Tables of cases and what must come of them: one row for each way to go red, and for what must stay green.

mod baselines;
mod contradictions;
mod control_runs;
mod day_one;
mod declared;
mod evidence;
mod flow_paths;
mod flows;
mod gathered;
mod innocent;
mod margins;
mod messages;
mod missing;
mod named;
mod not_installed;
mod predictions;
mod repeats;
mod reported;
mod reports;
mod shape;
mod stragglers;
mod tools;
mod wording;

use super::*;
use metric::lacks::NotComparable;
use metric::op::Op;
use metric::unit::{Better, Unit};
use metric::{Dims, Metric};
use model::artefact::{
    BaselineNumbers, CollectedFile, FileKind, JobAnalysis, JobProperties, JobRecord, MissingFile,
    PlannedBaseline, PlannedBound, PlannedJob, WorkloadFacts, WorkloadFailure,
};
use recipes::catalogue::Catalogue;
use std::sync::Arc;

/// A case of two nodes and one job, whose parts a test changes as it needs.
struct World {
    case: PlannedCase,
    launcher: Launcher,
    cluster: Option<RunCluster>,
    instance: InstanceFacts,
    jobs: CaseJobs,
    collected: Collected,
    analysis: Analysis,
    rows: Vec<Metric>,
}

fn numbers(lower: Option<f64>, upper: Option<f64>) -> BaselineNumbers {
    BaselineNumbers {
        key: "k".into(),
        n: 5,
        median: 100.0,
        lower,
        upper,
        source: "s".into(),
        ..BaselineNumbers::default()
    }
}

fn at_least(value: f64) -> PlannedBound {
    PlannedBound { at_least: Some(value), ..PlannedBound::default() }
}

fn assertion(metric: &str, bound: PlannedBound) -> PlannedAssertion {
    PlannedAssertion {
        name: format!("s::c::{metric}@n[1-2]"),
        metric: metric.into(),
        unit: Unit::GigabytesPerSecond,
        better: Better::Higher,
        dims: Dims::new(),
        parts: Arc::from([]),
        jobs: vec!["j".into()],
        nodes: "n[1-2]".into(),
        node: None,
        part: None,
        bound,
    }
}

fn row(metric: &str, value: f64, dims: &[(Dim, &str)]) -> Metric {
    let mut all = Dims::new().with(Dim::Case, "c").with(Dim::Job, "j");
    for (dim, value) in dims {
        match value.parse::<u64>() {
            Ok(number) if dim.is_number() => all.set(*dim, number),
            _ => all.set(*dim, *value),
        }
    }
    Metric {
        name: Arc::from(metric),
        dims: all,
        value,
        unit: Unit::GigabytesPerSecond,
        better: Better::Higher,
    }
}

impl World {
    fn new(bound: PlannedBound) -> World {
        let job = PlannedJob {
            name: "j".into(),
            nodes: vec!["n1".into(), "n2".into()],
            round: 1,
            ranks: 16,
            folder: "/f".into(),
            files: Vec::new(),
            launch: Vec::new(),
            expected: Vec::new(),
            estimate_s: 1,
            limit_s: 60,
            secrets: Vec::new(),
            profile: None,
            control_run: None,
            again_of: None,
            evidence: None,
        };
        World {
            case: PlannedCase {
                suite: "s".into(),
                name: "c".into(),
                about: String::new(),
                tags: Vec::new(),
                workload: WorkloadFacts::NcclTests {
                    op: Op::AllReduce,
                    sizes: vec![1 << 30],
                    ranks_per_communicator: Some(16),
                    checked: true,
                    by_torch: false,
                    through_nics: false,
                    sweep: None,
                    each_gpu: false,
                },
                recipes: vec!["nccl_tests".into(), "efa_traffic".into()],
                after: Vec::new(),
                skip: None,
                not_installed: None,
                expected_failure: None,
                must_end: None,
                sim_faults: Vec::new(),
                properties: JobProperties { limit_s: 60, stall_s: None, queue_limit_s: 60 },
                jobs: vec![job],
                assertions: vec![assertion("nccl.busbw", bound)],
            },
            launcher: Launcher::Slurm,
            cluster: None,
            instance: InstanceFacts {
                name: "i".into(),
                gpus: 8,
                nics: vec!["a".into(), "b".into()],
                nic_line_rate_gb_s: 12.5,
                tx_counters: Vec::new(),
                rx_counters: Vec::new(),
                conservation_shown: false,
            },
            jobs: CaseJobs {
                format: Format,
                skipped: None,
                jobs: vec![JobRecord {
                    name: "j".into(),
                    handle: Some("1".into()),
                    submitted: None,
                    started: None,
                    ended: None,
                    seconds: Some(5.0),
                    end: Ended::Exited { code: 0 },
                    blamed: None,
                    findings: Vec::new(),
                }],
            },
            collected: Collected {
                format: Format,
                files: Vec::new(),
                missing: Vec::new(),
                changed: Vec::new(),
                simulated: Vec::new(),
            },
            analysis: Analysis {
                format: Format,
                jobs: std::collections::BTreeMap::from([("j".to_owned(), JobAnalysis::default())]),
            },
            rows: Vec::new(),
        }
    }

    fn saw(mut self, value: f64) -> World {
        self.rows.push(row("nccl.busbw", value, &[]));
        self
    }

    fn analysis(&mut self) -> &mut JobAnalysis {
        self.analysis.jobs.entry("j".into()).or_default()
    }

    fn judged(&self) -> Judged {
        let metrics = Metrics::from_rows(self.rows.clone());
        judge(&CaseData {
            case: &self.case,
            launcher: self.launcher,
            cluster: self.cluster.as_ref(),
            instance: &self.instance,
            jobs: &self.jobs,
            collected: &self.collected,
            analysis: &self.analysis,
            metrics: &metrics,
            catalogue: &Catalogue::built_in(),
        })
    }

    fn one(&self) -> Verdict {
        let judged = self.judged().verdict;
        assert_eq!(judged.verdicts.len(), self.case.assertions.len(), "one verdict per assertion");
        judged.verdicts.into_iter().next().expect("a verdict")
    }

    fn status(&self) -> Status {
        self.one().status
    }
}

#[test]
fn a_number_is_compared_with_its_constants() {
    let at_most = |value| PlannedBound { at_most: Some(value), ..PlannedBound::default() };
    let equals = |value| PlannedBound { equals: Some(value), ..PlannedBound::default() };
    let between = PlannedBound { at_least: Some(1.0), at_most: Some(2.0), ..PlannedBound::default() };
    let table = [
        (at_least(10.0), 10.0, Status::Pass),
        (at_least(10.0), 9.999, Status::Fail),
        (at_least(10.0), 11.0, Status::Pass),
        (at_most(10.0), 10.0, Status::Pass),
        (at_most(10.0), 10.001, Status::Fail),
        (at_most(10.0), 9.0, Status::Pass),
        (equals(0.0), 0.0, Status::Pass),
        (equals(0.0), 1.0, Status::Fail),
        (equals(0.0), -1.0, Status::Fail),
        (between.clone(), 1.5, Status::Pass),
        (between.clone(), 0.5, Status::Fail),
        (between, 2.5, Status::Fail),
        // What was not measured is no number.
        (at_least(10.0), f64::NAN, Status::Inconclusive),
        (at_least(10.0), f64::INFINITY, Status::Inconclusive),
        (at_most(10.0), f64::NEG_INFINITY, Status::Inconclusive),
    ];
    for (bound, value, status) in table {
        let verdict = World::new(bound.clone()).saw(value).one();
        assert_eq!(verdict.status, status, "{bound:?} {value}");
        if status == Status::Inconclusive {
            assert_eq!((verdict.n, verdict.n_expected), (0, 1), "{bound:?} {value}");
        } else {
            assert_eq!((verdict.observed, verdict.n, verdict.n_expected), (Some(value), 1, 1));
        }
        assert_eq!(verdict.next.is_some(), status != Status::Pass, "a next step for all that is no pass");
    }
}

#[test]
fn the_value_furthest_out_is_the_one_shown() {
    let mut world =
        World::new(PlannedBound { at_least: Some(10.0), at_most: Some(20.0), ..PlannedBound::default() });
    world.rows = [11.0, 8.0, 25.0, 15.0].map(|value| row("nccl.busbw", value, &[])).to_vec();
    let verdict = world.one();
    assert_eq!((verdict.status, verdict.observed), (Status::Fail, Some(25.0)));
    assert_eq!((verdict.lower, verdict.upper), (Some(10.0), Some(20.0)));
}

#[test]
fn an_assertion_without_any_bound_is_no_pass() {
    assert_eq!(World::new(PlannedBound::default()).saw(100.0).status(), Status::Inconclusive);
}

#[test]
fn a_part_is_compared_with_the_other_parts_of_the_case() {
    let peers = |value: f64, others: &[f64], better: Better| {
        let mut world = World::new(PlannedBound { within_peers: Some(0.1), ..PlannedBound::default() });
        let asked = &mut world.case.assertions[0];
        asked.better = better;
        asked.dims = Dims::new().with(Dim::Node, "n1").with(Dim::Gpu, 0u64);
        world.rows.push(row("nccl.busbw", value, &[(Dim::Node, "n1"), (Dim::Gpu, "0")]));
        for (at, other) in others.iter().enumerate() {
            world.rows.push(row("nccl.busbw", *other, &[(Dim::Node, "n2"), (Dim::Gpu, &at.to_string())]));
        }
        world.status()
    };
    let three = [100.0, 101.0, 99.0];
    assert_eq!(peers(95.0, &three, Better::Higher), Status::Pass);
    assert_eq!(peers(89.0, &three, Better::Higher), Status::Fail);
    assert_eq!(peers(150.0, &three, Better::Higher), Status::Pass);
    assert_eq!(peers(111.0, &three, Better::Lower), Status::Fail);
    assert_eq!(peers(50.0, &three, Better::Lower), Status::Pass);
    assert_eq!(peers(111.0, &three, Better::Neither), Status::Fail);
    assert_eq!(peers(89.0, &three, Better::Neither), Status::Fail);
    assert_eq!(peers(100.0, &three, Better::Neither), Status::Pass);
    // Two or three that agree pass; where they disagree, it is unknown which is wrong.
    assert_eq!(peers(91.0, &[100.0, 102.0], Better::Higher), Status::Pass);
    assert_eq!(peers(87.0, &[100.0, 102.0], Better::Higher), Status::Inconclusive);
    assert_eq!(peers(87.0, &[100.0], Better::Higher), Status::Pass);
    assert_eq!(peers(84.0, &[100.0], Better::Higher), Status::Inconclusive);
    assert_eq!(peers(100.0, &[], Better::Higher), Status::Unjudged);
}

#[test]
fn several_bounds_hold_all_at_once() {
    let bound = PlannedBound {
        at_least: Some(10.0),
        baseline: Some(PlannedBaseline::None { key: "k".into() }),
        ..PlannedBound::default()
    };
    assert_eq!(World::new(bound.clone()).saw(5.0).status(), Status::Fail);
    // A baseline that is not there takes nothing from a bound that is.
    assert_eq!(World::new(bound).saw(50.0).status(), Status::Pass);
}

#[test]
fn every_part_must_have_its_number() {
    let world = |values: &[(&str, f64)]| {
        let mut world = World::new(at_least(10.0));
        let asked = &mut world.case.assertions[0];
        asked.dims = Dims::new().with(Dim::Node, "n1");
        asked.node = Some("n1".into());
        asked.parts = ["a", "b"].map(|nic| Dims::new().with(Dim::Nic, nic)).into();
        for (nic, value) in values {
            world.rows.push(row("nccl.busbw", *value, &[(Dim::Node, "n1"), (Dim::Nic, nic)]));
        }
        world.one()
    };
    let pass = world(&[("a", 11.0), ("b", 12.0)]);
    assert_eq!((pass.status, pass.n, pass.n_expected), (Status::Pass, 2, 2));
    let missing = world(&[("a", 11.0)]);
    assert_eq!((missing.status, missing.n, missing.n_expected), (Status::Inconclusive, 1, 2));
    assert!(missing.message.contains("b (1 of 2 numbers)"), "{}", missing.message);
    let odd = world(&[("a", 11.0), ("b", 1.0)]);
    assert_eq!((odd.status, odd.observed), (Status::Fail, Some(1.0)));
    assert!(odd.message.contains("(b)"), "{}", odd.message);
    // At its bound a part is within it.
    let odd = world(&[("a", 10.0), ("b", 1.0)]);
    assert!(odd.message.contains("(b)"), "{}", odd.message);
    // Bad is bad, whatever else is missing.
    assert_eq!(world(&[("b", 1.0)]).status, Status::Fail);
}

#[test]
fn numbers_of_other_jobs_are_not_this_assertions() {
    let mut world = World::new(at_least(10.0));
    let mut other = row("nccl.busbw", 100.0, &[]);
    other.dims.set(Dim::Job, "other");
    world.rows.push(other);
    assert_eq!(world.status(), Status::Inconclusive);
}

#[test]
fn a_job_that_did_not_end_well_makes_errors_and_never_failures() {
    let ends = [
        (Ended::Exited { code: 1 }, "exit 1"),
        (Ended::Killed { signal: 9 }, "signal 9"),
        (Ended::TimeLimit { limit_s: 60 }, "hang"),
        (Ended::Stall { stall_s: 60, last: "row".into() }, "stall"),
        (Ended::NodeFail, "NODE_FAIL"),
        (Ended::Preempted, "PREEMPTED"),
        (Ended::Cancelled, "CANCELLED"),
        (Ended::QueueStuck { reason: "r".into() }, "queue-stuck"),
        (Ended::LaunchFailed { why: "w".into() }, "launch-failed"),
        (Ended::FolderFailed { why: "w".into() }, "folder-failed"),
        (Ended::HostUnreachable { why: "w".into() }, "host-unreachable"),
        (Ended::Lost { why: "w".into() }, "lost"),
        (Ended::Interrupted { why: "w".into() }, "interrupted"),
        (Ended::NotRun { why: "w".into() }, "not-run"),
    ];
    for (end, cause) in ends {
        // Good numbers and bad ones alike: they are not judged.
        for value in [1.0, 100.0] {
            let mut world = World::new(at_least(10.0)).saw(value);
            world.jobs.jobs[0].end = end.clone();
            let verdict = world.one();
            assert_eq!(verdict.status, Status::Error, "{end:?}");
            assert_eq!(verdict.cause.as_deref(), Some(cause), "{end:?}");
        }
    }
    let mut world = World::new(at_least(10.0)).saw(100.0);
    world.jobs.jobs.clear();
    assert_eq!(world.status(), Status::Error, "a job without a record");
}

#[test]
fn what_somebody_stopped_speaks_against_no_node() {
    for (end, speaks) in [
        (Ended::Cancelled, false),
        (Ended::Interrupted { why: "w".into() }, false),
        (Ended::NotRun { why: "w".into() }, false),
        (Ended::Requeued { reason: "r".into() }, false),
        (Ended::QueueStuck { reason: "JobHeldAdmin".into() }, false),
        (Ended::LaunchFailed { why: "sbatch: error: Invalid account".into() }, false),
        (Ended::Preempted, false),
        (Ended::Deadline, false),
        (Ended::AllocationOver { limit_s: 60 }, false),
        (Ended::OutOfMemory, false),
        (Ended::HostUnreachable { why: "n1 and n2".into() }, false),
        (Ended::TimeLimit { limit_s: 1 }, true),
    ] {
        let mut world = World::new(at_least(10.0));
        world.jobs.jobs[0].end = end.clone();
        assert_eq!(!world.judged().outcomes.jobs.is_empty(), speaks, "{end:?}");
    }
}

#[test]
fn the_workloads_own_cause_is_reported() {
    let mut world = World::new(at_least(10.0)).saw(100.0);
    world.jobs.jobs[0].end = Ended::Exited { code: 2 };
    world.analysis().failure =
        Some(WorkloadFailure { cause: "nccl-error".into(), node: None, evidence: "line 7".into() });
    let verdict = world.one();
    assert_eq!(verdict.cause.as_deref(), Some("nccl-error"));
    assert!(verdict.message.contains("line 7"), "{}", verdict.message);
    let bad = world.judged().outcomes.jobs.remove(0).bad.expect("it failed");
    assert_eq!((bad.cause.as_str(), bad.evidence.as_str()), ("nccl-error", "line 7"));
    // What any of its nodes or the program itself may have caused speaks against no node.
    for cause in ["rendezvous", "exception"] {
        world.analysis().failure =
            Some(WorkloadFailure { cause: cause.into(), node: None, evidence: "line 7".into() });
        assert_eq!(world.judged().outcomes.jobs, [], "{cause}");
    }
}

#[test]
fn wrong_data_is_a_measurement_whatever_the_exit_code() {
    let mut world = World::new(PlannedBound { equals: Some(0.0), ..PlannedBound::default() });
    world.case.assertions[0].metric = "nccl.wrong".into();
    world.rows.push(row("nccl.wrong", 4096.0, &[]));
    world.jobs.jobs[0].end = Ended::Exited { code: 1 };
    world.analysis().data_wrong = true;
    assert_eq!(world.status(), Status::Fail);
}

#[test]
fn a_good_bandwidth_with_wrong_data_is_no_pass_where_nothing_asks_for_the_data() {
    for code in [0, 1] {
        let mut world = World::new(at_least(10.0)).saw(100.0);
        world.jobs.jobs[0].end = Ended::Exited { code };
        world.analysis().data_wrong = true;
        let verdict = world.one();
        assert_eq!((verdict.status, verdict.cause.as_deref()), (Status::Inconclusive, Some("data-wrong")));
    }
}

#[test]
fn a_job_on_other_ranks_than_declared_makes_nothing_but_inconclusive() {
    for value in [1.0, 100.0] {
        let mut world = World::new(at_least(10.0)).saw(value);
        world.analysis().not_comparable =
            Some(metric::lacks::NotComparable { cause: "wrong-ranks".into(), why: "8 ranks of 16".into() });
        let verdict = world.one();
        assert_eq!((verdict.status, verdict.cause.as_deref()), (Status::Inconclusive, Some("wrong-ranks")));
        // A job that ended badly is that first.
        world.jobs.jobs[0].end = Ended::NodeFail;
        assert_eq!(world.status(), Status::Error);
    }
}

/// A file of the job `j` that is not there.
fn missing_stdout(kind: FileKind) -> MissingFile {
    MissingFile {
        job: "j".into(),
        name: "stdout".into(),
        kind,
        node: None,
        part: None,
        rank: None,
        why: "not there".into(),
        refused: false,
    }
}

#[test]
fn refused_files_panics_and_lost_jobs_say_nothing_about_a_node() {
    let mut world = World::new(at_least(10.0));
    let refused = MissingFile { refused: true, ..missing_stdout(FileKind::NcclTests) };
    world.collected.missing.push(refused);
    assert_eq!(world.one().cause.as_deref(), Some("output-refused"));
    assert_eq!(world.judged().outcomes.jobs, []);
    let mut world = World::new(at_least(10.0));
    world.analysis().not_comparable =
        Some(NotComparable { cause: "internal-error".into(), why: "a panic".into() });
    assert_eq!(world.one().cause.as_deref(), Some("internal-error"));
    assert_eq!(world.judged().outcomes.jobs, []);
    let mut world = World::new(at_least(10.0));
    world.jobs.jobs[0].end = Ended::Lost { why: "no exit code".into() };
    assert_eq!(world.one().cause.as_deref(), Some("lost"));
    assert_eq!(world.judged().outcomes.jobs, []);
}

#[test]
fn the_exit_code_of_a_command_is_what_it_was_run_for() {
    for (code, status) in [(0, Status::Pass), (3, Status::Fail)] {
        let mut world = World::new(PlannedBound { equals: Some(0.0), ..PlannedBound::default() });
        world.case.workload = WorkloadFacts::Command { program: "p".into() };
        world.case.assertions[0].metric = "command.exit_code".into();
        world.jobs.jobs[0].end = Ended::Exited { code };
        world.rows.push(row("command.exit_code", f64::from(code), &[]));
        assert_eq!(world.status(), status, "{code}");
    }
}

#[test]
fn a_command_that_fails_is_no_pass_where_only_something_else_is_asserted() {
    for (code, status, cause) in [(0, Status::Pass, None), (3, Status::Inconclusive, Some("exit-code"))] {
        let mut world = World::new(PlannedBound { equals: Some(1.0), ..PlannedBound::default() });
        world.case.workload = WorkloadFacts::Command { program: "p".into() };
        world.jobs.jobs[0].end = Ended::Exited { code };
        world.rows.push(row("nccl.busbw", 1.0, &[]));
        let verdict = world.one();
        assert_eq!((verdict.status, verdict.cause.as_deref()), (status, cause), "{code}");
        assert!(world.judged().verdict.culprits.is_empty(), "{code}");
    }
}

#[test]
fn the_reason_of_a_missing_number_is_reported() {
    let mut world = World::new(at_least(10.0));
    assert_eq!(world.one().cause.as_deref(), Some("not-measured"));
    world.analysis().findings.push(Finding::new("row-cut", "a row is cut"));
    assert_eq!(world.one().cause.as_deref(), Some("garbled"));
    // A capture that is missing says nothing about a bandwidth.
    world.collected.missing.push(missing_stdout(FileKind::Counters));
    assert_eq!(world.one().cause.as_deref(), Some("garbled"));
    world.collected.missing.push(missing_stdout(FileKind::NcclTests));
    let verdict = world.one();
    assert_eq!(verdict.cause.as_deref(), Some("output-missing"));
    assert!(verdict.message.contains("raw/j/stdout: not there"), "{}", verdict.message);
    let outcome = &world.judged().outcomes.jobs[0];
    assert_eq!(outcome.bad.as_ref().map(|bad| bad.cause.as_str()), Some("output-missing"));
}

#[test]
fn a_skipped_case_says_so_in_every_verdict() {
    let mut world = World::new(at_least(10.0)).saw(1.0);
    world.jobs.skipped = Some("too few nodes".into());
    let judged = world.judged();
    assert_eq!(judged.verdict.verdicts[0].status, Status::Skipped);
    assert!(judged.verdict.verdicts[0].message.contains("too few nodes"));
    assert_eq!(judged.verdict.end, CaseEnd::Skipped);
    assert_eq!(judged.outcomes.coverage.counts(), model::artefact::Coverage::default());
}

#[test]
fn a_declared_failure_is_expected_and_its_absence_is_not() {
    let with = |values: &[f64], bounds: &[f64]| {
        let mut world = World::new(at_least(bounds[0]));
        world.case.expected_failure = Some("known".into());
        for bound in &bounds[1..] {
            world.case.assertions.push(assertion("nccl.busbw", at_least(*bound)));
        }
        world.rows = values.iter().map(|value| row("nccl.busbw", *value, &[])).collect();
        let verdict = world.judged().verdict;
        (verdict.verdicts.iter().map(|verdict| verdict.status).collect::<Vec<_>>(), verdict.end)
    };
    assert_eq!(with(&[5.0], &[10.0]), (vec![Status::ExpectedFailure], CaseEnd::Skipped));
    assert_eq!(with(&[50.0], &[10.0]), (vec![Status::UnexpectedPass], CaseEnd::Fail));
    assert_eq!(with(&[50.0], &[10.0, 60.0]), (vec![Status::Pass, Status::ExpectedFailure], CaseEnd::Skipped));
    // Not measured is not failed as expected.
    assert_eq!(with(&[], &[10.0]), (vec![Status::Inconclusive], CaseEnd::Inconclusive));
}

#[test]
fn a_case_ends_as_the_worst_of_its_verdicts() {
    let verdict = |status| {
        let mut verdict = World::new(at_least(1.0)).saw(2.0).one();
        verdict.status = status;
        verdict
    };
    use Status::*;
    let table: [(&[Status], CaseEnd); 10] = [
        (&[Pass, Pass], CaseEnd::Pass),
        (&[Pass, Fail, Error], CaseEnd::Fail),
        (&[Pass, UnexpectedPass], CaseEnd::Fail),
        (&[Pass, Error, Inconclusive], CaseEnd::Error),
        (&[Pass, Inconclusive], CaseEnd::Inconclusive),
        (&[Skipped], CaseEnd::Skipped),
        (&[Pass, ExpectedFailure], CaseEnd::Skipped),
        (&[ExpectedFailure, Inconclusive], CaseEnd::Inconclusive),
        (&[Skipped, Fail], CaseEnd::Fail),
        (&[], CaseEnd::Inconclusive),
    ];
    for (statuses, end) in table {
        let verdicts: Vec<Verdict> = statuses.iter().map(|status| verdict(*status)).collect();
        assert_eq!(end_of(&verdicts), end, "{statuses:?}");
    }
}

#[test]
fn coverage_counts_what_was_measured_of_what_was_to_be() {
    let mut world = World::new(at_least(10.0)).saw(100.0);
    world.case.workload = WorkloadFacts::NcclTests {
        op: Op::AllReduce,
        sizes: vec![1024, 2048],
        ranks_per_communicator: Some(16),
        checked: true,
        by_torch: false,
        through_nics: false,
        sweep: None,
        each_gpu: false,
    };
    let shown = |world: &World| {
        let c = world.judged().outcomes.coverage.counts();
        format!("{} {} {} {}", c.nodes, c.ranks, c.nics, c.sizes)
    };
    assert_eq!(shown(&world), "2/2 0/16 0/4 0/2");
    world.rows.push(row("nccl.time", 1.0, &[(Dim::SizeBytes, "1024")]));
    world.rows.push(row("nic.tx_bytes", 1.0, &[(Dim::Node, "n1"), (Dim::Nic, "a")]));
    // A device that the profile does not have is no coverage.
    world.rows.push(row("nic.tx_bytes", 1.0, &[(Dim::Node, "n1"), (Dim::Nic, "z")]));
    assert_eq!(shown(&world), "2/2 16/16 1/4 1/2");
    world.rows.push(row("nccl.time", f64::NAN, &[(Dim::SizeBytes, "2048")]));
    assert_eq!(shown(&world), "2/2 16/16 1/4 1/2");
    // NICs are asked for by the recipes that read them, and by no other.
    let nics = |recipe: &str, world: &mut World| {
        world.case.recipes = vec![recipe.into()];
        world.judged().outcomes.coverage.counts().nics.expected
    };
    assert_eq!(nics("nic_flows", &mut world), 4);
    assert_eq!(nics("nccl_tests", &mut world), 0);
    assert_eq!(nics("efa_traffic", &mut world), 4);
    // What several cases covered is united, and counted once.
    let mut both = model::artefact::CoverageSets::default();
    both.unite(&world.judged().outcomes.coverage);
    both.unite(&world.judged().outcomes.coverage);
    assert_eq!(both.counts(), world.judged().outcomes.coverage.counts());
    // Numbers of a job that cannot be judged cover nothing.
    world.jobs.jobs[0].end = Ended::NodeFail;
    assert_eq!(shown(&world), "0/2 0/16 0/4 0/2");
    // Within a node nothing goes over its NICs, whatever their counters say.
    world.jobs.jobs[0].end = Ended::Exited { code: 0 };
    world.case.jobs[0].nodes.truncate(1);
    assert_eq!(shown(&world), "1/1 8/8 0/0 1/2");
}

#[test]
fn one_good_flow_proves_a_nic_whatever_became_of_the_other_round() {
    let mut world = World::new(at_least(10.0));
    world.case.workload =
        WorkloadFacts::NicPairs { tool: "fi_rma_bw".into(), op: "write".into(), memory: None, path: None };
    let mut second = world.case.jobs[0].clone();
    second.name = "back".into();
    second.nodes.reverse();
    world.case.jobs.push(second);
    let mut record = world.jobs.jobs[0].clone();
    record.name = "back".into();
    world.jobs.jobs.push(record);
    let asked = &mut world.case.assertions[0];
    asked.metric = "nic.rate".into();
    asked.jobs = vec!["j".into(), "back".into()];
    asked.node = Some("n1".into());
    asked.part = Some("a".into());
    asked.dims = Dims::new().with(Dim::Node, "n1").with(Dim::Nic, "a").with(Dim::Direction, "tx");
    let flow = |job: &str, from: &str, to: &str, nic: &str, rate: f64| {
        let mut flow = row(
            "flow.rate",
            rate,
            &[(Dim::Node, from), (Dim::Peer, to), (Dim::Nic, nic), (Dim::Direction, "tx"), (Dim::Round, "1")],
        );
        flow.dims.set(Dim::Job, job);
        flow
    };
    world.rows = vec![flow("j", "n1", "n2", "a", 12.0), flow("j", "n1", "n2", "b", 12.0)];
    let verdict = world.one();
    assert_eq!((verdict.status, verdict.observed, verdict.lower), (Status::Pass, Some(12.0), Some(10.0)));
    world.jobs.jobs[1].end = Ended::NodeFail;
    assert_eq!(world.status(), Status::Pass, "the other job's end takes nothing from this flow");
    world.rows[0].value = 5.0;
    assert_eq!(world.status(), Status::Fail);
    world.rows.remove(0);
    assert_eq!(world.status(), Status::Inconclusive);
    world.jobs.jobs[0].end = Ended::NodeFail;
    assert_eq!(world.status(), Status::Error, "no job of it is left");
    world.case.assertions[0].bound = PlannedBound::default();
    world.jobs.jobs[0].end = Ended::Exited { code: 0 };
    assert_eq!(world.status(), Status::Inconclusive, "nothing to hold it against");
}

#[test]
fn evidence_names_the_files_of_the_job() {
    let mut world = World::new(at_least(10.0)).saw(5.0);
    world.collected.files.push(CollectedFile {
        job: "j".into(),
        path: "raw/j/stdout".into(),
        kind: FileKind::NcclTests,
        node: None,
        part: None,
        rank: None,
        bytes: 1,
        sha256: String::new(),
        redacted: 0,
    });
    let verdict = world.one();
    assert_eq!(verdict.evidence[0].file, "cases/c/raw/j/stdout");
    assert_eq!(verdict.seconds, 5.0);
    // Where it left none, its folder.
    world.collected.files.clear();
    assert_eq!(world.one().evidence[0].file, "cases/c/raw/j");
}
