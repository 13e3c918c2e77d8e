//! Manifests of real projects: each has exactly its known findings, and no valid field is taken for an unknown one.

use crate::corpus;
use crate::fact::Fact;
use harness::lint::{Source, manifests};
use std::collections::BTreeSet;

pub(crate) const FACTS: &[Fact] = &[
    ("manifests_of_real_projects_have_exactly_their_known_findings", known_findings),
    ("definitions_of_resources_have_none", definitions),
];

/// By the codes of their rules. What is `${NAME}` there is for `envsubst`.
const KNOWN: [(&str, &str); 12] = [
    ("adt-fsdp-llama3-hyperpodpytorchjob.yaml", "clean-pods env-reference hugepages placeholder"),
    ("adt-fsdp-llama3-pytorchjob.yaml", "env-reference hugepages placeholder"),
    ("adt-nccl-alltoall-mpijob-template.yaml", "backoff deadline placeholder restart"),
    ("adt-nccl-tests-gb200-mpijob.yaml", "backoff deadline env-reference hugepages image-tag restart since"),
    ("adt-nccl-tests-p5-mpijob.yaml", "backoff deadline env-reference placeholder restart"),
    // `numProcPerNode`: written for Trainer 2.0.
    ("adt-pointworld-clustertrainingruntime.yaml", "field hugepages placeholder"),
    ("adt-pointworld-trainjob.yaml", "placeholder runtime"),
    ("doeks-all-reduce-pair-mpijob.yaml-template", "backoff deadline placeholder restart"),
    (
        "doeks-nccl-tests-efa-commented-out-mpijob.yaml",
        "api-version backoff deadline env-reference field restart",
    ),
    ("efaeks-megatron8b-mpijob.yaml", "claim env-reference field slots"),
    ("efaeks-nccl-efa-p4d-mpijob.yaml", "backoff deadline env-reference restart"),
    (
        "efaeks-nccl-ena-sockets-mpijob.yaml",
        "api-version backoff deadline env-reference field provider restart shm",
    ),
];

fn lint(names: &[&str]) -> BTreeSet<String> {
    let source = |name: &&str| {
        let text = std::fs::read_to_string(corpus::file(&format!("kube/{name}"))).expect("text");
        Source { name: (*name).to_owned(), text }
    };
    let linted = manifests(&names.iter().map(source).collect::<Vec<_>>());
    let all = linted.diagnostics.iter().chain(&linted.warnings).chain(&linted.notes);
    let code = |message: &str| Some(message.rsplit_once('[')?.1.strip_suffix(']')?.to_owned());
    all.filter_map(|diagnostic| code(&diagnostic.message)).collect()
}

fn known_findings() {
    for (name, codes) in KNOWN {
        let codes: BTreeSet<String> = codes.split(' ').map(str::to_owned).collect();
        assert_eq!(lint(&[name]), codes, "{name}");
    }
    // The job's runtime is in the other file.
    let both = lint(&["adt-pointworld-trainjob.yaml", "adt-pointworld-clustertrainingruntime.yaml"]);
    assert!(!both.contains("runtime"), "{both:?}");
}

fn definitions() {
    for name in ["crd-jobset.yaml", "crd-mpijob-v2beta1.yaml", "crd-pytorchjob-v1.yaml", "crd-trainjob.yaml"]
    {
        assert_eq!(lint(&[name]), BTreeSet::new(), "{name}");
    }
}
