//! Runs in pods, by a stand-in for kubectl that behaves as the real one was seen to: what is made, what is left, and
//! which reasons are given for pods that do not run.

#[path = "pods_drain.rs"]
mod drain;
#[path = "pods_elsewhere.rs"]
mod elsewhere;
#[path = "pods_hang.rs"]
mod hang;
#[path = "pods_leftovers.rs"]
mod leftovers;
#[path = "pods_mpi.rs"]
mod mpi;
#[path = "pods_orphans.rs"]
mod orphans;

use crate::project::{Project, Ran, ran, root};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

struct Bench(Project);

const SUITE: [&str; 5] = ["--suite", "pods", "--inventory", "pods", "--no-probe"];

impl Bench {
    fn new() -> Bench {
        let project = Project::new();
        let shared = project.path().join("shared").display().to_string();
        project.write(
            "inventory/pods.toml",
            &format!(
                "kind = \"real\"\ninstance = \"p5\"\nnodes = \"n[1-2]\"\n[reach]\nvia = \"kubernetes\"\nimage = \"r/i:1\"\n\
                 shared = \"fsx\"\nstart_limit_s = 5\nheartbeat_timeout_s = 30\n[paths]\nshared = \"{shared}\"\n"
            ),
        );
        project.write(
            "suites/pods.toml",
            "instance = \"p5\"\nabout = \"in pods\"\n[[case]]\nname = \"each\"\nplacement = \"each\"\nlimit_s = 120\n\
             workload = { kind = \"command\", program = \"bash\", args = [\"-c\", \"echo on $HARNESS_NODE\"] }\n\
             recipes = [\"command\"]\n[[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n",
        );
        fs::create_dir_all(project.path().join("bin")).expect("made");
        symlink(root().join("tests/stand_ins/kubectl"), project.path().join("bin/kubectl")).expect("linked");
        fs::create_dir_all(project.path().join("kube/nodes")).expect("made");
        Bench(project)
    }

    fn run(&self, args: &[&str]) -> Ran {
        ran(self.command(args).output().expect("it starts"))
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut path = self.0.path().join("bin").into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut command = self.0.command(args);
        command.env("PATH", path).env("HARNESS_TEST_KUBE", self.0.path().join("kube"));
        command.env_remove("KUBERNETES_SERVICE_HOST");
        command
    }

    fn suite(&self) -> Ran {
        self.run(&SUITE)
    }

    fn pods(&self) -> Vec<PathBuf> {
        let folder = fs::read_dir(self.0.path().join("kube/pods"));
        folder.into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    }

    fn calls(&self, verb: &str) -> usize {
        let calls = fs::read_to_string(self.0.path().join("kube/calls")).unwrap_or_default();
        calls.lines().filter(|line| *line == verb).count()
    }
}

/// A job that reports that it runs, and waits for a word of the test.
const WAITS: &str = "echo on >> SHARED/began.$HARNESS_NODE; until [ -e SHARED/go ]; do sleep 0.1; done";

fn waiting() -> Bench {
    let bench = Bench::new();
    let shared = bench.0.path().join("shared").display().to_string();
    let suite = fs::read_to_string(bench.0.path().join("suites/pods.toml")).expect("text");
    let program = WAITS.replace("SHARED", &shared);
    bench.0.write("suites/pods.toml", &suite.replace("echo on $HARNESS_NODE", &program));
    bench
}

/// What a run comes to, after something is done to it while its jobs run.
fn while_it_runs(bench: &Bench, act: impl FnOnce()) -> Ran {
    let child =
        bench.command(&SUITE).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let from = Instant::now();
    let began = |node: &str| bench.0.path().join(format!("shared/began.{node}")).exists();
    while !(began("n1") && began("n2")) {
        assert!(from.elapsed() < Duration::from_secs(60), "the jobs do not begin");
        std::thread::sleep(Duration::from_millis(50));
    }
    act();
    ran(child.wait_with_output().expect("it ends"))
}

