//! Nodes are probed before a suite: those that cannot pass are left out by name, what was planned on them is never green,
//! and the others are measured as if they alone were there.

use crate::project::Project;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

fn suite(cases: &str) -> String {
    format!("instance = \"p5\"\nabout = \"a test\"\n{cases}")
}

fn collective(name: &str, placement: &str, more: &str) -> String {
    let placement = if placement == "1" { placement.to_owned() } else { format!("\"{placement}\"") };
    format!(
        "[[case]]\nname = \"{name}\"\nplacement = {placement}\n{more}\n\
         workload = {{ kind = \"nccl-tests\", op = \"all_gather\", from = \"1GiB\", to = \"2GiB\", factor = 2 }}\n\
         recipes = [\"nccl_tests\"]\n\
         [[case.assert]]\nmetric = \"nccl.busbw\"\nsize = \"2GiB\"\nat_least = \"1 GB/s\"\n"
    )
}

fn project(cases: &[String]) -> Project {
    let project = Project::new();
    project.write("suites/test.toml", &suite(&cases.concat()));
    project
}

/// Name, status and cause of every verdict of a case.
fn verdicts(project: &Project, case: &str) -> Vec<String> {
    let file = project.json(&format!("cases/{case}/verdict.json"));
    let word = |verdict: &Value, key: &str| verdict[key].as_str().unwrap_or_default().to_owned();
    let line = |verdict: &Value| {
        let name = word(verdict, "name").rsplit("::").next().unwrap_or_default().to_owned();
        format!("{name} {} {}", word(verdict, "status"), word(verdict, "cause")).trim_end().to_owned()
    };
    file["verdicts"].as_array().expect("verdicts").iter().map(line).collect()
}

/// The nodes that anything was launched on.
fn launched_on(project: &Project) -> BTreeSet<String> {
    let text = fs::read_to_string(project.latest().join("events.jsonl")).expect("events");
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("an event"));
    let submitted = events.filter(|event| event["event"] == "job-submitted");
    submitted
        .flat_map(|event| event["nodes"].as_array().expect("nodes").clone())
        .map(|node| node.as_str().expect("a name").to_owned())
        .collect()
}

const BAD: [&str; 5] = ["--suite", "test", "--probe", "--sim-fault", "p5-002:gpu-missing@3"];

#[test]
fn what_was_planned_on_a_node_that_cannot_pass_is_an_error_and_the_rest_is_measured() {
    let project = project(&[
        collective("all", "all", ""),
        collective("each", "each", ""),
        collective("pairs", "pairs", ""),
        collective("one", "1", ""),
    ]);
    for inventory in ["default", "sim-ssh"] {
        let ran = project.harness(&[BAD.as_slice(), &["--inventory", inventory]].concat());
        assert_eq!(ran.code, Some(3), "{}", ran.all());
        let reported = "cannot pass: p5-002: nvidia-smi lists 7 GPUs, expected 8 (`sim-p5`)";
        assert!(ran.stderr.contains(reported), "{}", ran.all());
        assert!(ran.stdout.contains("excluded p5-002: nvidia-smi lists 7 GPUs"), "{}", ran.all());
        assert_eq!(ran.blamed(), ["culprit p5-002 node"], "{}", ran.all());
        assert_eq!(
            launched_on(&project).into_iter().collect::<Vec<_>>(),
            ["p5-001", "p5-003", "p5-004"],
            "{inventory}"
        );
        assert_eq!(
            verdicts(&project, "all"),
            ["busbw/2GiB@p5-[001,003-004] pass", "busbw/2GiB@p5-[001-004] error left-out"]
        );
        assert_eq!(
            verdicts(&project, "each"),
            [
                "busbw/2GiB@p5-001 pass",
                "busbw/2GiB@p5-003 pass",
                "busbw/2GiB@p5-004 pass",
                "busbw/2GiB@p5-002 error left-out"
            ]
        );
        let pairs = verdicts(&project, "pairs");
        assert!(pairs.contains(&"busbw/2GiB@p5-[001-002] error left-out".to_owned()), "{pairs:?}");
        assert!(pairs.iter().filter(|reported| reported.ends_with("pass")).count() == 2, "{pairs:?}");
        // Nothing of it was planned on that node, so nothing of it is pending for it.
        assert_eq!(verdicts(&project, "one"), ["busbw/2GiB@p5-001 pass"]);
        let summary = project.json("summary.json");
        assert_eq!(summary["left_out"][0]["node"], "p5-002");
        assert_eq!(
            (&summary["coverage"]["nodes"]["measured"], &summary["coverage"]["nodes"]["expected"]),
            (&3.into(), &4.into())
        );
        let probe = project.json("probe.json");
        assert_eq!((&probe["simulated"], probe["nodes"].as_array().map(Vec::len)), (&true.into(), Some(4)));
        assert!(
            project.json("plan.json")["left_out"][0]["why"].as_str().is_some_and(|why| why.contains("7"))
        );
    }
}

