//! The pod that stands for a node: pinned to it, with its GPUs and EFA devices, and labelled as this run's. It needs no
//! operator, no sshd, no token of a service account and no object outside of its namespace.

use super::maker;
use base::digest::sha256;
use config::inventory::{Instance, KubernetesReach};
use serde_json::{Map, Value, json};

/// The container that commands run in.
pub(super) const CONTAINER: &str = "work";
/// The label by which the pods of a run are found.
pub(super) const RUN: &str = "harness/run";
pub(super) const OWNER: &str = "harness/owner";
pub(super) const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "harness");
/// The local queue of Kueue that admits a pod.
pub(super) const QUEUE: &str = "kueue.x-k8s.io/queue-name";
/// Pods that Kueue admits together, whose workload has that name.
pub(super) const GROUP: &str = "kueue.x-k8s.io/pod-group-name";
/// Older releases of Istio read the annotation, newer ones the label.
const ISTIO: &str = "sidecar.istio.io/inject";
/// Its processes get a signal, and so many seconds.
const GRACE_S: u64 = 5;

/// As process 1 a shell takes in orphans, and it ends on TERM, which a bare `sleep` would not.
const STAYS: &str = "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done";

/// The run that pods belong to.
#[derive(Debug, Clone)]
pub struct PodOwner {
    /// The id of the run, or of a probe.
    pub run: String,
    /// Who started it.
    pub person: String,
    /// The process that makes them, where no run's folder knows of them.
    pub process: Option<String>,
}

impl PodOwner {
    /// The value of the label: the id itself, where it can be one.
    pub(super) fn label(&self) -> String {
        label(&self.run)
    }

    /// The name of the pod of a node. Names of nodes may be longer than a pod's can be.
    pub(super) fn pod(&self, node: &str) -> String {
        format!("{}{}", self.begin(), short(node))
    }

    /// Whether a pod has such a name. A copy that somebody made of a pod has its labels, and is not the run's.
    pub(super) fn is_own(&self, pod: &str) -> bool {
        let node = pod.strip_prefix(&self.begin());
        node.is_some_and(|node| node.len() == SHORT && node.bytes().all(|byte| byte.is_ascii_hexdigit()))
    }

    fn begin(&self) -> String {
        format!("harness-{}-", short(&self.run))
    }
}

/// Letters of a digest in a name.
const SHORT: usize = 12;

fn short(text: &str) -> String {
    sha256(text.as_bytes()).chars().take(SHORT).collect()
}

/// A text as the value of a label, which holds 63 letters, digits, `-`, `_` and `.`.
pub(super) fn label(text: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let fits = text.len() <= 63 && text.chars().all(allowed);
    match fits && ends(text.chars().next()) && ends(text.chars().next_back()) {
        true => text.to_owned(),
        false => format!("sha256-{}", &sha256(text.as_bytes())[..32]),
    }
}

/// The first part of a node's name, where a host may have it for a name.
fn hostname(node: &str) -> Option<&str> {
    let first = node.split('.').next()?;
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_name = (1..=63).contains(&first.len()) && first.chars().all(allowed);
    (is_name && !first.starts_with('-') && !first.ends_with('-')).then_some(first)
}

/// Names the group of pods that are made by one request: those that a later process makes in their place are another group,
/// since Kueue has ended the first one once its pods are over.
fn group(owner: &PodOwner, nodes: &[&str]) -> String {
    let process = maker::this_process().unwrap_or_default();
    format!("{}{}", owner.begin(), short(&format!("{process} {}", nodes.join(" "))))
}

