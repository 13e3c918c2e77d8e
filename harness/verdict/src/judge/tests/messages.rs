//! Every message of a verdict and its next step, as a person reads them: one family of messages per snapshot.

use super::*;
use model::artefact::PlannedSpread;

/// Status, message and next step of the first assertion.
fn message_lines(world: &World) -> String {
    let verdict = world.one();
    let next = verdict.next.map(|next| format!("\n    next: {next}")).unwrap_or_default();
    format!("{} {}{next}", verdict.status, verdict.message)
}

fn with(baseline: PlannedBaseline) -> World {
    World::new(PlannedBound { baseline: Some(baseline), ..PlannedBound::default() })
}

/// One job for each value, all compared with each other.
fn peers(values: &[f64]) -> World {
    let mut world = World::new(PlannedBound { within_peers: Some(0.1), ..PlannedBound::default() });
    world.case.assertions[0].dims = Dims::new().with(Dim::Gpu, 0u64);
    for (gpu, value) in values.iter().enumerate() {
        world.rows.push(row("nccl.busbw", *value, &[(Dim::Gpu, &gpu.to_string())]));
    }
    world
}

fn repeated(values: [f64; 3]) -> World {
    let spread = Some(PlannedSpread { relative: 0.01, judged: 10, allows: None });
    let mut world = World::new(PlannedBound { spread, ..at_least(90.0) });
    world.case.assertions[0].jobs = ["j", "j.r2", "j.r3"].map(str::to_owned).to_vec();
    for (name, value) in ["j", "j.r2", "j.r3"].into_iter().zip(values) {
        if name != "j" {
            world.case.jobs.push(PlannedJob { name: name.into(), ..world.case.jobs[0].clone() });
            world.jobs.jobs.push(JobRecord { name: name.into(), ..world.jobs.jobs[0].clone() });
            world.analysis.jobs.insert(name.into(), JobAnalysis::default());
        }
        world.rows.push(row("nccl.busbw", value, &[(Dim::Job, name)]));
    }
    world
}

#[test]
fn messages_of_comparisons() {
    let bound = PlannedBound { at_least: Some(1.0), at_most: Some(2.0), ..PlannedBound::default() };
    let widened = PlannedSpread { relative: 0.02, judged: 100, allows: Some(0.11) };
    let software = |versions: &[&str]| {
        let mut numbers = numbers(Some(90.0), Some(110.0));
        numbers.fingerprint.insert("nccl".into(), versions.iter().map(|one| (*one).to_owned()).collect());
        with(PlannedBaseline::Accepted(numbers)).saw(100.0)
    };
    let mut other = software(&["2.27.7"]);
    other.analysis().versions.insert("nccl".into(), ["2.18.1".to_owned()].into());
    let near = BaselineNumbers { spread: Some(0.02), ..numbers(Some(90.0), Some(110.0)) };
    let floor = BaselineNumbers { floor: Some(60.0), ..numbers(Some(90.0), None) };
    let between = BaselineNumbers {
        between: Some("1GiB and 4GiB".into()),
        widened_for: Some(900),
        ..numbers(Some(90.0), Some(110.0))
    };
    let impossible = PlannedBound { ceiling: Some(750.0), ..at_least(10.0) };
    let mut expected = World::new(at_least(90.0)).saw(50.0);
    expected.case.expected_failure = Some("a known fault".into());
    let mut unexpected = World::new(at_least(90.0)).saw(100.0);
    unexpected.case.expected_failure = Some("a known fault".into());
    let worlds = [
        World::new(at_least(90.0)).saw(100.0),
        World::new(at_least(90.0)).saw(50.0),
        World::new(bound).saw(3.0),
        World::new(PlannedBound { equals: Some(0.0), ..PlannedBound::default() }).saw(3.0),
        World::new(PlannedBound { at_most: Some(0.1), spread: Some(widened), ..PlannedBound::default() })
            .saw(0.4),
        World::new(PlannedBound { warn: true, ..at_least(90.0) }).saw(50.0),
        World::new(PlannedBound::default()).saw(50.0),
        World::new(at_least(90.0)),
        World::new(impossible).saw(751.0),
        repeated([50.0, 50.1, 50.2]),
        repeated([100.0, 60.0, 140.0]),
        peers(&[100.0, 100.0]),
        peers(&[50.0, 100.0]),
        peers(&[50.0, 100.0, 100.0, 100.0]),
        peers(&[100.0]),
        with(PlannedBaseline::None { key: "k".into() }).saw(100.0),
        with(PlannedBaseline::Accepted(near.clone())).saw(100.0),
        with(PlannedBaseline::Accepted(near.clone())).saw(50.0),
        with(PlannedBaseline::Accepted(near)).saw(89.0),
        with(PlannedBaseline::Accepted(between)).saw(50.0),
        with(PlannedBaseline::Accepted(numbers(None, None))).saw(50.0),
        with(PlannedBaseline::Provisional(numbers(Some(90.0), None))).saw(50.0),
        with(PlannedBaseline::Provisional(floor)).saw(50.0),
        with(PlannedBaseline::Expired(numbers(Some(90.0), None))).saw(50.0),
        software(&["2.27.7", "2.28.3"]),
        other,
        expected,
        unexpected,
    ];
    insta::assert_snapshot!(worlds.iter().map(message_lines).collect::<Vec<_>>().join("\n"));
}

