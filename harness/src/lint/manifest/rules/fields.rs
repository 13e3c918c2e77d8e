//! Rules about the structure of objects: kinds, versions, fields, types and values, by the table of fields.

use super::{Findings, Rule, Weight};
use crate::lint::manifest::fields::{Field, Form, TABLE, VERSIONS};
use crate::lint::manifest::objects::{Document, MOST_PODS, Manifests, is_placeholder};
use crate::lint::manifest::yaml::{Node, Position, Value};
use base::suggest::{nearest, within};
use std::collections::BTreeMap;

pub(in crate::lint::manifest) const YAML: Rule = Rule {
    code: "yaml",
    weight: Weight::Error,
    what: "a file that is no YAML, or a Helm template that is not rendered",
    harm: "nothing in it is checked, and kubectl refuses it",
};
pub(super) const KIND: Rule = Rule {
    code: "kind",
    weight: Weight::Error,
    what: "a `kind` that is missing or misspelt",
    harm: "the API server has no such resource",
};
pub(super) const API_VERSION: Rule = Rule {
    code: "api-version",
    weight: Weight::Error,
    what: "an `apiVersion` in which the kind is not served",
    harm: "the API server has no such resource",
};
pub(super) const FIELD: Rule = Rule {
    code: "field",
    weight: Weight::Error,
    what: "a field that the object does not have",
    harm: "the API server refuses it, or drops it in silence without strict validation",
};
pub(super) const TYPE: Rule = Rule {
    code: "type",
    weight: Weight::Error,
    what: "a value of the wrong type, such as a number where the environment needs a string",
    harm: "the API server refuses the object",
};
pub(super) const VALUE: Rule = Rule {
    code: "value",
    weight: Weight::Error,
    what: "a value that the field does not allow",
    harm: "the API server refuses the object",
};
pub(super) const REQUIRED: Rule = Rule {
    code: "required",
    weight: Weight::Error,
    what: "a required field that is left out, such as the launcher of an MPIJob",
    harm: "the API server refuses the object, or no pod ever starts",
};
pub(super) const SINCE: Rule = Rule {
    code: "since",
    weight: Weight::Note,
    what: "a field or version that not every Kubernetes from 1.29 to 1.37 has",
    harm: "servers without it refuse or drop it",
};
pub(super) const KEY_TWICE: Rule = Rule {
    code: "key-twice",
    weight: Weight::Error,
    what: "a key that stands twice in one map",
    harm: "only the last one counts",
};

/// Kinds of other operators: their pods are checked, not their own fields.
const OTHERS: [&str; 12] = [
    "HyperPodPyTorchJob",
    "ComputeDomain",
    "RayCluster",
    "RayJob",
    "LeaderWorkerSet",
    "Workload",
    "ClusterQueue",
    "ResourceFlavor",
    "CustomResourceDefinition",
    "Ingress",
    "NodePool",
    "EC2NodeClass",
];

/// The release of an operator whose definition is in the table; others have other fields.
const RELEASES: [(&str, &str); 6] = [
    ("TrainJob", "Trainer 2.3"),
    ("TrainingRuntime", "Trainer 2.3"),
    ("ClusterTrainingRuntime", "Trainer 2.3"),
    ("PyTorchJob", "training-operator 1.9"),
    ("JobSet", "JobSet 0.12"),
    ("MPIJob", "MPI operator v2beta1"),
];

/// The kind that a misspelt one means.
pub(in crate::lint::manifest) fn corrected(kind: &str) -> String {
    match is_known(kind) {
        true => kind.to_owned(),
        false => within(kind, TABLE.kinds(), 2).unwrap_or(kind).to_owned(),
    }
}

fn is_known(kind: &str) -> bool {
    !TABLE.served(kind).is_empty() || OTHERS.contains(&kind)
}

pub(super) fn check(manifests: &Manifests, findings: &mut Findings) {
    for document in &manifests.documents {
        repeated(&document.root, findings);
        if document.pods.len() >= MOST_PODS {
            let message = format!("{MOST_PODS} pods or more in one object: the others are not checked");
            findings.note(&KIND, document.root.place, message, "split it");
        }
        if document.is_values {
            continue;
        }
        match whole(document, findings) {
            Some(fields) => {
                Walk { findings, kind: &document.kind }.map(&document.root, fields, &document.kind);
                replicas(document, findings);
            }
            None => {
                for pod in &document.pods {
                    Walk { findings, kind: "Pod" }.map(&pod.spec, "PodSpec", "spec");
                }
            }
        }
    }
}