/// Makes a pod one of a group, which Kueue admits as a whole (kubernetes-sigs/kueue at 03e2b04, plain_pods.md). By itself Kueue takes
/// pods of different affinity for different roles, and admits no group with more than 8 (pod_controller.go at 001e49b): of
/// ours only the node differs, so that they have one role. A group that is not to be retried gives its quota back once its pods
/// have ended or are deleted.
fn join(pod: &mut Value, group: &str, pods: usize) {
    pod["metadata"]["labels"][GROUP] = group.into();
    let annotations = &mut pod["metadata"]["annotations"];
    annotations["kueue.x-k8s.io/pod-group-total-count"] = pods.to_string().into();
    annotations["kueue.x-k8s.io/role-hash"] = "harness".into();
    annotations["kueue.x-k8s.io/retriable-in-group"] = "false".into();
}

/// What all pods of a run have in common.
#[derive(Debug, Clone)]
pub struct PodTemplate {
    pub(super) reach: KubernetesReach,
    pub(super) gpus: u32,
    pub(super) nics: u32,
    pub(super) shared: String,
    /// Whether jobs run in them; else only what looks at files and processes.
    runs_jobs: bool,
}

impl PodTemplate {
    /// `shared` is where pods mount the claim.
    pub fn new(reach: &KubernetesReach, instance: &Instance, shared: &str) -> PodTemplate {
        let nics = reach.efa.unwrap_or_else(|| u32::try_from(instance.nics.len()).unwrap_or_default());
        PodTemplate {
            reach: reach.clone(),
            gpus: instance.gpus,
            nics,
            shared: shared.to_owned(),
            runs_jobs: true,
        }
    }

    /// Without devices: to look at files and processes of a run beside whoever has them now.
    #[must_use]
    pub fn without_devices(mut self) -> PodTemplate {
        (self.gpus, self.nics, self.runs_jobs) = (0, 0, false);
        self
    }

    pub(super) fn list(&self, owner: &PodOwner, nodes: &[&str]) -> Value {
        let mut items: Vec<Value> = nodes.iter().map(|node| self.pod(owner, node)).collect();
        if self.reach.gang && self.runs_jobs && nodes.len() > 1 {
            let group = group(owner, nodes);
            items.iter_mut().for_each(|pod| join(pod, &group, nodes.len()));
        }
        json!({ "apiVersion": "v1", "kind": "List", "items": items })
    }

    pub(super) fn labels(&self, owner: &PodOwner) -> Map<String, Value> {
        let given = self.reach.labels.iter();
        let mut labels: Map<String, Value> =
            given.map(|(key, value)| (key.clone(), value.as_str().into())).collect();
        labels.insert(MANAGED_BY.0.into(), MANAGED_BY.1.into());
        labels.insert(RUN.into(), owner.label().into());
        labels.insert(OWNER.into(), label(&owner.person).into());
        labels.insert(ISTIO.into(), "false".into());
        if let Some(queue) = &self.reach.queue {
            labels.insert(QUEUE.into(), queue.as_str().into());
        }
        labels
    }

    /// Its own ones, and those that keep a service mesh out, through which MPI and NCCL do not start, and Karpenter from ending
    /// its node.
    pub(super) fn annotations(owner: &PodOwner, name: &str, value: &str) -> Value {
        let mut all = json!({
            name: value, ISTIO: "false", "linkerd.io/inject": "disabled", "karpenter.sh/do-not-disrupt": "true",
        });
        if let Some(process) = &owner.process {
            all[maker::ANNOTATION] = process.as_str().into();
        }
        all
    }

