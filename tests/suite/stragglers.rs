//! Ranks of the simulated cluster that keep the others waiting are named by what their reports hold, whatever their
//! clocks report; and where all is well no rank is.

use crate::project::{Project, Ran};

const SUITE: &str = r#"
instance = "p5"
about = "who keeps the others waiting"
[[case]]
name = "train"
placement = "pairs"
workload = { kind = "command", program = "torchrun", args = ["--nproc_per_node=8", "train.py", "--steps", "30"] }
recipes = ["command", "stragglers"]
[case.profile]
ranks = "all"
keep = "always"
[[case.assert]]
metric = "straggler.late"
per = "node"
at_most = "1000 us"
[[case.assert]]
metric = "clock.residual"
per = "node"
at_most = "50 us"
[[case]]
name = "gather"
placement = "pairs"
workload = { kind = "nccl-tests", op = "all_gather", from = "64MiB", to = "256MiB", factor = 2 }
recipes = ["nccl_tests", "stragglers"]
[case.profile]
ranks = "all"
[[case.assert]]
metric = "straggler.late"
per = "node"
at_most = "1000 us"
"#;

fn run(faults: &[&str]) -> (Project, Ran) {
    let project = Project::new();
    project.write("suites/late.toml", SUITE);
    let mut args = vec!["--suite", "late", "--nodes", "p5-[001-002]"];
    args.extend(faults.iter().flat_map(|fault| ["--sim-fault", *fault]));
    let ran = project.harness(&args);
    (project, ran)
}

/// Nodes, parts and codes of what was found in both cases.
fn found(project: &Project) -> Vec<String> {
    let mut found = Vec::new();
    for case in ["train", "gather"] {
        let analysis = project.json(&format!("cases/{case}/analysis.json"));
        for job in analysis["jobs"].as_object().expect("jobs").values() {
            found.extend(job["findings"].as_array().into_iter().flatten().map(|finding| {
                let word = |key: &str| finding[key].as_str().unwrap_or("-").to_owned();
                format!("{case} {} {} {}", word("code"), word("node"), word("part"))
            }));
        }
    }
    found
}

#[test]
fn a_rank_that_comes_late_is_found_in_training_and_in_collectives() {
    let (project, ran) = run(&["p5-002:straggler=5@3", "p5-001:clock-offset=40", "p5-002:clock-drift=40"]);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    assert_eq!(found(&project), ["train straggler p5-002 gpu3", "gather straggler p5-002 gpu3"]);
    let mut jobs = std::fs::read_dir(project.latest().join("cases/train/raw")).expect("reports").flatten();
    let job = jobs.next().expect("a job").path().display().to_string();
    let out = project.harness(&["recipe", "stragglers", "--csv", &job]);
    let rows: Vec<&str> = out.stdout.lines().collect();
    assert!(rows.len() == 2 && rows[1].starts_with("straggler,rank,p5-002,1,3,"), "{}", out.all());
    assert!(rows[1].contains("its kernels run longer"), "{}", out.all());
}

#[test]
fn clocks_that_are_off_and_drift_make_no_rank_late() {
    for faults in [&[][..], &["p5-001:clock-offset=50", "p5-002:clock-offset=3", "p5-002:clock-drift=50"]] {
        let (project, ran) = run(faults);
        assert_eq!((ran.code, found(&project)), (Some(0), Vec::new()), "{}", ran.all());
    }
}
