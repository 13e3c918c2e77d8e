//! What must not blame a node, and what must not clear one: failures that all share, numbers that few agree on.

use super::*;
use model::artefact::{JobOutcome, WorkKind};
use recipes::catalogue::Catalogue;
use recipes::recipe::training_log;

/// One job on each node, which both ended with exit code 1 and these last words.
fn both_failed(words: [&[&str]; 2]) -> World {
    let mut world = World::new(at_least(10.0));
    let (job, record) = (world.case.jobs.remove(0), world.jobs.jobs.remove(0));
    world.analysis.jobs.clear();
    for (node, words) in ["n1", "n2"].into_iter().zip(words) {
        world.case.jobs.push(PlannedJob { name: node.into(), nodes: vec![node.into()], ..job.clone() });
        let end = Ended::Exited { code: 1 };
        world.jobs.jobs.push(JobRecord { name: node.into(), end, ..record.clone() });
        let last_words = words.iter().map(|word| (*word).to_owned()).collect();
        world.analysis.jobs.insert(node.into(), JobAnalysis { last_words, ..JobAnalysis::default() });
    }
    world.case.assertions[0].jobs = vec!["n1".into(), "n2".into()];
    world
}

#[test]
fn jobs_that_all_fail_with_the_same_words_are_a_common_failure_and_blame_no_node() {
    let world = both_failed([&["rank 0", "no MPI plugin"], &["rank 8", "no MPI plugin"]]);
    let Judged { verdict, outcomes } = world.judged();
    let common = verdict.common_failure.expect("a common failure");
    assert_eq!((common.jobs, common.nodes.as_str(), common.expected), (2, "n[1-2]", false));
    assert_eq!(common.words, ["rank 0", "no MPI plugin"]);
    assert_eq!(culprits_of_run(&outcomes.jobs, &[], &Catalogue::built_in()), []);
    assert!(outcomes.jobs.is_empty(), "{:?}", outcomes.jobs);
    let only_shared = both_failed([&["no GPU", "exit", "no MPI"], &["no NIC", "no MPI"]]);
    assert_eq!(only_shared.judged().verdict.common_failure.expect("a common failure").words, ["no MPI"]);
}

#[test]
fn an_mpi_that_srun_does_not_know_is_a_common_failure_of_a_single_job_too() {
    let line = "srun: error: Invalid MPI type 'pmix', --mpi=list for acceptable types";
    let mut world = both_failed([&[line], &[line]]);
    world.case.jobs.truncate(1);
    world.jobs.jobs.truncate(1);
    world.case.assertions[0].jobs = vec!["n1".into()];
    let failure =
        WorkloadFailure { cause: model::artefact::MPI_REFUSED.into(), node: None, evidence: line.into() };
    world.analysis.jobs.insert(
        "n1".into(),
        JobAnalysis { failure: Some(failure), last_words: vec![line.into()], ..JobAnalysis::default() },
    );
    let Judged { verdict, outcomes } = world.judged();
    let common = verdict.common_failure.expect("a common failure");
    assert!(
        common.cause == model::artefact::MPI_REFUSED && common.check.contains("`mpi` in [reach]"),
        "{common:?}"
    );
    assert_eq!(culprits_of_run(&outcomes.jobs, &[], &Catalogue::built_in()), []);
    assert_eq!(verdict.end, CaseEnd::Error);
}

