//! What fails in the same way everywhere is the launcher's, the image's or the tool's fault: the run stops, names no
//! node, and remembers nothing against any.

use crate::project::{Project, Ran};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// A simulated cluster of four nodes that differs from a stock one.
fn world(settings: &str) -> Project {
    let project = Project::new();
    let inventory = format!(
        "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"p5-[001-004]\"\n[reach]\nvia = \"slurm\"\n[world]\n{settings}\n"
    );
    project.write("inventory/broken.toml", &inventory);
    project
}

fn blamed(ran: &Ran, project: &Project) -> (Vec<String>, Value) {
    let summary = project.json("summary.json");
    (ran.blamed(), summary["culprits"].clone())
}

/// Nobody is blamed, in few lines, and no later case is run.
fn assert_stopped(project: &Project, ran: &Ran, words: &str) {
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert_eq!(blamed(ran, project), (Vec::new(), Value::Array(Vec::new())), "{}", ran.all());
    assert!(ran.stdout.contains(words), "{}", ran.all());
    assert!(ran.stdout.lines().count() <= 10, "{}", ran.all());
    let history = project.harness(&["history", "--suspects"]);
    assert!(history.stdout.contains("no part was blamed"), "{}", history.all());
}

const SUITE: [&str; 4] = ["--suite", "nccl-p5", "--inventory", "broken"];

#[test]
fn what_sbatch_refuses_blames_no_node_and_ends_the_run_after_its_first_case() {
    let text = "Batch job submission failed: Invalid account or account/partition combination specified";
    let project = world(&format!("sbatch_refuses = \"{text}\""));
    let ran = project.harness(&SUITE);
    assert_stopped(&project, &ran, text);
    let cases: Vec<Value> = project.json("summary.json")["cases"].as_array().expect("cases").clone();
    let judged = |end: &str| cases.iter().filter(|case| case["end"] == end).count();
    assert_eq!(judged("error"), cases.len(), "{}", ran.all());
    let submitted = fs::read_to_string(project.latest().join("events.jsonl")).expect("events");
    let tried = submitted.lines().filter(|line| line.contains("job-not-submitted")).count();
    assert_eq!(tried, 4, "the jobs of the first case alone are tried");
}

#[test]
fn an_mpi_that_starts_nowhere_is_shown_in_its_own_words_and_blames_no_node() {
    let project = world("mpi_start_fails = true");
    assert_stopped(&project, &project.harness(&SUITE), "Local abort before MPI_INIT completed");
}

#[test]
fn an_image_that_no_node_can_import_blames_no_node() {
    let project = world("image_import_fails = true");
    assert_stopped(&project, &project.harness(&SUITE), "401 Unauthorized");
}

#[test]
fn a_job_that_hangs_on_every_node_blames_none_of_them() {
    let project = world("");
    let hang: Vec<String> =
        (1..=4).flat_map(|n| ["--sim-fault".to_owned(), format!("p5-00{n}:hang")]).collect();
    let mut args = SUITE.to_vec();
    args.extend(hang.iter().map(String::as_str));
    assert_stopped(&project, &project.harness(&args), "gpu-each");
}

#[test]
fn isolate_refuses_a_cluster_whose_launcher_is_broken() {
    let project = world("sbatch_refuses = \"Batch job submission failed: Invalid qos specification\"");
    let first = project.harness(&["isolate", "--suite", "nccl-p5", "--inventory", "broken"]);
    assert_eq!(first.code, Some(3), "{}", first.all());
    assert!(first.all().contains("Invalid qos specification"), "{}", first.all());
    let ran = project.harness(&SUITE);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    let runs = project.runs();
    let again = project.harness(&["isolate", "--suite", "nccl-p5", "--inventory", "broken"]);
    assert_eq!((again.code, project.runs()), (Some(3), runs), "{}", again.all());
    assert!(again.stderr.contains("the newest run of `nccl-p5`"), "{}", again.all());
}

/// README's inventory of ten lines, where the controller gives no answer.
#[test]
fn a_controller_that_cannot_be_reached_is_ten_lines_and_no_culprit() {
    let project = Project::new();
    project.write(
        "inventory/prod.toml",
        "kind = \"real\"\ninstance = \"p5\"\nnodes = \"p5-[001-032]\"\n\n[reach]\nvia = \"slurm\"\npartition = \"gpu\"\n\n[paths]\n\
         shared = \"/fsx/harness\"\nnccl_tests = \"/opt/nccl-tests/build\"\n",
    );
    let bin = project.path().join("bin");
    fs::create_dir_all(&bin).expect("a folder");
    for tool in ["sbatch", "squeue", "srun", "sinfo", "scontrol", "scancel"] {
        let path = bin.join(tool);
        let text = "#!/bin/sh\necho \"$(basename $0): error: Unable to contact slurm controller (connect failure)\" >&2\nexit 1\n";
        fs::write(&path, text).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = project.command(&["--suite", "nccl-p5", "--inventory", "prod"]);
    let ran = crate::project::ran(command.env("PATH", path).output().expect("it runs"));
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(ran.blamed().is_empty(), "{}", ran.all());
    assert!(ran.stderr.contains("Unable to contact slurm controller (connect failure)"), "{}", ran.all());
    assert!(ran.stdout.lines().count() + ran.stderr.lines().count() <= 10, "{}", ran.all());
    let history = project.harness(&["history", "--suspects"]);
    assert!(!history.all().contains("p5-0"), "{}", history.all());
}