#[test]
fn a_replay_reports_the_same_and_a_rerun_asks_for_what_is_pending_of_all_nodes() {
    let project = project(&[collective("all", "all", ""), collective("each", "each", "")]);
    let ran = project.harness(&BAD);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    let (all, each) = (verdicts(&project, "all"), verdicts(&project, "each"));
    let probe = fs::read(project.latest().join("probe.json")).expect("a probe");
    for from in ["collect", "analyze", "judge", "report"] {
        let again = project.harness(&["--run", "latest", "--from", from]);
        assert_eq!(again.code, Some(3), "{from}: {}", again.all());
        assert_eq!(
            (verdicts(&project, "all"), verdicts(&project, "each")),
            (all.clone(), each.clone()),
            "{from}"
        );
        assert_eq!(fs::read(project.latest().join("probe.json")).expect("carried"), probe);
    }
    // The node is taken as it is: what was pending is shown.
    let rerun = project.harness(&["--rerun", "latest"]);
    assert_eq!(rerun.code, Some(0), "{}", rerun.all());
    assert_eq!(verdicts(&project, "all"), ["busbw/2GiB@p5-[001-004] pass"]);
    assert_eq!(verdicts(&project, "each"), ["busbw/2GiB@p5-002 pass"]);
}

#[test]
fn a_run_that_was_ended_goes_on_without_the_nodes_that_it_had_left_out() {
    let project = project(&[collective("all", "all", ""), collective("each", "each", "")]);
    project.harness(&BAD);
    let (all, each) = (verdicts(&project, "all"), verdicts(&project, "each"));
    for file in ["summary.json", "junit.xml", "cases/each/verdict.json", "cases/each/collected.json"] {
        fs::remove_file(project.latest().join(file)).expect("removed");
    }
    let resumed = project.harness(&["--run", "latest", "--resume"]);
    assert_eq!(resumed.code, Some(3), "{}", resumed.all());
    assert_eq!((verdicts(&project, "all"), verdicts(&project, "each")), (all, each));
    assert!(!launched_on(&project).contains("p5-002"));
}

#[test]
fn cases_that_come_after_go_by_the_nodes_that_took_part() {
    let project =
        project(&[collective("first", "each", ""), collective("second", "all", "after = [\"first\"]")]);
    let ran = project.harness(&BAD);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert_eq!(
        verdicts(&project, "second"),
        ["busbw/2GiB@p5-[001,003-004] pass", "busbw/2GiB@p5-[001-004] error left-out"]
    );
}

#[test]
fn a_case_that_needs_more_nodes_than_are_left_runs_what_it_had_planned_on_them() {
    let project = project(&[collective("four", "each", "requires = { min_nodes = 4 }")]);
    let ran = project.harness(&BAD);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    let reported = verdicts(&project, "four");
    assert_eq!(reported.iter().filter(|reported| reported.ends_with("pass")).count(), 3, "{reported:?}");
    assert!(reported.contains(&"busbw/2GiB@p5-002 error left-out".to_owned()), "{reported:?}");
}

#[test]
fn where_no_node_can_pass_nothing_is_launched_and_nothing_is_green() {
    let project = project(&[collective("each", "each", "")]);
    let faults = ["p5-001", "p5-002", "p5-003", "p5-004"].map(|node| format!("{node}:disk-full"));
    let mut args = vec!["--suite", "test", "--probe"];
    args.extend(faults.iter().flat_map(|fault| ["--sim-fault", fault.as_str()]));
    let ran = project.harness(&args);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(launched_on(&project).is_empty());
    let line = verdicts(&project, "each");
    assert!(line.len() == 4 && line.iter().all(|line| line.ends_with("error left-out")), "{line:?}");
}

