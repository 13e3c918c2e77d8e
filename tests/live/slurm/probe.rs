//! Nodes probed through a real Slurm: each by a short job of its own, and those that Slurm starts nothing on by its word.

use super::bench::{Bench, RUN, case, until};
use crate::fact::Fact;
use crate::project::ran;
use serde_json::Value;

pub(super) const FACTS: &[Fact] = &[
    ("nodes_of_a_slurm_cluster_report_what_they_are", nodes_report),
    ("a_node_in_use_is_not_waited_for_and_not_said_to_be_bad", in_use),
    ("a_node_that_slurm_has_drained_is_left_out_by_name", drained),
];

const PROBE: [&str; 4] = ["inventory", "probe", "--inventory", "live"];

fn nodes_report() {
    let bench = Bench::with_cases(4, "partition = \"main\"", &case("each", "\"each\"", "well", ""));
    let reported = ran(bench.command(&[PROBE.as_slice(), &["--json"]].concat()).output().expect("starts"));
    // Their GPUs cannot be read, and all else is.
    assert_eq!(reported.code, Some(3), "{}", reported.all());
    let made: Value = serde_json::from_str(&reported.stdout).expect("JSON");
    for (at, node) in made["nodes"].as_array().expect("nodes").iter().enumerate() {
        assert_eq!(
            (&node["node"], &node["slurm"]),
            (&format!("n{}", at + 1).into(), &"idle".into()),
            "{node}"
        );
        assert!(node["facts"]["kernel"].is_string(), "{node}");
        assert_eq!(node["host_name"], node["node"], "{node}");
        // The folder is not there before the first run; the one above it is.
        assert_eq!(node["facts"]["shared"], "writable", "{node}");
        assert!(node["clock_offset"]["at_least_ms"].as_f64().is_some_and(|ms| ms <= 1.0), "{node}");
    }
    bench.cluster.assert_nothing_is_left();
}

fn in_use() {
    let bench = Bench::new(&case("each", "\"each\"", "well", ""));
    bench.cluster.ask(&[
        "sbatch",
        "--nodelist=n2",
        "--exclusive",
        "--gres=gpu:8",
        "--output=/dev/null",
        "--wrap=sleep 300",
    ]);
    until("n2 is in use", || {
        bench.cluster.ask(&["squeue", "--noheader", "--format=%T"]).contains("RUNNING").then_some(())
    });
    let reported = ran(bench.command(&PROBE).output().expect("starts"));
    assert_eq!(reported.code, Some(3), "{}", reported.all());
    assert!(reported.stdout.contains("not probed: n2: "), "{}", reported.all());
    assert!(reported.stdout.contains("0 fit, 0 cannot pass, 1 not probed"), "{}", reported.all());
    bench.cluster.ask(&["scancel", "--nodelist=n2"]);
    bench.cluster.assert_nothing_is_left();
}

fn drained() {
    let bench =
        Bench::new(&[case("each", "\"each\"", "well", ""), case("all", "\"all\"", "well", "")].concat());
    bench.program("well", "exit 0");
    bench.cluster.ask(&["scontrol", "update", "NodeName=n3", "State=DRAIN", "Reason=a fan is loud"]);
    let line = ran(bench.command(&RUN).output().expect("starts"));
    assert_eq!(line.code, Some(3), "{}", line.all());
    assert!(
        line.stdout.contains("excluded n3: Slurm reports it as drained: a fan is loud"),
        "{}",
        line.all()
    );
    let odd = |case: &str| -> Vec<String> {
        bench.verdicts(case).into_iter().filter(|line| !line.ends_with(" pass")).collect()
    };
    assert_eq!(odd("each"), ["command.exit_code@n3 error left-out"], "{}", line.all());
    assert_eq!(odd("all"), ["command.exit_code@n[1-4] error left-out"], "{}", line.all());
    assert_eq!(bench.verdicts("all").len(), 2, "the others were measured together");
    assert_eq!(line.blamed(), ["culprit n3 node"], "{}", line.all());
    bench.cluster.assert_nothing_is_left();
}
