//! `harness inventory role`: what a cluster's administrator has to allow, as YAML for `kubectl apply -f -`.

use crate::cli::usage;
use model::exit_code;
use std::fmt::Write;

#[derive(Debug, clap::Args)]
pub(crate) struct RoleArgs {
    /// The namespace in which pods are made
    #[arg(long, value_name = "NAME")]
    namespace: String,
    /// Also a ClusterRole that reads nodes, and limits of the namespace, for `inventory discover --via kubernetes`
    #[arg(long)]
    nodes: bool,
    /// Also the right to list local queues of Kueue in the namespace, for why a queue admits no pods
    #[arg(long)]
    queue: bool,
    /// Also a ClusterRole that lists pods of all namespaces, for what a probe reports of device plugins and the GPU operator
    #[arg(long)]
    device_pods: bool,
    /// Also a ClusterRole that cordons and taints nodes, for `isolate --drain` and `--resume-drained`
    #[arg(long)]
    drain: bool,
    /// Bind the roles to this user; may be repeated
    #[arg(long = "user", value_name = "NAME")]
    users: Vec<String>,
    /// Bind the roles to this group; may be repeated
    #[arg(long = "group", value_name = "NAME")]
    groups: Vec<String>,
}

/// What may be done with a kind of object.
struct Rule {
    /// Of the API; empty for Kubernetes' own.
    group: &'static str,
    resource: &'static str,
    verbs: &'static str,
    why: &'static str,
}

/// Runs, probes, `resume` and `clean`.
const RUNS: [Rule; 2] = [
    Rule {
        group: "",
        resource: "pods",
        verbs: "create, get, list, delete",
        why: "a pod for each node; kubectl looks a pod up before it executes in it",
    },
    Rule {
        group: "",
        resource: "pods/exec",
        verbs: "create, get",
        why: "commands and files; over WebSockets servers ask for `get`",
    },
];
/// `inventory discover`.
const LIMITS: Rule = Rule {
    group: "",
    resource: "limitranges, resourcequotas",
    verbs: "list",
    why: "limits that pods of the namespace must ask for",
};
/// Where `queue` of an inventory admits nothing.
const QUEUES: Rule = Rule {
    group: "kueue.x-k8s.io",
    resource: "localqueues",
    verbs: "list",
    why: "whether the queue that pods wait for is there, and active",
};
const READ_NODES: Rule =
    Rule { group: "", resource: "nodes", verbs: "list", why: "types, devices, taints, conditions" };

/// `device_pods` and `device_pods_bad` of a probe.
const READ_PODS: Rule = Rule {
    group: "",
    resource: "pods",
    verbs: "list",
    why: "daemons that give pods GPUs and EFA devices, in whatever namespace they are",
};

/// kubectl reads a node before it patches it.
const DRAIN_NODES: Rule = Rule {
    group: "",
    resource: "nodes",
    verbs: "get, list, patch",
    why: "`spec.unschedulable`, a taint and an annotation `harness/drained`",
};

pub(super) fn role(args: &RoleArgs) -> i32 {
    let is_name = |text: &str| {
        let ends = text.starts_with(|c: char| c.is_ascii_alphanumeric()) && !text.ends_with('-');
        ends && text.len() <= 63
            && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    if !is_name(&args.namespace) {
        return usage(&format!(
            "--namespace: {:?} is no name of a namespace: write small letters, digits and `-`",
            args.namespace
        ));
    }
    for subject in args.users.iter().chain(&args.groups) {
        if subject.is_empty() || subject.chars().any(char::is_control) {
            return usage(&format!("not a name of a user or a group: {subject:?}"));
        }
    }
    let mut text = String::from(
        "# What the harness needs to run pods as hosts. Apply it: harness inventory role ... | kubectl apply -f -\n",
    );
    let namespace = Some(args.namespace.as_str());
    let optional = [args.nodes.then_some(&LIMITS), args.queue.then_some(&QUEUES)];
    let in_namespace: Vec<&Rule> = RUNS.iter().chain(optional.into_iter().flatten()).collect();
    push_role(&mut text, args, &Scope { kind: "Role", name: "harness", namespace }, &in_namespace);
    if args.nodes {
        let scope = Scope { kind: "ClusterRole", name: "harness-read-nodes", namespace: None };
        push_role(&mut text, args, &scope, &[&READ_NODES]);
    }
    if args.device_pods {
        let scope = Scope { kind: "ClusterRole", name: "harness-read-pods", namespace: None };
        push_role(&mut text, args, &scope, &[&READ_PODS]);
    }
    if args.drain {
        let scope = Scope { kind: "ClusterRole", name: "harness-drain-nodes", namespace: None };
        push_role(&mut text, args, &scope, &[&DRAIN_NODES]);
    }
    print!("{text}");
    exit_code::PASSED
}

struct Scope<'a> {
    /// `Role`, or `ClusterRole`.
    kind: &'static str,
    name: &'static str,
    namespace: Option<&'a str>,
}

impl Scope<'_> {
    fn head(&self, text: &mut String, suffix: &str) {
        let _ = writeln!(text, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: {}{suffix}", self.kind);
        let _ = writeln!(text, "metadata:\n  name: {}", self.name);
        if let Some(namespace) = self.namespace {
            let _ = writeln!(text, "  namespace: {namespace}");
        }
    }
}

fn push_role(text: &mut String, args: &RoleArgs, scope: &Scope<'_>, rules: &[&Rule]) {
    scope.head(text, "");
    let _ = writeln!(text, "rules:");
    for Rule { group, resource, verbs, why } in rules {
        let _ = writeln!(text, "  # {why}");
        let _ =
            writeln!(text, "  - apiGroups: [\"{group}\"]\n    resources: [{resource}]\n    verbs: [{verbs}]");
    }
    if args.users.is_empty() && args.groups.is_empty() {
        return;
    }
    scope.head(text, "Binding");
    let group = "rbac.authorization.k8s.io";
    let _ = writeln!(
        text,
        "roleRef:\n  apiGroup: {group}\n  kind: {}\n  name: {}\nsubjects:",
        scope.kind, scope.name
    );
    let subjects = args.users.iter().map(|name| ("User", name));
    for (kind, name) in subjects.chain(args.groups.iter().map(|name| ("Group", name))) {
        let name = serde_json::Value::from(name.as_str());
        let _ = writeln!(text, "  - apiGroup: {group}\n    kind: {kind}\n    name: {name}");
    }
}
