//! Rules about texts that kubectl hands over as they are: variables of shells and of templates, and the environment.

use super::{Findings, Rule, Weight};
use crate::lint::manifest::objects::{
    Document, Manifests, arguments, is_shell, placeholder_in_brackets, variables,
};
use crate::lint::manifest::yaml::{Node, Position, Value};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const REFERENCE: Rule = Rule {
    code: "env-reference",
    weight: Weight::Warning,
    what: "`$NAME` in the environment or in an argument that no shell reads",
    harm: "the program gets the text with its dollar sign, such as a PATH that begins with `$PATH`",
};
pub(super) const PLACEHOLDER: Rule = Rule {
    code: "placeholder",
    weight: Weight::Warning,
    what: "`${NAME}` or `<name>`, which somebody has to fill in",
    harm: "kubectl expands no variables, and the image or number does not exist",
};
pub(super) const TWICE: Rule = Rule {
    code: "env-twice",
    weight: Weight::Warning,
    what: "a variable that a container sets twice",
    harm: "only the last one counts",
};

pub(super) fn check(manifests: &Manifests, findings: &mut Findings) {
    // By file and text, the first place and how many there are.
    let mut unfilled = Unfilled::new();
    for document in &manifests.documents {
        for container in document.pods.iter().flat_map(|pod| pod.all_containers()) {
            references(container, findings);
            twice(container, findings);
        }
        // A script in a ConfigMap is a shell's.
        if document.kind != "ConfigMap" {
            let scripts = scripts(document);
            placeholders(&document.root, &scripts, &mut unfilled);
        }
    }
    for ((_, text), (place, count)) in unfilled {
        let message = match count {
            1 => format!("`{text}` is not filled in"),
            _ => format!("`{text}` is not filled in, in {count} places"),
        };
        findings.add(
            &PLACEHOLDER,
            place,
            message,
            "write the value, or use `envsubst` and check what it prints",
        );
    }
}

fn references(container: &Node, findings: &mut Findings) {
    for (name, value, place) in variables(container) {
        if let Some(reference) = reference(value) {
            let message = format!("`{reference}` in the value of `{name}`");
            let advice = match reference.trim_start_matches('$') == name {
                true => "write the whole value: that of the image is not extended".to_owned(),
                false => advice(reference),
            };
            findings.add(&REFERENCE, place, message, advice);
        }
    }
    if is_shell(container) {
        return;
    }
    for (node, text) in arguments(container).filter_map(|node| Some((node, node.text()?))) {
        if let Some(reference) = reference(text) {
            findings.add(&REFERENCE, node.place, format!("`{reference}` in an argument"), advice(reference));
        }
    }
}

fn advice(reference: &str) -> String {
    let name = reference.trim_start_matches('$');
    match name.starts_with('(') {
        true => "start the program by `sh -c`, which computes it".to_owned(),
        false => format!("write `$({name})` of a variable that the container sets above, or the value"),
    }
}

/// `$NAME` and `$((...))`; `$(NAME)` is Kubernetes' own, `$$` a dollar sign, and `${NAME}` a template's.
fn reference(text: &str) -> Option<&str> {
    let mut from = 0;
    while let Some(found) = text[from..].find('$') {
        let at = from + found;
        let rest = &text[at + 1..];
        if rest.starts_with('$') {
            from = at + 2;
            continue;
        }
        let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        if rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            return Some(&text[at..at + 1 + length]);
        }
        if rest.starts_with("((") {
            return Some(&text[at..at + 3]);
        }
        from = at + 1;
    }
    None
}

fn twice(container: &Node, findings: &mut Findings) {
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    for name in
        container.get("env").map_or(&[][..], Node::items).iter().filter_map(|variable| variable.get("name"))
    {
        let Some(text) = name.text() else { continue };
        match first.get(text) {
            Some(line) => {
                let message = format!("`{text}` is set on line {line} too");
                findings.add(&TWICE, name.place, message, "remove one of them");
            }
            None => drop(first.insert(text, name.place.line)),
        }
    }
}

/// Places of texts that a shell reads.
fn scripts(document: &Document) -> BTreeSet<Position> {
    let of_trainer = document.root.at(&["spec", "trainer"]);
    let containers = document.pods.iter().flat_map(|pod| pod.all_containers()).chain(of_trainer);
    containers.filter(|container| is_shell(container)).flat_map(arguments).map(|node| node.place).collect()
}

/// Where `$NAME` alone is no template's: `REFERENCE` reports it there.
const REFERENCES: [&str; 3] = ["value", "command", "args"];

type Unfilled = BTreeMap<(usize, String), (Position, usize)>;

fn add(place: Position, found: &str, unfilled: &mut Unfilled) {
    unfilled.entry((place.file, found.to_owned())).or_insert((place, 0)).1 += 1;
}

fn placeholders(node: &Node, scripts: &BTreeSet<Position>, unfilled: &mut Unfilled) {
    match &node.value {
        Value::Text(text) if !scripts.contains(&node.place) => {
            if let Some(found) = placeholder(text) {
                add(node.place, found, unfilled);
            }
        }
        Value::List(items) => items.iter().for_each(|item| placeholders(item, scripts, unfilled)),
        Value::Map(entries) => {
            for entry in entries.iter().filter(|entry| !["annotations", "description"].contains(&&*entry.key))
            {
                let text = entry.value.text();
                let is_image = &*entry.key == "image" && text.is_some_and(|text| !text.contains("${"));
                if let Some(found) = text.filter(|_| is_image).and_then(placeholder_in_brackets) {
                    add(entry.value.place, found, unfilled);
                } else if REFERENCES.contains(&&*entry.key) {
                    let of_list = entry.value.items().iter().map(|item| &**item);
                    for node in of_list.chain([&*entry.value]) {
                        if node.text().is_some_and(|text| text.contains("${")) {
                            placeholders(node, scripts, unfilled);
                        }
                    }
                } else {
                    placeholders(&entry.value, scripts, unfilled);
                }
            }
        }
        _ => {}
    }
}

/// `${NAME}` anywhere, and a whole text that is `$NAME`.
fn placeholder(text: &str) -> Option<&str> {
    if let Some(at) = text.find("${") {
        let end = text[at..].find('}').map_or(text.len(), |end| at + end + 1);
        return Some(&text[at..end]);
    }
    let name = text.strip_prefix('$')?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some(text)
}
