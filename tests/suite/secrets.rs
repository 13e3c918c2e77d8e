//! A token that a run is given, in every way in which it may come to be seen, and the whole of what the run leaves: it is
//! found nowhere there. What must not be given at all is refused with its place.

#[path = "../planted/mod.rs"]
mod planted;

use crate::project::{Project, Ran};
use planted::{CORE, TOKEN, assert_found_nowhere, files};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

pub(crate) fn case(name: &str, program: &str, args: &str, more: &str) -> String {
    format!(
        "[[case]]\nname = \"{name}\"\nplacement = \"each\"\n\
         workload = {{ kind = \"command\", program = \"{program}\", args = [{args}], environment = {{ MY_TOKEN = \"env:PLANTED\" }} }}\n\
         recipes = [\"command\"]\n{more}\n[[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n"
    )
}

fn run(project: &Project, inventory: &str, cases: &str, more: &[&str]) -> Ran {
    let instance = if inventory == "here" { "p5" } else { "sim-p5" };
    project.write("suites/test.toml", &format!("instance = \"{instance}\"\nabout = \"planted\"\n{cases}"));
    let args = [&["--suite", "test", "--inventory", inventory], more].concat();
    let output = project.command(&args).env("PLANTED", TOKEN).output().expect("the harness starts");
    crate::project::ran(output)
}

fn redacted(project: &Project, case: &str) -> u64 {
    let collected = project.json(&format!("cases/{case}/collected.json"));
    let files = collected["files"].as_array().expect("files");
    files.iter().filter_map(|file| file["redacted"].as_u64()).sum()
}

#[test]
fn jobs_see_nothing_of_the_harness_environment_but_what_is_listed() {
    let project = Project::new();
    here(&project);
    let shows = program(&project, "shows", "env > \"$HOME/seen\"");
    project.write(
        "suites/test.toml",
        &format!("instance = \"p5\"\nabout = \"what it sees\"\n{}", case("shows", &shows, "", "")),
    );
    let mut command = project.command(&["-q", "--suite", "test", "--inventory", "here"]);
    command.env("PLANTED", TOKEN).env("HOME", project.path());
    let own =
        [("CI_JOB_NUMBER", "7"), ("CI_SECRET_TOKEN", "abc"), ("NCCL_TOKEN", "abc"), ("NCCL_DEBUG", "INFO")];
    let ran = crate::project::ran(command.envs(own).output().expect("the harness starts"));
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let seen = fs::read_to_string(project.path().join("seen")).expect("written by the job");
    assert!(seen.contains("NCCL_DEBUG=INFO"), "{seen}");
    for name in ["CI_JOB_NUMBER", "CI_SECRET_TOKEN", "NCCL_TOKEN", "PLANTED="] {
        assert!(!seen.contains(name), "{name} in {seen}");
    }
}

#[test]
fn a_planted_token_is_found_nowhere_in_what_a_simulated_run_leaves() {
    for inventory in ["default", "sim-ssh"] {
        let project = Project::new();
        let said = case("said", "echo", "\"env:PLANTED\", \"--token\", \"env:PLANTED\"", "");
        let ran = run(&project, inventory, &said, &[]);
        assert_eq!(ran.code, Some(0), "{inventory}: {}", ran.all());
        assert!(!ran.all().contains(CORE), "{}", ran.all());
        assert_found_nowhere(&project.latest(), CORE);
        assert_eq!(redacted(&project, "said"), 2 * 4, "each node printed it twice: {inventory}");
        let raw = project.latest().join("cases/said/raw");
        let stdout = files(&raw).into_iter().find(|file| file.display().to_string().contains("stdout"));
        let stdout = fs::read_to_string(stdout.expect("a file")).expect("text");
        assert_eq!(stdout, "[redacted] --token [redacted]\n");
        // The same from what lies there, on a machine that knows no token.
        for stage in ["collect", "analyze"] {
            let again = project.harness(&["--run", "latest", "--from", stage]);
            assert_eq!(again.code, Some(0), "{}", again.all());
            assert_eq!(redacted(&project, "said"), 2 * 4);
        }
    }
}

pub(crate) fn here(project: &Project) {
    let folder = project.path().display();
    project.write(
        "inventory/here.toml",
        &format!(
            "kind = \"real\"\ninstance = \"p5\"\nnodes = \"here-1\"\n[reach]\nvia = \"local\"\n[paths]\nshared = \"{folder}/shared\"\n\
             nccl_tests = \"{folder}/bin\"\n[environment]\nOTHER_SECRET = \"env:PLANTED\"\n"
        ),
    );
}

pub(crate) fn program(project: &Project, name: &str, text: &str) -> String {
    project.write(&format!("bin/{name}"), &format!("#!/bin/bash\n{text}\n"));
    let path = project.path().join("bin").join(name);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
    path.display().to_string()
}

