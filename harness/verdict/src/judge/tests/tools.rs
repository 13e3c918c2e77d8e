//! Programs that are not there or refuse, and pods that end: what is reported of them, and that no node is blamed.

use super::*;

#[test]
fn a_pod_that_is_lost_or_has_no_mpirun_is_reported_with_its_evidence_and_blames_no_node() {
    for (cause, status) in
        [("launch-agent", Status::Error), ("pod-lost", Status::Error), ("tool-missing", Status::Inconclusive)]
    {
        let mut world = World::new(at_least(10.0)).saw(100.0);
        world.jobs.jobs[0].end = Ended::Exited { code: 127 };
        let evidence = "n2: no sign of life".to_owned();
        world.analysis().failure = Some(WorkloadFailure { cause: cause.into(), node: None, evidence });
        let verdict = world.one();
        assert_eq!((verdict.status, verdict.cause.as_deref()), (status, Some(cause)));
        assert!(verdict.message.ends_with("n2: no sign of life"), "{}", verdict.message);
        assert_eq!(world.judged().outcomes.jobs, [], "{cause}");
    }
}

#[test]
fn a_missing_tool_is_inconclusive_and_says_what_to_install() {
    let mut world = World::new(at_least(10.0));
    world.case.workload =
        WorkloadFacts::NicPairs { tool: "fi_rma_bw".into(), op: "write".into(), memory: None, path: None };
    world.case.assertions[0].metric = "nic.rate".into();
    world.jobs.jobs[0].end = Ended::Exited { code: job::script::EXIT_NO_TOOL };
    let verdict = world.one();
    assert_eq!((verdict.status, verdict.cause.as_deref()), (Status::Inconclusive, Some("tool-missing")));
    assert!(verdict.next.is_some_and(|next| next.contains("ofiwg/libfabric")));
    world.jobs.jobs[0].end = Ended::Exited { code: job::script::EXIT_TOOL_REFUSED };
    let verdict = world.one();
    assert_eq!((verdict.status, verdict.cause.as_deref()), (Status::Inconclusive, Some("tool-refused")));
    assert_eq!(world.judged().outcomes.jobs, []);
    // The same code means nothing of the kind elsewhere.
    world.case.workload = World::new(at_least(1.0)).case.workload;
    assert_eq!(world.status(), Status::Error);
}

#[test]
fn a_check_that_fails_keeps_its_result_though_it_mentions_a_missing_program() {
    for (code, status) in [(1, Status::Fail), (127, Status::Inconclusive)] {
        let mut world = World::new(PlannedBound { equals: Some(0.0), ..PlannedBound::default() });
        world.case.workload = WorkloadFacts::Command { program: "check.sh".into() };
        world.case.assertions[0].metric = "command.exit_code".into();
        world.rows.push(row("command.exit_code", f64::from(code), &[]));
        world.jobs.jobs[0].end = Ended::Exited { code };
        let evidence = "check.sh: line 3: jq: command not found".to_owned();
        world.analysis().failure =
            Some(WorkloadFailure { cause: "tool-missing".into(), node: None, evidence });
        assert_eq!(world.status(), status, "exit code {code}");
    }
}
