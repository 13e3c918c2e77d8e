//! Jobs that run more than once: repeats judged together, a run without the profiler, second attempts of what the cluster
//! itself ended; and sweeps whose shape is judged without a baseline.

use crate::project::{Project, Ran};
use std::fs;

/// Pairs of nodes; `more` stands in the case, `asserts` behind it.
fn suite(more: &str, asserts: &str) -> String {
    format!(
        r#"
instance = "p5"
about = "pairs, more than once"
[[case]]
name = "pairs"
placement = "pairs"
workload = {{ kind = "nccl-tests", op = "all_reduce", from = "64MiB", to = "4GiB", factor = 2 }}
recipes = ["nccl_tests", "nccl_shape"]
{more}
[[case.assert]]
metric = "nccl.busbw"
size = "1GiB"
at_least = "200 GB/s"
[[case.assert]]
metric = "nccl.wrong"
place = "both"
equals = 0
{asserts}
"#
    )
}

fn run(project: &Project, suite: &str, more: &[&str]) -> Ran {
    project.write("suites/own.toml", suite);
    let mut args = vec!["-q", "--suite", "own", "--nodes", "p5-[001-004]", "--seed", "7"];
    args.extend(more);
    project.harness(&args)
}

fn verdicts(project: &Project, metric: &str) -> Vec<serde_json::Value> {
    let all = project.json("cases/pairs/verdict.json");
    let all = all["verdicts"].as_array().expect("verdicts").clone();
    all.into_iter().filter(|verdict| verdict["metric"] == metric).collect()
}