fn all(ran: &Ran) -> String {
    format!("{:?}\n{}{}", ran.code, ran.stdout, ran.stderr)
}

#[test]
fn a_run_makes_one_pod_for_each_node_and_leaves_none() {
    let bench = Bench::new();
    let ran = bench.suite();
    assert_eq!(ran.code, Some(0), "{}", all(&ran));
    assert!(ran.stdout.contains("coverage: nodes 2/2"), "{}", all(&ran));
    assert_eq!(bench.pods(), Vec::<PathBuf>::new());
    assert_eq!((bench.calls("create"), bench.calls("delete")), (1, 2), "one call makes all of them");
    let hosts = fs::read_to_string(bench.0.path().join("kube/hosts")).expect("written");
    assert!(hosts.contains("127.0.0.1 n1") && hosts.contains("127.0.0.1 n2"), "{hosts}");
}

#[test]
fn pods_are_listed_as_often_for_six_nodes_as_for_two_and_each_is_asked_a_few_times() {
    let asked = |nodes: &str| {
        let bench = Bench::new();
        let inventory = fs::read_to_string(bench.0.path().join("inventory/pods.toml")).expect("text");
        bench.0.write("inventory/pods.toml", &inventory.replace("n[1-2]", nodes));
        let ran = bench.suite();
        assert_eq!(ran.code, Some(0), "{}", all(&ran));
        ["get", "create", "exec"].map(|verb| bench.calls(verb))
    };
    let [lists, creations, of_two] = asked("n[1-2]");
    let [lists_of_six, creations_of_six, of_six] = asked("n[1-6]");
    assert_eq!((lists, creations), (4, 1));
    assert_eq!((lists_of_six, creations_of_six), (4, 1));
    // Three files each way, and a call for each of: its peers' names, access, folder, start, and end. A few looks more where
    // the machine is busy.
    assert!(of_two <= 2 * 18 && of_six <= 6 * 18, "{of_two} {of_six}");
}

#[test]
fn pods_have_the_labels_and_the_service_account_of_the_inventory() {
    let bench = Bench::new();
    let text = fs::read_to_string(bench.0.path().join("inventory/pods.toml")).expect("an inventory");
    let reach = "[reach]\nlabels = { team = \"gpu\" }\nservice_account = \"bench\"\n";
    bench.0.write("inventory/pods.toml", &text.replace("[reach]\n", reach));
    let ran = bench.suite();
    assert_eq!((ran.code, bench.pods()), (Some(0), Vec::new()), "{}", all(&ran));
    let created = fs::read_to_string(bench.0.path().join("kube/created")).expect("what was created");
    for part in
        ["\"team\":\"gpu\"", "\"serviceAccountName\":\"bench\"", "\"automountServiceAccountToken\":false"]
    {
        assert_eq!(created.matches(part).count(), 2, "{part}: {created}");
    }
}

#[test]
fn pods_of_a_queue_are_admitted_together_where_the_inventory_asks_for_it() {
    let bench = Bench::new();
    let text = fs::read_to_string(bench.0.path().join("inventory/pods.toml")).expect("an inventory");
    bench
        .0
        .write("inventory/pods.toml", &text.replace("[reach]\n", "[reach]\nqueue = \"gpus\"\ngang = true\n"));
    let ran = bench.suite();
    assert_eq!((ran.code, bench.pods()), (Some(0), Vec::new()), "{}", all(&ran));
    let created = fs::read_to_string(bench.0.path().join("kube/created")).expect("what was created");
    for part in ["\"kueue.x-k8s.io/pod-group-total-count\":\"2\"", "\"kueue.x-k8s.io/queue-name\":\"gpus\""] {
        assert_eq!(created.matches(part).count(), 2, "{part}: {created}");
    }
    let groups: Vec<&str> = created.split("\"kueue.x-k8s.io/pod-group-name\":\"").skip(1).collect();
    let names: Vec<&str> = groups.iter().filter_map(|rest| rest.split('"').next()).collect();
    assert!(names.len() == 2 && names[0] == names[1], "{names:?}");
}