#[test]
fn a_step_that_never_started_is_no_hang_and_blames_no_node() {
    use model::artefact::STEP_NOT_STARTED;
    let line = "srun: Job 2 step creation still disabled, retrying (Requested nodes are busy)";
    for end in [
        Ended::TimeLimit { limit_s: 60 },
        Ended::Stall { stall_s: 60, last: String::new() },
        Ended::Killed { signal: 15 },
        Ended::Exited { code: 1 },
    ] {
        let mut world = both_failed([&[line], &[line]]);
        for record in &mut world.jobs.jobs {
            record.end = end.clone();
        }
        for analysis in world.analysis.jobs.values_mut() {
            let cause = STEP_NOT_STARTED.to_owned();
            analysis.failure = Some(WorkloadFailure { cause, node: None, evidence: line.into() });
        }
        let Judged { verdict, outcomes } = world.judged();
        let common = verdict.common_failure.expect("a common failure");
        assert_eq!((common.cause.as_str(), common.jobs), (STEP_NOT_STARTED, 2), "{end:?}");
        assert!(common.check.contains("`squeue --steps`"), "{common:?}");
        let of_all = &verdict.verdicts[0];
        assert_eq!(of_all.next.as_deref(), Some(common.check.as_str()));
        assert_eq!((of_all.status, of_all.cause.as_deref()), (Status::Error, Some(STEP_NOT_STARTED)));
        assert!(of_all.message.contains(&format!("no step of the workload started: {line}")), "{of_all:?}");
        assert!(outcomes.jobs.is_empty(), "{:?}", outcomes.jobs);
        // One of two is no sign of its node either.
        world.jobs.jobs[1].end = Ended::Exited { code: 0 };
        world.analysis.jobs.insert("n2".into(), JobAnalysis::default());
        let Judged { verdict, outcomes } = world.judged();
        assert_eq!(verdict.common_failure, None, "{end:?}");
        assert!(outcomes.jobs.iter().all(|outcome| outcome.job != "n1"), "{:?}", outcomes.jobs);
    }
}

#[test]
fn a_credential_that_expired_on_a_jobs_only_node_is_no_sign_of_that_node() {
    use model::artefact::CREDENTIAL_EXPIRED;
    let line = "srun: error: Task launch for StepId=7.0 failed on node n1: Job credential expired";
    let mut world = both_failed([&[line], &[]]);
    world.jobs.jobs[1].end = Ended::Exited { code: 0 };
    let cause = CREDENTIAL_EXPIRED.to_owned();
    world.analysis.jobs.insert(
        "n1".into(),
        JobAnalysis {
            failure: Some(WorkloadFailure { cause, node: None, evidence: line.into() }),
            ..JobAnalysis::default()
        },
    );
    let Judged { verdict, outcomes } = world.judged();
    assert_eq!(verdict.verdicts[0].cause.as_deref(), Some(CREDENTIAL_EXPIRED));
    assert!(outcomes.jobs.iter().all(|outcome| outcome.job != "n1"), "{:?}", outcomes.jobs);
}

#[test]
fn a_file_that_was_changed_after_it_was_collected_is_no_sign_of_its_node() {
    for (cause, is_sign) in [("raw-edited", false), ("raw-gone", false), ("wrong-ranks", true)] {
        let mut world = both_failed([&[], &[]]);
        for record in &mut world.jobs.jobs {
            record.end = Ended::Exited { code: 0 };
        }
        let not_comparable =
            Some(metric::lacks::NotComparable { cause: cause.into(), why: "changed".into() });
        let analysis = JobAnalysis { not_comparable, ..JobAnalysis::default() };
        world.analysis.jobs.insert("n1".into(), analysis);
        let Judged { verdict, outcomes } = world.judged();
        assert_eq!(verdict.verdicts[0].cause.as_deref(), Some(cause));
        assert_eq!(outcomes.jobs.iter().any(|outcome| outcome.job == "n1"), is_sign, "{cause}");
    }
}

#[test]
fn the_exit_code_of_an_srun_that_refused_a_command_is_no_result_of_the_command() {
    use model::artefact::{CREDENTIAL_EXPIRED, MPI_REFUSED};
    for (cause, status) in [
        (CREDENTIAL_EXPIRED, Status::Error),
        (MPI_REFUSED, Status::Error),
        ("launch-failed", Status::Error),
        ("rank-failed", Status::Fail),
    ] {
        let mut world = World::new(PlannedBound { equals: Some(0.0), ..PlannedBound::default() });
        world.case.workload = WorkloadFacts::Command { program: "p".into() };
        world.case.assertions[0].metric = "command.exit_code".into();
        world.rows.push(row("command.exit_code", 1.0, &[]));
        world.jobs.jobs[0].end = Ended::Exited { code: 1 };
        let evidence = "what srun printed".to_owned();
        world.analysis().failure = Some(WorkloadFailure { cause: cause.into(), node: None, evidence });
        assert_eq!(world.status(), status, "{cause}");
        assert!(world.judged().verdict.culprits.is_empty(), "{cause}");
    }
}

