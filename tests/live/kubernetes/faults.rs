//! What goes wrong in a real Kubernetes while pods are made and jobs run in them: the verdict, who is blamed, and what is
//! left. A pod that is ended by somebody is no node's fault.

use super::bench::{Bench, WAITS, case, ended, until};
use crate::fact::Fact;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::time::{Duration, Instant};

pub(super) const FACTS: &[Fact] = &[
    ("a_kubelet_that_dies_and_comes_back_costs_nothing", kubelet_back),
    ("a_node_whose_kubelet_stays_dead_is_the_culprit_and_its_pod_is_reported_as_left", kubelet_dead),
    ("a_node_that_loses_power_is_the_culprit_and_the_others_go_on", power),
    ("a_pod_that_is_evicted_by_the_api_has_no_culprit", evicted_by_api),
    ("a_pod_that_its_kubelet_evicts_has_no_culprit", evicted_by_kubelet),
    ("a_pod_that_runs_out_of_memory_has_no_culprit", out_of_memory),
    ("an_image_that_one_node_cannot_pull_has_no_culprit", image),
    ("pods_that_a_quota_refuses_have_no_culprit", quota),
    ("an_api_server_that_is_restarted_costs_nothing", server_restarted),
    ("an_api_server_that_stays_away_has_no_culprit", server_away),
    ("clients_that_are_killed_while_commands_and_files_go_through_cost_nothing", clients_killed),
    ("a_pod_that_goes_while_no_harness_runs_has_no_culprit", gone_meanwhile),
];

const NODES: &str = "n[1-2]";
const BOTH: [&str; 2] = ["began.n1", "began.n2"];

fn waits() -> (Bench, super::bench::Running) {
    let bench = Bench::new(NODES, &case("waits", "\"each\"", WAITS, ""));
    let run = bench.start();
    bench.wait_for(&BOTH);
    let events = || fs::read_to_string(bench.project.latest().join("events.jsonl")).unwrap_or_default();
    until(60, "the run knows that its jobs run", || events().matches("job-started").count() == 2);
    (bench, run)
}

fn kubelet_back() {
    let (bench, run) = waits();
    bench.cluster.script("kill", &["n2"]);
    std::thread::sleep(Duration::from_secs(8));
    bench.cluster.script("start", &["n2"]);
    bench.cluster.script("ready", &[]);
    bench.go();
    let ran = ended(run);
    bench.came_to(
        "a kubelet killed and started again, Kubernetes",
        &ran,
        ["pass", "none", "2 pass", "nothing"],
    );
}

/// Its job ends itself by its heartbeat; whether the pod is gone only its kubelet can know.
fn kubelet_dead() {
    let (bench, run) = waits();
    bench.cluster.script("kill", &["n2"]);
    // The job of the other node ends well.
    std::thread::sleep(Duration::from_secs(20));
    bench.project.write("shared/go", "");
    let ran = ended(run);
    let wanted = ["1 error host-unreachable", "culprit n2 node", "1 pass", "pod of n2"];
    assert!(ran.stderr.contains("is left: its node does not answer (NotReady"), "{}", ran.all());
    let cleaned = bench.harness(&["clean", "--run", "latest"]);
    let (code, text) = (cleaned.code, cleaned.all());
    // It makes no pod there.
    let probe = ["inventory", "probe", "--inventory", "live", "--nodes", "n2", "--format", "json"];
    let probed = bench.harness(&probe);
    bench.came_to("a kubelet killed for good, Kubernetes", &ran, wanted);
    bench.cluster.script("start", &["n2"]);
    bench.cluster.script("ready", &[]);
    assert!(code == Some(1) && text.contains("deleting the pod proves nothing"), "{text}");
    let node =
        serde_json::from_str::<serde_json::Value>(&probed.stdout).expect("a probe")["nodes"][0].clone();
    assert_eq!(node["facts"]["node_ready"], "Unknown", "{}", probed.all());
    let unfit = node["unfit"][0].as_str().unwrap_or_default();
    assert!(
        probed.code == Some(1) && unfit.starts_with("Kubernetes reports it as not ready: "),
        "{}",
        probed.all()
    );
    bench.assert_nothing_is_left();
}

fn power() {
    let (bench, run) = waits();
    bench.cluster.script("crash", &["n2"]);
    std::thread::sleep(Duration::from_secs(20));
    bench.go();
    let ran = ended(run);
    bench.came_to(
        "a node without power, Kubernetes",
        &ran,
        ["1 error host-unreachable", "culprit n2 node", "1 pass", "pod of n2"],
    );
    bench.cluster.script("start", &["n2"]);
    bench.cluster.script("ready", &[]);
    bench.assert_nothing_is_left();
}

fn evicted_by_api() {
    let (bench, run) = waits();
    let pod = bench.pod("n2");
    let file = bench.project.path().join("eviction.json");
    let text = format!(
        "{{\"apiVersion\": \"policy/v1beta1\", \"kind\": \"Eviction\", \"metadata\": {{\"name\": \"{pod}\", \"namespace\": \"{}\"}}}}",
        bench.namespace
    );
    fs::write(&file, text).expect("written");
    let path = format!("/api/v1/namespaces/{}/pods/{pod}/eviction", bench.namespace);
    bench.kubectl(&["create", "--raw", &path, "--filename", &file.display().to_string()]);
    until(60, "the pod is gone", || !bench.pods().contains(&pod));
    bench.go();
    let ran = ended(run);
    bench.came_to(
        "a pod evicted by the API, Kubernetes",
        &ran,
        ["1 error lost", "none", "1 pass", "nothing"],
    );
    assert!(bench.project.reported().contains("deleted or evicted"), "{}", bench.project.reported());
}

