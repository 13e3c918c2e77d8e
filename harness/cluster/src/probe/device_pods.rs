//! The daemons by which pods get GPUs and EFA devices: pods of the GPU operator and of device plugins, by one list of all
//! namespaces. A node on which one of them is not ready gives jobs no devices, or will not for long.

use super::on_node::Reported;
use crate::reach::pods::Kubectl;
use base::text::{shorten, show};
use model::artefact::Value;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const READY: &str = "device_pods";
pub(super) const BAD: &str = "device_pods_bad";
/// A line for each pod, its fields parted by tabs. One that waits for its node names it in its affinity alone.
const FORMAT: &str = "jsonpath={range .items[*]}{.metadata.namespace}{\"\\t\"}{.metadata.name}{\"\\t\"}{.metadata.labels}\
     {\"\\t\"}{.metadata.ownerReferences}{\"\\t\"}{.metadata.deletionTimestamp}{\"\\t\"}{.spec.nodeName}{\"\\t\"}\
     {.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[*].matchFields[*].values[*]}\
     {\"\\t\"}{.status.phase}{\"\\t\"}{.status.reason}{\"\\t\"}{.status.containerStatuses}{\"\\n\"}{end}";
/// 2 kB of each of thirty thousand pods.
const LIST_LIMIT: usize = 64 << 20;
/// Of what the server says of one pod.
const LONGEST: usize = 160;
/// Where the operator is installed, by its own chart, an older one and OpenShift's.
const NAMESPACES: [&str; 3] = ["gpu-operator", "gpu-operator-resources", "nvidia-gpu-operator"];
/// Beginnings of namespaces, by words, in which operators and plugins are installed and tenants create nothing. A name or a
/// label elsewhere is any tenant's to choose, and so is a priority class. AKS has its plugin in `gpu-resources`, which anybody
/// may create on other clusters: an inventory adds such by `device_namespaces`.
const OF_OPERATORS: [&str; 3] = ["kube-system", "gpu-operator", "nvidia"];
/// Which a pod of theirs is part of: in manifests of NVIDIA/gpu-operator and NVIDIA/k8s-device-plugin.
const PART_OF: (&str, [&str; 2]) = ("app.kubernetes.io/part-of", ["gpu-operator", "nvidia-gpu"]);

/// Whose devices are asked about, as names of their plugins have it.
const WHOSE: [&str; 2] = ["nvidia", "efa"];

/// A pod of a daemon that devices depend on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DevicePod {
    /// `NAMESPACE/POD`.
    name: String,
    daemon: String,
    /// As Kubernetes names it.
    node: String,
    /// Outside the namespaces of operators: neither proof that devices are there, nor that they are not.
    is_elsewhere: bool,
    state: State,
}

#[derive(Debug, Clone, PartialEq)]
enum State {
    Ready,
    /// It has done what it was for.
    Done,
    Bad(String),
}

#[derive(Deserialize)]
struct Owner {
    kind: String,
    name: String,
}

#[derive(Deserialize)]
struct Container {
    #[serde(default)]
    ready: bool,
    #[serde(default)]
    state: BTreeMap<String, Option<Reason>>,
}

#[derive(Deserialize)]
struct Reason {
    #[serde(default)]
    reason: String,
}

/// Those of the whole cluster, or why they are not known. `own` are the inventory's namespaces of plugins.
pub(super) async fn list(kubectl: &Kubectl, own: &[String]) -> Result<Vec<DevicePod>, String> {
    let words = ["get", "pods", "--all-namespaces", &format!("--output={FORMAT}")].map(str::to_owned);
    let answer = kubectl.ask(&words, b"", LIST_LIMIT).await.map_err(|error| error.to_string())?;
    if !answer.succeeded {
        let why = answer.complaint();
        let hint = if why.contains("(Forbidden)") {
            "; listing pods of all namespaces needs a ClusterRole: `harness inventory role --device-pods` prints it"
        } else {
            ""
        };
        return Err(format!("`kubectl get pods --all-namespaces`: {why}{hint}"));
    }
    read(&answer.stdout, own).map_err(|why| format!("the answer of `kubectl get pods` cannot be read: {why}"))
}

