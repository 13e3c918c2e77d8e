//! `[reach]` with `via = "kubernetes"`: which pods stand for the nodes, and how long they live without the harness.

use super::ssh::{heartbeat_key, hostfile, mpirun_ranks, read_heartbeat};
use super::{JobNeeds, JobSite, LaunchPlanner};
use crate::form::{Form, Key, Type, names};
use crate::inventory::Paths;
use crate::inventory::read::line_of_text;
use crate::toml_reader::quantity::size_of;
use crate::toml_reader::{Table, Value};
use base::digest::sha256;
use job::script::{self, Script, Start, files, start};
use model::artefact::{Launcher, PlannedFile, RunCluster, kubectl_command, named_server};
use std::collections::BTreeMap;
use toml::de::DeValue;

const NAMESPACE: &str = "default";
/// As long as an allocation that jobs of Slurm share.
const LONGEST_S: u64 = 4 * 3600;
const LONGEST_LIMITS_S: std::ops::RangeInclusive<u32> = 60..=7 * 24 * 3600;
/// What AWS's own manifests ask for where libfabric moves data by EFA.
const HUGEPAGES: u64 = 5 << 30;
const HUGEPAGE: u64 = 2 << 20;
const MOST_CPUS: u32 = 4096;
/// A shell, the supervisor and a sampler need no more.
const LEAST_MEMORY: u64 = 1 << 30;
/// How long pods may take to run: images are large, and Kueue lets them wait.
const START_LIMIT_S: u64 = 600;
const START_LIMITS_S: std::ops::RangeInclusive<u32> = 5..=24 * 3600;
const EFFECTS: [(&str, &str); 3] =
    [("NoSchedule", "NoSchedule"), ("PreferNoSchedule", "PreferNoSchedule"), ("NoExecute", "NoExecute")];

/// `[reach]` with `via = "kubernetes"`.
#[derive(Debug, Clone, PartialEq)]
pub struct KubernetesReach {
    /// Of the kubeconfig; its current one, where absent.
    pub context: Option<String>,
    /// The only API server that is asked, as `named_server` spells it: nothing is touched in another cluster.
    pub cluster: Option<String>,
    /// Where pods are made; nothing is made or read outside of it.
    pub namespace: String,
    /// Of every pod: it has bash, coreutils, and what jobs run.
    pub image: String,
    /// The local queue of Kueue that admits the pods.
    pub queue: Option<String>,
    /// Kueue admits pods that are made together, or none of them.
    pub gang: bool,
    /// `priorityClassName`.
    pub priority_class: Option<String>,
    /// Of every pod, beside those that the harness finds its pods by.
    pub labels: BTreeMap<String, String>,
    /// `serviceAccountName`.
    pub service_account: Option<String>,
    /// `runtimeClassName`.
    pub runtime_class: Option<String>,
    /// Of the registry that the image is in.
    pub pull_with: Option<String>,
    /// The claim that every pod mounts at `paths.shared`.
    pub shared: String,
    /// Labels that nodes must have, beside their own names.
    pub node_selector: BTreeMap<String, String>,
    /// Taints of nodes that pods bear.
    pub tolerations: Vec<Toleration>,
    /// Where device plugins run as well: namespaces in which tenants create nothing, by their whole names.
    pub device_namespaces: Vec<String>,
    /// EFA devices of a pod; as many as the instance has NICs, where absent.
    pub efa: Option<u32>,
    /// Bytes of 2 MiB pages of a pod that has EFA devices; 0 for none.
    pub hugepages: u64,
    /// Processors of a pod, asked for and its limit; one asked for and no limit, where absent.
    pub cpu: Option<u32>,
    /// Bytes of a pod, asked for and its limit; 1 GiB asked for and no limit, where absent.
    pub memory: Option<u64>,
    /// Kubernetes itself ends a pod after so long.
    pub longest_s: u64,
    /// So long pods may take to run.
    pub start_limit_s: u64,
    /// What was started in a pod ends by itself when the harness has not looked for so long.
    pub heartbeat_timeout_s: u64,
}

/// A taint that a pod bears.
#[derive(Debug, Clone, PartialEq)]
pub struct Toleration {
    /// Of the taint.
    pub key: String,
    /// Any, where absent.
    pub value: Option<String>,
    /// Any, where absent.
    pub effect: Option<&'static str>,
}

fn toleration_form() -> Form {
    Form::new([
        Key::needed("key", Type::Text, "the taint's key"),
        Key::usual("value", "any", Type::Text, "its value"),
        Key::usual("effect", "any", Type::OneOf(|_| names(&EFFECTS)), "what it does to pods"),
    ])
}

