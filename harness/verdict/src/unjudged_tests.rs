//! Numbers without anything to compare them with: how many are announced, and which nodes they leave unproven.

use crate::judge::absent::ABSENT;
use crate::unjudged::{line, nodes_without_judged, planned};
use model::artefact::{
    BaselineNumbers, CaseVerdict, Plan, PlannedBaseline, PlannedBound, PlannedCase, Status, Verdict,
    WorkloadFacts,
};

fn counted(bound: PlannedBound, change: &dyn Fn(&mut PlannedCase)) -> (usize, usize) {
    let mut plan = fixture::plan();
    let case = &mut plan.cases[0];
    case.assertions.truncate(1);
    let one = &mut case.assertions[0];
    (one.bound, one.part, one.node) = (bound, None, None);
    change(case);
    planned(&plan)
}

fn without_baseline() -> PlannedBound {
    PlannedBound { baseline: Some(PlannedBaseline::None { key: "k".into() }), ..PlannedBound::default() }
}

#[test]
fn a_number_with_a_limit_a_baseline_or_peers_is_not_announced_as_unjudged() {
    let bare = || without_baseline();
    assert_eq!(counted(bare(), &|_| {}), (1, 1));
    for bound in [
        PlannedBound { at_least: Some(1.0), ..bare() },
        PlannedBound { at_most: Some(1.0), ..bare() },
        PlannedBound { equals: Some(1.0), ..bare() },
        PlannedBound {
            baseline: Some(PlannedBaseline::Accepted(BaselineNumbers::default())),
            ..PlannedBound::default()
        },
        PlannedBound::default(),
    ] {
        assert_eq!(counted(bound.clone(), &|_| {}), (0, 1), "{bound:?}");
    }
    assert_eq!(counted(bare(), &|case| case.skip = Some("needs 8 nodes".into())), (0, 0));
}

#[test]
fn peers_are_another_part_another_node_of_the_job_or_another_job() {
    let peers = || PlannedBound { within_peers: Some(0.1), ..PlannedBound::default() };
    let one_job = |case: &mut PlannedCase| case.jobs.truncate(1);
    assert_eq!(counted(peers(), &|_| {}), (0, 1), "two jobs");
    assert_eq!(counted(peers(), &one_job), (1, 1));
    let part = |case: &mut PlannedCase| {
        one_job(case);
        case.assertions[0].part = Some("gpu0".into());
    };
    assert_eq!(counted(peers(), &part), (0, 1));
    let node = |case: &mut PlannedCase| {
        one_job(case);
        case.assertions[0].node = Some("p5-001".into());
    };
    assert_eq!(counted(peers(), &node), (0, 1));
    let node_alone = |case: &mut PlannedCase| {
        node(case);
        case.jobs[0].nodes.truncate(1);
    };
    assert_eq!(counted(peers(), &node_alone), (1, 1));
    let second_attempt = |case: &mut PlannedCase| {
        case.jobs[1].again_of = Some(case.jobs[0].name.clone());
    };
    assert_eq!(counted(peers(), &second_attempt), (1, 1), "a second attempt is no peer of the first");
    let nothing = PlannedBound { within_peers: None, ..PlannedBound::default() };
    assert_eq!(counted(nothing, &one_job), (0, 1));
}

#[test]
fn counts_are_grouped_by_thousands() {
    for (n, shown) in [(0, "0 of"), (999, "999 of"), (1000, "1,000 of"), (1234567, "1,234,567 of")] {
        assert!(line(n, n, 2).starts_with(shown), "{}", line(n, n, 2));
    }
}

/// One number of a collective on two nodes, of these statuses.
fn left(change: &dyn Fn(&mut Plan, &mut Vec<Verdict>)) -> Vec<String> {
    let mut plan = fixture::plan();
    plan.cases[0].assertions.truncate(1);
    plan.cases[0].assertions[0].node = None;
    let mut verdict = fixture::verdict("nics", "busbw", "p5-001", "x", Status::Unjudged);
    (verdict.metric, verdict.node, verdict.part) = ("nccl.busbw".into(), None, None);
    let mut verdicts = vec![verdict];
    change(&mut plan, &mut verdicts);
    let mut case = fixture::case("nics");
    case.verdicts = verdicts;
    let gone = CaseVerdict { case: "gone".into(), ..case.clone() };
    assert!(nodes_without_judged(&plan, &[&gone]).is_empty(), "no case of the plan");
    nodes_without_judged(&plan, &[&case]).into_iter().collect()
}

/// The number and another one on the same job, or on another.
fn beside(status: Status, second: &dyn Fn(&mut Plan, &mut Verdict)) -> Vec<String> {
    left(&|plan, verdicts| {
        let again = plan.cases[0].assertions[0].clone();
        plan.cases[0].assertions.push(again);
        let mut other = Verdict { status, ..verdicts[0].clone() };
        second(plan, &mut other);
        verdicts.push(other);
    })
}

const BOTH: [&str; 2] = ["p5-001", "p5-002"];

