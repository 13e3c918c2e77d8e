//! Every reason, as a person reads it: why a node is rejected, left open or withdrawn, or a suite is refused.

use super::node_status::{Bad, NodeStatus};
use super::refusal_tests::{bad, result, schedule, slow, statuses_after};
use super::schedule::{Open, Schedule, line};
use super::stages::{Stage, divide};
use super::tests::twice;
use config::suite::Suite;
use model::artefact::{CaseEnd, Status};
use recipes::catalogue::Catalogue;
use std::collections::BTreeMap;

fn not_passed(status: Status, with: &[&str]) -> NodeStatus {
    let message = match status {
        Status::Fail => "busbw 190.0 GB/s, limit 310.0 GB/s",
        Status::Error => "exit 127 in job j",
        Status::UnexpectedPass => "busbw 330.0 GB/s, expected to fail",
        _ => "busbw was not measured",
    };
    NodeStatus { bad: vec![Bad { message: message.into(), ..bad(status, with) }] }
}

fn passed() -> NodeStatus {
    NodeStatus::default()
}

/// Every node that left the schedule, one a line.
fn reasons(what: &str, schedule: &Schedule) -> String {
    let mut lines = vec![what.to_owned()];
    for one in &schedule.rejected {
        for culprit in &one.culprits {
            let (code, severity) = (&culprit.code, &culprit.severity);
            let (part, evidence) = (&culprit.part, &culprit.evidence);
            lines.push(format!("  rejected {}: {code} {severity} {part}: {evidence}", one.node));
        }
    }
    lines.extend(schedule.undecided.iter().map(|one| format!("  not decided {}: {}", one.node, one.why)));
    lines.extend(schedule.withdrawn.iter().map(|one| format!("  withdrawn {}: {}", one.node, one.why)));
    lines.join("\n")
}

/// A run of one node, which did not pass.
fn alone(metric: &str, part: Option<&str>, status: Status, each_gpu: bool) -> Schedule {
    let mut schedule = schedule(1, 0);
    let mut node_status = not_passed(status, &[]);
    (node_status.bad[0].metric, node_status.bad[0].part) = (metric.into(), part.map(str::to_owned));
    let open = schedule.first(Stage::Single, &result(&[("n1", node_status)], &[]));
    schedule.settle_alone(Stage::Single, open, each_gpu);
    schedule
}

