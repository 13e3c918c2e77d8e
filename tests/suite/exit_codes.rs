//! The exit code of each verb by the cause of its error: scripts and CI servers branch on it.

use crate::project::Project;
use model::exit_code::{FAILED, INCONCLUSIVE, PASSED, USAGE};
use std::fs;
use std::process::{Command, Stdio};

/// A run whose plan cannot be read.
const BROKEN: &str = "20260101T000000Z-broken-0001";

#[track_caller]
fn assert_codes(project: &Project, table: &[(&[&str], i32, &str)]) {
    for (args, code, message) in table {
        let ran = project.harness(args);
        assert_eq!(ran.code, Some(*code), "{args:?}: {}", ran.all());
        assert!(ran.all().contains(message), "{args:?}: no `{message}` in {}", ran.all());
    }
}

/// One cause, two codes: who names a run has made an error; `clean` knows nothing of what such a run has left.
#[test]
fn a_run_that_cannot_be_read_is_wrong_usage_but_inconclusive_for_clean() {
    let project = Project::new();
    project.write(&format!("runs/{BROKEN}/plan.json"), "{");
    let plan = "plan.json: EOF while parsing";
    assert_codes(
        &project,
        &[
            (&["--run", BROKEN, "--from", "judge"], USAGE, plan),
            (&["--run", BROKEN, "--resume"], USAGE, plan),
            (&["--rerun", BROKEN], USAGE, plan),
            (&["bundle", "--run", BROKEN], USAGE, plan),
            (&["compare", BROKEN, BROKEN], USAGE, plan),
            (&["baseline", "propose", "--run", BROKEN], USAGE, plan),
            (&["isolate", "--suite", "nccl-p5", "--run", BROKEN], USAGE, plan),
            (&["isolate", "--resume", BROKEN], USAGE, plan),
            (&["history", "nccl.busbw"], USAGE, "no runs in"),
            (&["clean", "--run", BROKEN], INCONCLUSIVE, plan),
            (&["clean", "--all"], INCONCLUSIVE, plan),
        ],
    );
}

#[test]
fn a_run_that_is_not_there_is_wrong_usage() {
    let project = Project::new();
    let none = "no run";
    assert_codes(
        &project,
        &[
            (&["--run", "nowhere", "--from", "judge"], USAGE, none),
            (&["--run", "nowhere", "--resume"], USAGE, none),
            (&["--rerun", "nowhere"], USAGE, none),
            (&["bundle", "--run", "nowhere"], USAGE, none),
            (&["bundle", "--run", "latest"], USAGE, none),
            (&["clean", "--run", "nowhere"], USAGE, none),
            (&["clean", "--all"], PASSED, "there is no run here: nothing is left"),
            (&["compare", "nowhere", "there"], USAGE, none),
            (&["history", "nccl.busbw"], USAGE, "no runs here yet"),
            (&["baseline", "propose", "--run", "nowhere"], USAGE, none),
            (&["isolate", "--resume", "nowhere"], USAGE, none),
            (&["accept", "--resume", "nowhere"], USAGE, "no folder of a delivery"),
        ],
    );
}

#[test]
fn an_error_in_a_file_of_the_project_is_a_configuration_error() {
    let project = Project::new();
    project.write("suites/odd.toml", "broken = ");
    project.write("inventory/odd.toml", "x");
    let (suite, inventory) = ("suites/odd.toml:1:10: ", "inventory/odd.toml:1:2: ");
    assert_codes(
        &project,
        &[
            (&["--suite", "odd"], USAGE, suite),
            (&["isolate", "--suite", "odd"], USAGE, suite),
            (&["accept", "--suite", "odd", "--nodes", "p5-001"], USAGE, suite),
            (&["check"], USAGE, suite),
            (&["--suite", "nccl-p5", "--inventory", "odd"], USAGE, inventory),
            (&["isolate", "--suite", "nccl-p5", "--inventory", "odd"], USAGE, inventory),
            (&["field-kit", "--inventory", "odd"], USAGE, inventory),
            (&["inventory", "probe", "--inventory", "odd"], USAGE, inventory),
            (&["recipe", "nvlink_sum", "x", "--analyze-on", "slurm", "--inventory", "odd"], USAGE, inventory),
        ],
    );
}

