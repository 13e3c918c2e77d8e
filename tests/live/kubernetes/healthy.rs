//! Runs that nothing goes wrong with: they pass, leave no pod, and leave everything alone that is not theirs.

use super::bench::{Bench, WAITS, case, ended, until};
use crate::fact::Fact;

pub(super) const FACTS: &[Fact] = &[
    ("a_suite_passes_and_leaves_no_pod_and_all_of_others", passes),
    ("two_runs_in_one_namespace_do_not_touch_each_other", two_runs),
    ("a_node_whose_devices_another_has_is_left_out_and_not_blamed", occupied),
    ("clean_ends_what_a_killed_harness_left_and_nothing_else", clean),
    ("ctrl_c_ends_all_jobs_and_pods", interrupted),
];

/// A pod of somebody else, with labels as the harness' pods have.
fn foreign(bench: &Bench, name: &str, node: &str, gpus: u32) {
    let namespace = &bench.namespace;
    bench.cluster.create(&format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{namespace: {namespace}, name: {name}, labels: {{app.kubernetes.io/managed-by: \
         harness, harness/run: another}}}}\nspec:\n  nodeName: {node}\n  terminationGracePeriodSeconds: 1\n  containers:\n  \
         - {{name: work, image: \"localhost/node:1\", command: [bash, -c, \"trap 'exit 0' TERM; while :; do sleep 3600 & \
         wait; done\"], resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}}}\n"
    ));
    let phase = ["get", "pod", name, "--output=jsonpath={.status.phase}"];
    until(60, "their pod runs", || bench.kubectl(&phase) == "Running");
}

fn passes() {
    let cases = [
        case("each", "\"each\"", "echo \"$HARNESS_NODE of $NNODES\"", ""),
        case("all", "\"all\"", "getent hosts n1 > /dev/null || grep -q ' n1$' /etc/hosts", ""),
    ];
    let bench = Bench::new("n[1-3]", &cases.concat());
    foreign(&bench, "other", "n4", 0);
    bench.kubectl(&["create", "configmap", "theirs", "--from-literal=a=b"]);
    // With the probe.
    let ran = bench.harness(&["--suite", "live", "--inventory", "live"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert_eq!(bench.project.json("summary.json")["counts"]["pass"], 4, "{}", ran.all());
    bench.assert_nothing_is_left();
    let left = bench.kubectl(&["get", "pods,configmaps", "--output=name"]);
    assert!(left.contains("pod/other") && left.contains("configmap/theirs"), "{left}");
}

fn two_runs() {
    let bench = Bench::new("n[1-2]", &case("waits", "\"each\"", WAITS, ""));
    bench.inventory("second", "n[3-4]");
    let first = bench.start();
    bench.wait_for(&["began.n1", "began.n2"]);
    let names = bench.pods();
    let cases = case("each", "\"each\"", "echo here", "");
    bench.suite("second", &cases);
    let second = bench.harness(&["--suite", "second", "--inventory", "second", "--no-probe"]);
    assert_eq!(second.code, Some(0), "{}", second.all());
    assert_eq!(bench.pods(), names, "the first run's pods are as they were");
    bench.go();
    let first = ended(first);
    assert_eq!(first.code, Some(0), "{}", first.all());
    bench.assert_nothing_is_left();
}

fn occupied() {
    let bench = Bench::new("n[1-2]", &case("each", "\"each\"", "echo here", ""));
    let text = std::fs::read_to_string(bench.project.path().join("inventory/live.toml")).expect("text");
    bench.project.write("inventory/live.toml", &text.replace("start_limit_s = 60", "start_limit_s = 30"));
    foreign(&bench, "theirs", "n2", 8);
    let ran = bench.run();
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(ran.all().contains("Unschedulable: 0/4 nodes are available: "), "{}", ran.all());
    bench.came_to(
        "devices of a node are another's, Kubernetes",
        &ran,
        ["1 error left-out", "none", "1 pass", "nothing"],
    );
    assert!(bench.pods().contains("theirs"), "{}", bench.pods());
}

fn clean() {
    let bench = Bench::new("n[1-2]", &case("waits", "\"all\"", WAITS, ""));
    let mut run = bench.start();
    bench.wait_for(&["began.n1", "began.n2"]);
    run.kill();
    // A copy of one of its pods, with its labels.
    foreign(&bench, "harness-copy", "n3", 0);
    let looked = bench.harness(&["clean", "--run", "latest", "--dry-run"]);
    assert_eq!(looked.code, Some(1), "{}", looked.all());
    assert_eq!(looked.stdout.matches("  pod  ").count(), 2, "{}", looked.all());
    assert!(bench.pods().lines().count() == 3, "looking ends nothing: {}", bench.pods());
    let cleaned = bench.harness(&["clean", "--run", "latest"]);
    assert_eq!(cleaned.code, Some(0), "{}", cleaned.all());
    assert_eq!(bench.what_is_left(), "pod of n3", "the copy alone");
    let again = bench.harness(&["clean", "--run", "latest"]);
    assert!(again.code == Some(0) && again.stdout.contains("nothing is left: 0 found"), "{}", again.all());
}

fn interrupted() {
    let bench = Bench::new("n[1-2]", &case("waits", "\"each\"", WAITS, ""));
    let run = bench.start();
    bench.wait_for(&["began.n1", "began.n2"]);
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(run.id()), nix::sys::signal::Signal::SIGINT)
        .expect("signalled");
    let ran = ended(run);
    assert_eq!(ran.code, Some(130), "{}", ran.all());
    bench.came_to("Ctrl-C, Kubernetes", &ran, ["2 error interrupted", "none", "0 pass", "nothing"]);
}
