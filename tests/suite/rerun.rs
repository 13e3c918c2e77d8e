//! What a run failed or could not determine is run again, and nothing else; what is then still pending is said.

use crate::little::{SUITE, ended, killed, project, verdicts};
use crate::project::Project;
use std::fs;

/// The jobs that the newest run launched.
fn launched(project: &Project) -> Vec<String> {
    let events = fs::read_to_string(project.latest().join("events.jsonl")).expect("events");
    let events = events.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("a line"));
    let submitted = events.filter(|event| event["event"] == "job-submitted");
    submitted.map(|event| format!("{}/{}", event["case"], event["job"]).replace('"', "")).collect()
}

fn pending(project: &Project) -> Vec<String> {
    let summary = project.json("summary.json");
    let names = summary["pending"].as_array().cloned().unwrap_or_default();
    names.iter().map(|name| name.as_str().expect("a name").to_owned()).collect()
}

/// The suite with all that failed in it put right.
fn repaired() -> String {
    let last = SUITE.rsplit_once("program = \"false\"").expect("a command that fails");
    format!("{}program = \"true\"{}", last.0, last.1).replace("at_least = 0.9\n", "at_least = 0.0\n")
}

#[test]
fn only_what_failed_or_was_stopped_is_run_again_on_the_same_nodes_with_the_same_seed() {
    let project = project();
    let parent = ended(&project);
    let whole = project.json("plan.json");
    let ran = project.harness(&["-q", "--rerun", "latest"]);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    let names: Vec<String> = verdicts(&project).into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        [
            "little::pair::nic.share@p5-002",
            "little::fails::command.exit_code@p5-001",
            "little::stopped::command.exit_code@p5-001"
        ]
    );
    let plan = project.json("plan.json");
    assert_eq!(plan["parent"], parent.as_str());
    assert_eq!(plan["pending"], serde_json::json!(names));
    for same in ["suites", "inventory", "nodes", "settings", "seed", "sim_faults", "sources"] {
        assert_eq!(plan[same], whole[same], "{same}");
    }
    assert_eq!(launched(&project), ["pair/p5-001+p5-002", "fails/nodes-1"]);
    assert_eq!(pending(&project), names);
    assert!(
        ran.stdout.contains("still pending: 3 assertions of 3, first little::pair::nic.share@p5-002"),
        "{}",
        ran.all()
    );
    assert!(ran.stdout.contains(&format!("made from run: {parent}")), "{}", ran.all());
}