/// What they say of a node.
pub(super) fn report(pods: &Result<Vec<DevicePod>, String>, node: &str, reported: &mut Reported) {
    let pods = match pods {
        Ok(pods) => pods.iter().filter(|pod| pod.node == node),
        Err(why) => {
            reported.unknown.extend([READY, BAD].map(|fact| (fact.to_owned(), why.clone())));
            return;
        }
    };
    let (mut ready, mut bad) = (BTreeSet::new(), BTreeSet::new());
    let (mut elsewhere, mut bad_elsewhere) = (None, None);
    for pod in pods {
        match &pod.state {
            State::Done => {}
            state if pod.is_elsewhere => {
                elsewhere = Some(&pod.name);
                bad_elsewhere = if *state == State::Ready { bad_elsewhere } else { elsewhere };
            }
            State::Ready => {
                ready.insert(line(&pod.daemon));
            }
            State::Bad(why) => {
                bad.insert(line(&format!("{}: {why}", pod.name)));
            }
        }
    }
    // What is bad in a namespace of operators stays so, whatever stands elsewhere.
    let bad_elsewhere = bad_elsewhere.filter(|_| bad.is_empty());
    for (fact, names, elsewhere) in [(READY, ready, elsewhere), (BAD, bad, bad_elsewhere)] {
        match elsewhere {
            Some(pod) => {
                let why =
                    format!("a pod in none of {}*, `device_namespaces`: {pod}", OF_OPERATORS.join("*, "));
                reported.unknown.insert(fact.to_owned(), line(&why));
            }
            None => drop(reported.facts.insert(fact.to_owned(), Value::Names(names.into_iter().collect()))),
        }
    }
}

fn line(text: &str) -> String {
    shorten(&show(text), LONGEST)
}

/// A line that cannot be read makes the whole answer none: a pod that is passed over would count as well.
fn read(answer: &[u8], own: &[String]) -> Result<Vec<DevicePod>, String> {
    let answer = std::str::from_utf8(answer).map_err(|_| "it is no UTF-8".to_owned())?;
    let lines = answer.lines().filter(|line| !line.is_empty());
    lines.map(|line| pod(line, own)).filter_map(Result::transpose).collect()
}

/// Nothing where it is none of these daemons, or is on its way out.
fn pod(line: &str, own: &[String]) -> Result<Option<DevicePod>, String> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [namespace, name, labels, owners, deleted, node, pinned, phase, reason, containers] = fields[..]
    else {
        return Err(format!("{} fields of a pod, expected 10", fields.len()));
    };
    let labels: BTreeMap<String, String> = json(labels, name, "labels")?;
    let owners: Vec<Owner> = json(owners, name, "ownerReferences")?;
    // Whatever else the operator runs is on no node for its devices.
    let Some(daemon) = owners.into_iter().find(|owner| owner.kind == "DaemonSet").map(|owner| owner.name)
    else {
        return Ok(None);
    };
    if !deleted.is_empty() || !is_of_devices(namespace, &daemon, &labels) {
        return Ok(None);
    }
    let node = if node.is_empty() { pinned } else { node };
    let containers: Vec<Container> = json(containers, name, "containerStatuses")?;
    Ok(Some(DevicePod {
        name: format!("{namespace}/{name}"),
        daemon,
        node: node.to_owned(),
        is_elsewhere: !is_of_operators(namespace, own),
        state: state(phase, reason, &containers),
    }))
}

fn is_of_operators(namespace: &str, own: &[String]) -> bool {
    let is_own = own.iter().any(|own| own == namespace);
    is_own
        || OF_OPERATORS.iter().any(|begin| {
            namespace.strip_prefix(begin).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        })
}

/// What only exports readings gives no devices.
fn is_of_devices(namespace: &str, daemon: &str, labels: &BTreeMap<String, String>) -> bool {
    if daemon.contains("exporter") {
        return false;
    }
    // By whole words: `default` has the letters of `efa`.
    let is_plugin = daemon.contains("device-plugin") && daemon.split('-').any(|word| WHOSE.contains(&word));
    let part = labels.get(PART_OF.0).map(String::as_str).unwrap_or_default();
    is_plugin || NAMESPACES.contains(&namespace) || PART_OF.1.contains(&part)
}