fn texts_at(value: &serde_json::Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

#[test]
fn repeats_are_planned_counted_run_and_judged_together() {
    let project = Project::new();
    let thrice = suite("repeats = 3", "");
    let plan = run(&project, &thrice, &["--dry-run"]);
    assert!(plan.stdout.contains("including 4 independent repeats, judged together"), "{}", plan.all());
    let hours = |ran: &Ran| -> f64 {
        let line = ran.stdout.lines().find(|line| line.trim().starts_with("estimate: ")).expect("a line");
        let number = line.rsplit(", ").next().and_then(|last| last.split(' ').next()).expect("a number");
        number.parse().expect("hours")
    };
    let once = run(&project, &suite("", ""), &["--dry-run"]);
    assert!((hours(&plan) - 3.0 * hours(&once)).abs() < 0.02, "{} {}", hours(&plan), hours(&once));
    let ran = run(&project, &thrice, &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let found = verdicts(&project, "nccl.busbw");
    assert_eq!(found.len(), 2, "one verdict per pair, not per run");
    for verdict in &found {
        let runs: Vec<f64> =
            verdict["runs"].as_array().expect("runs").iter().filter_map(|run| run.as_f64()).collect();
        assert_eq!(runs.len(), 3);
        assert!(runs[0] != runs[1] && runs[1] != runs[2], "independent runs: {runs:?}");
        assert!(texts_at(verdict, "message").contains("median of 3 runs"), "{verdict}");
    }
    // A suite says it for all of its cases, and a case for itself.
    let all = thrice.replace("repeats = 3\n", "").replace("about = \"pairs", "repeats = 2\nabout = \"pairs");
    run(&project, &all, &[]);
    assert_eq!(verdicts(&project, "nccl.busbw")[0]["runs"].as_array().map(Vec::len), Some(2));
}

#[test]
fn each_repeat_counts_as_a_run_of_its_own_in_a_proposed_baseline() {
    let project = Project::new();
    project.write("baselines/sim-p5.toml", "instance = \"sim-p5\"\nsimulated = true\n");
    let against = suite("repeats = 5", "").replace("at_least = \"200 GB/s\"", "against = \"baseline\"");
    assert_eq!(run(&project, &against, &[]).code, Some(3));
    let proposed = project.harness(&["baseline", "propose", "--run", "latest"]);
    assert_eq!(proposed.code, Some(0), "{}", proposed.all());
    assert!(proposed.stdout.contains("from 5 runs"), "{}", proposed.all());
}

#[test]
fn a_job_that_the_cluster_ended_is_rerun_where_the_suite_asks_for_it_and_is_reported() {
    let project = Project::new();
    let retries = suite("retry_infrastructure = 1", "");
    for (fault, cause) in [("preempted-once", "PREEMPTED"), ("node-fails-once", "NODE_FAIL")] {
        let fault = format!("p5-002:{fault}");
        let without = run(&project, &suite("", ""), &["--sim-fault", &fault]);
        assert_eq!(without.code, Some(3), "never silently: {}", without.all());
        let ran = run(&project, &retries, &["--sim-fault", &fault]);
        assert_eq!(ran.code, Some(0), "{}", ran.all());
        let reported = texts_at(&verdicts(&project, "nccl.busbw")[0], "message");
        assert!(reported.contains(&format!("(attempt 2 of 2; attempt 1: {cause}")), "{reported}");
        // Both attempts stand in the record, with a folder each, and in the stream of events.
        let jobs = project.json("cases/pairs/job.json");
        let names: Vec<String> =
            jobs["jobs"].as_array().expect("jobs").iter().map(|job| texts_at(job, "name")).collect();
        assert_eq!(names, ["p5-001+p5-002", "p5-003+p5-004", "p5-001+p5-002.again"]);
        let events = fs::read_to_string(project.latest().join("events.jsonl")).expect("events");
        assert!(events.contains("\"event\":\"job-again\""), "{events}");
        let junit = fs::read_to_string(project.latest().join("junit.xml")).expect("a report");
        let reported = "p5-001+p5-002.again: attempt 2 of 2 is judged; attempt 1: ";
        assert!(junit.contains(reported) && ran.all().contains(reported), "{}\n{junit}", ran.all());
        let again = project.harness(&["-q", "--run", "latest", "--from", "collect"]);
        assert_eq!(again.code, Some(0), "{}", again.all());
    }
}

#[test]
fn what_fails_hangs_or_is_lost_everywhere_is_not_run_again() {
    let project = Project::new();
    let retries = suite("retry_infrastructure = 1", "");
    let names = |project: &Project| {
        let jobs = project.json("cases/pairs/job.json");
        jobs["jobs"].as_array().expect("jobs").len()
    };
    for fault in ["hang", "rank-dies", "corrupt@1", "disk-full", "queue-stuck"] {
        let ran = run(&project, &retries, &["--sim-fault", &format!("p5-002:{fault}")]);
        assert_ne!(ran.code, Some(0), "{fault}: {}", ran.all());
        assert_eq!(names(&project), 2, "{fault}");
    }
    // Lost again it stays lost, and both attempts are reported.
    let ran = run(&project, &retries, &["--sim-fault", "p5-002:preempted"]);
    assert_eq!((ran.code, names(&project)), (Some(3), 3), "{}", ran.all());
    let reported = texts_at(&verdicts(&project, "nccl.busbw")[0], "message");
    assert!(reported.ends_with("(attempt 2 of 2; attempt 1: PREEMPTED)"), "{reported}");
    // Both pairs: more than half of the jobs.
    let everywhere = ["--sim-fault", "p5-002:preempted-once", "--sim-fault", "p5-003:preempted-once"];
    let ran = run(&project, &retries, &everywhere);
    assert_eq!((ran.code, names(&project)), (Some(3), 2), "{}", ran.all());
    let reported = project.json("cases/pairs/job.json").to_string();
    assert!(reported.contains("more than half of the case's jobs were lost: 2 of 2"), "{reported}");
}

#[test]
fn an_expensive_profiler_judges_no_bandwidth_where_an_unprofiled_control_run_is() {
    let project = Project::new();
    let profile = "[case.profile]\nranks = \"rank0\"\nunprofiled_control_run = true\ncosts_at_most = \"3 %\"";
    let control_run = suite("", "").replace("\n\n[[case.assert]]", &format!("\n{profile}\n[[case.assert]]"));
    let control_run = control_run.replace("to = \"4GiB\"", "to = \"1GiB\"");
    let plan = run(&project, &control_run, &["--dry-run"]);
    assert!(
        plan.stdout.contains("2 runs without the profiler, whose overhead may be at most 3 %"),
        "{}",
        plan.all()
    );
    let ran = run(&project, &control_run, &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let dear = ["--sim-fault", "p5-001:profiler-costs=0.4"];
    let ran = run(&project, &control_run, &dear);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let found = verdicts(&project, "nccl.busbw");
    let reported = texts_at(&found[0], "message");
    assert!(reported.contains("judged by the run without nsys"), "{reported}");
    assert!(found[0]["observed"].as_f64().is_some_and(|seen| seen > 300.0), "{reported}");
    assert!(!texts_at(&found[1], "message").contains("nsys"), "the other pair pays nothing");
    // Without the control run the profiler's cost is taken for the fabric's.
    let alone = control_run.replace("unprofiled_control_run = true\ncosts_at_most = \"3 %\"", "");
    assert_eq!(run(&project, &alone, &dear).code, Some(1));
}

const SHAPE: &str = r#"
[[case.assert]]
metric = "nccl.dip"
place = "both"
at_most = "10 %"
spread = "2 %"
[[case.assert]]
metric = "nccl.in_over_out"
at_least = 0.9
at_most = 1.1
spread = "2 %"
[[case.assert]]
metric = "nccl.sizes_missing"
equals = 0
[[case.assert]]
metric = "nccl.fit_residual"
place = "both"
at_most = "25 %"
spread = "2 %"
[[case.assert]]
metric = "nccl.fit_latency"
at_most = "2000 us"
[[case.assert]]
metric = "nccl.fit_busbw"
at_least = "300 GB/s"
"#;

/// One row's out-of-place half, at this multiple of its time.
fn slowed(text: &str, bytes: u64, by: f64) -> String {
    let slow = |line: &str| {
        let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        for (at, factor) in [(5, by), (6, 1.0 / by), (7, 1.0 / by)] {
            let value: f64 = words[at].parse().expect("a number");
            words[at] = format!("{:.2}", value * factor);
        }
        words.join("  ")
    };
    let is_row = |line: &&str| line.split_whitespace().next() == Some(&bytes.to_string());
    let lines: Vec<String> =
        text.lines().map(|line| if is_row(&line) { slow(line) } else { line.to_owned() }).collect();
    closed(&lines.join("\n"))
}

/// With the average of the rows that are there, as the program would print it.
fn closed(text: &str) -> String {
    let is_row = |line: &&str| line.split_whitespace().next().is_some_and(|word| word.parse::<u64>().is_ok());
    let rates = text.lines().filter(is_row).flat_map(|row| {
        let words: Vec<&str> = row.split_whitespace().collect();
        [7, 11].map(|at| words[at].parse::<f64>().expect("a number"))
    });
    let rates: Vec<f64> = rates.collect();
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let average = |line: &str| match line.starts_with("# Avg bus bandwidth") {
        true => format!("# Avg bus bandwidth    : {mean:.3} \n"),
        false => format!("{line}\n"),
    };
    text.lines().map(average).collect()
}

#[test]
fn the_shape_of_a_sweep_is_judged_without_a_baseline() {
    let project = Project::new();
    let shaped = suite("", SHAPE);
    let ran = run(&project, &shaped, &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let file = project.latest().join("cases/pairs/raw/p5-001+p5-002/stdout");
    let text = fs::read_to_string(&file).expect("an output");
    fs::write(&file, slowed(&text, 1 << 29, 1.8)).expect("written");
    let again = project.harness(&["-q", "--run", "latest", "--from", "collect"]);
    assert_eq!(again.code, Some(1), "{}", again.all());
    let status = |metric: &str| -> Vec<String> {
        verdicts(&project, metric).iter().map(|verdict| texts_at(verdict, "status")).collect()
    };
    assert_eq!(status("nccl.dip"), ["fail", "pass"]);
    assert_eq!(status("nccl.in_over_out"), ["fail", "pass"]);
    assert_eq!(status("nccl.fit_residual"), ["fail", "pass"]);
    assert_eq!(status("nccl.fit_busbw"), ["pass", "pass"], "one size does not draw the line");
    let reported = texts_at(&verdicts(&project, "nccl.dip")[0], "message");
    assert!(reported.contains("512MiB out"), "{reported}");
    // A sweep that stopped short, as nccl-tests do where memory is short.
    let short: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("4294967296"))
        .map(|line| format!("{line}\n"))
        .collect();
    fs::write(project.latest().join("cases/pairs/raw/p5-001+p5-002/stdout"), closed(&short))
        .expect("written");
    let again = project.harness(&["-q", "--run", "latest", "--from", "collect"]);
    assert_eq!(again.code, Some(1), "{}", again.all());
    assert_eq!(status("nccl.sizes_missing"), ["fail", "pass"]);
    assert_eq!(status("nccl.dip"), ["inconclusive", "pass"]);
}

#[test]
fn diagnostics_in_these_keys_are_reported_with_what_to_write() {
    let project = Project::new();
    for (more, asserts, expected) in [
        ("repeats = 0", "", "repeats"),
        ("retry_infrastructure = 2", "", "retry_infrastructure"),
        ("[case.profile]\ncosts_at_most = \"3 %\"", "", "add `unprofiled_control_run = true`"),
        (
            "",
            "[[case.assert]]\nmetric = \"nccl.algbw\"\nsize = \"1GiB\"\nspread = \"2 %\"",
            "set `repeats = 3` in the case",
        ),
        (
            "",
            "[[case.assert]]\nmetric = \"nccl.sizes_missing\"\nequals = 0\nspread = \"2 %\"",
            "is a count and has no spread",
        ),
    ] {
        let mut text = suite(more, asserts);
        if more.starts_with('[') {
            text = suite("", asserts).replace("\n\n[[case.assert]]", &format!("\n{more}\n[[case.assert]]"));
        }
        let ran = run(&project, &text, &["--dry-run"]);
        assert_eq!(ran.code, Some(2), "{more} {asserts}: {}", ran.all());
        assert!(ran.stderr.contains(expected), "{more} {asserts}: {}", ran.all());
    }
}
