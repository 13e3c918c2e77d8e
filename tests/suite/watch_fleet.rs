//! A watch whose process is killed at any write, and started again, knows what one knows that was never killed: no check is
//! lost, and none counts twice.

use crate::project::{Project, ran};
use serde_json::Value;
use std::fs;

const INVENTORY: &str = "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"p5-[001-002]\"\n[reach]\nvia = \"slurm\"\nqos = \"scavenger\"\n";
const ROUNDS: u64 = 7;

fn project() -> Project {
    let project = Project::new();
    fs::create_dir_all(project.path().join("inventory")).expect("made");
    fs::write(project.path().join("inventory/low.toml"), INVENTORY).expect("written");
    project
}

fn arguments(rounds: u64) -> Vec<String> {
    let text = "watch-fleet --suite nccl-p5 --case gpu-each --inventory low --budget 50% --every 3h \
                --sim-fault p5-002:corrupt@3 --rounds";
    text.split_whitespace().map(str::to_owned).chain([rounds.to_string()]).collect()
}

fn run(project: &Project, rounds: u64) -> Option<i32> {
    let arguments = arguments(rounds);
    project.harness(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).code
}

fn state(project: &Project) -> Option<Value> {
    let text = fs::read_to_string(project.path().join("runs/fleet/low/state.json")).ok()?;
    Some(serde_json::from_str(&text).expect("a whole state"))
}

/// What is known, and the numbers and messages of the events.
fn known(project: &Project) -> (Value, Vec<(u64, String)>) {
    let state = state(project).expect("a state");
    assert_eq!(state["running"], Value::Null);
    let events = fs::read_to_string(project.path().join("runs/fleet/low/events.jsonl")).expect("events");
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).expect("an event"));
    let events = events.map(|it| {
        (it["sequence"].as_u64().expect("a number"), it["message"].as_str().expect("a text").to_owned())
    });
    (state["fleet"]["records"].clone(), events.collect())
}

#[test]
fn killed_at_any_write_no_check_is_lost_and_none_counts_twice() {
    let whole = project();
    assert_eq!(run(&whole, ROUNDS), Some(1));
    let expected = known(&whole);
    assert_eq!(expected.0[0]["checks"], ROUNDS, "{}", expected.0);
    assert_eq!(expected.1.iter().map(|(sequence, _)| *sequence).collect::<Vec<_>>(), [1, 2]);
    let mut killed_in_check = 0;
    for kill_at in [1, 2, 3, 4, 5, 7, 9, 12, 15, 16] {
        let project = project();
        let all = arguments(ROUNDS - 1);
        let mut command = project.command(&all.iter().map(String::as_str).collect::<Vec<_>>());
        command.env("HARNESS_TEST_KILL_AT_WRITE", kill_at.to_string());
        let killed = ran(command.output().expect("the harness starts"));
        let state = state(&project);
        let rounds = state.as_ref().map_or(0, |state| state["rounds"].as_u64().expect("a number"));
        killed_in_check += usize::from(state.is_some_and(|state| state["running"].is_object()));
        assert!(killed.code.is_none() || rounds == ROUNDS - 1, "{}", killed.all());
        assert_eq!(run(&project, ROUNDS - rounds), Some(1), "killed at {kill_at}");
        assert_eq!(known(&project), expected, "killed at {kill_at}");
    }
    assert!(killed_in_check >= 3, "{killed_in_check}");
}

#[test]
fn a_check_that_was_never_launched_counts_for_nothing_and_its_nodes_are_chosen_again() {
    let project = project();
    assert_eq!(run(&project, 1), Some(0));
    let place = project.path().join("runs/fleet/low/state.json");
    let mut edited = state(&project).expect("a state");
    edited["running"] = serde_json::json!({"id": "gone", "nodes": ["p5-001"], "seed": 1, "node_s": 9.0});
    fs::write(&place, edited.to_string()).expect("written");
    assert_eq!(run(&project, 1), Some(0));
    let (records, _) = known(&project);
    for record in records.as_array().expect("records") {
        assert_eq!((&record["checks"], &record["tried_s"]), (&2.into(), &Value::Null), "{record}");
    }
}

#[test]
fn two_processes_do_not_watch_the_same_fleet() {
    let project = project();
    assert_eq!(run(&project, 1), Some(0));
    let folder = fs::File::open(project.path().join("runs/fleet/low")).expect("a folder");
    let _held = nix::fcntl::Flock::lock(folder, nix::fcntl::FlockArg::LockExclusiveNonblock).expect("held");
    assert_eq!(run(&project, 1), Some(2));
}

#[test]
fn an_alarm_that_leaves_the_inventory_is_reported_and_comes_back_with_its_past() {
    let project = project();
    let watch = |rounds: u64| {
        let mut arguments = arguments(rounds);
        if rounds == 2 {
            // A node that is not in the inventory has no simulated fault.
            arguments.retain(|it| it != "--sim-fault" && !it.contains("corrupt"));
        }
        project.harness(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    };
    assert!(watch(4).all().contains("ALARM HRN-GPU-WRONG p5-002 gpu3"));
    let place = project.path().join("inventory/low.toml");
    fs::write(&place, INVENTORY.replace("p5-[001-002]", "p5-001")).expect("written");
    let left = watch(2);
    assert_eq!(left.code, Some(0), "{}", left.all());
    assert!(
        left.all().contains("not watched any more, and not cleared: p5-002 gpu3: HRN-GPU-WRONG"),
        "{}",
        left.all()
    );
    fs::write(&place, INVENTORY).expect("written");
    let back = watch(1);
    assert_eq!(back.code, Some(1), "{}", back.all());
    assert!(
        back.all().contains("watched again, with its alarm: p5-002 gpu3: HRN-GPU-WRONG"),
        "{}",
        back.all()
    );
    let (records, _) = known(&project);
    let checks: Vec<&Value> = records.as_array().expect("records").iter().map(|it| &it["checks"]).collect();
    assert_eq!(checks, [7, 5]);
}

#[test]
fn a_state_behind_a_link_is_neither_read_nor_written() {
    let project = project();
    let other = project.path().join("other");
    fs::create_dir_all(&other).expect("made");
    fs::create_dir_all(project.path().join("runs")).expect("made");
    std::os::unix::fs::symlink(&other, project.path().join("runs/fleet")).expect("made");
    assert_eq!(run(&project, 1), Some(2));
    assert_eq!(fs::read_dir(&other).expect("read").count(), 0);
}