/// A queue that admits pods later is waited for; one that admits none ends the run at once, and blames no node.
#[test]
fn a_run_waits_for_kueue_and_names_the_queue_that_admits_nothing() {
    let bench = Bench::new();
    let text = fs::read_to_string(bench.0.path().join("inventory/pods.toml")).expect("an inventory");
    let text = text.replace("[reach]\n", "[reach]\nqueue = \"gpus\"\ngang = true\n");
    bench.0.write("inventory/pods.toml", &text);
    let queue = "kube/objects/localqueues.kueue.x-k8s.io/default.gpus";
    let active = |status: &str, reason: &str, message: &str| {
        bench.0.write(
            queue,
            &format!(
                r#"{{"metadata":{{"name":"gpus"}},"status":{{"conditions":[{{"type":"Active","status":"{status}","reason":"{reason}","message":"{message}"}}]}}}}"#
            ),
        );
    };
    let refused = |why: &str, see: &str| {
        let from = Instant::now();
        let ran = bench.suite();
        let text = all(&ran);
        assert!(text.contains(why) && text.contains(see) && text.contains("nothing was launched"), "{text}");
        assert!(!text.contains("culprit") && text.lines().count() <= 10, "{text}");
        assert_eq!((ran.code, bench.pods()), (Some(3), Vec::new()), "{text}");
        from.elapsed()
    };
    active("True", "Ready", "Can submit new workloads to clusterQueue");
    bench.0.write("kube/queued", "1\n2\n");
    let ran = bench.suite();
    assert_eq!((ran.code, bench.pods()), (Some(0), Vec::new()), "{}", all(&ran));
    bench.0.write("inventory/pods.toml", &text.replace("start_limit_s = 5", "start_limit_s = 60"));
    bench.0.write("kube/queued", "");
    active("False", "ClusterQueueIsInactive", "Can't submit new workloads to clusterQueue");
    let took = refused(
        "local queue `gpus` of Kueue admits no pods: ClusterQueueIsInactive: Can't submit new workloads to clusterQueue",
        "`kubectl --context=here --namespace=default describe localqueues.kueue.x-k8s.io gpus`",
    );
    assert!(took < Duration::from_secs(30), "it is not waited for: {took:?}");
    fs::remove_file(bench.0.path().join(queue)).expect("removed");
    refused(
        "Kueue has no local queue `gpus` in namespace default",
        "`kubectl --context=here --namespace=default get localqueues.kueue.x-k8s.io`",
    );
    // Whoever may not look at queues waits, and is sent to look.
    bench.0.write("inventory/pods.toml", &text);
    bench.0.write("kube/forbidden-localqueues.kueue.x-k8s.io", "");
    refused(
        "local queue `gpus` of Kueue has not admitted it yet",
        "`kubectl --context=here --namespace=default get workloads.kueue.x-k8s.io`",
    );
}