fn repeated(node: &Node, findings: &mut Findings) {
    for entry in node.entries() {
        if entry.is_repeated {
            findings.add(
                &KEY_TWICE,
                entry.place,
                format!("`{}` stands twice in one map", entry.key),
                "remove one of them",
            );
        }
        repeated(&entry.value, findings);
    }
    node.items().iter().for_each(|item| repeated(item, findings));
}

/// The type of an object as a whole.
fn whole(document: &Document, findings: &mut Findings) -> Option<&'static str> {
    let root = &document.root;
    if !matches!(root.value, Value::Map(_)) {
        if !matches!(root.value, Value::Null) {
            findings.add(
                &KIND,
                root.place,
                format!("expected an object, found {}", root.kind()),
                "write `apiVersion`, `kind` and `metadata`",
            );
        }
        return None;
    }
    let Some(kind) = root.get("kind") else {
        findings.add(
            &KIND,
            root.place,
            "`kind` is missing",
            "write `apiVersion` and `kind`; a file of Helm values needs `values` in its name",
        );
        return None;
    };
    let written = kind.text().filter(|text| !is_placeholder(text))?;
    if !is_known(written) {
        match TABLE.kinds().find(|known| *known == document.kind) {
            Some(near) => findings.add(
                &KIND,
                kind.place,
                format!("unknown kind: `{written}`"),
                format!("did you mean `{near}`?"),
            ),
            None => findings.note(
                &KIND,
                kind.place,
                format!("unknown kind: `{written}`, of which only pods are checked"),
                "check its spelling",
            ),
        }
    }
    let served = TABLE.served(&document.kind);
    let usual = served.first()?;
    let Some(version) = root.get("apiVersion") else {
        findings.add(
            &API_VERSION,
            root.place,
            "`apiVersion` is missing",
            format!("write `apiVersion: {}`", usual.api_version),
        );
        return Some(usual.fields);
    };
    let written = version.text().unwrap_or_default();
    match served.iter().find(|served| served.api_version == written) {
        Some(found) => {
            since(found.versions, format!("`{written}` of {}", document.kind), version.place, findings);
            Some(found.fields)
        }
        None => {
            let message = format!("{} is not served as `{written}`", document.kind);
            findings.add(&API_VERSION, version.place, message, format!("write `{}`", usual.api_version));
            Some(usual.fields)
        }
    }
}

fn since((first, last): (u8, u8), what: String, at: Position, findings: &mut Findings) {
    if first > VERSIONS.0 {
        findings.add(
            &SINCE,
            at,
            format!("{what} exists from Kubernetes 1.{first} on"),
            "check the version of the cluster",
        );
    } else if last < VERSIONS.1 {
        findings.add(
            &SINCE,
            at,
            format!("{what} exists until Kubernetes 1.{last}"),
            "check the version of the cluster",
        );
    }
}

/// The replicas that an operator asks for by name.
fn replicas(document: &Document, findings: &mut Findings) {
    let (key, known, required) = match document.kind.as_str() {
        "MPIJob" => ("mpiReplicaSpecs", ["Launcher", "Worker"], &["Launcher"][..]),
        "PyTorchJob" => ("pytorchReplicaSpecs", ["Master", "Worker"], &[][..]),
        _ => return,
    };
    let Some(entry) = document.root.get("spec").and_then(|spec| spec.entry(key)) else { return };
    for role in entry.value.entries() {
        if !known.contains(&&*role.key) {
            let advice = nearest(&role.key, known)
                .map_or(format!("write {}", known.join(" or ")), |near| format!("did you mean `{near}`?"));
            findings.add(
                &FIELD,
                role.place,
                format!("unknown replicas: `{}` of {}", role.key, document.kind),
                advice,
            );
        }
    }
    for role in required {
        if entry.value.get(role).is_none() {
            findings.add(
                &REQUIRED,
                entry.place,
                format!("`{key}` of {} has no `{role}`", document.kind),
                format!("add `{role}` with its command"),
            );
        }
    }
}

struct Walk<'a> {
    findings: &'a mut Findings,
    kind: &'a str,
}