#[test]
fn input_that_is_missing_is_wrong_usage_and_input_without_data_is_inconclusive() {
    let project = Project::new();
    project.write("empty/notes.txt", "nothing of interest\n");
    project.write("wrong.sh", "#!/bin/bash\nexport RDMAV_FORM_SAFE=1\nhostname\n");
    let (gone, notes) = ("nowhere", "empty/notes.txt");
    assert_codes(
        &project,
        &[
            (&["stats", gone], USAGE, gone),
            (&["stats", "empty"], USAGE, "no report or export"),
            (
                &["stats", "cuda_gpu_kern_sum", "empty"],
                USAGE,
                "error: cuda_gpu_kern_sum is a report and no input: write `-r",
            ),
            (&["recipe", "cuda_gpu_kern_sum", "empty"], USAGE, "no report to read"),
            (&["recipe", "index", gone], USAGE, gone),
            (&["recipe", "index", "empty"], INCONCLUSIVE, "no page of a recipe"),
            (&["lint", "script", gone], USAGE, "cannot be read"),
            (&["lint", "script", "wrong.sh"], FAILED, "misspelt"),
            (&["logs", "efa", gone], USAGE, gone),
            (&["logs", "efa", notes], INCONCLUSIVE, notes),
            (&["logs", "mpi", gone], USAGE, gone),
            (&["logs", "mpi", notes], INCONCLUSIVE, notes),
            (&["logs", "nccl", gone], USAGE, gone),
            (&["logs", "nccl", notes], INCONCLUSIVE, "no calls"),
            (&["logs", "nccl-tests", gone], USAGE, gone),
            (&["logs", "nccl-tests", notes], INCONCLUSIVE, "not understood"),
            (&["logs", "steps", gone], USAGE, gone),
            (&["logs", "steps", notes], INCONCLUSIVE, notes),
            (&["provision", "nsys", "--from", gone, "--to", "empty"], USAGE, gone),
            (&["provision", "nsys", "--from", notes, "--to", "empty"], USAGE, "is neither .deb"),
            (&["baseline", "diff", gone, "there"], USAGE, "no file of baselines"),
            (&["baseline", "review", "sim-p5"], USAGE, "`--by NAME` is required"),
            (&["explain", "HRN-NIC-SLO"], USAGE, "did you mean `HRN-NIC-SLOW`?"),
            (&["explain"], PASSED, "HRN-NIC-SLOW"),
            (&["field-kit", "--output", "suites"], USAGE, "already exists"),
        ],
    );
}

/// The program with these arguments as a shell starts it.
fn by_shell(project: &Project, script: &str, args: &[&str]) -> crate::project::Ran {
    let program = project.command(args);
    let mut command = Command::new("bash");
    command.args(["-c", script, "shell"]).arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    crate::project::ran(command.current_dir(project.path()).stdin(Stdio::null()).output().expect("bash"))
}

#[test]
fn reports_go_into_pipes_and_open_files_and_through_links() {
    let project = crate::little::project();
    let args = [&crate::little::ARGS[..], &["-q", "--junit", "link"]].concat();
    fs::create_dir(project.path().join("deep")).expect("made");
    std::os::unix::fs::symlink("deep/junit.xml", project.path().join("link")).expect("linked");
    for _ in 0..2 {
        let script = "mkfifo pipe; cat pipe > piped & \"$@\" --json pipe --markdown /dev/fd/7 7> open; code=$?; wait; rm pipe; exit $code";
        let ran = by_shell(&project, script, &args);
        assert_eq!(ran.code, Some(1), "{}", ran.all());
        let text = |name: &str| fs::read_to_string(project.path().join(name)).expect("written");
        assert_eq!(
            text("piped"),
            fs::read_to_string(project.latest().join("summary.json")).expect("written")
        );
        assert!(text("open").contains("p5-002"), "{}", text("open"));
        assert!(text("deep/junit.xml").starts_with("<?xml"));
        assert!(project.path().join("link").is_symlink());
    }
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_and_not_the_end_of_the_program() {
    let project = crate::little::project();
    let ran = by_shell(&project, "ulimit -f 8; exec \"$@\"", &[&crate::little::ARGS[..], &["-q"]].concat());
    assert!(matches!(ran.code, Some(1 | 3)), "{}", ran.all());
    assert!(ran.stderr.contains("File too large"), "{}", ran.all());
}
