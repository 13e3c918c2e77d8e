//! Rules about what containers ask for: GPUs, EFA devices and huge pages.

use super::{Findings, Rule, Weight};
use crate::lint::manifest::objects::{Manifests, Pod, count};
use crate::lint::manifest::yaml::{Entry, Node, Value};
use base::suggest::nearest;

pub(super) const BLANK: Rule = Rule {
    code: "gpu-blank",
    weight: Weight::Error,
    what: "a resource without a number",
    harm: "the pod gets none of it and starts without GPUs",
};
pub(super) const RESOURCE_NAME: Rule = Rule {
    code: "resource-name",
    weight: Weight::Error,
    what: "a misspelt resource, such as `nvidia.com/gpus`",
    harm: "no node has it, and the pod stays Pending for ever",
};
pub(super) const EFA_COUNT: Rule = Rule {
    code: "efa-count",
    weight: Weight::Warning,
    what: "a number of EFA devices that the instance does not have, or only a part of them",
    harm: "the pod stays Pending, or NICs stay idle and bandwidth is measured too low",
};
pub(super) const LIMITS: Rule = Rule {
    code: "limits-requests",
    weight: Weight::Error,
    what: "requests of GPUs, EFA devices or huge pages that are not their limits",
    harm: "the API server refuses the pod",
};
pub(super) const HUGEPAGES: Rule = Rule {
    code: "hugepages",
    weight: Weight::Warning,
    what: "EFA devices without `hugepages-2Mi`",
    harm: "libfabric finds no huge pages for its buffers, which costs memory and bandwidth",
};
pub(super) const HUGEPAGES_ALONE: Rule = Rule {
    code: "hugepages-alone",
    weight: Weight::Error,
    what: "huge pages without `memory` or `cpu`",
    harm: "the API server refuses the pod",
};

pub(in crate::lint::manifest) const GPU: &str = "nvidia.com/gpu";
pub(in crate::lint::manifest) const EFA: &str = "vpc.amazonaws.com/efa";

/// Resources of Kubernetes itself, which need no domain.
const NATIVE: [&str; 5] = ["cpu", "memory", "ephemeral-storage", "storage", "pods"];
/// Domains whose resources are known.
const KNOWN: [&str; 8] = [
    GPU,
    EFA,
    "nvidia.com/gpu.shared",
    "nvidia.com/gpumem",
    "vpc.amazonaws.com/pod-eni",
    "vpc.amazonaws.com/PrivateIPv4Address",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
];
/// EFA devices of an instance. Other sizes of a family have fewer.
const INSTANCES: [(&str, u64); 8] = [
    ("p4d.24xlarge", 4),
    ("p4de.24xlarge", 4),
    ("p5.48xlarge", 32),
    ("p5.4xlarge", 1),
    ("p5e.48xlarge", 32),
    ("p5en.48xlarge", 16),
    ("p6-b200.48xlarge", 8),
    ("p6-b300.48xlarge", 16),
];
/// It has as many as its launch template attaches: AWS shows 4, and allows up to 17.
const ANY_NUMBER: &str = "p6e-gb200.";

pub(super) fn check(manifests: &Manifests, findings: &mut Findings) {
    for pod in manifests.documents.iter().flat_map(|document| &document.pods) {
        pod.all_containers().for_each(|container| names(container, findings));
        pod.containers().for_each(|container| numbers(container, findings));
        pod.containers().for_each(|container| devices(pod, container, findings));
    }
    // `trainer.resourcesPerNode` of a TrainJob has the same form.
    for document in &manifests.documents {
        if let Some(resources) = document.root.at(&["spec", "trainer", "resourcesPerNode"]) {
            let container = Node {
                place: resources.place,
                value: Value::Map(vec![entry("resources", resources)]),
                is_block: false,
            };
            names(&container, findings);
            numbers(&container, findings);
        }
    }
}

fn entry(key: &str, value: &Node) -> Entry {
    Entry { place: value.place, key: key.into(), value: value.clone().into(), is_repeated: false }
}

fn resource_entries(container: &Node) -> impl Iterator<Item = &Entry> {
    let parts = ["limits", "requests"].into_iter();
    parts.flat_map(|part| container.at(&["resources", part]).map_or(&[][..], Node::entries))
}