#[test]
fn a_job_that_was_not_started_says_nothing_of_the_others_failure() {
    let words: [&[&str]; 2] = [&["no MPI"], &["no MPI"]];
    for end in [
        Ended::NotRun { why: "max_fail".into() },
        Ended::Cancelled,
        Ended::Preempted,
        Ended::Deadline,
        Ended::Interrupted { why: "SIGTERM".into() },
    ] {
        let mut world = both_failed(words);
        let third = PlannedJob { name: "n3".into(), nodes: vec!["n3".into()], ..world.case.jobs[0].clone() };
        world.case.jobs.push(third);
        world.jobs.jobs.push(JobRecord { name: "n3".into(), end: end.clone(), ..world.jobs.jobs[0].clone() });
        let common = world.judged().verdict.common_failure.expect("a common failure");
        assert_eq!(common.jobs, 2, "{end:?}");
    }
    let mut first_and_last = both_failed(words);
    let third =
        PlannedJob { name: "n3".into(), nodes: vec!["n3".into()], ..first_and_last.case.jobs[0].clone() };
    first_and_last.case.jobs.push(third);
    let ran = first_and_last.jobs.jobs[0].clone();
    first_and_last.jobs.jobs[1].end = Ended::Cancelled;
    first_and_last.jobs.jobs.push(JobRecord { name: "n3".into(), ..ran });
    let same = first_and_last.analysis.jobs["n1"].clone();
    first_and_last.analysis.jobs.insert("n3".into(), same);
    let common = first_and_last.judged().verdict.common_failure.expect("a common failure");
    assert_eq!(common.nodes, "n[1,3]");
    // One that ended well shows that the launcher works.
    let mut world = both_failed(words);
    world.jobs.jobs[1].end = Ended::Exited { code: 0 };
    assert_eq!(world.judged().verdict.common_failure, None);
    let mut world = both_failed(words);
    world.case.expected_failure = Some("known".into());
    assert!(world.judged().verdict.common_failure.expect("a common failure").expected);
}

fn busbw_failed(outcomes: &[JobOutcome]) -> Vec<Option<bool>> {
    outcomes.iter().map(|outcome| outcome.judged.get("nccl.busbw").copied()).collect()
}

#[test]
fn a_low_bandwidth_over_tcp_in_every_job_is_a_setting_and_no_nodes_fault() {
    let slow = |sockets: &[&str], alone: bool| {
        let mut world = World::new(at_least(10.0)).saw(2.0);
        let second = PlannedJob {
            name: "k".into(),
            nodes: match alone {
                true => vec!["n3".into()],
                false => vec!["n3".into(), "n4".into()],
            },
            ..world.case.jobs[0].clone()
        };
        world.case.jobs.push(second);
        world.jobs.jobs.push(JobRecord { name: "k".into(), ..world.jobs.jobs[0].clone() });
        world.analysis.jobs.insert("k".into(), JobAnalysis::default());
        for job in sockets {
            let finding = Finding::new("tcp-not-efa", "NCCL went over TCP");
            world.analysis.jobs.get_mut(*job).expect("a job").findings.push(finding);
        }
        let judged = world.judged();
        assert_eq!(judged.verdict.verdicts[0].status, Status::Fail);
        busbw_failed(&judged.outcomes.jobs)
    };
    assert_eq!(slow(&["j", "k"], false), [Some(false), None]);
    assert_eq!(slow(&["j"], false), [Some(true), None], "the other job went over EFA");
    // A job on one node uses no network.
    assert_eq!(slow(&["j"], true), [Some(false), None]);
    let mut one_node = World::new(at_least(10.0)).saw(2.0);
    one_node.case.jobs[0].nodes.truncate(1);
    one_node.analysis().findings.push(Finding::new("tcp-not-efa", "NCCL went over TCP"));
    assert_eq!(busbw_failed(&one_node.judged().outcomes.jobs), [Some(true)]);
}