#[test]
fn a_rerun_asks_for_the_reservation_that_the_run_was_given() {
    let project = project();
    let ran = project.harness(&[&crate::little::ARGS[..], &["-q", "--reservation", "accept"]].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    let asks = |name: &str| {
        let plan = project.json("plan.json");
        let script = plan["cases"][0]["jobs"][0]["files"][0]["text"].as_str().expect("a script").to_owned();
        assert!(script.contains(&format!("#SBATCH --reservation={name}\n")), "{script}");
        assert_eq!(plan["reservation"], name);
    };
    asks("accept");
    assert_eq!(project.harness(&["-q", "--rerun", "latest"]).code, Some(1));
    asks("accept");
    assert_eq!(project.harness(&["-q", "--rerun", "latest", "--reservation", "other"]).code, Some(1));
    asks("other");
}

#[test]
fn what_passes_now_is_pending_no_more_and_then_there_is_nothing_to_run_again() {
    let project = project();
    ended(&project);
    project.write("suites/little.toml", &repaired());
    let ran = project.harness(&["-q", "--rerun", "latest"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert!(
        ran.stderr.contains("changed since the run that this one repeats: suites/little.toml"),
        "{}",
        ran.all()
    );
    assert_eq!(pending(&project), [] as [&str; 0]);
    let runs = project.runs();
    let again = project.harness(&["-q", "--rerun", "latest"]);
    assert_eq!(again.code, Some(4), "{}", again.all());
    assert!(again.stderr.contains("nothing is pending"), "{}", again.stderr);
    assert_eq!(project.runs(), runs);
}

#[test]
fn a_rerun_of_a_part_exits_5_and_the_rest_stays_owed_from_run_to_run() {
    let project = project();
    let parent = ended(&project);
    project.write("suites/little.toml", &repaired());
    let none = project.harness(&["-q", "--rerun", &parent, "kernels"]);
    assert_eq!(none.code, Some(4), "{}", none.all());
    let part = project.harness(&["-q", "--rerun", &parent, "nic.share"]);
    assert_eq!(part.code, Some(5), "{}", part.all());
    assert!(part.stdout.contains("exit 5: rerun without failures"), "{}", part.all());
    assert_eq!(project.json("summary.json")["exit_code"], 5);
    assert_eq!(pending(&project).len(), 2, "{}", part.all());
    // A replay of it owes the same.
    let replayed = project.harness(&["-q", "--run", "latest", "--from", "judge"]);
    assert_eq!(replayed.code, Some(5), "{}", replayed.all());
    let listed = project.harness(&["--rerun", "latest", "--list", "--format", "terse"]);
    assert_eq!(
        listed.stdout,
        "little::fails::command.exit_code@p5-001: test\nlittle::stopped::command.exit_code@p5-001: test\n"
    );
    let rest = project.harness(&["-q", "--rerun", "latest"]);
    assert_eq!(rest.code, Some(0), "{}", rest.all());
    assert_eq!(launched(&project), ["fails/nodes-1", "stopped/nodes-1"]);
}

#[test]
fn failing_again_beats_owing_and_so_does_what_could_not_be_determined() {
    let project = project();
    let parent = ended(&project);
    let failed = project.harness(&["-q", "--rerun", &parent, "fails"]);
    assert_eq!(failed.code, Some(1), "{}", failed.all());
    assert_eq!(pending(&project).len(), 3);
    let untold = project.harness(&[
        "-q",
        "--rerun",
        &parent,
        "--exact",
        "little::pair::nic.share@p5-002",
        "--timeout",
        "1",
    ]);
    assert_eq!(untold.code, Some(3), "{}", untold.all());
}

#[test]
fn a_run_that_was_killed_owes_what_it_had_not_judged() {
    let project = project();
    let parent = killed(&project, 3);
    let ran = project.harness(&["-q", "--rerun", &parent]);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    assert_eq!(verdicts(&project).len(), 6, "{}", ran.all());
}

#[test]
fn what_cannot_be_run_again_is_reported() {
    let project = project();
    ended(&project);
    // A case that is gone stays pending, and is reported.
    let without = SUITE.rsplit_once("[[case]]\nname = \"stopped\"").expect("the last case").0;
    project.write("suites/little.toml", without);
    let ran = project.harness(&["-q", "--rerun", "latest"]);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    assert!(ran.stderr.contains("no suite asks for it any more: 1, first `little::stopped"), "{}", ran.all());
    assert_eq!(pending(&project).len(), 3);
    fs::remove_file(project.path().join("suites/little.toml")).expect("removed");
    let runs = project.runs();
    let gone = project.harness(&["-q", "--rerun", "latest"]);
    assert_eq!(gone.code, Some(2), "{}", gone.all());
    assert!(
        gone.stderr.contains("the suite of the run is not in this project any more")
            && gone.stderr.contains("`little`"),
        "{}",
        gone.stderr
    );
    project.write("suites/little.toml", SUITE);
    project.write(
        "inventory/default.toml",
        "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"other-[1-2]\"\n",
    );
    let nodes = project.harness(&["-q", "--rerun", "latest"]);
    assert_eq!(nodes.code, Some(2), "{}", nodes.all());
    assert!(nodes.stderr.contains("p5-001"), "{}", nodes.stderr);
    assert_eq!(project.runs(), runs);
    let none = project.harness(&["-q", "--rerun", "no-such-run"]);
    assert_eq!(none.code, Some(2), "{}", none.all());
}

#[test]
fn a_dry_run_of_a_rerun_shows_its_jobs_and_launches_nothing() {
    let project = project();
    ended(&project);
    let runs = project.runs();
    let ran = project.harness(&["--rerun", "latest", "--dry-run"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert!(ran.stdout.contains("fails") && !ran.stdout.contains("kernels"), "{}", ran.stdout);
    assert_eq!(project.runs(), runs);
}
