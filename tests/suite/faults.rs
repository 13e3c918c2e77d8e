//! Each fault of the simulated cluster through the whole acceptance suite: exit code, and nobody blamed but the guilty.

use crate::project::Project;

/// The fault, the exit code of its class, and the one line that blames.
const TABLE: &[(&str, i32, &str)] = &[
    // Measured and bad.
    ("nic-slow=0.4@rdmap113s0", 1, "culprit p5-002 rdmap113s0"),
    ("nic-dead@rdmap113s0", 1, "culprit p5-002 rdmap113s0"),
    ("nic-missing@rdmap113s0", 1, "culprit p5-002 rdmap113s0"),
    ("gpu-slow=0.5@3", 1, "culprit p5-002 gpu3"),
    ("corrupt@3", 1, "culprit p5-002 gpu3"),
    ("straggler=20@3", 1, "culprit p5-002 node"),
    // Not measured.
    ("rank-dies", 3, "culprit p5-002 node"),
    ("hang", 3, "culprit p5-002 node"),
    ("node-fails", 3, "culprit p5-002 node"),
    ("queue-stuck", 3, "culprit p5-002 node"),
    ("preempted", 3, "culprit p5-002 node"),
    ("output-missing", 3, "culprit p5-002 node"),
    ("garbled", 3, "culprit p5-002 node"),
    ("disk-full", 3, "culprit p5-002 node"),
    ("wrong-ranks", 3, "culprit p5-002 node"),
    ("report-truncated", 3, "culprit p5-002 node"),
    ("report-missing", 3, "culprit p5-002 node"),
    ("report-empty", 3, "culprit p5-002 node"),
    ("nsys-missing", 3, "culprit p5-002 node"),
    ("nsys-old", 3, "culprit p5-002 node"),
    ("events-dropped", 3, "culprit p5-002 node"),
    // What was printed and what the profile shows are two things.
    ("graph-launch", 3, "culprit p5-002 node"),
];

#[test]
fn each_fault_ends_with_the_verdict_of_its_class_and_names_the_guilty_part_alone() {
    let project = Project::new();
    let mut wrong = Vec::new();
    for (fault, code, blamed) in TABLE {
        let ran = project.harness(&["--suite", "nccl-p5", "-q", "--sim-fault", &format!("p5-002:{fault}")]);
        if ran.code != Some(*code) || ran.blamed() != [*blamed] {
            let tail: Vec<&str> = ran.stdout.lines().rev().take(30).collect();
            let tail: Vec<&str> = tail.into_iter().rev().collect();
            wrong.push(format!(
                "{fault}: exit {:?} instead of {code}, blamed {:?} instead of {blamed}\n{}\n{}",
                ran.code,
                ran.blamed(),
                tail.join("\n"),
                ran.stderr
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn a_clock_that_jumps_changes_no_verdict() {
    let project = Project::new();
    let healthy = project.harness(&["--suite", "nccl-p5", "-q"]);
    let summary = project.json("summary.json");
    let jumping = project.harness(&["--suite", "nccl-p5", "-q", "--sim-fault", "p5-002:clock-jump"]);
    let jumped = project.json("summary.json");
    assert_eq!((healthy.code, jumping.code), (Some(0), Some(0)), "{}{}", healthy.all(), jumping.all());
    assert_eq!(summary["counts"], jumped["counts"]);
    let text = jumped["cases"].to_string();
    assert!(text.contains("clock-jump"), "no finding of it");
}

#[test]
fn clocks_that_differ_and_training_that_overlaps_less_change_no_verdict_on_collectives() {
    let project = Project::new();
    let healthy = project.harness(&["--suite", "nccl-p5", "-q"]);
    let counts = project.json("summary.json")["counts"].clone();
    for fault in ["clock-offset=-50", "clock-drift=50", "comm-exposed"] {
        let ran = project.harness(&["--suite", "nccl-p5", "-q", "--sim-fault", &format!("p5-002:{fault}")]);
        assert_eq!((healthy.code, ran.code), (Some(0), Some(0)), "{fault}: {}", ran.all());
        assert_eq!(project.json("summary.json")["counts"], counts, "{fault}");
    }
}

#[test]
fn what_was_not_measured_begins_its_evidence_with_the_cause() {
    let project = Project::new();
    for (fault, cause) in [("hang", "hang"), ("node-fails", "NODE_FAIL"), ("preempted", "PREEMPTED")] {
        let ran = project.harness(&[
            "--suite",
            "nccl-p5",
            "-q",
            "pair-all_reduce",
            "--sim-fault",
            &format!("p5-002:{fault}"),
        ]);
        let line =
            ran.stdout.lines().find(|line| line.starts_with("culprit ") || line.starts_with("suspects "));
        assert!(line.is_some_and(|line| line.contains(&format!(": {cause}"))), "{fault}: {line:?}");
    }
}

#[test]
fn a_diagnostic_in_a_fault_is_usage_and_launches_nothing() {
    let project = Project::new();
    for (fault, expected) in [
        ("p5-002:hnag", "did you mean `hang`"),
        ("p5-009:hang", "p5-009"),
        ("p5-002:nic-dead@rdmap1s0", "rdmap1s0"),
        ("p5-002:gpu-slow=0.5@8", "8"),
    ] {
        let ran = project.harness(&["--suite", "nccl-p5", "--sim-fault", fault]);
        assert_eq!(ran.code, Some(2), "{fault}: {}", ran.all());
        assert!(ran.stderr.contains(expected), "{fault}: {}", ran.stderr);
    }
    assert_eq!(project.runs(), 0, "nothing was launched");
}
