//! What a real API server reports of nodes and of a namespace: facts of a probe, keys of an inventory that is discovered, and
//! pods that ask Kueue to admit them together.

use super::bench::{Bench, WAITS, case, ended, until};
use super::first_verdict::programs;
use crate::fact::Fact;
use crate::project::Project;
use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Stdio};

pub(super) const FACTS: &[Fact] = &[
    ("a_probe_reports_what_the_server_knows_of_nodes_and_of_their_device_plugin", probed),
    ("pods_ask_for_what_limits_of_the_namespace_want_and_quotas_of_other_pods_are_not_counted", limited),
    ("pods_of_one_gang_are_taken_with_labels_that_are_alike", gang),
];

/// Labels of nodes, which all tests share.
struct Labels<'a>(&'a Bench);

const LABELS: [&str; 3] = ["nvidia.com/gpu.count", "nvidia.com/mig.config", "nvidia.com/mig.capable"];

impl Drop for Labels<'_> {
    fn drop(&mut self) {
        let mut command = Command::new("env");
        command.args(["kubectl", "label", "nodes", "n1", "n2"]).args(LABELS.map(|label| format!("{label}-")));
        command.envs(self.0.cluster.variables()).stdin(Stdio::null());
        let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// A namespace of operators, `nvidia-` and that of the test: plugins elsewhere prove nothing.
struct Operators<'a>(&'a Bench);

impl Operators<'_> {
    fn name(&self) -> String {
        format!("nvidia-{}", self.0.namespace)
    }
}

impl Drop for Operators<'_> {
    fn drop(&mut self) {
        let mut command = Command::new("env");
        command.args(["kubectl", "delete", "namespace", "--wait=false"]).arg(self.name());
        command.envs(self.0.cluster.variables()).stdin(Stdio::null());
        let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// A namespace of its own, with the programs of a cluster on its claim and the inventory `mine`.
fn discovered(name: &str) -> Bench {
    let bench = Bench::named(Project::bare(), &format!("{name}-{}", std::process::id()), "fsx");
    programs(&bench);
    discover(&bench);
    bench
}

/// What is printed of it.
#[track_caller]
fn discover(bench: &Bench) -> String {
    let namespace = bench.namespace.to_string();
    let place = ["--namespace", namespace.as_str(), "--image", "localhost/node:1", "--claim", "fsx"];
    let written = ["--output", "mine", "--force"];
    let ran =
        bench.harness(&[&["inventory", "discover", "--via", "kubernetes"][..], &place, &written].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    ran.stdout
}

/// A device plugin on each node, which is never ready on `n2`.
fn plugin(bench: &Bench, namespace: &str) {
    bench.cluster.create(&format!(
        "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n---\napiVersion: apps/v1\nkind: DaemonSet\n\
         metadata: {{name: nvidia-device-plugin, namespace: {namespace}}}\nspec:\n  selector: \
         {{matchLabels: {{app: plugin}}}}\n  template:\n    metadata: {{labels: {{app: plugin}}}}\n    spec:\n      \
         terminationGracePeriodSeconds: 1\n      containers:\n      - name: plugin\n        image: localhost/node:1\n        \
         command: [bash, -c, \"trap 'exit 0' TERM; while :; do sleep 3600 & wait; done\"]\n        env:\n        - {{name: NODE, \
         valueFrom: {{fieldRef: {{fieldPath: spec.nodeName}}}}}}\n        readinessProbe:\n          exec: {{command: [bash, -c, \
         \"[ $NODE != n2 ]\"]}}\n          periodSeconds: 1\n"
    ));
    let ask = |arguments: &[&str]| {
        let namespace = format!("--namespace={namespace}");
        bench.cluster.kubectl(&[&[namespace.as_str()], arguments].concat())
    };
    let ready = ["get", "daemonset", "nvidia-device-plugin", "--output=jsonpath={.status.numberReady}"];
    until(90, "the plugin is ready on three nodes", || ask(&ready) == "3");
    let phase =
        ["get", "pods", "--field-selector=spec.nodeName=n2", "--output=jsonpath={.items[*].status.phase}"];
    until(60, "the plugin runs on n2", || ask(&phase) == "Running");
}

fn probed() {
    let bench = discovered("facts");
    let operators = Operators(&bench);
    plugin(&bench, &operators.name());
    let _labels = Labels(&bench);
    let label = |node: &str, labels: &[&str]| {
        bench.cluster.kubectl(&[&["label", "--overwrite", "nodes", node][..], labels].concat());
    };
    label("n1", &["nvidia.com/gpu.count=7", "nvidia.com/mig.config=all-1g.10gb"]);
    label("n2", &["nvidia.com/gpu.count=8", "nvidia.com/mig.capable=true"]);
    let nodes = ["--inventory", "mine", "--nodes", "n[1-2]", "--format", "json"];
    let ran = bench.harness(&[&["inventory", "probe"][..], &nodes].concat());
    let probe: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.all()));
    let of = |node: usize, fact: &str| probe["nodes"][node]["facts"][fact].clone();
    let contradicted = json!(["nvidia.com/gpu.count=7: nvidia-smi lists 8"]);
    for (fact, values) in [
        ("node_ready", [json!("True"), json!("True")]),
        ("node_pressure", [json!([]), json!([])]),
        ("gpu_labels", [contradicted, json!([])]),
        ("mig_labels", [json!(["nvidia.com/mig.config=all-1g.10gb"]), json!([])]),
        ("device_pods", [json!(["nvidia-device-plugin"]), json!([])]),
    ] {
        assert_eq!([of(0, fact), of(1, fact)], values, "{fact}: {}", ran.all());
    }
    assert_eq!(of(0, "device_pods_bad"), json!([]), "{}", ran.all());
    let bad = of(1, "device_pods_bad");
    let bad: Vec<&str> = bad.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let begin = format!("{}/nvidia-device-plugin-", operators.name());
    let is_it = |line: &&str| line.starts_with(&begin) && line.ends_with(": not ready");
    assert!(bad.len() == 1 && bad.iter().all(is_it), "{bad:?}: {}", ran.all());
    bench.assert_nothing_is_left();
}