#[test]
fn a_failure_says_over_which_transport_nccl_went() {
    let mut world = World::new(at_least(10.0)).saw(2.0);
    assert!(!world.one().message.contains("went over"));
    world.analysis().findings.push(Finding::new("clock-jump", "the clock went over midnight"));
    assert!(!world.one().message.contains("went over"));
    world.analysis().findings.push(Finding::new("tcp-not-efa", "NCCL went over TCP"));
    assert!(world.one().message.ends_with(": NCCL went over TCP"), "{}", world.one().message);
    world.case.assertions[0].metric = "train.loss_finite".into();
    world.rows = vec![row("train.loss_finite", 2.0, &[])];
    assert!(!world.one().message.contains("went over"));
    world.analysis().findings.push(Finding::new(training_log::NAN_RANK, "rank 3 has NaN"));
    assert!(world.one().message.ends_with(": rank 3 has NaN"));
    let mut ended = World::new(at_least(10.0));
    ended.case.assertions[0].metric = "train.steps_missing".into();
    ended.rows = vec![row("train.steps_missing", 2.0, &[])];
    ended.analysis().findings.push(Finding::new(training_log::ENDED_EARLY, "stopped at step 7"));
    assert!(ended.one().message.ends_with(": stopped at step 7"));
}

#[test]
fn two_nodes_that_agree_with_each_other_alone_are_not_cleared_by_it() {
    let judged = |nodes: usize| {
        let mut world = World::new(PlannedBound { within_peers: Some(0.1), ..PlannedBound::default() });
        world.case.assertions[0].dims = Dims::new().with(Dim::Node, "n1");
        for node in 1..=nodes {
            world.rows.push(row("nccl.busbw", 100.0, &[(Dim::Node, &format!("n{node}"))]));
        }
        let judged = world.judged();
        assert_eq!(judged.verdict.verdicts[0].status, Status::Pass);
        busbw_failed(&judged.outcomes.jobs)
    };
    assert_eq!(judged(2), [None]);
    assert_eq!(judged(3), [None]);
    assert_eq!(judged(4), [Some(false)]);
}

#[test]
fn a_gpu_within_its_bound_is_no_culprit() {
    let culprits = |value: f64| {
        let mut world = World::new(at_least(10.0));
        let asked = &mut world.case.assertions[0];
        asked.dims = Dims::new().with(Dim::Node, "n1").with(Dim::Gpu, 0u64);
        (asked.node, asked.part) = (Some("n1".into()), Some("gpu0".into()));
        world.rows.push(row("nccl.busbw", value, &[(Dim::Node, "n1"), (Dim::Gpu, "0")]));
        world.judged().verdict.culprits.len()
    };
    assert_eq!((culprits(2.0), culprits(20.0)), (1, 0));
}

#[test]
fn three_of_five_nodes_that_fail_alike_are_the_cases_fault_and_three_of_six_are_their_own() {
    let named = |nodes: usize| {
        let outcome = |at: usize| JobOutcome {
            case: "c".into(),
            kind: WorkKind::Collective,
            job: format!("n{at}"),
            nodes: vec![format!("n{at}")],
            bad: (at <= 3).then(|| model::artefact::Bad {
                cause: "hang".into(),
                node: None,
                evidence: "seen".into(),
            }),
            judged: BTreeMap::new(),
            worst: Default::default(),
        };
        culprits_of_run(&(1..=nodes).map(outcome).collect::<Vec<_>>(), &[], &Catalogue::built_in()).len()
    };
    assert_eq!((named(5), named(6)), (0, 3));
}

#[test]
fn a_sampler_that_ended_on_another_node_does_not_explain_a_missing_counter() {
    let cause = |asked: Option<&str>, of: Option<&str>, code: &str| {
        let mut world = World::new(at_least(10.0));
        world.case.assertions[0].metric = "nic.tx_bytes".into();
        world.case.assertions[0].node = asked.map(str::to_owned);
        let mut finding = Finding::new(code, "the sampler was killed");
        finding.node = of.map(str::to_owned);
        world.analysis().findings.push(finding);
        world.one().cause.expect("a cause")
    };
    for (asked, of, is_why) in [
        (Some("n1"), Some("n1"), true),
        (Some("n1"), None, true),
        (None, Some("n2"), true),
        (Some("n1"), Some("n2"), false),
    ] {
        assert_eq!(cause(asked, of, "sampler-ended") == "sampler-ended", is_why, "{asked:?} {of:?}");
    }
    assert_eq!(cause(Some("n1"), Some("n1"), "clock-jump"), "not-measured");
}