fn names(container: &Node, findings: &mut Findings) {
    for entry in resource_entries(container) {
        let key = &*entry.key;
        let is_blank = match &entry.value.value {
            Value::Null => true,
            Value::Text(text) => text.trim().is_empty(),
            _ => false,
        };
        if is_blank {
            findings.add(&BLANK, entry.place, format!("`{key}` has no number"), "write how many, such as 8");
        }
        if !findings.has_room(&RESOURCE_NAME, entry.place) {
            continue;
        }
        let is_known = NATIVE.contains(&key)
            || KNOWN.contains(&key)
            || key.starts_with("hugepages-")
            || key.starts_with("nvidia.com/mig-")
            || key.starts_with("requests.");
        let domain = key.split_once('/').map(|(domain, _)| domain);
        let is_of_others = domain.is_some_and(|domain| {
            !["nvidia.com", "vpc.amazonaws.com"].contains(&domain)
                && nearest(domain, ["nvidia.com", "vpc.amazonaws.com"]).is_none()
        });
        if !is_known && !is_of_others && !key.contains('$') {
            let near = nearest(key, KNOWN.into_iter().chain(NATIVE));
            let advice = near.map_or("write its domain, such as nvidia.com/gpu".to_owned(), |near| {
                format!("did you mean `{near}`?")
            });
            findings.add(&RESOURCE_NAME, entry.place, format!("unknown resource: `{key}`"), advice);
        }
    }
}

/// Of a hostile file; no container asks for that many resources.
const MOST_ENTRIES: usize = 64;

/// Resources that cannot be overcommitted.
fn numbers(container: &Node, findings: &mut Findings) {
    let Some(requests) = container.at(&["resources", "requests"]) else { return };
    for entry in requests.entries().iter().take(MOST_ENTRIES) {
        if !entry.key.contains('/') && !entry.key.starts_with("hugepages-") {
            continue;
        }
        let limit = container.at(&["resources", "limits", &entry.key]).and_then(Node::scalar);
        let Some(request) = entry.value.scalar() else { continue };
        if limit != Some(request) {
            let limit = limit.map_or("no limit".to_owned(), |limit| format!("a limit of {limit}"));
            let message = format!("`{}` has a request of {request} and {limit}", entry.key);
            findings.add(
                &LIMITS,
                entry.place,
                message,
                format!("write `{}: {request}` in both, or only in `limits`", entry.key),
            );
        }
    }
}

fn devices(pod: &Pod, container: &Node, findings: &mut Findings) {
    let find = |key: &str| resource_entries(container).find(|entry| *entry.key == *key);
    let has = |begin: &str| resource_entries(container).any(|entry| entry.key.starts_with(begin));
    if let Some(pages) = resource_entries(container).find(|entry| entry.key.starts_with("hugepages-"))
        && !has("memory")
        && !has("cpu")
    {
        findings.add(
            &HUGEPAGES_ALONE,
            pages.place,
            format!("`{}` without `memory` or `cpu`", pages.key),
            "add `memory`",
        );
    }
    let Some(devices) = find(EFA) else { return };
    if !has("hugepages-2Mi") {
        let advice = "add `hugepages-2Mi: 5120Mi` to requests and limits";
        findings.add(&HUGEPAGES, devices.place, format!("`{EFA}` without `hugepages-2Mi`"), advice);
    }
    let Some(number) = count(container, EFA) else { return };
    let place = devices.value.place;
    let named = instance(pod);
    match named.and_then(|name| INSTANCES.into_iter().find(|(known, _)| *known == name)) {
        None if named.is_some_and(|name| name.starts_with(ANY_NUMBER)) => {}
        Some((name, full)) if number > full => {
            let message = format!("`{EFA}: {number}`, and {name} has {full}");
            findings.add(&EFA_COUNT, place, message, format!("write {full}"));
        }
        // Of all GPUs of a node, or of none: a share of the NICs is right for a share of the GPUs.
        Some((name, full))
            if number < full && count(container, GPU).is_none_or(|gpus| gpus >= whole(name)) =>
        {
            let message = format!("`{EFA}: {number}`, and {name} has {full}");
            findings.add(&EFA_COUNT, place, message, format!("write {full}"));
        }
        None if ![1, 2, 4, 8, 16, 32].contains(&number) => {
            let message = format!("`{EFA}: {number}`, which no instance has");
            findings.add(
                &EFA_COUNT,
                place,
                message,
                "write 4 for p4d, 32 for p5, 16 for p5en, 8 for p6-b200",
            );
        }
        _ => {}
    }
}

/// GPUs of an instance.
fn whole(instance: &str) -> u64 {
    if instance == "p5.4xlarge" { 1 } else { 8 }
}

/// The instance that the pod is for.
fn instance(pod: &Pod) -> Option<&str> {
    let selected = pod.spec.get("nodeSelector").map_or(&[][..], Node::entries).iter();
    let selected =
        selected.filter(|entry| entry.key.ends_with("instance-type")).find_map(|entry| entry.value.text());
    let terms = pod.spec.at(&[
        "affinity",
        "nodeAffinity",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "nodeSelectorTerms",
    ]);
    let mut expressions = terms
        .map_or(&[][..], Node::items)
        .iter()
        .flat_map(|term| term.get("matchExpressions").map_or(&[][..], Node::items));
    let affine = expressions.find_map(|expression| {
        let key = expression.get("key")?.text()?;
        let [value] = expression.get("values")?.items() else { return None };
        key.ends_with("instance-type").then(|| value.text())?
    });
    let name = selected.or(affine)?;
    Some(name.strip_prefix("ml.").unwrap_or(name))
}
