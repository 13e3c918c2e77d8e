//! Rules about what puts a profiler into pods, by labels and patterns, and about runtimes of Kubeflow Trainer.

use super::{Findings, Rule, Weight};
use crate::lint::manifest::objects::{Manifests, arguments, is_placeholder, is_shell};
use crate::lint::manifest::yaml::Node;
use regex::RegexBuilder;
use std::collections::BTreeSet;

pub(super) const OLD_LABEL: Rule = Rule {
    code: "injector-label",
    weight: Weight::Warning,
    what: "the label of NVIDIA's older sidecar injector, or that of the Nsight Operator with the older chart's values",
    harm: "nothing reads it, and the run ends without reports",
};
pub(super) const LABEL_LEVEL: Rule = Rule {
    code: "injector-level",
    weight: Weight::Error,
    what: "an injector's label on a job, not on its pods",
    harm: "the webhook sees pods without it, and the run ends without reports",
};
pub(super) const PATTERN: Rule = Rule {
    code: "injection-pattern",
    weight: Weight::Error,
    what: "a pattern of processes to profile that matches no command of the files' pods, or is no pattern",
    harm: "no process is profiled, and the run ends without reports",
};
pub(super) const WEBHOOKS: Rule = Rule {
    code: "webhook-names",
    weight: Weight::Warning,
    what: "two webhook configurations whose names differ by a few letters",
    harm: "a clean-up by one spelling leaves the other, which then stops every new pod",
};
pub(super) const RUNTIME: Rule = Rule {
    code: "runtime",
    weight: Weight::Warning,
    what: "a TrainJob whose runtime neither the files nor Kubeflow Trainer have",
    harm: "the TrainJob is refused, or never starts a pod",
};

const OLD: &str = "nvidia-devtools-sidecar-injector";
const NEW: &str = "nvidia-nsight-profile";
/// Keys of values that hold patterns of command lines.
const PATTERNS: [&str; 2] = ["injectionMatch", "injectionIncludePatterns"];
/// Runtimes that come with Trainer, up to what stands behind a size.
const RUNTIMES: [&str; 8] = [
    "torch-distributed",
    "deepspeed-distributed",
    "mlx-distributed",
    "jax-distributed",
    "xgboost-distributed",
    "torchtune-llama3.2-1b",
    "torchtune-llama3.2-3b",
    "torchtune-qwen2.5-1.5b",
];

pub(super) fn check(manifests: &Manifests, findings: &mut Findings) {
    labels(manifests, findings);
    patterns(manifests, findings);
    webhooks(manifests, findings);
    runtimes(manifests, findings);
}

fn labels(manifests: &Manifests, findings: &mut Findings) {
    let has_values = |key: &str| {
        manifests.documents.iter().any(|document| document.is_values && has_key(&document.root, key))
    };
    let is_old_chart = has_values("injectionMatch") || has_values("devtoolBinariesImage");
    for document in manifests.documents.iter().filter(|document| !document.is_values) {
        let of_pods = |label: &str| {
            document.pods.iter().any(|pod| {
                pod.metadata.as_ref().is_some_and(|metadata| metadata.at(&["labels", label]).is_some())
            })
        };
        let own = document.root.at(&["metadata", "labels"]);
        let all = own
            .into_iter()
            .chain(document.pods.iter().filter_map(|pod| pod.metadata.as_ref()?.get("labels")));
        let places: BTreeSet<_> =
            all.flat_map(Node::entries).map(|entry| (entry.place, entry.key.to_string())).collect();
        for (place, key) in places {
            if key == OLD && !is_old_chart {
                findings.add(
                    &OLD_LABEL,
                    place,
                    format!("label `{OLD}`"),
                    format!("write `{NEW}: enabled`, which the Nsight Operator reads"),
                );
            } else if key == NEW && is_old_chart {
                findings.add(
                    &OLD_LABEL,
                    place,
                    format!("label `{NEW}` with values of the older chart"),
                    format!("write `{OLD}: enabled`, or install the Nsight Operator"),
                );
            }
        }
        if matches!(document.kind.as_str(), "Pod" | "Namespace" | "") {
            continue;
        }
        for entry in
            own.map_or(&[][..], Node::entries).iter().filter(|entry| [OLD, NEW].contains(&&*entry.key))
        {
            if !of_pods(&entry.key) {
                let advice = "write it into `template.metadata.labels`";
                findings.add(
                    &LABEL_LEVEL,
                    entry.place,
                    format!("label `{}` on the {}", entry.key, document.kind),
                    advice,
                );
            }
        }
    }
}