#[test]
fn a_limit_of_the_namespace_that_the_inventory_does_not_ask_for_stops_the_run_before_a_job_is_ended_for_memory()
 {
    let bench = Bench::new();
    bench.0.write("kube/limit-range", r#"{"cpu":"500m","memory":"512Mi"}"#);
    let ran = bench.suite();
    let text = all(&ran);
    let why = "namespace default limits it to cpu 500m, memory 512Mi, which `[reach]` does not ask for";
    assert_eq!((ran.code, bench.pods()), (Some(3), Vec::new()), "{text}");
    let see = "`kubectl --context=here --namespace=default get limitrange`";
    assert!(text.contains(why) && text.contains(see) && text.contains("nothing was launched"), "{text}");
    assert!(!text.contains("culprit") && text.lines().count() <= 10, "{text}");
    let asks = fs::read_to_string(bench.0.path().join("inventory/pods.toml")).expect("an inventory");
    bench.0.write("inventory/pods.toml", &asks.replace("[reach]\n", "[reach]\ncpu = 4\nmemory = \"8GiB\"\n"));
    let ran = bench.suite();
    assert_eq!((ran.code, bench.pods()), (Some(0), Vec::new()), "{}", all(&ran));
}

#[test]
fn streams_that_break_off_are_no_exit_codes() {
    let bench = Bench::new();
    bench.0.write("kube/cut", "1\n");
    let ran = bench.suite();
    let text = all(&ran);
    assert!(
        text.contains("kubectl lost its pod, whether the command finished is unknown: error: unexpected EOF"),
        "{text}"
    );
    assert!(!text.contains("exit code 1"), "{text}");
}

#[test]
fn a_pod_that_does_not_run_has_a_cause_and_no_culprit() {
    let unschedulable = r#"{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/2 nodes are available: 2 Insufficient nvidia.com/gpu."}]}"#;
    let evicted =
        r#"{"phase":"Failed","reason":"Evicted","message":"The node was low on resource: memory."}"#;
    let image = r#"{"phase":"Pending","containerStatuses":[{"name":"work","state":{"waiting":{"reason":"ImagePullBackOff","message":"Back-off pulling image"}}}]}"#;
    for (state, cause) in [
        (unschedulable, "pod of n2: Unschedulable: 0/2 nodes are available: 2 Insufficient nvidia.com/gpu."),
        (evicted, "pod of n2: Evicted: The node was low on resource: memory."),
        (image, "pod of n2: ImagePullBackOff: Back-off pulling image"),
    ] {
        let bench = Bench::new();
        bench.0.write("kube/nodes/n2", state);
        let ran = bench.suite();
        let text = all(&ran);
        assert!(text.contains(cause) && !text.contains("culprit"), "{text}");
        assert!(text.contains("coverage: nodes 1/2") || text.contains("1 of 2"), "{text}");
        assert_eq!(bench.pods(), Vec::<PathBuf>::new());
    }
    let bench = Bench::new();
    bench.0.write("kube/quota", "");
    let text = all(&bench.suite());
    assert!(
        text.contains("is forbidden: exceeded quota: gpus; all 2 nodes refuse, nothing was launched"),
        "{text}"
    );
    // As Kyverno refuses one.
    let policy = "Error from server: error when creating \"STDIN\": admission webhook \"validate.kyverno.svc-fail\" denied the request: \n\n\
                  resource Pod/default/POD was blocked due to the following policies \n\nrequire-labels:\n  check: 'validation \
                  error: The label `team` is required. rule check\n    failed at path /metadata/labels/team/'\n";
    bench.0.write("kube/quota", policy);
    let text = all(&bench.suite());
    for part in [
        "denied the request: resource Pod/default/",
        "require-labels: check: 'validation error: The label `team`",
    ] {
        assert!(text.contains(part) && !text.contains("kubectl describe"), "{part}: {text}");
    }
}

#[test]
fn clean_deletes_the_pods_of_its_run_and_no_others() {
    let bench = Bench::new();
    assert_eq!(bench.suite().code, Some(0));
    let run = fs::read_dir(bench.0.path().join("runs"))
        .expect("runs")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    let run = run.into_iter().find(|name| name.ends_with(|c: char| c.is_ascii_hexdigit())).expect("a run");
    let short = |text: &str| base::digest::sha256(text.as_bytes())[..12].to_owned();
    let left = format!("harness-{}-{}", short(&run), short("n1"));
    bench.0.write(&format!("kube/pods/{left}"), &format!("n1 {run} uid-1\n"));
    // A copy that somebody made of it, with its labels.
    bench.0.write("kube/pods/harness-copy-1", &format!("n1 {run} uid-3\n"));
    bench.0.write("kube/pods/harness-other-1", "n1 20260101T000001Z-other-0001 uid-2\n");
    let looked = bench.run(&["clean", "--run", &run, "--dry-run"]);
    assert_eq!(looked.code, Some(1), "{}", all(&looked));
    assert!(looked.stdout.contains(&format!("n1  pod  {left}")), "{}", all(&looked));
    assert!(!looked.stdout.contains("harness-copy-1"), "{}", all(&looked));
    let cleaned = bench.run(&["clean", "--run", &run]);
    assert_eq!(cleaned.code, Some(0), "{}", all(&cleaned));
    let mut stay = bench.pods();
    stay.sort();
    assert!(
        stay.len() == 2 && stay[0].ends_with("harness-copy-1") && stay[1].ends_with("harness-other-1"),
        "{stay:?}"
    );
}

#[test]
fn a_pod_that_ends_while_its_job_runs_costs_that_job_alone_and_has_no_culprit() {
    for (state, why) in [
        (
            r#"{"phase":"Failed","reason":"Evicted","message":"The node was low on resource: memory."}"#,
            "Evicted: The node was low on resource: memory.",
        ),
        (
            r#"{"phase":"Failed","containerStatuses":[{"name":"work","state":{"terminated":{"reason":"OOMKilled","exitCode":137}}}]}"#,
            "OOMKilled: exit code 137",
        ),
        (
            r#"{"phase":"Failed","reason":"Preempted","message":"for a critical pod"}"#,
            "Preempted: for a critical pod",
        ),
    ] {
        let bench = waiting();
        let from = Instant::now();
        let ran = while_it_runs(&bench, || {
            bench.0.write("kube/nodes/n2", state);
            bench.0.write("shared/go", "");
        });
        let counts = &bench.0.json("summary.json")["counts"];
        assert_eq!((&counts["pass"], &counts["error"]), (&1.into(), &1.into()), "{}", all(&ran));
        assert!(from.elapsed() < Duration::from_secs(40), "no heartbeat is waited for: {:?}", from.elapsed());
        let reported = bench.0.reported();
        let why = format!("lost: pod of n2: {why}");
        assert!(reported.contains(&why), "no `{why}` in {reported}");
        let next = bench.0.json("cases/each/verdict.json").to_string();
        assert!(
            next.contains("see the job's stderr and `kubectl --context=here --namespace=default get events`"),
            "{next}"
        );
        assert_eq!((ran.code, ran.blamed()), (Some(3), Vec::new()), "{}", all(&ran));
        assert_eq!(bench.pods(), Vec::<PathBuf>::new());
    }
}

/// As the API server lists a pod once its node has not been heard of for a while.
const SILENT: &str = r#"{"phase":"Running","podIP":"127.0.0.1","conditions":[{"type":"Ready","status":"False"}],"containerStatuses":[{"name":"work","ready":true,"state":{"running":{}}}]}"#;

#[test]
fn a_node_that_falls_silent_is_blamed_unless_somebody_has_announced_to_take_it_away() {
    let check = |announced: &str, blamed: &[&str], why: &str| {
        let bench = waiting();
        let ran = while_it_runs(&bench, || {
            bench.0.write("kube/announced/n2", announced);
            bench.0.write("kube/nodes/n2", SILENT);
            // A look at n2 that is on its way ends before its job does.
            std::thread::sleep(Duration::from_secs(2));
            bench.0.write("shared/go", "");
        });
        let counts = &bench.0.json("summary.json")["counts"];
        assert_eq!((&counts["pass"], &counts["error"]), (&1.into(), &1.into()), "{}", all(&ran));
        let reported = bench.0.reported();
        assert!(reported.contains(why), "no `{why}` in {reported}");
        assert_eq!(ran.blamed(), blamed, "{}", all(&ran));
    };
    let stays = "[{\"key\":\"nvidia.com/gpu\",\"effect\":\"NoSchedule\"}]\t[]\n";
    let leaves = "[{\"key\":\"karpenter.sh/disrupted\",\"effect\":\"NoSchedule\"}]\t[]\n";
    let why = "pod of n2: its node is leaving: Karpenter removes it: taint karpenter.sh/disrupted";
    std::thread::scope(|scope| {
        scope.spawn(|| check(stays, &["culprit n2 node"], "its kubelet is silent: NotReady"));
        scope.spawn(|| check(leaves, &[], why));
    });
}

#[test]
fn a_server_that_is_away_for_a_moment_is_asked_to_make_and_to_delete_pods_again() {
    let bench = Bench::new();
    bench.0.write("kube/away-create", "1\n");
    bench.0.write("kube/away-delete", "1\n2\n3\n");
    let ran = bench.suite();
    assert_eq!(ran.code, Some(0), "{}", all(&ran));
    assert_eq!(bench.pods(), Vec::<PathBuf>::new());
    assert_eq!(bench.calls("create"), 2);
    assert!(bench.calls("delete") > 2, "some calls are refused: {}", bench.calls("delete"));
}

#[test]
fn a_run_that_fails_before_its_start_leaves_no_pod() {
    let bench = Bench::new();
    bench.0.write("runs", "a file, where a folder is needed");
    let ran = bench.suite();
    assert_ne!(ran.code, Some(0), "{}", all(&ran));
    assert_eq!(bench.pods(), Vec::<PathBuf>::new(), "{}", all(&ran));
}

#[test]
fn a_run_that_is_refused_leaves_no_folder_and_the_latest_run_stays_it() {
    let bench = Bench::new();
    assert_eq!(bench.suite().code, Some(0));
    let latest = bench.0.latest().canonicalize().expect("a run");
    bench.0.write("kube/quota", "");
    assert_ne!(bench.suite().code, Some(0));
    assert_eq!((bench.0.runs(), bench.0.latest().canonicalize().expect("a run")), (1, latest));
}

#[test]
fn a_harness_that_is_killed_while_its_pods_start_can_be_cleaned_up() {
    let bench = Bench::new();
    let waits = r#"{"phase":"Pending","containerStatuses":[{"name":"work","state":{"waiting":{"reason":"ContainerCreating"}}}]}"#;
    bench.0.write("kube/nodes/n2", waits);
    let mut child =
        bench.command(&SUITE).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let from = Instant::now();
    while bench.pods().len() < 2 {
        assert!(from.elapsed() < Duration::from_secs(60), "no pods are made");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().and_then(|()| child.wait()).expect("killed");
    fs::remove_file(bench.0.path().join("kube/nodes/n2")).expect("removed");
    let cleaned = bench.run(&["clean", "--all"]);
    assert_eq!(cleaned.code, Some(0), "{}", all(&cleaned));
    assert_eq!(
        (cleaned.stdout.matches("  pod  ").count(), bench.pods()),
        (2, Vec::new()),
        "{}",
        all(&cleaned)
    );
}

#[test]
fn pods_that_are_being_deleted_are_waited_for_and_made_again() {
    let bench = waiting();
    let mut child =
        bench.command(&SUITE).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let from = Instant::now();
    while !["n1", "n2"].iter().all(|node| bench.0.path().join(format!("shared/began.{node}")).exists()) {
        assert!(from.elapsed() < Duration::from_secs(60), "the jobs do not begin");
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().and_then(|()| child.wait()).expect("killed");
    // As where the harness was killed while it deleted them.
    bench.0.write("kube/ending", "1\n2\n");
    bench.0.write("shared/go", "");
    let ran = bench.run(&["resume"]);
    assert_eq!(ran.code, Some(0), "{}", all(&ran));
    assert_eq!((bench.calls("create"), bench.pods()), (2, Vec::new()));
}