#[test]
fn a_shared_folder_that_is_full_leaves_all_nodes_out_and_is_the_fault_of_none() {
    let full = |node: &str| ["--sim-fault".to_owned(), format!("{node}:disk-full")];
    let run = |project: &Project, nodes: &str, of_all: &[String]| {
        let args = ["--suite", "test", "--probe", "--nodes", nodes];
        project.harness(&[&args[..], &of_all.iter().map(String::as_str).collect::<Vec<_>>()].concat())
    };
    let project = project(&[collective("each", "each", "")]);
    let both = [full("p5-001"), full("p5-002")].concat();
    let ran = run(&project, "p5-[001-002]", &both);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    let left_out = |node: &str| format!("busbw/2GiB@{node} error left-out");
    assert_eq!(verdicts(&project, "each"), [left_out("p5-001"), left_out("p5-002")]);
    assert!(ran.blamed().is_empty(), "what all nodes share is the fault of none: {}", ran.all());
    assert!(ran.stdout.contains("excluded p5-001: shared folder"), "{}", ran.all());
    // One that sees another folder than the others has a fault of its own, and so has one that lacks more.
    let ran = run(&project, "p5-[001-003]", &both);
    assert_eq!(ran.blamed(), ["culprit p5-001 node", "culprit p5-002 node"], "{}", ran.all());
    let more = [both, vec!["--sim-fault".to_owned(), "p5-002:gpu-missing@3".to_owned()]].concat();
    let ran = run(&project, "p5-[001-002]", &more);
    assert_eq!(ran.blamed(), ["culprit p5-002 node"], "{}", ran.all());
}

#[test]
fn a_probe_that_could_not_be_made_leaves_nobody_out() {
    let project = project(&[collective("each", "each", "")]);
    let args = ["--suite", "test", "--inventory", "sim-ssh", "--sim-fault", "p5-002:host-unreachable"];
    let without = project.harness(&args);
    let reported = verdicts(&project, "each");
    assert!(
        !project.latest().join("probe.json").exists(),
        "a simulated cluster is probed where that is asked for"
    );
    let with = project.harness(&[args.as_slice(), &["--probe"]].concat());
    assert_eq!(with.code, without.code, "{}", with.all());
    assert_eq!(verdicts(&project, "each"), reported);
    assert!(reported.iter().any(|reported| reported.ends_with("error host-unreachable")), "{reported:?}");
    assert!(with.stderr.contains("not probed: p5-002: "), "{}", with.all());
    // The preflight left nobody out; the job that was lost quarantines its node for later cases.
    let plan = project.json("plan.json");
    let left_out = plan["left_out"].as_array().expect("the lost node");
    assert!(left_out.iter().all(|left| left["after"] == "each"), "{left_out:?}");
    assert!(project.json("probe.json")["nodes"][1]["unprobed"].is_string());
}

#[test]
fn busy_nodes_are_refused_unless_that_is_allowed() {
    let project = project(&[collective("each", "each", "")]);
    let args = ["--suite", "test", "--probe", "--sim-fault", "p5-002:gpu-busy@3"];
    let refused = project.harness(&args);
    assert_eq!(refused.code, Some(3), "{}", refused.all());
    assert!(refused.stdout.contains("excluded p5-002: busy: its GPUs are in use by "), "{}", refused.all());
    let allowed = project.harness(&[args.as_slice(), &["--allow-busy"]].concat());
    assert_eq!(allowed.code, Some(0), "{}", allowed.all());
    assert!(allowed.stderr.contains("note: p5-002: busy"), "{}", allowed.all());
}

#[test]
fn a_choice_of_assertions_is_kept_on_the_nodes_that_are_left() {
    let project = project(&[collective("all", "all", ""), collective("each", "each", "")]);
    let ran = project.harness(&[BAD.as_slice(), &["each"]].concat());
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(!project.latest().join("cases/all").exists());
    assert_eq!(verdicts(&project, "each").len(), 4);
}

#[test]
fn a_list_and_a_dry_run_ask_no_node() {
    let project = project(&[collective("each", "each", "")]);
    for flag in ["--list", "--dry-run"] {
        let ran = project.harness(&[BAD.as_slice(), &[flag]].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.all());
        assert!(!ran.stderr.contains("cannot pass") && ran.stdout.contains("p5-002"), "{}", ran.all());
    }
}

#[test]
fn the_shipped_suite_goes_on_without_the_node() {
    let project = Project::new();
    let ran =
        project.harness(&["--suite", "nccl-p5", "-q", "--probe", "--sim-fault", "p5-002:gpu-missing@3"]);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert_eq!(ran.blamed(), ["culprit p5-002 node"], "{}", ran.all());
    let summary = project.json("summary.json");
    assert_eq!(
        (&summary["counts"]["fail"], &summary["counts"]["skipped"]),
        (&0.into(), &0.into()),
        "{}",
        ran.all()
    );
    assert!(summary["counts"]["pass"].as_u64() > Some(10), "{}", ran.all());
}