impl KubernetesReach {
    /// Pods bear these taints, too.
    pub(crate) fn bear(&mut self, keys: &[&str]) {
        let toleration =
            |key: &&str| Toleration { key: (*key).to_owned(), value: None, effect: Some("NoSchedule") };
        self.tolerations.extend(keys.iter().map(toleration));
    }

    pub(super) fn form() -> Form {
        let limits = u64::from(*LONGEST_LIMITS_S.start())..=u64::from(*LONGEST_LIMITS_S.end());
        Form::new([
            Key::needed("image", Type::Text, "of every pod: with bash, coreutils, and what jobs run"),
            Key::needed("shared", Type::Text, "the claim that every pod mounts at `paths.shared`"),
            Key::usual("context", "kubectl's current one", Type::Text, "of the kubeconfig"),
            Key::usual(
                "cluster",
                "any",
                Type::Text,
                "URL of the API server: nothing is touched in another cluster",
            ),
            Key::usual("namespace", "\"default\"", Type::Text, "where pods are made"),
            Key::optional("queue", Type::Text, "the local queue of Kueue that admits the pods"),
            Key::usual(
                "gang",
                "false",
                Type::Boolean,
                "the queue admits the pods of a run together, or none of them",
            ),
            Key::optional("priority_class", Type::Text, "`priorityClassName` of the pods"),
            Key::usual(
                "labels",
                "{}",
                Type::map(Type::Text),
                "labels of the pods, beside those of the harness",
            ),
            Key::usual(
                "service_account",
                "the namespace's `default`",
                Type::Text,
                "service account of the pods; no token of it is mounted",
            ),
            Key::optional(
                "runtime_class",
                Type::Text,
                "`runtimeClassName` of the pods, such as `nvidia` where it is not the nodes' default",
            ),
            Key::optional(
                "pull_with",
                Type::Text,
                "the secret of the namespace that the image is pulled with",
            ),
            Key::usual("node_selector", "{}", Type::map(Type::Text), "labels that nodes must have"),
            Key::usual("tolerations", "[]", Type::tables(toleration_form()), "taints that the pods bear"),
            Key::usual(
                "device_namespaces",
                "[]",
                Type::texts(),
                "namespaces of device plugins and the GPU operator, beside `kube-system*`, `gpu-operator*` and `nvidia*`; tenants \
                 must not create pods there",
            ),
            Key::usual("efa", "the instance's NICs", Type::Whole(0..=64), "EFA devices of a pod"),
            Key::usual(
                "hugepages",
                "\"5GiB\"",
                Type::Either(vec![Type::Size, Type::Off]),
                "2 MiB pages of a pod that has EFA devices",
            ),
            Key::usual(
                "cpu",
                "no limit",
                Type::Whole(1..=u64::from(MOST_CPUS)),
                "processors of a pod: asked for, and its limit",
            ),
            Key::usual(
                "memory",
                "no limit",
                Type::Size,
                "memory of a pod, /dev/shm included: asked for, and its limit",
            ),
            Key::usual(
                "longest_s",
                "14400",
                Type::Whole(limits),
                "Kubernetes itself ends a pod so many seconds after its start, whatever became of the harness",
            ),
            Key::usual(
                "start_limit_s",
                "600",
                Type::Whole(u64::from(*START_LIMITS_S.start())..=u64::from(*START_LIMITS_S.end())),
                "a node whose pod does not run after so many seconds is left out",
            ),
            heartbeat_key(),
        ])
    }

    pub(super) fn read(table: &Table<'_>) -> Option<KubernetesReach> {
        let image = table.need("image").and_then(|value| word_of_registry(&value));
        let shared = match table.get("shared") {
            Some(value) => object_name(&value),
            None => {
                table.missing("shared", "write `shared = \"CLAIM\"`, a claim that all pods can mount");
                None
            }
        };
        let name = |key: &'static str| table.get(key).and_then(|value| object_name(&value));
        let tolerations = table.get("tolerations").and_then(|value| value.list()).unwrap_or_default();
        let own = table.get("labels").and_then(|value| value.table());
        let selector = table.get("node_selector").and_then(|value| value.table());
        let reach = KubernetesReach {
            context: table.get("context").and_then(|value| line_of_text(&value)),
            cluster: table.get("cluster").and_then(|value| server(&value)),
            namespace: name("namespace").unwrap_or_else(|| NAMESPACE.to_owned()),
            image: String::new(),
            queue: name("queue"),
            gang: gang(table),
            priority_class: name("priority_class"),
            labels: own.map(|table| labels_of_pods(&table)).unwrap_or_default(),
            service_account: name("service_account"),
            runtime_class: name("runtime_class"),
            pull_with: name("pull_with"),
            shared: String::new(),
            node_selector: selector.map(|table| labels(&table)).unwrap_or_default(),
            tolerations: tolerations.iter().filter_map(read_toleration).collect(),
            device_namespaces: Vec::new(),
            efa: table.get("efa").and_then(|value| value.small(0..=64)),
            hugepages: table.get("hugepages").and_then(|value| hugepages(&value)).unwrap_or(HUGEPAGES),
            cpu: table.get("cpu").and_then(|value| value.small(1..=MOST_CPUS)),
            memory: table.get("memory").and_then(|value| memory(&value)),
            longest_s: table
                .get("longest_s")
                .and_then(|value| value.small(LONGEST_LIMITS_S))
                .map_or(LONGEST_S, u64::from),
            start_limit_s: table
                .get("start_limit_s")
                .and_then(|value| value.small(START_LIMITS_S))
                .map_or(START_LIMIT_S, u64::from),
            heartbeat_timeout_s: read_heartbeat(table)?,
        };
        let plugins = table.get("device_namespaces");
        let device_namespaces = plugins.map(|list| namespaces(&list, &reach.namespace)).unwrap_or_default();
        Some(KubernetesReach { image: image?, shared: shared?, device_namespaces, ..reach })
    }
}

