//! Rules about what happens when a job fails, hangs or ends: retries, deadlines, and logs that go with their pods.

use super::{Findings, Rule, Weight};
use crate::lint::manifest::objects::{Document, Manifests};
use crate::lint::manifest::yaml::Node;

pub(super) const RESTART: Rule = Rule {
    code: "restart",
    weight: Weight::Warning,
    what: "`restartPolicy` other than Never around a measurement",
    harm: "a container that failed is started again on the same node, and the fault is in no result",
};
pub(super) const BACKOFF: Rule = Rule {
    code: "backoff",
    weight: Weight::Warning,
    what: "retries of a job around a measurement",
    harm: "a second attempt hides the failure of the first",
};
pub(super) const DEADLINE: Rule = Rule {
    code: "deadline",
    weight: Weight::Note,
    what: "a measurement without `activeDeadlineSeconds`",
    harm: "a hung collective keeps its GPUs until a person sees it",
};
pub(super) const CLEAN_PODS: Rule = Rule {
    code: "clean-pods",
    weight: Weight::Warning,
    what: "`cleanPodPolicy: All`, or `ttlSecondsAfterFinished` of less than an hour",
    harm: "the pods are deleted, and their logs with them",
};

/// Until a person or a collector of logs has looked.
const SHORTEST: u64 = 3600;

pub(super) fn check(manifests: &Manifests, findings: &mut Findings) {
    for document in manifests.documents.iter().filter(|document| document.is_job()) {
        clean(&document.root, findings);
        if document.is_measurement() {
            restarts(document, findings);
            backoff(document, findings);
            deadline(document, findings);
        }
    }
}

fn clean(node: &Node, findings: &mut Findings) {
    for entry in node.entries() {
        let is_all = &*entry.key == "cleanPodPolicy" && entry.value.text() == Some("All");
        let seconds = (&*entry.key == "ttlSecondsAfterFinished").then(|| entry.value.number()).flatten();
        if is_all {
            findings.add(
                &CLEAN_PODS,
                entry.value.place,
                "`cleanPodPolicy: All`",
                "write `Running`, and delete the job yourself",
            );
        } else if let Some(seconds) = seconds.filter(|seconds| *seconds < SHORTEST) {
            findings.add(
                &CLEAN_PODS,
                entry.value.place,
                format!("`ttlSecondsAfterFinished: {seconds}`"),
                "write 86400",
            );
        }
        clean(&entry.value, findings);
    }
    node.items().iter().for_each(|item| clean(item, findings));
}

/// Of pods, and of an operator's replicas, which put theirs into the pods.
fn restarts(document: &Document, findings: &mut Findings) {
    let replicas = ["mpiReplicaSpecs", "pytorchReplicaSpecs"]
        .into_iter()
        .filter_map(|key| document.root.at(&["spec", key]));
    let of_replicas = replicas.flat_map(Node::entries).map(|role| &*role.value);
    for node in document.pods.iter().map(|pod| &*pod.spec).chain(of_replicas) {
        if let Some((node, policy)) = node.get("restartPolicy").and_then(|node| Some((node, node.text()?)))
            && policy != "Never"
        {
            findings.add(
                &RESTART,
                node.place,
                format!("`restartPolicy: {policy}` around a measurement"),
                "write `Never`",
            );
        }
    }
}

fn backoff(document: &Document, findings: &mut Findings) {
    let (path, default): (&[&str], u64) = match document.kind.as_str() {
        "Job" => (&["spec", "backoffLimit"], 6),
        "CronJob" => (&["spec", "jobTemplate", "spec", "backoffLimit"], 6),
        "MPIJob" => (&["spec", "runPolicy", "backoffLimit"], 6),
        "PyTorchJob" => (&["spec", "runPolicy", "backoffLimit"], 0),
        "JobSet" => (&["spec", "failurePolicy", "maxRestarts"], 0),
        "HyperPodPyTorchJob" => (&["spec", "runPolicy", "jobMaxRetryCount"], 0),
        _ => return,
    };
    let key = path.last().copied().unwrap_or_default();
    match document.root.at(path) {
        Some(node) => {
            if let Some(number) = node.number().filter(|number| *number > 0) {
                findings.add(
                    &BACKOFF,
                    node.place,
                    format!("`{key}: {number}` around a measurement"),
                    format!("write `{key}: 0`"),
                );
            }
        }
        None if default > 0 => {
            let place = document.root.entry("spec").map_or(document.root.place, |entry| entry.place);
            findings.add(
                &BACKOFF,
                place,
                format!("`{key}` is {default} by default"),
                format!("add `{key}: 0`"),
            );
        }
        None => {}
    }
}

fn deadline(document: &Document, findings: &mut Findings) {
    if !has_deadline(&document.root) {
        let place = document.root.entry("spec").map_or(document.root.place, |entry| entry.place);
        findings.add(
            &DEADLINE,
            place,
            "no `activeDeadlineSeconds`",
            "add it, some times longer than the measurement takes",
        );
    }
}

fn has_deadline(node: &Node) -> bool {
    node.entries().iter().any(|entry| &*entry.key == "activeDeadlineSeconds" || has_deadline(&entry.value))
        || node.items().iter().any(|item| has_deadline(item))
}