    fn pod(&self, owner: &PodOwner, node: &str) -> Value {
        let mut spec = self.spec(&[node], &["sh", "-c", STAYS]);
        if let Some(name) = hostname(node) {
            // What programs report of their host is compared with the names of nodes.
            spec["hostname"] = name.into();
        }
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": owner.pod(node), "labels": self.labels(owner),
                "annotations": Self::annotations(owner, "harness/node", node),
            },
            "spec": spec,
        })
    }

    /// The specification of a pod that may run on any of these nodes; its only container runs the command.
    pub fn spec(&self, nodes: &[&str], command: &[&str]) -> Value {
        let reach = &self.reach;
        let mut terms = vec![json!({ "key": "kubernetes.io/hostname", "operator": "In", "values": nodes })];
        terms.extend(
            reach
                .node_selector
                .iter()
                .map(|(key, value)| json!({ "key": key, "operator": "In", "values": [value] })),
        );
        let tolerations: Vec<Value> = reach
            .tolerations
            .iter()
            .map(|one| {
                let mut toleration = Map::new();
                toleration.insert("key".into(), one.key.as_str().into());
                let operator = if one.value.is_some() { "Equal" } else { "Exists" };
                toleration.insert("operator".into(), operator.into());
                toleration.extend(one.value.iter().map(|value| ("value".to_owned(), value.as_str().into())));
                toleration.extend(one.effect.iter().map(|effect| ("effect".to_owned(), (*effect).into())));
                Value::Object(toleration)
            })
            .collect();
        let mut container = json!({
            "name": CONTAINER,
            "image": reach.image,
            "command": command,
            "resources": self.resources(),
            "volumeMounts": [
                { "name": "shared", "mountPath": self.shared },
                { "name": "shm", "mountPath": "/dev/shm" },
            ],
        });
        if self.nics > 0 {
            // libfabric registers memory with the device, which locks it.
            container["securityContext"] = json!({ "capabilities": { "add": ["IPC_LOCK"] } });
        }
        let mut spec = json!({
            "restartPolicy": "Never",
            "activeDeadlineSeconds": reach.longest_s,
            "terminationGracePeriodSeconds": GRACE_S,
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{ "matchExpressions": terms }],
            } } },
            "tolerations": tolerations,
            "containers": [container],
            "volumes": [
                { "name": "shared", "persistentVolumeClaim": { "claimName": reach.shared } },
                { "name": "shm", "emptyDir": { "medium": "Memory" } },
            ],
        });
        if let Some(account) = &reach.service_account {
            spec["serviceAccountName"] = account.as_str().into();
        }
        if let Some(class) = &reach.priority_class {
            spec["priorityClassName"] = class.as_str().into();
        }
        if let Some(class) = &reach.runtime_class {
            spec["runtimeClassName"] = class.as_str().into();
        }
        if let Some(secret) = &reach.pull_with {
            spec["imagePullSecrets"] = json!([{ "name": secret }]);
        }
        spec
    }

    fn resources(&self) -> Value {
        let mut devices = Map::new();
        if self.gpus > 0 {
            devices.insert("nvidia.com/gpu".into(), self.gpus.to_string().into());
        }
        if self.nics > 0 {
            devices.insert("vpc.amazonaws.com/efa".into(), self.nics.to_string().into());
            if self.reach.hugepages > 0 {
                let mebibytes = format!("{}Mi", self.reach.hugepages >> 20);
                devices.insert("hugepages-2Mi".into(), mebibytes.into());
            }
        }
        let (mut requests, mut limits) = (devices.clone(), devices);
        let cpu = self.reach.cpu.filter(|_| self.runs_jobs).unwrap_or(1).to_string();
        let memory = self.reach.memory.filter(|_| self.runs_jobs).unwrap_or(1 << 30);
        let memory = match memory % (1 << 30) {
            0 => format!("{}Gi", memory >> 30),
            _ => format!("{}Mi", memory >> 20),
        };
        // A quota of a namespace may want limits of every pod.
        if self.reach.cpu.is_some() {
            limits.insert("cpu".into(), cpu.as_str().into());
        }
        if self.reach.memory.is_some() {
            limits.insert("memory".into(), memory.as_str().into());
        }
        // Kubernetes refuses a pod with huge pages that asks for neither.
        requests.insert("cpu".into(), cpu.into());
        requests.insert("memory".into(), memory.into());
        json!({ "limits": limits, "requests": requests })
    }

    /// Why jobs do not run in a pod with these limits: a `LimitRange` of the namespace gives a pod that asks for no limit one that
    /// is often small. Its jobs would be slow, or ended for memory, and their nodes looked at.
    pub(super) fn refused_limits(&self, limits: &[(&'static str, String)], see: &str) -> Option<String> {
        let asked = [("cpu", self.reach.cpu.is_some()), ("memory", self.reach.memory.is_some())];
        let is_unasked = |(name, _): &&(&str, String)| asked.iter().any(|(own, is)| own == name && !is);
        let unasked: Vec<&(&str, String)> =
            limits.iter().filter(is_unasked).filter(|_| self.runs_jobs).collect();
        let named: Vec<String> = unasked.iter().map(|(name, limit)| format!("{name} {limit}")).collect();
        let keys: Vec<String> = unasked.iter().map(|(name, _)| format!("`{name}`")).collect();
        (!unasked.is_empty()).then(|| {
            format!(
                "namespace {} limits it to {}, which `[reach]` does not ask for (`{see}`): set {} there",
                self.reach.namespace,
                named.join(", "),
                keys.join(" and "),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    pub(crate) fn template() -> PodTemplate {
        let reach = KubernetesReach {
            context: None,
            cluster: None,
            namespace: "bench".into(),
            image: "registry/nccl:1".into(),
            queue: Some("gpus".into()),
            gang: false,
            priority_class: Some("high".into()),
            labels: BTreeMap::from([
                ("team".to_owned(), "gpu".to_owned()),
                ("app.kubernetes.io/managed-by".to_owned(), "somebody".to_owned()),
            ]),
            service_account: Some("bench".into()),
            runtime_class: None,
            pull_with: None,
            shared: "fsx".into(),
            node_selector: BTreeMap::from([("pool".to_owned(), "p5".to_owned())]),
            tolerations: vec![
                config::inventory::Toleration { key: "nvidia.com/gpu".into(), value: None, effect: None },
                config::inventory::Toleration {
                    key: "team".into(),
                    value: Some("a".into()),
                    effect: Some("NoSchedule"),
                },
            ],
            device_namespaces: Vec::new(),
            efa: None,
            hugepages: 5 << 30,
            cpu: None,
            memory: None,
            longest_s: 600,
            start_limit_s: 60,
            heartbeat_timeout_s: 300,
        };
        PodTemplate { reach, gpus: 8, nics: 32, shared: "/fsx/harness".into(), runs_jobs: true }
    }

    #[test]
    fn a_pod_is_pinned_to_its_node_with_its_devices_and_the_label_of_its_run() {
        let owner =
            PodOwner { run: "20260101T000001Z-nccl-p5-0001".into(), person: "Jo Doe".into(), process: None };
        let list = template().list(&owner, &["p5-001"]);
        insta::assert_snapshot!(serde_json::to_string_pretty(&list).expect("JSON"));
        let of_no_run = PodOwner { process: Some("a 1 2".into()), ..owner.clone() };
        let of_no_run = template().list(&of_no_run, &["p5-001"]);
        assert_eq!(of_no_run["items"][0]["metadata"]["annotations"]["harness/process"], "a 1 2");
        let plain = template().without_devices().list(&owner, &["p5-001"]);
        assert_eq!(plain["items"][0]["spec"]["containers"][0]["resources"]["limits"], json!({}));
    }

    #[test]
    fn pods_of_one_request_are_one_group_of_one_role_where_that_is_asked_for() {
        let owner = PodOwner { run: "run-1".into(), person: "jo".into(), process: None };
        let made = |template: &PodTemplate, nodes: &[&str]| -> Vec<Value> {
            template.list(&owner, nodes)["items"].as_array().expect("pods").clone()
        };
        let of = |pod: &Value| {
            let metadata = &pod["metadata"];
            let annotation = |name: &str| metadata["annotations"][format!("kueue.x-k8s.io/{name}")].clone();
            let group = metadata["labels"]["kueue.x-k8s.io/pod-group-name"].clone();
            let names = ["pod-group-total-count", "role-hash", "retriable-in-group"];
            (group, names.map(annotation))
        };
        let mut template = template();
        assert!(made(&template, &["a", "b"]).iter().all(|pod| of(pod).0.is_null()));
        template.reach.gang = true;
        let both: Vec<_> = made(&template, &["a", "b"]).iter().map(of).collect();
        assert_eq!(both[0], both[1]);
        assert_eq!(both[0].1, [json!("2"), json!("harness"), json!("false")]);
        let name = both[0].0.as_str().expect("a name");
        assert!(name.starts_with(&owner.begin()) && config::inventory::is_object_name(name), "{name}");
        assert_ne!(of(&made(&template, &["a", "c"])[0]).0, both[0].0, "another request, another group");
        assert!(of(&made(&template, &["a"])[0]).0.is_null(), "a pod alone needs no group");
        let looking = template.without_devices();
        assert!(made(&looking, &["a", "b"]).iter().all(|pod| of(pod).0.is_null()));
    }

    #[test]
    fn limits_that_are_asked_for_are_those_of_the_pod_and_others_are_refused() {
        let resources =
            |template: &PodTemplate| template.spec(&["a"], &[])["containers"][0]["resources"].clone();
        let given = |limits: &[(&'static str, &str)]| -> Vec<(&'static str, String)> {
            limits.iter().map(|(name, limit)| (*name, (*limit).to_owned())).collect()
        };
        let mut template = template();
        let both = given(&[("cpu", "500m"), ("memory", "512Mi")]);
        let why = template.refused_limits(&both, "kubectl get limitrange").expect("refused");
        assert_eq!(
            why,
            "namespace bench limits it to cpu 500m, memory 512Mi, which `[reach]` does not ask for \
             (`kubectl get limitrange`): set `cpu` and `memory` there"
        );
        assert_eq!(template.refused_limits(&[], ""), None);
        assert_eq!(template.clone().without_devices().refused_limits(&both, ""), None, "no job runs there");
        (template.reach.cpu, template.reach.memory) = (Some(96), Some(1000 << 30));
        let asked = resources(&template);
        for of in ["limits", "requests"] {
            assert_eq!((&asked[of]["cpu"], &asked[of]["memory"]), (&json!("96"), &json!("1000Gi")), "{of}");
        }
        assert_eq!(template.refused_limits(&given(&[("cpu", "96"), ("memory", "1000Gi")]), ""), None);
        let looking = resources(&template.clone().without_devices());
        assert_eq!(looking["limits"], json!({ "cpu": "1", "memory": "1Gi" }));
        template.reach.memory = Some(1536 << 20);
        assert_eq!(resources(&template)["limits"]["memory"], "1536Mi");
    }

    #[test]
    fn a_pod_has_the_runtime_class_and_the_pull_with_that_are_asked_for() {
        let mut template = template();
        let keys = |template: &PodTemplate| {
            let spec = template.spec(&["a"], &[]);
            (spec["runtimeClassName"].clone(), spec["imagePullSecrets"].clone())
        };
        assert_eq!(keys(&template), (Value::Null, Value::Null));
        (template.reach.runtime_class, template.reach.pull_with) =
            (Some("nvidia".into()), Some("ngc".into()));
        let asked = (json!("nvidia"), json!([{ "name": "ngc" }]));
        assert_eq!(keys(&template), asked);
        assert_eq!(keys(&template.without_devices()), asked, "the image is the same");
    }

    #[test]
    fn what_is_no_label_becomes_one_that_differs_from_others() {
        let long = "x".repeat(64);
        for odd in ["", "a b", "-a", "a.", &long, "$(reboot)", "ä"] {
            let made = label(odd);
            assert!(made.len() <= 63 && made.starts_with("sha256-"), "{odd}: {made}");
        }
        assert_ne!(label("a b"), label("a c"));
        assert_eq!(label("20260101T000001Z-nccl-p5-0001"), "20260101T000001Z-nccl-p5-0001");
    }
}