fn gang(table: &Table<'_>) -> bool {
    let Some(value) = table.get("gang") else { return false };
    let is_asked = value.boolean() == Some(true);
    if is_asked && table.get("queue").is_none() {
        value.diagnostic_with(
            "`gang` needs a queue of Kueue, which admits the pods",
            "write `queue = \"NAME\"`, or take `gang` out",
        );
    }
    is_asked
}

fn read_toleration(value: &Value<'_>) -> Option<Toleration> {
    let table = value.table()?;
    let key = table.need("key").and_then(|value| label_part(&value, true));
    let read = table.get("value").and_then(|value| label_part(&value, false));
    let effect = table.get("effect").and_then(|value| value.one_of(&EFFECTS));
    table.close(toleration_form);
    Some(Toleration { key: key?, value: read, effect })
}

fn labels(table: &Table<'_>) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    for (key, span, value) in table.entries() {
        if !is_label(key, true) {
            table.source().diagnostic(&span, format!("not a label of Kubernetes: {key:?}"));
        }
        if let Some(text) = label_part(&value, false) {
            labels.insert(key.to_owned(), text);
        }
    }
    labels
}

/// Those by which pods are found, queued and kept out of a mesh are the harness's own.
fn labels_of_pods(table: &Table<'_>) -> BTreeMap<String, String> {
    const OWN: [&str; 5] = [
        "harness/",
        "app.kubernetes.io/managed-by",
        "kueue.x-k8s.io/queue-name",
        "kueue.x-k8s.io/pod-group-name",
        "sidecar.istio.io/inject",
    ];
    for (key, span, _) in table.entries() {
        if OWN.iter().any(|own| key.starts_with(own)) {
            let message = format!("the label {key:?} of pods is set by the harness");
            table.source().diagnostic_with(&span, message, "take it out; Kueue's queue is the key `queue`");
        }
    }
    labels(table)
}

fn is_label(text: &str, is_key: bool) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c) || (is_key && c == '/');
    let longest = if is_key { 253 + 1 + 63 } else { 63 };
    text.len() <= longest && text.chars().all(allowed) && !(is_key && text.is_empty())
}

fn label_part(value: &Value<'_>, is_key: bool) -> Option<String> {
    let text = value.text()?;
    if !is_label(&text, is_key) {
        value.diagnostic(format!("`{}` must be a label of Kubernetes: {text:?}", value.key()));
        return None;
    }
    Some(text)
}

/// Whether objects of Kubernetes can have this name: lower-case words, parted by points.
pub fn is_object_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    let ends = |c: char| c.is_ascii_alphanumeric();
    text.len() <= 253 && text.chars().all(allowed) && text.starts_with(ends) && text.ends_with(ends)
}

fn object_name(value: &Value<'_>) -> Option<String> {
    let text = value.non_empty_text()?;
    if !is_object_name(&text) {
        let message = format!("`{}` must be a name of Kubernetes: {text:?}", value.key());
        value.diagnostic_with(message, "write small letters, digits, `-` and `.`");
        return None;
    }
    Some(text)
}

/// Where runs make pods, whoever runs can make one that looks like a plugin's.
fn namespaces(list: &Value<'_>, of_runs: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for value in list.list().unwrap_or_default() {
        let Some(name) = object_name(&value) else { continue };
        if names.contains(&name) {
            value.diagnostic(format!("`{}` lists `{name}` twice", value.key()));
        } else if name == of_runs {
            let message = format!("`{}` lists `{name}`, in which runs make their pods", value.key());
            value.diagnostic_with(
                message,
                "take it out; whoever runs can make pods there that look like plugins",
            );
        } else {
            names.push(name);
        }
    }
    names
}

