//! Inventories that are written from the nodes of Kubernetes, by a stand-in for kubectl, and what its administrator allows.

use crate::project::{Project, Ran, ran, root};
use std::fs;
use std::os::unix::fs::symlink;

struct Bench(Project);

impl Bench {
    fn new() -> Bench {
        let project = Project::new();
        fs::create_dir_all(project.path().join("bin")).expect("made");
        symlink(root().join("tests/stand_ins/kubectl"), project.path().join("bin/kubectl")).expect("linked");
        fs::create_dir_all(project.path().join("kube")).expect("made");
        project.write(
            "inventory/pods.toml",
            "kind = \"real\"\ninstance = \"p5\"\nnodes = \"n[1-2]\"\n[reach]\nvia = \"kubernetes\"\nimage = \"r/i:1\"\n\
             shared = \"fsx\"\n[paths]\nshared = \"/fsx/harness\"\n",
        );
        Bench(project)
    }

    fn run(&self, line: &str) -> Ran {
        let mut path = self.0.path().join("bin").into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut command = self.0.command(&words);
        command.env("PATH", path).env("HARNESS_TEST_KUBE", self.0.path().join("kube"));
        ran(command.output().expect("it starts"))
    }
}

const DISCOVER: &str = "inventory discover --via kubernetes --image r/i:1 --claim fsx --output found";