impl Walk<'_> {
    fn map(&mut self, node: &Node, of: &str, path: &str) {
        let Some(fields) = TABLE.fields(of) else { return };
        if !matches!(node.value, Value::Map(_)) {
            return;
        }
        for entry in node.entries() {
            match fields.get(&*entry.key) {
                Some(field) => {
                    since(field.versions, format!("`{}` of {path}", entry.key), entry.place, self.findings);
                    let below = format!("{path}.{}", entry.key);
                    self.value(&entry.value, field.form, &entry.key, &below);
                }
                None if is_placeholder(&entry.key) || !self.findings.has_room(&FIELD, entry.place) => {}
                None => {
                    let release = RELEASES.into_iter().find(|(kind, _)| *kind == self.kind);
                    let release = release.map(|(_, release)| format!(" in {release}")).unwrap_or_default();
                    let message = format!("unknown field: `{}` of {path}{release}", entry.key);
                    self.findings.add(&FIELD, entry.place, message, instead(&entry.key, fields));
                }
            }
        }
        for (name, field) in fields.iter().filter(|(_, field)| field.is_required) {
            if node.get(name).is_none() {
                let example = match field.form {
                    Form::List(_) => format!("add `{name}`, a list"),
                    Form::Map(_) | Form::Fields(_) => format!("add `{name}`"),
                    _ => format!("add `{name}: ...`"),
                };
                self.findings.add(&REQUIRED, node.place, format!("`{name}` of {path} is missing"), example);
            }
        }
    }

    fn value(&mut self, node: &Node, form: Form, key: &str, path: &str) {
        // Written for `envsubst`, or left empty: other rules look at these.
        let text = node.text();
        if matches!(node.value, Value::Null) || (form != Form::Text && text.is_some_and(is_placeholder)) {
            return;
        }
        let is_right = match (form, &node.value) {
            (Form::Anything, _) => true,
            (Form::Text | Form::OneOf(_), Value::Text(_)) => true,
            (Form::Integer, Value::Number(number)) => !number.contains('.'),
            (Form::Number, Value::Number(_)) => true,
            (Form::Bool, Value::Bool(_)) => true,
            (Form::Quantity | Form::IntegerOrText, Value::Text(_) | Value::Number(_)) => true,
            (Form::List(_), Value::List(_)) => true,
            (Form::Map(_) | Form::Fields(_), Value::Map(_)) => true,
            _ => false,
        };
        if !is_right {
            let message = format!(
                "`{key}` of {} must be {}, found {}",
                self.parent(path),
                form.expected(),
                node.kind()
            );
            let advice = match (form, &node.value) {
                (Form::Text | Form::OneOf(_), Value::Number(_) | Value::Bool(_)) => {
                    "put it in quotation marks".to_owned()
                }
                (Form::Integer | Form::Number | Form::Bool, Value::Text(_)) => {
                    "remove its quotation marks".to_owned()
                }
                (Form::List(_), _) => "begin each item with `- `".to_owned(),
                _ => format!("write {}", form.expected()),
            };
            self.findings.add(&TYPE, node.place, message, advice);
            return;
        }
        match form {
            Form::OneOf(values) => {
                let written = text.unwrap_or_default();
                if !values.split('|').any(|value| value == written) {
                    let advice = match nearest(written, values.split('|')) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("write {}", values.replace('|', ", ")),
                    };
                    self.findings.add(&VALUE, node.place, format!("`{key}` cannot be `{written}`"), advice);
                }
            }
            Form::Quantity => {
                let written = node.scalar().unwrap_or_default();
                if !written.is_empty() && !is_quantity(written) {
                    self.findings.add(
                        &VALUE,
                        node.place,
                        format!("`{key}` is no quantity: `{written}`"),
                        "write a number with a unit such as Mi or Gi",
                    );
                }
            }
            Form::List(of) => node
                .items()
                .iter()
                .for_each(|item| self.value(item, Form::parse(of), key, &format!("{path}[]"))),
            Form::Map(of) => {
                for entry in node.entries() {
                    self.value(&entry.value, Form::parse(of), &entry.key, &format!("{path}.{}", entry.key));
                }
            }
            Form::Fields(of) => self.map(node, of, path),
            _ => {}
        }
    }

    fn parent<'p>(&'p self, path: &'p str) -> &'p str {
        path.trim_end_matches("[]").rsplit_once('.').map_or(self.kind, |(parent, _)| parent)
    }
}

/// Where an unknown field may belong.
fn instead(key: &str, fields: &BTreeMap<&'static str, Field>) -> String {
    let below = fields.iter().find_map(|(name, field)| match field.form {
        Form::Fields(of) | Form::List(of)
            if TABLE.fields(of).is_some_and(|inner| inner.contains_key(key)) =>
        {
            Some(name)
        }
        _ => None,
    });
    match (below, nearest(key, fields.keys().copied())) {
        (Some(below), _) => format!("it belongs to `{below}`"),
        (None, Some(near)) => format!("did you mean `{near}`?"),
        (None, None) => "remove it, or check its indentation".to_owned(),
    }
}

fn is_quantity(text: &str) -> bool {
    let number = text.trim_start_matches(['+', '-']);
    let digits = number.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is_unit = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
        .contains(&digits);
    let is_exponent = digits.strip_prefix(['e', 'E']).is_some_and(|rest| rest.parse::<i32>().is_ok());
    digits.len() < number.len() && (is_unit || is_exponent)
}