fn server(value: &Value<'_>) -> Option<String> {
    let text = line_of_text(value)?;
    let server = named_server(&text);
    if server.is_none() {
        let message = format!("`{}` must be the URL of an API server, without a password", value.key());
        let print = "kubectl config view --minify --output=jsonpath='{.clusters[0].cluster.server}'";
        value.diagnostic_with(message, format!("`{print}` prints that of the current context"));
    }
    server
}

fn word_of_registry(value: &Value<'_>) -> Option<String> {
    let text = line_of_text(value)?;
    if text.contains(char::is_whitespace) || text.starts_with('-') {
        value.diagnostic(format!("`{}` must be one word: {text:?}", value.key()));
        return None;
    }
    Some(text)
}

fn hugepages(value: &Value<'_>) -> Option<u64> {
    if let DeValue::Boolean(false) = value.raw().get_ref() {
        return Some(0);
    }
    let bytes = size_of(value)?;
    if bytes % HUGEPAGE != 0 {
        value.diagnostic(format!("`{}` must be a multiple of 2 MiB: {bytes} bytes", value.key()));
        return None;
    }
    Some(bytes)
}

fn memory(value: &Value<'_>) -> Option<u64> {
    let bytes = size_of(value)?;
    if bytes < LEAST_MEMORY || bytes % (1 << 20) != 0 {
        value.diagnostic(format!("`{}` must be 1GiB or more, in whole MiB: {bytes} bytes", value.key()));
        return None;
    }
    Some(bytes)
}

impl LaunchPlanner for KubernetesReach {
    fn launcher(&self) -> Launcher {
        Launcher::Kubernetes
    }

    fn drains(&self) -> bool {
        true
    }

    fn site_names(&self) -> Vec<&str> {
        let optional = [
            &self.context,
            &self.cluster,
            &self.queue,
            &self.priority_class,
            &self.service_account,
            &self.pull_with,
        ];
        let needed = [&self.namespace, &self.image, &self.shared];
        let plugins = self.device_namespaces.iter();
        optional.into_iter().flatten().chain(needed).chain(plugins).map(String::as_str).collect()
    }

    fn check_when_silent(&self, cluster: Option<&RunCluster>) -> String {
        let command = |arguments: &[&str]| kubectl_command(cluster, arguments);
        format!(
            "`{}` and `{}` from this machine: context, namespace, role",
            command(&["get", "pods"]),
            command(&["auth", "can-i", "create", "pods/exec"])
        )
    }

    fn refuse_simulated(&self) -> Option<&'static str> {
        Some("a simulated cluster needs `via = \"slurm\"` or `via = \"ssh\"`")
    }

    /// It reaches the other pods by a launch agent, for these have no sshd.
    fn mpi<'a>(&'a self, paths: &'a Paths) -> Option<&'a str> {
        Some(paths.mpirun.as_deref().unwrap_or(script::FIND_MPIRUN))
    }

    fn spares_mpi_on_one_node(&self) -> bool {
        true
    }

    fn refuse_job(&self, needs: &JobNeeds<'_>) -> Result<(), String> {
        if needs.container {
            return Err("`[container]` needs Slurm with Pyxis; pods run `image` of `[reach]`".into());
        }
        Ok(())
    }

    fn unsupported(&self, needs: &JobNeeds<'_>) -> Option<String> {
        if let Some(image) = needs.image {
            return Some(format!(
                "its container `{image}` needs Slurm with Pyxis; pods run `image` of `[reach]`"
            ));
        }
        (needs.tasks_per_node > 1).then(|| {
            format!(
                "its `tasks_per_node = {}` needs Slurm: in pods a command runs once on each node",
                needs.tasks_per_node
            )
        })
    }

    /// As over ssh, a supervisor runs the same text on every node.
    fn start(&self, _job: &JobSite<'_>) -> Start {
        Start::Pods
    }

    fn files(&self, script: &Script) -> Vec<PlannedFile> {
        let agent = |hostfile| {
            let digest = script::shared_text(files::AGENT).map(|text| sha256(text.as_bytes()));
            [hostfile, PlannedFile { name: files::AGENT.to_owned(), text: None, sha256: digest }]
        };
        hostfile(script).map(agent).into_iter().flatten().collect()
    }

    fn launch(&self, folder: &str) -> Vec<String> {
        start::over_ssh(folder, self.heartbeat_timeout_s)
    }

    fn shared_scripts(&self) -> &'static [&'static str] {
        &[files::SUPERVISOR]
    }

    /// mpirun gathers what its ranks print.
    fn gathers_output(&self, script: &Script) -> bool {
        mpirun_ranks(script).is_some()
    }
}
