//! An inventory's text, from what was discovered in Kubernetes.

use super::{Discovered, Request};
use crate::discover::render::{comment, groups, left_out, quoted};
use base::nodeset;
use std::collections::BTreeSet;
use std::fmt::Write;

/// `when` is written into the file; `shared` is where pods mount the claim.
pub fn render(found: &Discovered, request: &Request, shared: &str, when: &str) -> String {
    let mut text = String::new();
    let mut from = match &request.context {
        Some(context) => format!("the context `{context}`"),
        None => "kubectl's current context".to_owned(),
    };
    if let Some(selector) = &request.selector {
        let _ = write!(from, ", nodes with `{selector}`");
    }
    comment(
        &mut text,
        &format!("Written by `harness inventory discover --via kubernetes` at {when} from {from}."),
    );
    comment(&mut text, "It is read as it is; rewrite it with --force after a change of the cluster.");
    left_out(&mut text, &found.left_out, &format!("Left out at {when}, with Kubernetes' reasons:"));
    let _ = writeln!(text, "kind = \"real\"");
    let _ = writeln!(text, "instance = {}", quoted(&found.instance));
    let _ = writeln!(text, "nodes = {}", quoted(&nodeset::fold(&found.nodes)));
    groups(&mut text, &found.groups, "nodes by their labels");
    let _ = writeln!(text, "\n[reach]\nvia = \"kubernetes\"");
    if let Some(context) = &request.context {
        let _ = writeln!(text, "context = {}", quoted(context));
    }
    if let Some(cluster) = &found.cluster {
        let _ = writeln!(text, "cluster = {} # nothing is touched in another one", quoted(cluster));
    }
    let _ = writeln!(text, "namespace = {}", quoted(&request.namespace));
    let _ = writeln!(text, "image = {} # with bash, coreutils, and what jobs run", quoted(&request.image));
    let _ = writeln!(text, "shared = {} # a claim that all pods can mount", quoted(&request.claim));
    if let Some(class) = &request.priority_class {
        let _ = writeln!(text, "priority_class = {}", quoted(class));
    }
    if !found.has_efa {
        let _ = writeln!(text, "efa = 0 # no node offers EFA devices");
    } else if !found.has_hugepages {
        let _ = writeln!(text, "hugepages = false # no node offers them");
    }
    for wanted in &found.wanted {
        if let Some(value) = &wanted.value {
            let _ = writeln!(text, "{} = {value} # {}", wanted.key, wanted.why);
        }
    }
    let taints: BTreeSet<(&str, &str)> =
        found.taints.iter().map(|taint| (taint.key.as_str(), taint.effect.as_str())).collect();
    if !taints.is_empty() {
        let tolerations: Vec<String> = taints
            .into_iter()
            .map(|(key, effect)| format!("{{ key = {}, effect = {} }}", quoted(key), quoted(effect)))
            .collect();
        let _ = writeln!(text, "tolerations = [{}]", tolerations.join(", "));
    }
    let _ = writeln!(text, "\n[paths]\nshared = {} # where pods mount the claim", quoted(shared));
    text
}