/// It writes more than its namespace lets it.
fn evicted_by_kubelet() {
    let program = "[ $HARNESS_NODE = n1 ] || { head -c 30000000 /dev/zero > /tmp/much; sleep 120; }";
    let bench = Bench::new(NODES, &case("writes", "\"each\"", program, ""));
    bench.cluster.create(&format!(
        "apiVersion: v1\nkind: LimitRange\nmetadata: {{name: disk, namespace: {}}}\nspec:\n  limits:\n  - type: Container\n    \
         default: {{ephemeral-storage: 5Mi}}\n    defaultRequest: {{ephemeral-storage: 1Mi}}\n",
        bench.namespace
    ));
    let ran = bench.run();
    bench.came_to(
        "a pod evicted by its kubelet, Kubernetes",
        &ran,
        ["1 error lost", "none", "1 pass", "nothing"],
    );
    assert!(bench.project.reported().contains("Evicted: "), "{}", bench.project.reported());
}

/// The kernel ends the pod's first process, as it ends all of a pod with cgroups of version 2.
fn out_of_memory() {
    let program = "[ $HARNESS_NODE = n1 ] || { echo 1000 > /proc/1/oom_score_adj; \
                   head -c 1300000000 /dev/zero > /dev/shm/much; sleep 60; }";
    let bench = Bench::new(NODES, &case("eats", "\"each\"", program, ""));
    let inventory = bench.project.path().join("inventory/live.toml");
    let text = fs::read_to_string(&inventory).expect("read");
    fs::write(&inventory, text.replace("hugepages = false\n", "hugepages = false\nmemory = \"1100MiB\"\n"))
        .expect("written");
    let ran = bench.run();
    bench.came_to("a pod out of memory, Kubernetes", &ran, ["1 error lost", "none", "1 pass", "nothing"]);
    assert!(bench.project.reported().contains("OOMKilled"), "{}", bench.project.reported());
}

fn image() {
    let bench = Bench::new(NODES, &case("each", "\"each\"", "echo here", ""));
    bench.cluster.script("forget-image", &["n2"]);
    let ran = bench.run();
    bench.cluster.script("start", &["n2"]);
    bench.came_to(
        "an image that cannot be pulled, Kubernetes",
        &ran,
        ["1 error left-out", "none", "1 pass", "nothing"],
    );
    assert!(ran.all().contains("ImagePullBackOff: "), "{}", ran.all());
}

fn quota() {
    let bench = Bench::new(NODES, &case("each", "\"each\"", "echo here", ""));
    bench.kubectl(&["create", "quota", "few", "--hard=pods=1"]);
    let ran = bench.run();
    bench.came_to(
        "a quota that refuses a pod, Kubernetes",
        &ran,
        ["1 error left-out", "none", "1 pass", "nothing"],
    );
    assert!(bench.project.reported().contains("exceeded quota: few"), "{}", ran.all());
}

fn server_restarted() {
    let (bench, run) = waits();
    bench.cluster.script("kill", &["apiserver"]);
    std::thread::sleep(Duration::from_secs(12));
    bench.cluster.script("start", &["apiserver"]);
    bench.go();
    let ran = ended(run);
    bench.cluster.script("ready", &[]);
    bench.came_to("the API server away for 12 s, Kubernetes", &ran, ["pass", "none", "2 pass", "nothing"]);
}

/// For longer than jobs go on without a heartbeat.
fn server_away() {
    let (bench, run) = waits();
    bench.cluster.script("kill", &["apiserver"]);
    std::thread::sleep(Duration::from_secs(75));
    bench.cluster.script("start", &["apiserver"]);
    let ran = ended(run);
    bench.cluster.script("ready", &[]);
    bench.came_to(
        "the API server away for 75 s, Kubernetes",
        &ran,
        ["2 error host-unreachable", "none", "0 pass", "nothing"],
    );
}

/// Children of the harness: each is a kubectl.
fn end_clients(harness: i32) -> usize {
    let text = fs::read_to_string(format!("/proc/{harness}/task/{harness}/children")).unwrap_or_default();
    let clients: Vec<i32> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    for client in &clients {
        let _ = kill(Pid::from_raw(*client), Signal::SIGKILL);
    }
    clients.len()
}

/// A job that prints much is started and fetched meanwhile.
fn clients_killed() {
    let program = "echo $$ >> BENCH/began.$HARNESS_NODE; head -c 20000000 /dev/zero | tr '\\\\0' x; sleep 5";
    let bench = Bench::new(NODES, &case("prints", "\"each\"", program, ""));
    let mut run = bench.start();
    bench.wait_for(&BOTH[..1]);
    let (mut killed, from) = (0, Instant::now());
    while from.elapsed() < Duration::from_secs(14) && !run.is_over() {
        killed += end_clients(run.id());
        std::thread::sleep(Duration::from_millis(300));
    }
    let ran = ended(run);
    assert!(killed > 5, "{killed} clients were killed");
    bench.came_to("kubectl killed again and again, Kubernetes", &ran, ["pass", "none", "2 pass", "nothing"]);
    for node in ["n1", "n2"] {
        assert_eq!(bench.text(&format!("began.{node}")).lines().count(), 1, "the job of {node} ran once");
    }
}

fn gone_meanwhile() {
    let (bench, mut run) = waits();
    run.kill();
    let pod = bench.pod("n2");
    bench.kubectl(&["delete", "pod", &pod]);
    bench.go();
    let ran = bench.harness(&["--run", "latest", "--resume"]);
    bench.came_to(
        "a pod deleted while no harness runs, Kubernetes",
        &ran,
        ["1 error lost", "none", "1 pass", "nothing"],
    );
}