fn node(name: &str, unschedulable: &str) -> String {
    let labels =
        format!(r#"{{"kubernetes.io/hostname":"{name}","node.kubernetes.io/instance-type":"p5.48xlarge"}}"#);
    let allocatable = r#"{"hugepages-2Mi":"5Gi","nvidia.com/gpu":"8","vpc.amazonaws.com/efa":"32"}"#;
    let ready = r#"[{"type":"Ready","status":"True","reason":"KubeletReady"}]"#;
    format!("{name}\t{labels}\t{unschedulable}\t\t{allocatable}\t{ready}\n")
}

#[test]
fn an_inventory_comes_from_the_nodes_and_runs() {
    let bench = Bench::new();
    let list = [node("n1", ""), node("n2", ""), node("n3", "true")].concat();
    bench.0.write("kube/node-list", &list);
    let shared = bench.0.path().join("shared");
    let ran = bench.run(&format!("{DISCOVER} --shared {}", shared.display()));
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stdout.contains("excluded n3: cordoned\n2 nodes of p5: n[1-2]; 1 excluded\n"),
        "{}",
        ran.stdout
    );
    bench.0.write(
        "suites/pods.toml",
        "instance = \"p5\"\nabout = \"in pods\"\n[[case]]\nname = \"each\"\nplacement = \"each\"\nlimit_s = 120\n\
         workload = { kind = \"command\", program = \"true\" }\n\
         recipes = [\"command\"]\n[[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n",
    );
    let ran = bench.run("run --suite pods --inventory found --no-probe");
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("coverage: nodes 2/2"), "{}", ran.stdout);
    // Nothing is asked of another cluster.
    let found = fs::read_to_string(bench.0.path().join("inventory/found.toml")).expect("an inventory");
    let cluster = "\ncluster = \"https://10.0.0.1:6443\" # nothing is touched in another one\n";
    assert!(found.contains(cluster), "{found}");
    bench.0.write("kube/server", "https://10.0.0.2:6443");
    let ran = bench.run("run --suite pods --inventory found --no-probe");
    let why = "kubectl leads to another cluster: https://10.0.0.2:6443 (context here), but `cluster` in [reach] is \
               https://10.0.0.1:6443; nothing was touched";
    assert!(ran.code == Some(3) && ran.stderr.contains(why), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn limits_of_the_namespace_are_in_the_inventory_before_the_first_run() {
    let bench = Bench::new();
    let offers =
        |line: String| line.replace(r#"{"hugepages"#, r#"{"cpu":"190","memory":"2000Gi","hugepages"#);
    bench.0.write("kube/node-list", &[node("n1", ""), node("n2", "")].map(offers).concat());
    // What its plugin gives to pods that ask for nothing, and the object itself.
    bench.0.write("kube/limit-range", r#"{"cpu":"500m","memory":"512Mi"}"#);
    let small = r#"{"metadata":{"name":"small"},"spec":{"limits":[{"type":"Container","default":{"cpu":"500m","memory":"512Mi"},"max":{"cpu":"16","memory":"64Gi"}}]}}"#;
    bench.0.write("kube/objects/limitranges/default.small", small);
    let discover = format!("{DISCOVER} --shared {}", bench.0.path().join("shared").display());
    let ran = bench.run(&discover);
    let text = format!("{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.code, Some(0), "{text}");
    for note in [
        "note: pods ask for cpu = 16: LimitRange small gives a pod that asks for none cpu 500m\n",
        "note: pods ask for memory = \"64GiB\": LimitRange small gives a pod that asks for none memory 512Mi\n",
    ] {
        assert!(text.contains(note), "{note}: {text}");
    }
    bench.0.write(
        "suites/pods.toml",
        "instance = \"p5\"\nabout = \"in pods\"\n[[case]]\nname = \"each\"\nplacement = \"each\"\nlimit_s = 120\n\
         workload = { kind = \"command\", program = \"true\" }\n\
         recipes = [\"command\"]\n[[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n",
    );
    let ran = bench.run("run --suite pods --inventory found --no-probe");
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let created = fs::read_to_string(bench.0.path().join("kube/created")).expect("what was created");
    assert_eq!(
        created.matches(r#""memory":"64Gi""#).count(),
        4,
        "asked for, and a limit, of two pods: {created}"
    );

    // Who may not list them is given the role, and an inventory without them.
    bench.0.write("kube/forbidden-limitranges", "");
    let ran = bench.run(&format!("{discover} --force"));
    let text = format!("{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.code, Some(0), "{text}");
    let next = "; it needs `list` of limitranges: `harness inventory role --nodes` prints it\n";
    assert!(
        text.contains("note: limits of pods are unknown: `kubectl get limitranges`: Error from server"),
        "{text}"
    );
    assert!(text.contains(next), "{text}");
    let found = fs::read_to_string(bench.0.path().join("inventory/found.toml")).expect("an inventory");
    assert!(!found.contains("memory ="), "{found}");
}

/// A node with these conditions of its kubelet, and more labels.
fn conditions(name: &str, pressure: &str, labels: &str) -> String {
    let kubelet = format!(
        r#"[{{"type":"MemoryPressure","status":"False"}},{{"type":"DiskPressure","status":"{pressure}","reason":"KubeletHasDiskPressure","message":"kubelet has disk pressure"}},{{"type":"PIDPressure","status":"False"}},{{"type":"Ready","status":"True"}}]"#
    );
    format!("ip-{name}\t{{\"kubernetes.io/hostname\":\"{name}\"{labels}}}\t\t\t\t{kubelet}\n")
}

#[test]
fn a_probe_reads_what_kubernetes_reports_of_nodes() {
    let bench = Bench::new();
    let shared = bench.0.path().join("shared").display().to_string();
    let text = fs::read_to_string(bench.0.path().join("inventory/pods.toml")).expect("an inventory");
    let text = text.replace("/fsx/harness", &shared).replace("n[1-2]", "n[1-3]");
    bench.0.write("inventory/pods.toml", &text);
    let marked = r#","sagemaker.amazonaws.com/node-health-status":"UnschedulablePendingReplacement""#;
    let list =
        [conditions("n1", "False", ""), conditions("n2", "True", ""), conditions("n3", "False", marked)];
    bench.0.write("kube/node-list", &list.concat());
    let probed = |bench: &Bench| -> serde_json::Value {
        let ran = bench.run("inventory probe --inventory pods --format json");
        serde_json::from_str(&ran.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", ran.stdout, ran.stderr))
    };
    let probe = probed(&bench);
    let node = |at: usize| &probe["nodes"][at];
    assert_eq!(node(0)["facts"]["node_ready"], "True");
    assert_eq!(node(0)["facts"]["node_pressure"], serde_json::json!([]));
    assert!(node(0)["facts"].as_object().is_some_and(|facts| facts.len() > 3), "beside its own: {probe}");
    assert_eq!(node(1)["facts"]["node_pressure"], serde_json::json!(["DiskPressure"]));
    let disk = "pressure: Kubernetes reports DiskPressure: KubeletHasDiskPressure: kubelet has disk pressure";
    assert_eq!(node(1)["unfit"], serde_json::json!([disk]));
    let health = "sagemaker.amazonaws.com/node-health-status";
    let why = format!("HyperPod's label {health} is `UnschedulablePendingReplacement`");
    assert_eq!(node(2)["unfit"], serde_json::json!([why]));
    let label = format!("{health}=UnschedulablePendingReplacement");
    assert_eq!(node(2)["facts"]["node_health"], serde_json::json!([label]));

    // Who may not list nodes is asked as before.
    fs::remove_file(bench.0.path().join("kube/node-list")).expect("removed");
    let probe = probed(&bench);
    for at in 0..3 {
        for fact in ["node_ready", "node_pressure", "node_health"] {
            let why = probe["nodes"][at]["unknown"][fact].as_str().unwrap_or_default();
            assert!(
                why.contains("cannot list resource \"nodes\"")
                    && why.contains("`harness inventory role --nodes`")
            );
        }
        assert!(!probe["nodes"][at]["unfit"].to_string().contains("Kubernetes"), "{probe}");
    }
}

#[test]
fn nodes_that_would_take_pods_beyond_the_inventory_are_named_with_the_next_command() {
    let bench = Bench::new();
    let shared = bench.0.path().join("shared").display().to_string();
    let text = fs::read_to_string(bench.0.path().join("inventory/pods.toml")).expect("an inventory");
    let text = text.replace("/fsx/harness", &shared);
    let class = "shared = \"fsx\"\npriority_class = \"low\"\n";
    bench.0.write("inventory/pods.toml", &text.replace("shared = \"fsx\"\n", class));
    let list = |names: &[&str]| names.iter().map(|name| node(name, "")).collect::<String>();
    bench.0.write("kube/node-list", &(list(&["n1", "n2", "n3"]) + &node("n4", "true")));
    let ran = bench.run("inventory probe --inventory pods --format json");
    let note = "note: 1 node of the cluster beyond the inventory: n3; next: harness inventory discover --via kubernetes \
                --namespace default --image r/i:1 --claim fsx --shared ";
    assert!(
        ran.stderr.contains(note) && ran.stderr.contains(" --priority-class low --output pods-all\n"),
        "{}",
        ran.stderr
    );
    let probe: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON alone on stdout");
    assert_eq!(probe["nodes"].as_array().map(Vec::len), Some(2));
    // All of them, and who may not list nodes.
    bench.0.write("kube/node-list", &list(&["n1", "n2"]));
    assert!(!bench.run("inventory probe --inventory pods").stderr.contains("beyond the inventory"));
    fs::remove_file(bench.0.path().join("kube/node-list")).expect("removed");
    assert!(!bench.run("inventory probe --inventory pods").stderr.contains("beyond the inventory"));
}

#[test]
fn a_node_whose_device_plugin_is_down_or_whose_labels_part_its_gpus_is_refused_by_name() {
    let bench = Bench::new();
    let shared = bench.0.path().join("shared").display().to_string();
    let text = fs::read_to_string(bench.0.path().join("inventory/pods.toml")).expect("an inventory");
    let text = text.replace("/fsx/harness", &shared).replace("n[1-2]", "n[1-4]");
    let asked = "[probe]\ndevice_pods_bad = { at_most = 0 }\nmig_labels = { at_most = 0 }\n";
    bench.0.write("inventory/pods.toml", &format!("{text}{asked}"));
    let mig = |config: &str| format!(r#","nvidia.com/gpu.count":"8","nvidia.com/mig.config":"{config}""#);
    let whole = mig("all-disabled");
    let list = ["n1", "n2", "n3"].map(|name| conditions(name, "False", &whole)).concat();
    bench.0.write("kube/node-list", &(list + &conditions("n4", "False", &mig("all-1g.10gb"))));
    let pod = |n: u32, placed: &str, phase: &str, containers: &str| {
        let owner = r#"[{"kind":"DaemonSet","name":"nvidia-device-plugin"}]"#;
        format!("kube-system\tp-{n}\t{{}}\t{owner}\t\t{placed}\tip-n{n}\t{phase}\t\t{containers}\n")
    };
    let runs = r#"[{"name":"ctr","ready":true,"state":{"running":{}}}]"#;
    let crashes = r#"[{"name":"ctr","ready":false,"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]"#;
    let pods = [
        pod(1, "ip-n1", "Running", runs),
        pod(2, "ip-n2", "Running", crashes),
        pod(3, "", "Pending", ""),
        pod(4, "ip-n4", "Running", runs),
    ];
    bench.0.write("kube/pod-list", &pods.concat());
    let probed = || -> serde_json::Value {
        let ran = bench.run("inventory probe --inventory pods --format json");
        serde_json::from_str(&ran.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", ran.stdout, ran.stderr))
    };
    let probe = probed();
    let unfit = |at: usize| probe["nodes"][at]["unfit"].to_string();
    let plugin = serde_json::json!(["nvidia-device-plugin"]);
    assert_eq!(probe["nodes"][0]["facts"]["device_pods"], plugin);
    assert!(!unfit(0).contains("device_pods_bad") && !unfit(0).contains("mig_labels"), "{probe}");
    for (at, why) in [
        (1, "`device_pods_bad` must be at most 0, but is kube-system/p-2: not ready: CrashLoopBackOff"),
        (2, "`device_pods_bad` must be at most 0, but is kube-system/p-3: Pending"),
        (3, "`mig_labels` must be at most 0, but is nvidia.com/mig.config=all-1g.10gb"),
    ] {
        assert!(unfit(at).contains(why), "{why}: {probe}");
    }

    // Who may not list them has the reason and the role.
    fs::remove_file(bench.0.path().join("kube/pod-list")).expect("removed");
    let probe = probed();
    for fact in ["device_pods", "device_pods_bad"] {
        let why = probe["nodes"][0]["unknown"][fact].as_str().unwrap_or_default();
        let is_said = why.contains("cannot list resource \"pods\"");
        assert!(
            is_said && why.ends_with("`harness inventory role --device-pods` prints it"),
            "{fact}: {why}"
        );
    }
    assert_eq!(probe["nodes"][0]["facts"]["mig_labels"], serde_json::json!([]));
}

#[test]
fn who_may_not_list_nodes_is_given_the_role_for_it() {
    let bench = Bench::new();
    let ran = bench.run(DISCOVER);
    assert_eq!(ran.code, Some(3), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("cannot list resource \"nodes\""), "{}", ran.stderr);
    assert!(ran.stderr.contains("`harness inventory role --nodes` prints it"), "{}", ran.stderr);
    assert!(!bench.0.path().join("inventory/found.toml").exists());
}

#[test]
fn flags_of_the_other_scheduler_are_refused_before_anything_is_asked() {
    let bench = Bench::new();
    for (line, why) in [
        (
            format!("{DISCOVER} --partition gpu"),
            "--partition: Kubernetes has none; choose nodes with --selector",
        ),
        (
            "inventory discover --partition gpu --claim fsx --output x".to_owned(),
            "--claim: only `--via kubernetes` makes pods",
        ),
        (
            "inventory discover --partition gpu --priority-class checks --output x".to_owned(),
            "--priority-class: only `--via kubernetes` makes pods",
        ),
        ("inventory discover --via kubernetes --claim fsx --output x".to_owned(), "--image <IMAGE>"),
        ("inventory discover --output x".to_owned(), "--partition <NAME>"),
    ] {
        let ran = bench.run(&line);
        assert_eq!(ran.code, Some(2), "{line}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(why), "{line}: {}", ran.stderr);
    }
    assert!(!bench.0.path().join("kube/calls").exists());
}

#[test]
fn a_role_is_yaml_that_names_what_is_used() {
    let bench = Bench::new();
    let ran = bench.run("inventory role --namespace bench --nodes --device-pods --drain --user jo");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    insta::assert_snapshot!("role", ran.stdout);
    let of_queue = "  - apiGroups: [\"kueue.x-k8s.io\"]\n    resources: [localqueues]\n    verbs: [list]\n";
    assert!(!ran.stdout.contains(of_queue));
    let ran = bench.run("inventory role --namespace bench --queue");
    assert!(ran.stdout.contains(of_queue), "{}", ran.stdout);
    assert_eq!(bench.run("inventory role --namespace a/b").code, Some(2));
}

/// What the older injector left in a cluster, one file for each object.
fn leave_injector(bench: &Bench) {
    let label = "nvidia-devtools-sidecar-injector";
    let webhook = |namespace: &str| {
        let service = format!(r#"{{"namespace":"{namespace}","name":"svc"}}"#);
        format!(r#","webhooks":[{{"clientConfig":{{"service":{service}}}}}]"#)
    };
    let objects = [
        (
            "mutatingwebhookconfigurations",
            "sidecar-injector-webhook",
            "sidecar-injector-webhook",
            webhook(label),
        ),
        (
            "mutatingwebhookconfigurations",
            "istio-sidecar-injector",
            "istio-sidecar-injector",
            webhook("istio-system"),
        ),
        (
            "mutatingwebhookconfigurations",
            "nvidia-devtools-sidecar-injector-webhook",
            "nvidia-devtools-sidecar-injector-webhook",
            webhook(label),
        ),
        (
            "certificatesigningrequests",
            "nvidia-devtools-sidecar-injector-svc",
            "nvidia-devtools-sidecar-injector-svc",
            String::new(),
        ),
        ("namespaces", "nvidia-devtools-sidecar-injector", "nvidia-devtools-sidecar-injector", String::new()),
        ("namespaces", "other", "other", String::new()),
    ];
    for (kind, file, name, more) in objects {
        bench.0.write(
            &format!("kube/objects/{kind}/{file}"),
            &format!(r#"{{"metadata":{{"name":"{name}"}}{more}}}"#),
        );
    }
    let labelled = format!(r#"{{"metadata":{{"name":"train","labels":{{"{label}":"enabled"}}}}}}"#);
    bench.0.write("kube/objects/namespaces/train", &labelled);
    let settings = format!(r#"{{"metadata":{{"name":"{label}-custom","namespace":"train"}}}}"#);
    bench.0.write(&format!("kube/objects/configmaps/train.{label}-custom"), &settings);
}

#[test]
fn leftovers_of_the_injector_are_listed_and_removed_only_where_asked() {
    let bench = Bench::new();
    let none = bench.run("clean --kubernetes --inventory pods");
    assert_eq!(
        (none.code, none.stdout.as_str()),
        (Some(0), "no pod is left of a harness that has ended\nno leftovers of the injector\n"),
        "{}",
        none.stderr
    );
    leave_injector(&bench);
    let ran = bench.run("clean --kubernetes --inventory pods");
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    insta::assert_snapshot!("leftovers_of_the_injector", ran.stdout);
    // Where it is installed they are no leftovers.
    bench.0.write("kube/objects/deployments.apps/x", r#"{"metadata":{"name":"x"}}"#);
    let ran = bench.run("clean --kubernetes --remove --inventory pods");
    assert!(
        ran.code == Some(1) && ran.stdout.contains("it is installed: `helm uninstall`"),
        "{}",
        ran.stdout
    );
    fs::remove_file(bench.0.path().join("kube/objects/deployments.apps/x")).expect("removed");
    // So it is where a webhook's service is there, in whatever namespace.
    let calls = r#"{"metadata":{"name":"nvidia-devtools-sidecar-injector-webhook"},"webhooks":[{"clientConfig":{"service":{"namespace":"tools","name":"injector"}}}]}"#;
    let webhook = "kube/objects/mutatingwebhookconfigurations/nvidia-devtools-sidecar-injector-webhook";
    let before = fs::read_to_string(bench.0.path().join(webhook)).expect("a webhook");
    bench.0.write(webhook, calls);
    let service = "kube/objects/services/tools.injector";
    bench.0.write(service, r#"{"kind":"Service","metadata":{"name":"injector","namespace":"tools"}}"#);
    let ran = bench.run("clean --kubernetes --remove --inventory pods");
    assert!(ran.code == Some(1) && ran.stdout.contains("it is installed"), "{}", ran.stdout);
    fs::remove_file(bench.0.path().join(service)).expect("removed");
    bench.0.write(webhook, &before);
    // What cannot be listed is unknown, and nothing is removed.
    bench.0.write("kube/forbidden-namespaces", "");
    let ran = bench.run("clean --kubernetes --remove --inventory pods");
    assert!(
        ran.code == Some(3) && ran.stderr.contains("namespaces is forbidden"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    fs::remove_file(bench.0.path().join("kube/forbidden-namespaces")).expect("removed");
    // A namespace with something of others stays.
    let claim = "kube/objects/persistentvolumeclaims/nvidia-devtools-sidecar-injector.results";
    bench.0.write(claim, r#"{"kind":"PersistentVolumeClaim","metadata":{"name":"results"}}"#);
    let ran = bench.run("clean --kubernetes --remove --inventory pods");
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stdout.contains("not removed namespace/nvidia-devtools-sidecar-injector: it holds PersistentVolumeClaim/results, which"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.ends_with("1 of 6 are there still; ask again\n"), "{}", ran.stdout);
    assert!(bench.0.path().join("kube/objects/namespaces/nvidia-devtools-sidecar-injector").exists());
    fs::remove_file(bench.0.path().join(claim)).expect("removed");
    leave_injector(&bench);
    let ran = bench.run("clean --kubernetes --remove --inventory pods");
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.ends_with("nothing is left: 6 found, all removed\n"), "{}", ran.stdout);
    let left =
        |kind: &str| fs::read_dir(bench.0.path().join("kube/objects").join(kind)).expect("read").count();
    assert_eq!(left("mutatingwebhookconfigurations"), 1, "that of others stays");
    assert_eq!(left("namespaces"), 2);
    assert_eq!(bench.run("clean --kubernetes --inventory default").code, Some(2));
}