#[test]
fn a_planted_token_is_found_nowhere_in_what_a_local_run_leaves() {
    let project = Project::new();
    here(&project);
    // The whole environment, as text and as nccl-tests writes it; its arguments; and what programs say of both.
    let shows = program(
        &project,
        "shows",
        r#"env | sort; env -0; printf '%s|' "$@"; echo "{\"args\": [\"$1\"], \"env\": [\"MY_TOKEN=${MY_TOKEN//\"/\\\"}\", \"A=1\"]}"
echo "error: cannot log in with $MY_TOKEN" >&2; cat "/proc/$$/cmdline" >&2; [[ $1 == "$MY_TOKEN" && $OTHER_SECRET == "$1" ]]"#,
    );
    let fails = program(&project, "fails", "echo \"job.sh: line 1: 7 Killed $MY_TOKEN\" >&2; exit 9");
    let cases = case("shows", &shows, "\"env:PLANTED\"", "") + &case("fails", &fails, "", "");
    let ran = run(&project, "here", &cases, &["--junit", "junit.xml", "--json", "all.json", "-v"]);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    let verdict = project.json("cases/shows/verdict.json");
    assert_eq!(verdict["end"], "pass", "its program was given the true value: {}", ran.all());
    assert!(!ran.all().contains(CORE), "{}", ran.all());
    assert_found_nowhere(&project.latest(), CORE);
    for file in ["junit.xml", "all.json"] {
        assert!(!fs::read_to_string(project.path().join(file)).expect("written").contains(CORE), "{file}");
    }
    assert!(redacted(&project, "shows") >= 7, "{}", redacted(&project, "shows"));
    // Nor is it left on the nodes, but in what programs printed there themselves.
    let left = files(&project.path().join("shared"));
    let given: Vec<_> = left.iter().filter(|file| file.ends_with("secrets")).collect();
    assert!(given.is_empty(), "{given:?}");
    let script = left
        .iter()
        .find(|file| file.ends_with("job.sh") && file.display().to_string().contains("/shows/"))
        .expect("a script");
    let text = fs::read_to_string(script).expect("text");
    assert!(
        !text.contains(CORE) && text.contains("# secrets: HARNESS_ARG_PLANTED MY_TOKEN OTHER_SECRET"),
        "{text}"
    );
    assert_eq!(fs::metadata(script.parent().expect("a folder")).expect("there").mode() & 0o777, 0o700);
    let bundled = project.harness(&["bundle", "--run", "latest", "--out", "run.tar.gz"]);
    assert_eq!(bundled.code, Some(0), "{}", bundled.all());
}

#[test]
fn what_a_launcher_says_of_a_token_is_reported_without_it() {
    let project = Project::new();
    here(&project);
    // Nothing can be put there: the error names the path, which holds the token.
    let inventory = project.path().join("inventory/here.toml");
    let text = fs::read_to_string(&inventory).expect("text");
    let folder = project.path().join("tokens are k3pt_here_9");
    fs::write(&folder, "a file").expect("written");
    let shared = format!("{}/shared", project.path().display());
    fs::write(&inventory, text.replace(&shared, &format!("{}/x", folder.display()))).expect("written");
    project.write(
        "suites/test.toml",
        &format!("instance = \"p5\"\nabout = \"x\"\n{}", case("one", "true", "", "")),
    );
    let output = project
        .command(&["--suite", "test", "--inventory", "here"])
        .env("PLANTED", "not to be seen 1")
        .env("SOME_SECRET", "k3pt_here_9")
        .output();
    let ran = crate::project::ran(output.expect("the harness starts"));
    // A plan that holds one is not written at all.
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    assert!(ran.stderr.contains("the plan would hold a secret in `folder`"), "{}", ran.all());
    assert!(!ran.all().contains("k3pt_here_9"), "{}", ran.all());
    assert_eq!(project.runs(), 0);
}

#[test]
fn a_secret_that_stands_in_a_suite_is_refused_with_its_place_and_without_its_value() {
    let project = Project::new();
    let cases = case("one", "true", "\"--password\", \"hunter2\"", "");
    let ran = run(&project, "default", &cases, &[]);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    assert!(ran.stderr.contains("suites/test.toml:6:"), "{}", ran.all());
    assert!(ran.stderr.contains("`password`; write `env:NAME`"), "{}", ran.all());
    let checked = project.harness(&["check"]);
    assert_eq!(checked.code, Some(2), "{}", checked.all());
    assert!(checked.stdout.contains("suites/test.toml:6:"), "{}", checked.all());
    assert!(!(ran.all() + &checked.all()).contains("hunter2"), "{}", ran.all());
    assert_eq!(project.runs(), 0);
}

#[test]
fn a_token_that_is_not_set_is_asked_for_before_anything_is_launched() {
    let project = Project::new();
    let cases = case("one", "true", "\"env:OTHER_PLANTED\"", "");
    project.write("suites/test.toml", &format!("instance = \"sim-p5\"\nabout = \"x\"\n{cases}"));
    let output = project.command(&["--suite", "test"]).env("OTHER_PLANTED", "abc").output();
    let ran = crate::project::ran(output.expect("the harness starts"));
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    assert!(ran.stderr.contains("`env:PLANTED` is not set in this environment"), "{}", ran.all());
    assert!(ran.stderr.contains("shorter than 6 characters"), "{}", ran.all());
    assert_eq!(project.runs(), 0);
    // A plan is shown without any.
    let shown = project.harness(&["--suite", "test", "--dry-run"]);
    assert_eq!(shown.code, Some(0), "{}", shown.all());
    assert!(shown.stdout.contains("\"$HARNESS_ARG_OTHER_PLANTED\""), "{}", shown.all());
}
