//! The rule about secrets that stand in a manifest, by what the harness redacts in its own files. It never shows one.

use super::{Findings, Rule, Weight};
use crate::lint::manifest::objects::{Manifests, is_placeholder};
use crate::lint::manifest::yaml::Node;
use base::redact::{Redactor, is_secret_pair};

pub(super) const SECRET: Rule = Rule {
    code: "secret",
    weight: Weight::Error,
    what: "a literal password or token, and a Secret with its data",
    harm: "it stays in copies, in the history and in `kubectl get -o yaml`",
};

const ADVICE: &str = "revoke it, and refer to a Secret by `secretKeyRef` that no file holds";

pub(super) fn check(manifests: &Manifests, findings: &mut Findings) {
    let redactor = Redactor::default();
    for document in &manifests.documents {
        if document.kind == "Secret" {
            for entry in ["data", "stringData"]
                .into_iter()
                .filter_map(|key| document.root.get(key))
                .flat_map(Node::entries)
            {
                if entry.value.text().is_some_and(|text| !text.is_empty() && !is_placeholder(text)) {
                    findings.add(
                        &SECRET,
                        entry.place,
                        format!("the Secret's `{}` stands in the file", entry.key),
                        ADVICE,
                    );
                }
            }
            continue;
        }
        look(&document.root, &redactor, findings);
    }
}

fn look(node: &Node, redactor: &Redactor, findings: &mut Findings) {
    if let Some((name, value)) = node.get("name").and_then(Node::text).zip(node.get("value"))
        && value.scalar().is_some_and(|text| !is_placeholder(text) && is_secret_pair(name, text))
    {
        findings.add(&SECRET, value.place, format!("a secret stands in `{name}`"), ADVICE);
        return;
    }
    for entry in node.entries() {
        match entry.value.text() {
            Some(text) => text_of(text, &entry.value, redactor, findings),
            None => look(&entry.value, redactor, findings),
        }
    }
    for item in node.items() {
        match item.text() {
            Some(text) => text_of(text, item, redactor, findings),
            None => look(item, redactor, findings),
        }
    }
}

fn text_of(text: &str, at: &Node, redactor: &Redactor, findings: &mut Findings) {
    let found =
        text.lines().filter(|line| !is_placeholder(line)).find_map(|line| redactor.first(line.as_bytes()));
    if let Some((_, what)) = found {
        findings.add(&SECRET, at.place, format!("a secret stands here, known by `{what}`"), ADVICE);
    }
}