/// Of four nodes: a quota that wants limits of all of them, one of pods that run without an end, and one of a priority class.
fn limited() {
    let bench = discovered("limits");
    let namespace = &bench.namespace;
    bench.cluster.create(&format!(
        "apiVersion: v1\nkind: LimitRange\nmetadata: {{name: small, namespace: {namespace}}}\nspec: {{limits: [{{type: Container, \
         max: {{memory: 2Gi}}}}]}}\n---\napiVersion: v1\nkind: ResourceQuota\nmetadata: {{name: high, namespace: \
         {namespace}}}\nspec:\n  hard: {{limits.cpu: 1}}\n  scopeSelector: {{matchExpressions: [{{scopeName: PriorityClass, \
         operator: In, values: [high]}}]}}\n"
    ));
    bench.kubectl(&["create", "quota", "team", "--hard=limits.cpu=4"]);
    bench.kubectl(&["create", "quota", "services", "--hard=limits.cpu=1,pods=1", "--scopes=NotTerminating"]);
    let printed = discover(&bench);
    for note in [
        "note: pods ask for cpu = 1: ResourceQuota team takes no pod without a limit of cpu, 4 for all of them",
        "note: pods ask for memory = \"2GiB\": LimitRange small gives a pod that asks for none memory 2Gi",
        "note: ResourceQuota high is not counted: it is for the priority class high",
    ] {
        assert!(printed.contains(note), "{note}: {printed}");
    }
    assert!(!printed.contains("services"), "{printed}");
    // The server takes the pods of all four nodes.
    bench.suite("live", &case("each", "\"each\"", "echo here", ""));
    let ran = bench.harness(&["--suite", "live", "--inventory", "mine", "--no-probe"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert_eq!(bench.project.json("summary.json")["counts"]["pass"], 4, "{}", ran.all());
    bench.assert_nothing_is_left();
}

/// Without Kueue, which nothing here can run: its labels and annotations are taken, and are those of one group.
fn gang() {
    let bench = Bench::new("n[1-2]", &case("waits", "\"each\"", WAITS, ""));
    let file = bench.project.path().join("inventory/live.toml");
    let text = fs::read_to_string(&file).expect("an inventory");
    fs::write(&file, text.replace("hugepages = false", "hugepages = false\nqueue = \"gpus\"\ngang = true"))
        .expect("written");
    let run = bench.start();
    bench.wait_for(&["began.n1", "began.n2"]);
    let pods: Value = serde_json::from_str(&bench.kubectl(&["get", "pods", "--output=json"])).expect("JSON");
    bench.go();
    let of = |pod: &Value| {
        let metadata = &pod["metadata"];
        let text = |kind: &str, name: &str| metadata[kind][format!("kueue.x-k8s.io/{name}")].clone();
        (
            text("labels", "pod-group-name"),
            text("labels", "queue-name"),
            text("annotations", "pod-group-total-count"),
        )
    };
    let asked: Vec<_> = pods["items"].as_array().expect("pods").iter().map(of).collect();
    let ran = ended(run);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let [one, other] = &asked[..] else { panic!("{asked:?}") };
    assert!(one == other && one.0.is_string(), "{asked:?}");
    assert_eq!((&one.1, &one.2), (&json!("gpus"), &json!("2")));
    bench.assert_nothing_is_left();
}