#[test]
fn nodes_whose_only_number_is_unjudged_are_not_proven() {
    assert_eq!(left(&|_, _| {}), BOTH);
    let unproven = |status, cause: Option<&str>| {
        left(&|_, verdicts| {
            verdicts[0].status = status;
            verdicts[0].cause = cause.map(str::to_owned);
        })
    };
    // A driver without the counter leaves it as unproven; a failure or a case that did not run is reported elsewhere.
    assert_eq!(unproven(Status::Skipped, Some(ABSENT)), BOTH);
    for status in [Status::Skipped, Status::Pass, Status::Fail, Status::Error, Status::Inconclusive] {
        assert_eq!(unproven(status, None), Vec::<String>::new(), "{status}");
    }
    let other_suite = left(&|plan, _| plan.cases[0].suite = "mine".into());
    assert_eq!(other_suite, Vec::<String>::new());
}

#[test]
fn a_judged_number_on_the_same_nodes_and_parts_proves_them() {
    for status in [Status::Pass, Status::Fail, Status::ExpectedFailure, Status::UnexpectedPass] {
        assert_eq!(beside(status, &|_, _| {}), Vec::<String>::new(), "{status}");
    }
    assert_eq!(beside(Status::Inconclusive, &|_, _| {}), BOTH);
    // One that speaks of a single node, GPU or NIC proves that alone.
    let own = |node: Option<&str>, part: Option<&str>| {
        let (node, part) = (node.map(str::to_owned), part.map(str::to_owned));
        beside(Status::Pass, &|_, verdict| (verdict.node, verdict.part) = (node.clone(), part.clone()))
    };
    assert_eq!(own(Some("p5-001"), None), BOTH, "a number of one node by itself shows none of its NICs");
    assert_eq!(own(None, Some("gpu0")), BOTH);
    // On fewer nodes the fabric was not loaded alike.
    let smaller = |plan: &mut Plan, _: &mut Verdict| {
        plan.cases[0].jobs[1].nodes = vec!["p5-001".into()];
        plan.cases[0].assertions[1].jobs = vec![plan.cases[0].jobs[1].name.clone()];
    };
    assert_eq!(beside(Status::Pass, &smaller), BOTH);
}

#[test]
fn right_data_proves_no_part_and_a_nic_proves_no_gpu() {
    let metric = |metric: &str| {
        let metric = metric.to_owned();
        beside(Status::Pass, &|_, verdict| verdict.metric.clone_from(&metric))
    };
    assert_eq!(metric("nccl.busbw"), Vec::<String>::new());
    for only_some in ["nccl.wrong", "nic.share", "node.efa_tx"] {
        assert_eq!(metric(only_some), BOTH, "{only_some}");
    }
    // The other way round: what a NIC's number leaves open, a collective proves.
    let open_nic = left(&|plan, verdicts| {
        let again = plan.cases[0].assertions[0].clone();
        plan.cases[0].assertions.push(again);
        let proof = Verdict { status: Status::Pass, ..verdicts[0].clone() };
        verdicts[0].metric = "nic.share".into();
        verdicts.push(proof);
    });
    assert_eq!(open_nic, Vec::<String>::new());
    // On one node no NIC takes part: neither the node nor its GPUs have a rate.
    let on_one_node = |metric: &str| {
        let metric = metric.to_owned();
        beside(Status::Pass, &|plan, verdict| {
            plan.cases[0].jobs[0].nodes.truncate(1);
            verdict.metric.clone_from(&metric);
        })
    };
    assert_eq!(on_one_node("nccl.wrong"), ["p5-001"]);
    assert_eq!(on_one_node("nccl.algbw"), Vec::<String>::new());
    // Where nothing is open, right data leaves nothing open.
    let right = left(&|_, verdicts| {
        (verdicts[0].metric, verdicts[0].status) = ("nccl.wrong".into(), Status::Pass);
    });
    assert_eq!(right, Vec::<String>::new());
}

#[test]
fn a_command_proves_its_node_and_no_device_of_it() {
    let command = |plan: &mut Plan| {
        plan.cases[0].workload = WorkloadFacts::Command { program: "true".into() };
    };
    let open = left(&|plan, verdicts| {
        command(plan);
        let again = plan.cases[0].assertions[0].clone();
        plan.cases[0].assertions.push(again);
        let judged =
            Verdict { status: Status::Pass, metric: "command.exit_code".into(), ..verdicts[0].clone() };
        verdicts[0].metric = "command.seconds".into();
        verdicts.push(judged);
    });
    assert_eq!(open, Vec::<String>::new());
    let gpu = left(&|plan, verdicts| {
        command(plan);
        let again = plan.cases[0].assertions[0].clone();
        plan.cases[0].assertions.push(again);
        let judged = Verdict { status: Status::Pass, ..verdicts[0].clone() };
        verdicts[0].part = Some("gpu0".into());
        verdicts.push(judged);
    });
    assert_eq!(gpu, BOTH);
}

#[test]
fn a_number_of_one_node_leaves_its_partner_alone_and_a_collective_on_one_node_proves_no_nic() {
    let own = left(&|_, verdicts| verdicts[0].node = Some("p5-001".into()));
    assert_eq!(own, ["p5-001"]);
    let alone = left(&|plan, verdicts| {
        plan.cases[0].jobs[0].nodes.truncate(1);
        let again = plan.cases[0].assertions[0].clone();
        plan.cases[0].assertions.push(again);
        let proof = Verdict { status: Status::Pass, ..verdicts[0].clone() };
        verdicts[0].metric = "nic.share".into();
        verdicts.push(proof);
    });
    assert_eq!(alone, ["p5-001"]);
}
