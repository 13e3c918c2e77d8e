//! Trainings in pods in which one rank goes wrong: it is named with its node and GPU before the job is ended, and no other
//! is. The dumps come by the real request, through the stand-in for kubectl, from a stand-in for torchrun.

use super::{Bench, all};
use crate::project::root;
use std::fs;
use std::os::unix::fs::symlink;

/// Where one rank of four goes wrong like this: what is reported, and whom the run blames.
fn check(goes: &str, reported: &str, blamed: &[&str]) {
    let bench = Bench::new();
    let project = &bench.0;
    symlink(root().join("tests/stand_ins/torchrun"), project.path().join("bin/torchrun")).expect("linked");
    project.write("kube/own-pipes", "");
    let read = |name: &str| fs::read_to_string(project.path().join(name)).expect("it is there");
    let two = read("inventory/instances/p5.toml").replace("gpus = 8", "gpus = 2");
    project.write("inventory/instances/two.toml", &two);
    let torchrun = project.path().join("bin/torchrun").display().to_string();
    let inventory = read("inventory/pods.toml").replace("\"p5\"", "\"two\"");
    project.write("inventory/pods.toml", &format!("{inventory}torchrun = \"{torchrun}\"\n"));
    project.write(
        "suites/pods.toml",
        &format!(
            "instance = \"two\"\nabout = \"one rank goes wrong\"\n[[case]]\nname = \"train\"\nplacement = \"all\"\n\
             limit_s = 240\nrecipes = [\"training_log\"]\ncounters = false\n\
             workload = {{ kind = \"torchrun\", script = \"train.py\", args = [\"{goes}\"], processes_per_node = 2, \
             stall_s = 10 }}\n[[case.assert]]\nmetric = \"train.steps_missing\"\nequals = 0\n"
        ),
    );
    let ran = bench.suite();
    assert_eq!(ran.code, Some(3), "{goes}: {}", all(&ran));
    let verdict = project.json("cases/train/verdict.json").to_string();
    assert!(verdict.contains(reported), "{goes}: no `{reported}`: {verdict}\n{}", all(&ran));
    assert_eq!(ran.blamed(), blamed, "{goes}: {}", all(&ran));
    // No innocent is named.
    let others = ["rank 0 (", "rank 1 (", "(n1 GPU", "culprit n1", "suspects"];
    assert!(!others.iter().any(|other| verdict.contains(other) || ran.stdout.contains(other)), "{verdict}");
    let end = &project.json("cases/train/job.json")["jobs"][0]["end"]["how"];
    assert_eq!(end, if goes == "dies" { "exited" } else { "stall" }, "{goes}: {}", all(&ran));
    assert_eq!(bench.pods().len(), 0, "{goes}");
}

#[test]
fn a_rank_that_stalls_is_named_with_its_node_before_the_job_is_ended() {
    let line = "hang: rank 2 (n2 GPU 0) did not enter all_gather #2 of communicator world; 3 ranks wait";
    check("stalls", line, &["culprit n2 node"]);
}

#[test]
fn a_rank_that_calls_something_else_is_named_and_its_node_is_not_blamed() {
    let calls = [
        ("size", "hang: rank 3 (n2 GPU 1) called with 65 Float, others 64 Float: all_gather #2"),
        ("operation", "hang: rank 3 (n2 GPU 1) called all_reduce, others all_gather: all_gather #2"),
    ];
    std::thread::scope(|scope| {
        for (goes, line) in calls {
            scope.spawn(move || check(goes, line, &[]));
        }
    });
}

#[test]
fn a_rank_that_dies_is_named_with_its_node() {
    check("dies", "rank 2 on n2 was killed by signal 9", &["culprit n2 node"]);
}