#[test]
fn messages_of_jobs_that_cannot_be_judged() {
    let why = || "no route to host".to_owned();
    let ends = [
        Ended::Exited { code: 1 },
        Ended::Killed { signal: 9 },
        Ended::TimeLimit { limit_s: 600 },
        Ended::Stall { stall_s: 180, last: "  67108864  16777216".into() },
        Ended::NodeFail,
        Ended::BootFail,
        Ended::OutOfMemory,
        Ended::Preempted,
        Ended::Requeued { reason: "NodeFail".into() },
        Ended::Deadline,
        Ended::Cancelled,
        Ended::AllocationOver { limit_s: 3600 },
        Ended::QueueStuck { reason: "(PartitionTimeLimit)".into() },
        Ended::QueueStuck { reason: "PartitionNodeLimit".into() },
        Ended::QueueStuck { reason: "PartitionDown".into() },
        Ended::QueueStuck { reason: "Resources".into() },
        Ended::LaunchFailed { why: "sbatch: error: invalid partition".into() },
        Ended::FolderFailed { why: "no space left on device".into() },
        Ended::HostUnreachable { why: why() },
        Ended::Lost { why: why() },
        Ended::Interrupted { why: "by Ctrl-C".into() },
        Ended::LeftOut { node: "n2".into(), why: why(), after: Some("pairs".into()) },
        Ended::LeftOut { node: "n2".into(), why: why(), after: None },
        Ended::NotRun { why: "an earlier case failed".into() },
    ];
    let mut lines: Vec<String> = ends.into_iter().map(ended).collect();
    for launcher in [Launcher::Ssh, Launcher::Kubernetes] {
        for end in [
            Ended::NodeFail,
            Ended::OutOfMemory,
            Ended::HostUnreachable { why: why() },
            Ended::Lost { why: why() },
        ] {
            let mut world = World::new(at_least(1.0));
            (world.launcher, world.jobs.jobs[0].end) = (launcher, end);
            lines.push(message_lines(&world));
        }
    }
    let mut flows = World::new(at_least(1.0));
    flows.case.workload =
        WorkloadFacts::NicPairs { tool: "fi_rma_bw".into(), op: "write".into(), memory: None, path: None };
    for code in [job::script::EXIT_NO_TOOL, job::script::EXIT_TOOL_REFUSED] {
        flows.jobs.jobs[0].end = Ended::Exited { code };
        lines.push(message_lines(&flows));
    }
    for cause in ["wrong-ranks", "raw-edited", "not-analyzed", "output-cut"] {
        let mut world = World::new(at_least(1.0)).saw(2.0);
        world.analysis().not_comparable =
            Some(NotComparable { cause: cause.into(), why: format!("the reason of {cause}") });
        lines.push(message_lines(&world));
    }
    let mut wrong = World::new(at_least(1.0)).saw(2.0);
    wrong.analysis().data_wrong = true;
    lines.push(message_lines(&wrong));
    let mut refused = World::new(at_least(1.0)).saw(2.0);
    refused.collected.missing.push(MissingFile { refused: true, ..missing_stdout(FileKind::NcclTests) });
    lines.push(message_lines(&refused));
    let mut lost = World::new(at_least(1.0));
    lost.jobs.jobs.clear();
    lines.push(message_lines(&lost));
    let mut missing = World::new(at_least(1.0));
    missing.collected.missing.push(missing_stdout(FileKind::NcclTests));
    lines.push(message_lines(&missing));
    insta::assert_snapshot!(lines.join("\n"));
}

fn ended(end: Ended) -> String {
    let mut world = World::new(at_least(1.0));
    world.jobs.jobs[0].end = end;
    message_lines(&world)
}

#[test]
fn messages_of_next_steps() {
    let metrics = [
        "nic.present",
        "nic.share",
        "nic.rate",
        "nccl.wrong",
        "straggler.late",
        "gpu.exposed_comm_share",
        "step.time_cv",
        "nccl.dip",
        "nccl.busbw",
        "nic.rx_drops",
        "kernel.share",
        "command.exit_code",
        "train.mfu",
        "node.efa_tx",
        "mine.metric",
    ];
    let step =
        |metric: &&str| format!("{metric}: {}", next_step(&assertion(metric, at_least(1.0)), Status::Fail));
    let mut lines: Vec<String> = metrics.iter().map(step).collect();
    lines.push(format!(
        "inconclusive: {}",
        next_step(&assertion("nccl.busbw", at_least(1.0)), Status::Inconclusive)
    ));
    insta::assert_snapshot!(lines.join("\n"));
}