#[test]
fn messages_of_single_nodes() {
    let mut broken = schedule(5, 1);
    let names = ["n1", "n2", "n3", "n4", "n5"];
    let of_fleet = |at: usize| if at < 3 { not_passed(Status::Error, &[]) } else { passed() };
    let statuses: Vec<(&str, NodeStatus)> =
        names.iter().enumerate().map(|(at, node)| (*node, of_fleet(at))).collect();
    broken.first(Stage::Single, &result(&statuses, &[]));
    let mut named = schedule(1, 0);
    let failed = [("n1", not_passed(Status::Fail, &[]))];
    named.first(Stage::Single, &result(&failed, &[slow("n1")]));
    let lines = [
        reasons("3 of 5 nodes cannot run", &broken),
        reasons("measurements name its NIC", &named),
        reasons("one GPU is slow", &alone("nccl.algbw", Some("gpu3"), Status::Fail, true)),
        reasons("one GPU is wrong", &alone("nccl.wrong", Some("gpu3"), Status::Fail, true)),
        reasons("its GPUs together are wrong", &alone("nccl.wrong", None, Status::Fail, true)),
        reasons("slow, each GPU passed alone", &alone("nccl.busbw", None, Status::Fail, true)),
        reasons("slow, no GPU was run alone", &alone("nccl.busbw", None, Status::Fail, false)),
        reasons("a NIC is out of bounds", &alone("nic.share", Some("rdmap79s0"), Status::Fail, true)),
        reasons("unexpected pass", &alone("nccl.busbw", None, Status::UnexpectedPass, true)),
        reasons("inconclusive", &alone("nccl.busbw", None, Status::Inconclusive, true)),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

/// A run of n1 and n2, both with g1, then a run of those that did not pass, all with g2.
fn retried(stage: Stage, first: [NodeStatus; 2], second: &[(&str, NodeStatus)]) -> Schedule {
    let mut schedule = schedule(2, 2);
    let [one, other] = first;
    let open = schedule.first(stage, &result(&[("n1", one), ("n2", other)], &[]));
    schedule.second(stage, open, &result(second, &[]));
    schedule
}

/// After a first run of groups in which n1 was slow with n2: the schedule, and who is open.
fn slow_group() -> (Schedule, Vec<Open>) {
    let mut schedule = schedule(2, 0);
    let first = [("n1", not_passed(Status::Fail, &["n2"])), ("n2", passed())];
    let open = schedule.first(Stage::Groups, &result(&first, &[]));
    (schedule, open)
}

#[test]
fn messages_of_nodes_that_ran_with_others() {
    let fail = |with: &str| not_passed(Status::Fail, &[with]);
    let error = |with: &str| not_passed(Status::Error, &[with]);
    let mut partner = schedule(1, 2);
    partner.first(Stage::Pairs, &result(&[("n1", passed())], &[slow("g1")]));
    let (mut unexplained, open) = slow_group();
    unexplained.unless_explained(Stage::Groups, open, None);
    let (mut link, open) = slow_group();
    let between = line("HRN-LINK-SLOW", "rack1-rack2", "link", "41 % of the rate is left").to_string();
    link.unless_explained(Stage::Groups, open, Some(&between));
    // n2 passed before, and filled up the group in which n1 was retried.
    let (mut filled, open) = slow_group();
    let mut own = not_passed(Status::Fail, &["n1"]);
    own.bad[0].is_own = true;
    filled.second(Stage::Groups, open, &result(&[("n1", fail("n2")), ("n2", own)], &[]));
    let lines = [
        reasons("measurements name the partner", &partner),
        reasons("not measured", &twice(not_passed(Status::Inconclusive, &["g1"]), passed()).0),
        reasons("failed, then passed", &twice(fail("g1"), passed()).0),
        reasons("failed twice in pairs", &twice(fail("g1"), fail("g2")).0),
        reasons("could not run twice", &twice(error("g1"), error("g2")).0),
        reasons("no partner left", &retried(Stage::Pairs, [fail("g1"), passed()], &[])),
        reasons(
            "failed twice in groups",
            &retried(Stage::Groups, [fail("g1"), passed()], &[("n1", fail("g2"))]),
        ),
        reasons(
            "two failed with one partner, then passed",
            &retried(Stage::Pairs, [fail("g1"), fail("g1")], &[("n1", passed()), ("n2", passed())]),
        ),
        reasons("isolation names no culprit", &unexplained),
        reasons("isolation names a link", &link),
        reasons("failed when it filled up a group", &filled),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn messages_of_what_did_not_pass() {
    let cases: [(&str, BTreeMap<String, NodeStatus>); 5] = [
        ("failed", statuses_after(Status::Fail, &|_, _, _| {})),
        ("nothing to compare with", statuses_after(Status::Unjudged, &|_, _, _| {})),
        ("not judged", statuses_after(Status::Pass, &|_, _, case| case.case = "other".into())),
        (
            "skipped",
            statuses_after(Status::Pass, &|plan, _, case| {
                plan.cases[0].skip = Some("needs 8 nodes".into());
                case.case = "other".into();
            }),
        ),
        ("no case", statuses_after(Status::Pass, &|plan, _, _| plan.cases.clear())),
    ];
    let mut lines = Vec::new();
    for (what, statuses) in cases {
        let bad = &statuses["p5-001"].bad;
        lines.extend(bad.iter().map(|bad| format!("{what}: {}: {}", bad.status, bad.message)));
    }
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn messages_of_refused_suites() {
    let case = |(name, more): (&str, &str)| {
        format!(
            "[[case]]\nname = \"{name}\"\nabout = \"x\"\nplacement = 1\n{more}\n\
             workload = {{ kind = \"command\", program = \"true\" }}\nrecipes = [\"command\"]\n\
             [[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n"
        )
    };
    let cases = [
        ("known", "expected_failure = \"a known fault\""),
        ("faulty", "sim_faults = [\"p5-002:nic-slow=0.4@rdmap113s0\"]"),
        ("strict", ""),
        ("bare", ""),
    ]
    .map(case);
    let text = format!("instance = \"p5\"\nabout = \"x\"\n{}", cases.concat());
    let mut suite = Suite::read(&text, "suites/x.toml", &Catalogue::built_in()).expect("a suite");
    suite.cases[2].must_end = Some(CaseEnd::Fail);
    suite.cases[3].assertions.clear();
    let mut lines = divide(&suite).expect_err("refused");
    suite.cases.clear();
    lines.extend(divide(&suite).expect_err("without a case"));
    insta::assert_snapshot!(lines.join("\n"));
}