#[test]
fn jobs_that_name_one_node_are_no_common_failure_and_a_refused_launch_is() {
    let named = |nodes: [&str; 2]| {
        let mut world = both_failed([&["no MPI"], &["no MPI"]]);
        for (record, node) in world.jobs.jobs.iter_mut().zip(nodes) {
            record.blamed = Some(model::artefact::Blamed { node: node.into(), evidence: "sinfo".into() });
        }
        world.judged().verdict.common_failure.is_some()
    };
    assert_eq!((named(["n9", "n9"]), named(["n1", "n2"])), (false, true));
    let mut by_workload = both_failed([&["no MPI"], &["no MPI"]]);
    for analysis in by_workload.analysis.jobs.values_mut() {
        let (cause, evidence) = ("exit 1".into(), "rank 3 died".into());
        analysis.failure = Some(WorkloadFailure { cause, node: Some("n9".into()), evidence });
    }
    assert_eq!(by_workload.judged().verdict.common_failure, None);
    let mut refused = World::new(at_least(10.0));
    refused.jobs.jobs[0].end = Ended::LaunchFailed { why: "Invalid account".into() };
    let common = refused.judged().verdict.common_failure.expect("a common failure");
    assert!(common.check.contains("harness plan"), "{}", common.check);
    let blamed = model::artefact::Blamed { node: "n1".into(), evidence: "sinfo".into() };
    refused.jobs.jobs[0].blamed = Some(blamed);
    assert_eq!(refused.judged().verdict.common_failure, None);
    let others = both_failed([&["no MPI"], &["no MPI"]]).judged().verdict.common_failure;
    assert!(others.expect("a common failure").check.contains("stderr"));
}

#[test]
fn a_run_with_simulated_files_says_so() {
    let mut world = World::new(at_least(10.0)).saw(20.0);
    assert!(!world.judged().verdict.simulated);
    world.collected.simulated = vec!["raw/j/stdout".into()];
    assert!(world.judged().verdict.simulated);
}

#[test]
fn one_warning_is_one_line_and_more_of_a_metric_are_counted() {
    let warned = |n: usize| {
        let mut world = World::new(PlannedBound { warn: true, ..at_least(10.0) }).saw(2.0);
        world.case.assertions = vec![world.case.assertions[0].clone(); n];
        let found = world.judged().verdict.findings;
        assert_eq!(found.len(), 1);
        found[0].message.clone()
    };
    assert!(!warned(1).contains("more"), "{}", warned(1));
    assert!(warned(3).ends_with("and 2 more"), "{}", warned(3));
}

#[test]
fn nodes_that_a_probe_left_out_are_each_named_however_many_they_are() {
    let outcome = |at: usize| JobOutcome {
        case: "c".into(),
        kind: WorkKind::Collective,
        job: format!("n{at}"),
        nodes: vec![format!("n{at}")],
        bad: (at <= 3).then(|| model::artefact::Bad {
            cause: LEFT_OUT.into(),
            node: Some(format!("n{at}")),
            evidence: "7 GPUs of 8".into(),
        }),
        judged: BTreeMap::new(),
        worst: Default::default(),
    };
    assert_eq!(
        culprits_of_run(&(1..=4).map(outcome).collect::<Vec<_>>(), &[], &Catalogue::built_in()).len(),
        3
    );
}

