//! The workflows on the page about CI, and that of `init`, do what they say: their scripts are taken out and run, on the simulated
//! cluster.

use crate::project::{HARNESS, OF_THE_MACHINE, Project, Ran, ran, root};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The lines of a list or block below a line of a file on the page, without what is before each.
fn script(file: &str, below: &str, mark: &str) -> String {
    let page = fs::read_to_string(root().join("docs/src/how-to/ci.md")).expect("a page");
    let block =
        page.split(&format!(" file={file}\n")).nth(1).expect("the file").split("```").next().expect("text");
    lines_below(block, below, mark)
}

fn lines_below(text: &str, below: &str, mark: &str) -> String {
    let (_, rest) = text.split_once(below).unwrap_or_else(|| panic!("no {below}: {text}"));
    let lines = rest.lines().skip(1).take_while(|line| line.starts_with(mark));
    lines.map(|line| format!("{}\n", &line[mark.len()..])).collect()
}

/// As a runner starts it: each line must succeed.
fn bash(project: &Project, script: &str) -> Ran {
    let mut command = Command::new("bash");
    let programs = Path::new(HARNESS).parent().expect("a folder").display().to_string();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap_or_default());
    command.args(["-e", "-c", script]).current_dir(project.path());
    for name in OF_THE_MACHINE {
        command.env_remove(name);
    }
    command.env("PATH", path).env("XDG_CONFIG_HOME", project.path());
    ran(command.env("GITHUB_ACTIONS", "true").env("GITHUB_STEP_SUMMARY", "page.md").output().expect("bash"))
}

/// Exit code of the harness, by what goes wrong.
const FAULTS: [(i32, &str); 3] = [
    (0, ""),
    (1, "--sim-fault p5-002:nic-slow=0.4@rdmap113s0"),
    (3, "--sim-fault p5-002:nic-dead@rdmap79s0"),
];

#[test]
fn the_workflow_of_github_warns_where_a_run_is_inconclusive_and_fails_where_it_failed() {
    let script = script(".github/workflows/cluster.yml", "validate the nodes\n        run: |", "          ");
    assert!(script.lines().count() > 3 && script.contains("harness run --suite nccl-p5 "), "{script}");
    for (code, fault) in FAULTS {
        let project = Project::new();
        let here = format!("harness run --suite nccl-p5 {fault} nic-pairs ");
        let ran = bash(&project, &script.replace("harness run --suite nccl-p5 ", &here));
        assert_eq!(ran.code, Some(if code == 1 { 1 } else { 0 }), "{}", ran.all());
        assert_eq!(ran.stdout.contains("::warning title=inconclusive::"), code == 3, "{}", ran.all());
        assert_eq!(ran.stdout.contains("::error title="), code != 0, "{}", ran.all());
        let page = fs::read_to_string(project.path().join("page.md")).expect("a summary");
        assert!(page.contains(&format!("(exit {code})")), "{page}");
        assert!(project.path().join("junit.xml").is_file());
    }
}

#[test]
fn the_job_of_gitlab_leaves_every_file_that_it_names() {
    let script = script(".gitlab-ci.yml", "  script:", "    - ");
    for (code, fault) in FAULTS {
        let project = Project::new();
        let here = format!("harness run --suite nccl-p5 {fault} nic-pairs ");
        let ran = bash(&project, &script.replace("harness run --suite nccl-p5 ", &here));
        assert_eq!(ran.code, Some(code), "{}", ran.all());
        for file in ["junit.xml", "metrics.txt", "summary.md", "runs/latest/summary.json"] {
            assert!(project.path().join(file).is_file(), "{file}");
        }
    }
}

/// Its commands are run; of its Groovy only what it makes of each exit code is read.
#[test]
fn the_pipeline_of_jenkins_is_unstable_where_a_run_is_inconclusive_and_leaves_what_it_archives() {
    let page = fs::read_to_string(root().join("docs/src/how-to/ci.md")).expect("a page");
    let pipeline =
        page.split(" file=Jenkinsfile\n").nth(1).and_then(|rest| rest.split("```").next()).expect("it");
    let quoted = |before: &str| {
        let rest = pipeline.split(before).nth(1).unwrap_or_else(|| panic!("no {before}: {pipeline}"));
        rest.split('\'').next().expect("a command").to_owned()
    };
    let (check, run) = (quoted("sh '"), quoted("sh(script: '"));
    assert!(pipeline.contains(", returnStatus: true)"), "{pipeline}");
    let reacts = "if (code == 3) { unstable('inconclusive') } else if (code != 0) { error(";
    assert!(pipeline.contains(reacts), "{pipeline}");
    let (junit, archived) = (quoted("junit '"), quoted("archiveArtifacts '"));
    for (code, fault) in FAULTS {
        let project = Project::new();
        assert_eq!(bash(&project, &check).code, Some(0), "{check}");
        let here = format!("harness run --suite nccl-p5 {fault} nic-pairs ");
        let ran = bash(&project, &run.replace("harness run --suite nccl-p5 ", &here));
        assert_eq!(ran.code, Some(code), "{}", ran.all());
        assert!(project.path().join(&junit).is_file());
        assert!(project.path().join(archived.trim_end_matches("/**")).join("latest/summary.json").is_file());
    }
}

#[test]
fn the_workflow_that_init_writes_checks_and_runs_its_project() {
    let project = Project::bare();
    assert_eq!(project.harness(&["init"]).code, Some(0));
    let workflow =
        fs::read_to_string(project.path().join(".github/workflows/harness.yml")).expect("a workflow");
    let checks: Vec<&str> =
        workflow.lines().filter_map(|line| line.trim().strip_prefix("- run: harness ")).collect();
    assert_eq!(checks.len(), 2, "{workflow}");
    for check in checks {
        let ran = bash(&project, &format!("harness {check}"));
        assert_eq!(ran.code, Some(0), "{check}: {}", ran.all());
    }
    let script = lines_below(&workflow, "- run: |", "          ");
    // Pairs of nodes alone show a slow NIC, and which of both has it is not known.
    for (code, fault) in
        [(0, ""), (1, "--sim-fault p5-002:node-slow=0.5"), (3, "--sim-fault p5-002:nic-slow=0.4@rdmap113s0")]
    {
        let ran = bash(&project, &script.replace("--suite first ", &format!("--suite first {fault} ")));
        assert_eq!(ran.code, Some(if code == 1 { 1 } else { 0 }), "{}", ran.all());
        assert_eq!(ran.stdout.contains("::warning title=inconclusive::"), code == 3, "{}", ran.all());
        let page = fs::read_to_string(project.path().join("page.md")).expect("a summary");
        assert!(page.contains(&format!("(exit {code})")), "{page}");
        let junit = fs::read_to_string(project.path().join("junit.xml")).expect("a report");
        assert_eq!(junit.contains("name=\"culprit p5-002 node (HRN-"), code == 1, "{junit}");
    }
}