fn state(phase: &str, reason: &str, containers: &[Container]) -> State {
    let waits = containers.iter().filter(|container| !container.ready).find_map(|container| {
        let waiting = container.state.get("waiting")?.as_ref()?;
        (!waiting.reason.is_empty()).then_some(waiting.reason.as_str())
    });
    let because = waits.or((!reason.is_empty()).then_some(reason));
    let with = |what: &str| match because {
        Some(because) => State::Bad(format!("{what}: {because}")),
        None => State::Bad(what.to_owned()),
    };
    match phase {
        "Succeeded" => State::Done,
        "Running" if containers.is_empty() => with("no state of its containers"),
        "Running" if containers.iter().all(|container| container.ready) => State::Ready,
        "Running" => with("not ready"),
        "" => with("no phase"),
        phase => with(phase),
    }
}

/// What a pod does not have, kubectl prints as nothing.
fn json<'a, T: Default + Deserialize<'a>>(text: &'a str, pod: &str, what: &str) -> Result<T, String> {
    if text.is_empty() {
        return Ok(T::default());
    }
    serde_json::from_str(text).map_err(|error| format!("`{what}` of the pod `{pod}`: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLUGIN: &str =
        r#"[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"nvidia-device-plugin","uid":"u"}]"#;
    const RUNS: &str =
        r#"[{"name":"ctr","ready":true,"state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]"#;
    const CRASHES: &str =
        r#"[{"name":"ctr","ready":false,"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]"#;

    /// Of a plugin's daemon.
    fn plugin(pod: &str, node: &str, pinned: &str, phase: &str, containers: &str) -> String {
        format!("kube-system\t{pod}\t{{}}\t{PLUGIN}\t\t{node}\t{pinned}\t{phase}\t\t{containers}\n")
    }

    fn facts(answer: &str, node: &str) -> [String; 2] {
        let mut reported = Reported::default();
        report(&read(answer.as_bytes(), &[]), node, &mut reported);
        assert_eq!(reported.unknown, BTreeMap::new());
        [READY, BAD].map(|fact| reported.facts[fact].to_string())
    }

    #[test]
    fn a_daemon_that_is_ready_is_listed_and_one_that_is_not_has_its_reason() {
        let answer = [
            plugin("p-1", "ip-1", "ip-1", "Running", RUNS),
            plugin("p-2", "ip-2", "ip-2", "Running", CRASHES),
            plugin("p-3", "", "ip-3", "Pending", ""),
            plugin("p-4", "ip-4", "ip-4", "Failed", ""),
            plugin("p-5", "ip-5", "ip-5", "Running", ""),
            plugin("p-6", "ip-6", "ip-6", "Succeeded", RUNS),
        ]
        .concat();
        for (node, ready, bad) in [
            ("ip-1", "nvidia-device-plugin (1)", "none"),
            ("ip-2", "none", "kube-system/p-2: not ready: CrashLoopBackOff (1)"),
            ("ip-3", "none", "kube-system/p-3: Pending (1)"),
            ("ip-4", "none", "kube-system/p-4: Failed (1)"),
            ("ip-5", "none", "kube-system/p-5: no state of its containers (1)"),
            ("ip-6", "none", "none"),
            ("ip-7", "none", "none"),
        ] {
            assert_eq!(facts(&answer, node), [ready, bad], "{node}");
        }
    }

    #[test]
    fn pods_of_others_and_those_that_are_being_deleted_say_nothing() {
        let of = |namespace: &str, labels: &str, owners: &str, deleted: &str| {
            format!("{namespace}\tx\t{labels}\t{owners}\t{deleted}\tip-1\t\tPending\t\t\n")
        };
        let daemon = |name: &str| format!(r#"[{{"kind":"DaemonSet","name":"{name}"}}]"#);
        let part = r#"{"app.kubernetes.io/part-of":"nvidia-gpu"}"#;
        for (line, is_one) in [
            (of("gpu-operator", "", &daemon("gpu-feature-discovery"), ""), true),
            (of("tools", part, &daemon("discovery"), ""), true),
            (of("kube-system", "", &daemon("efa-aws-efa-k8s-device-plugin"), ""), true),
            (of("gpu-operator", "", &daemon("nvidia-dcgm-exporter"), ""), false),
            (of("kube-system", "", &daemon("aws-node"), ""), false),
            (of("kube-system", "", &daemon("amd-device-plugin"), ""), false),
            (of("tools", "", &daemon("rdma-device-plugin-default"), ""), false),
            (of("kube-system", "", &daemon("aws-efa-k8s-device-plugin-daemonset"), ""), true),
            (of("tools", "", &daemon("nvdp-nvidia-device-plugin"), ""), true),
            (of("gpu-operator", "", r#"[{"kind":"ReplicaSet","name":"gpu-operator"}]"#, ""), false),
            (of("train", "", "", ""), false),
            (of("gpu-operator", "", &daemon("gpu-feature-discovery"), "2026-01-01T00:00:00Z"), false),
        ] {
            assert_eq!(read(line.as_bytes(), &[]).expect("read").len(), usize::from(is_one), "{line}");
        }
    }

    #[test]
    fn pods_of_tenants_that_only_look_like_a_plugin_make_facts_unknown_and_no_node_unfit() {
        let at = |namespace: &str, pod: &str, containers: &str| {
            plugin(pod, "ip-1", "", "Running", containers).replace("kube-system", namespace)
        };
        // Of a tenant beside the real one, each ready or bad; what is expected of both facts, `?` where unknown.
        for (tenant, real, ready, bad) in [
            (CRASHES, RUNS, "?", "?"),
            (RUNS, RUNS, "?", "none"),
            (CRASHES, CRASHES, "?", "nvidia-x/real: not ready: CrashLoopBackOff (1)"),
        ] {
            let answer = at("team", "theirs", tenant) + &at("nvidia-x", "real", real);
            let mut reported = Reported::default();
            report(&read(answer.as_bytes(), &[]), "ip-1", &mut reported);
            for (fact, expected) in [(READY, ready), (BAD, bad)] {
                match reported.unknown.get(fact) {
                    Some(why) => {
                        let shown = "a pod in none of kube-system*, gpu-operator*, nvidia*, `device_namespaces`: team/theirs";
                        assert_eq!((expected, why.as_str()), ("?", shown), "{answer}");
                    }
                    None => assert_eq!(reported.facts[fact].to_string(), expected, "{answer}"),
                }
            }
        }
        for (namespace, is_one) in [
            ("kube-system", true),
            ("gpu-operator-resources", true),
            ("nvidia-gpu-operator", true),
            ("nvidia", true),
            ("nvidiafans", false),
            ("my-kube-system", false),
            ("default", false),
        ] {
            assert_eq!(is_of_operators(namespace, &[]), is_one, "{namespace}");
        }
    }

    #[test]
    fn pods_of_plugins_count_in_the_namespaces_that_the_inventory_names_and_in_none_that_only_begins_so() {
        let own = ["gpu-resources".to_owned()];
        for (namespace, bad) in [
            ("gpu-resources", Some("gpu-resources/p-1: not ready: CrashLoopBackOff (1)")),
            ("gpu-resources-2", None),
            ("my-gpu-resources", None),
        ] {
            let answer = plugin("p-1", "ip-1", "", "Running", CRASHES).replace("kube-system", namespace);
            let mut reported = Reported::default();
            report(&read(answer.as_bytes(), &own), "ip-1", &mut reported);
            let found = reported.facts.get(BAD).map(Value::to_string);
            assert_eq!(found.as_deref(), bad, "{namespace}");
            assert_eq!(reported.unknown.contains_key(BAD), bad.is_none(), "{namespace}");
        }
    }

    #[test]
    fn an_answer_that_cannot_be_read_is_unknown_and_never_good() {
        let whole = plugin("p-1", "ip-1", "", "Running", RUNS);
        for cut in 1..whole.len() - 1 {
            let read = read(&whole.as_bytes()[..cut], &[]);
            assert!(read.is_err() || whole[..cut].ends_with('\t'), "cut at {cut}: {read:?}");
        }
        for odd in ["a\tb\n", "a\tb\t[]\t\t\t\t\t\t\t\n", "a\tb\t{}\t{}\t\t\t\t\t\t\n"] {
            assert!(read(odd.as_bytes(), &[]).is_err(), "{odd:?}");
        }
        let mut reported = Reported::default();
        report(&Err("forbidden".to_owned()), "ip-1", &mut reported);
        assert_eq!((reported.unknown.len(), reported.facts.len()), (2, 0));
    }
}