#[test]
fn the_rank_whose_loss_is_no_number_is_the_culprit_and_a_loss_without_a_rank_names_none() {
    let culprits = |code: &str| {
        let mut world = World::new(at_least(10.0));
        world.case.assertions[0].metric = "train.loss_finite".into();
        world.rows = vec![row("train.loss_finite", 2.0, &[])];
        let finding = Finding::new(code, "NaN in the gradient").node("n2").part("gpu3");
        world.analysis().findings.push(finding);
        world.judged().verdict.culprits.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let named = culprits(training_log::NAN_RANK);
    assert!(named.len() == 1 && named[0].starts_with("culprit n2 gpu3"), "{named:?}");
    assert_eq!(culprits(training_log::NOT_FINITE), Vec::<String>::new());
}

#[test]
fn nan_in_the_jobs_of_most_nodes_is_of_none_of_them() {
    let culprits = |bad: &[&str]| {
        let mut world = World::new(at_least(10.0));
        let first = PlannedJob { nodes: vec!["n1".into()], ..world.case.jobs[0].clone() };
        let jobs = [("j", "n1"), ("k", "n2"), ("l", "n3"), ("m", "n4")];
        let planned = |(name, node): (&str, &str)| PlannedJob {
            name: name.into(),
            nodes: vec![node.into()],
            ..first.clone()
        };
        world.case.jobs = jobs.into_iter().map(planned).collect();
        world.case.assertions[0].metric = "train.loss_finite".into();
        world.case.assertions[0].jobs = jobs.into_iter().map(|(name, _)| name.into()).collect();
        let ran = world.jobs.jobs[0].clone();
        world.jobs.jobs =
            jobs.into_iter().map(|(name, _)| JobRecord { name: name.into(), ..ran.clone() }).collect();
        for (job, node) in jobs {
            world.rows.push(row("train.loss_finite", 2.0, &[(Dim::Job, job)]));
            let analysis = world.analysis.jobs.entry(job.to_owned()).or_default();
            if bad.contains(&node) {
                let finding = Finding::new(training_log::NAN_RANK, "NaN in the gradient").node(node);
                analysis.findings.push(finding.part("gpu3"));
            }
        }
        let culprits = world.judged().verdict.culprits;
        culprits.iter().map(|culprit| culprit.to_string()).collect::<Vec<_>>()
    };
    let named = culprits(&["n2"]);
    assert!(named.len() == 1 && named[0].starts_with("culprit n2 gpu3"), "{named:?}");
    assert_eq!(culprits(&["n2", "n4"]).len(), 2);
    // The first of them was the culprit.
    for bad in [&["n1", "n2", "n3"][..], &["n1", "n2", "n3", "n4"][..]] {
        assert_eq!(culprits(bad), Vec::<String>::new());
    }
}

#[test]
fn a_case_whose_bad_nodes_are_quarantined_ends_as_the_others_did() {
    let verdict = |nodes: &str, status: Status, cause: Option<&str>| {
        let mut verdict = fixture::verdict("c", "rate", "x", "y", status);
        (verdict.nodes, verdict.cause) = (nodes.into(), cause.map(str::to_owned));
        verdict
    };
    let end = |verdicts: &[Verdict], gone: &[&str]| {
        end_of_those_that_took_part(verdicts, &gone.iter().copied().collect())
    };
    let failed = || verdict("n[1-2]", Status::Fail, None);
    let passed = || verdict("n3", Status::Pass, None);
    assert_eq!(end(&[failed(), passed()], &[]), CaseEnd::Fail);
    assert_eq!(end(&[failed(), passed()], &["n1", "n2"]), CaseEnd::Pass);
    assert_eq!(end(&[failed(), passed()], &["n1"]), CaseEnd::Fail, "n2 is still there");
    assert_eq!(end(&[verdict("n1", Status::Error, Some(LEFT_OUT)), passed()], &[]), CaseEnd::Pass);
    assert_eq!(end(&[verdict("n1", Status::Error, Some("hang")), passed()], &[]), CaseEnd::Error);
    assert_eq!(end(&[verdict("", Status::Fail, None), passed()], &[]), CaseEnd::Fail, "of no node");
    // No node took part: that is no pass.
    assert_eq!(end(&[failed()], &["n1", "n2"]), CaseEnd::Error);
    assert_eq!(end(&[passed()], &["n3"]), CaseEnd::Error);
    assert_eq!(end(&[], &[]), CaseEnd::Inconclusive);
}

/// Four nodes of eight parts each, of which these are bad.
fn parts_of_four(metric: &str, part: fn(u64) -> (Dim, String), is_bad: fn(u64, u64) -> bool) -> Vec<String> {
    bounded_parts_of_four(at_least(1.0), metric, part, is_bad)
}

fn bounded_parts_of_four(
    bound: PlannedBound,
    metric: &str,
    part: fn(u64) -> (Dim, String),
    is_bad: fn(u64, u64) -> bool,
) -> Vec<String> {
    let mut world = World::new(bound);
    let asked = world.case.assertions.remove(0);
    for (node, at) in (1..=4u64).flat_map(|node| (0..8u64).map(move |at| (node, at))) {
        let (node_name, (dim, name)) = (format!("n{node}"), part(at));
        let dims = match dim {
            Dim::Gpu => Dims::new().with(Dim::Node, node_name.as_str()).with(Dim::Gpu, at),
            _ => Dims::new().with(Dim::Node, node_name.as_str()).with(dim, name.as_str()),
        };
        let shown = if dim == Dim::Gpu { format!("gpu{at}") } else { name.clone() };
        world.case.assertions.push(PlannedAssertion {
            name: format!("{node_name} {shown}"),
            metric: metric.into(),
            node: Some(node_name.clone()),
            part: Some(shown),
            dims,
            ..asked.clone()
        });
        let value = if is_bad(node, at) { 0.0 } else { 2.0 };
        world.rows.push(row(metric, value, &[(Dim::Node, &node_name), (dim, &name)]));
    }
    world.judged().verdict.culprits.iter().map(|culprit| format!("{culprit:.40}")).collect()
}

#[test]
fn parts_that_most_nodes_have_bad_alike_blame_no_node() {
    let gpu = |at: u64| (Dim::Gpu, at.to_string());
    let nic = |at: u64| (Dim::Nic, format!("r{at}"));
    let named = |culprits: &[String]| culprits.iter().filter(|line| line.starts_with("culprit ")).count();
    // A limit above what this model of GPU gives; one GPU of each node, then one node's.
    for (metric, part) in [("nccl.busbw", gpu as fn(u64) -> (Dim, String)), ("nic.present", nic)] {
        let all = parts_of_four(metric, part, |_, _| true);
        assert!(named(&all) == 0 && all[0].starts_with("no culprit: 4 of 4 nodes fail"), "{metric}: {all:?}");
        let three = parts_of_four(metric, part, |node, at| node < 4 && at == 3);
        assert!(named(&three) == 0 && three.len() == 1, "{metric}: {three:?}");
        assert_eq!(named(&parts_of_four(metric, part, |node, at| node == 2 && at == 3)), 1, "{metric}");
        assert_eq!(named(&parts_of_four(metric, part, |node, at| node < 3 && at == 3)), 2, "{metric}");
    }
    // Another GPU on each is one of eight, which no limit explains; another NIC on each is gone.
    assert_eq!(named(&parts_of_four("nccl.busbw", gpu, |node, at| node == at)), 4);
    assert_eq!(named(&parts_of_four("nic.present", nic, |node, at| node == at)), 4);
    // Five GPUs of eight on each are most.
    assert_eq!(named(&parts_of_four("nccl.busbw", gpu, |node, at| (node + at) % 8 < 5)), 0);
    // Memory errors of another GPU on each are those GPUs' own. The same GPU on each may be the program's.
    let exact = PlannedBound { equals: Some(2.0), ..PlannedBound::default() };
    let errors = |is_bad: fn(u64, u64) -> bool| {
        bounded_parts_of_four(exact.clone(), "gpu.ecc_uncorrected", gpu, is_bad)
    };
    assert_eq!(named(&errors(|node, at| node == at)), 4);
    assert_eq!(named(&errors(|node, at| node < 4 && at == 3)), 0);
    assert_eq!(named(&errors(|_, _| true)), 0, "the driver, or its reader");
    let absent = bounded_parts_of_four(exact.clone(), "nic.present", nic, |node, at| node < 4 && at == 3);
    assert_eq!(named(&absent), 0, "the profile");
}
