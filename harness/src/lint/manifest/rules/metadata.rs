//! Rules about names and labels.

use super::{Findings, Rule, Weight};
use crate::lint::manifest::objects::{Manifests, is_placeholder};
use crate::lint::manifest::yaml::{Node, Position};

pub(super) const NAME: Rule = Rule {
    code: "name",
    weight: Weight::Error,
    what: "a name of an object, container or volume that DNS does not allow",
    harm: "the API server refuses the object",
};
pub(super) const LABEL: Rule = Rule {
    code: "label",
    weight: Weight::Error,
    what: "a label with a character or length that labels may not have, such as `:`",
    harm: "the API server refuses the object",
};

pub(super) fn check(manifests: &Manifests, findings: &mut Findings) {
    for document in manifests.documents.iter().filter(|document| !document.is_values) {
        let metadata = document.root.get("metadata");
        // Names of roles and their bindings are free.
        if !document.kind.contains("Role") {
            name(metadata.and_then(|metadata| metadata.get("name")), 253, findings);
        }
        labels(metadata.and_then(|metadata| metadata.get("labels")), findings);
        for pod in &document.pods {
            labels(pod.metadata.as_deref().and_then(|metadata| metadata.get("labels")), findings);
            labels(pod.spec.get("nodeSelector"), findings);
            pod.all_containers().for_each(|container| name(container.get("name"), 63, findings));
            let volumes = pod.spec.get("volumes").map_or(&[][..], Node::items);
            volumes.iter().for_each(|volume| name(volume.get("name"), 63, findings));
        }
    }
}

fn name(node: Option<&Node>, longest: usize, findings: &mut Findings) {
    let Some((node, text)) = node.and_then(|node| Some((node, node.text()?))) else { return };
    if is_placeholder(text) {
        return;
    }
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_inner = |c: char| is_end(c) || c == '-' || (c == '.' && longest > 63);
    let is_right = text.starts_with(is_end) && text.ends_with(is_end) && text.chars().all(is_inner);
    if !is_right || text.len() > longest {
        let advice =
            format!("write at most {longest} of a-z, 0-9 and `-`, with a letter or digit at both ends");
        findings.add(&NAME, node.place, format!("`{text}` is no name"), advice);
    }
}

fn labels(node: Option<&Node>, findings: &mut Findings) {
    for entry in node.map_or(&[][..], Node::entries) {
        let key = entry.key.rsplit('/').next().unwrap_or_default();
        part("key", key, entry.place, false, findings);
        if let Some(value) = entry.value.text() {
            part("value", value, entry.value.place, true, findings);
        }
    }
}

fn part(what: &str, text: &str, place: Position, may_be_empty: bool, findings: &mut Findings) {
    if is_placeholder(text) || (text.is_empty() && may_be_empty) {
        return;
    }
    let is_end = |c: char| c.is_ascii_alphanumeric();
    let wrong = text.chars().find(|c| !is_end(*c) && !"-_.".contains(*c));
    if text.starts_with(is_end) && text.ends_with(is_end) && wrong.is_none() && text.len() <= 63 {
        return;
    }
    let message = match wrong {
        Some(c) => format!("`{c}` in the {what} `{text}` of a label"),
        None => format!("the {what} `{text}` of a label"),
    };
    let advice = "write at most 63 letters, digits, `-`, `_` and `.`; other texts belong into annotations";
    findings.add(&LABEL, place, message, advice);
}