fn has_key(node: &Node, key: &str) -> bool {
    node.entries().iter().any(|entry| &*entry.key == key || has_key(&entry.value, key))
}

/// Of hostile values; no chart has that many.
const MOST_PATTERNS: usize = 30;

/// The patterns of values, each against the commands of all pods.
fn patterns(manifests: &Manifests, findings: &mut Findings) {
    let mut found = Vec::new();
    for document in manifests.documents.iter().filter(|document| document.is_values) {
        collect(&document.root, &mut found);
    }
    if found.is_empty() {
        return;
    }
    let lines = command_lines(manifests);
    for node in found.into_iter().take(MOST_PATTERNS) {
        let Some(text) = node.text() else { continue };
        let Ok(pattern) = RegexBuilder::new(text).size_limit(1 << 20).build() else {
            let message = format!("`{text}` is no regular expression");
            findings.add(&PATTERN, node.place, message, "check its brackets and backslashes");
            continue;
        };
        // A script in Python runs as `python3 SCRIPT`.
        let matches = |line: &String| {
            ["", "python ", "python3 ", "/usr/bin/python3 ", "/usr/local/bin/python3 "]
                .iter()
                .any(|python| pattern.is_match(&format!("{python}{line}")))
        };
        if lines.as_ref().is_some_and(|lines| !lines.is_empty() && !lines.iter().any(matches)) {
            let message = format!("`{text}` matches no command of the pods");
            let advice = "write a part of the command, such as `.*torchrun.*`";
            findings.add(&PATTERN, node.place, message, advice);
        }
    }
}

fn collect<'a>(node: &'a Node, found: &mut Vec<&'a Node>) {
    for entry in node.entries() {
        if PATTERNS.contains(&&*entry.key) {
            found.extend(entry.value.items().iter().map(|item| &**item).chain([&*entry.value]));
        } else {
            collect(&entry.value, found);
        }
    }
}

/// What the containers of all pods start; none where a shell or an image starts something of which nothing is known.
fn command_lines(manifests: &Manifests) -> Option<Vec<String>> {
    let pods = manifests.documents.iter().flat_map(|document| &document.pods);
    let line = |container: &Node| {
        let words: Vec<&str> = arguments(container).filter_map(|node| node.scalar()).collect();
        (!words.is_empty() && !is_shell(container)).then(|| words.join(" "))
    };
    pods.flat_map(|pod| pod.containers()).map(line).collect()
}

fn webhooks(manifests: &Manifests, findings: &mut Findings) {
    let is_one =
        |kind: &str| matches!(kind, "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration");
    let names: Vec<&Node> = manifests
        .documents
        .iter()
        .filter(|document| is_one(&document.kind))
        .filter_map(|document| document.root.at(&["metadata", "name"]))
        .take(30)
        .collect();
    for (at, name) in names.iter().enumerate() {
        let Some(text) = name.text().filter(|text| text.len() < 254) else { continue };
        let before = names[..at].iter().filter_map(|name| name.text()).filter(|other| *other != text);
        if let Some(other) = base::suggest::within(text, before, 3) {
            let advice = "use one name, or name both where they are deleted";
            findings.add(&WEBHOOKS, name.place, format!("webhooks `{other}` and `{text}`"), advice);
        }
    }
}

fn runtimes(manifests: &Manifests, findings: &mut Findings) {
    let of_runtimes =
        manifests.documents.iter().filter(|document| document.kind.ends_with("TrainingRuntime"));
    let made: BTreeSet<&str> =
        of_runtimes.filter_map(|document| document.root.at(&["metadata", "name"])?.text()).collect();
    for document in manifests.documents.iter().filter(|document| document.kind == "TrainJob") {
        let Some(node) = document.root.at(&["spec", "runtimeRef", "name"]) else { continue };
        let Some(name) = node.text().filter(|name| !is_placeholder(name)) else { continue };
        if made.contains(name) || RUNTIMES.contains(&name) {
            continue;
        }
        let message = format!("no runtime `{name}` in the files or in Trainer");
        // Of this name many look for one; others have their own.
        match name.split('-').any(|part| part == "mpi" || part == "openmpi") {
            true => findings.add(
                &RUNTIME,
                node.place,
                message,
                "Trainer ships no MPI runtime: add a TrainingRuntime, or use an MPIJob",
            ),
            false => findings.note(
                &RUNTIME,
                node.place,
                message,
                "add it to the files, or check `kubectl get clustertrainingruntimes`",
            ),
        }
    }
}
