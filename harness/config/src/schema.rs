//! JSON Schemas of the files that people write, made from their forms: editors complete, explain and check by them.

use crate::form::{Condition, Form, Key, Need, Type};
use crate::toml_reader::renamed;
use crate::{baseline, inventory, schema_definitions, suite};
use recipes::catalogue::Catalogue;
use serde_json::{Map, Value, json};

/// A kind of file that people write.
pub struct FileKind {
    /// As in the name of its schema: `suite`.
    pub name: &'static str,
    /// What it is, for people.
    pub about: &'static str,
    /// What stands in it.
    pub form: fn() -> Form,
    /// Where such files lie, as patterns of paths.
    pub files: &'static [&'static str],
}

/// How the first line of a file names its schema.
const DIRECTIVE: &str = "#:schema ";

/// A text for another folder, from where the path to the schema leads nowhere.
pub fn without_directive(text: &str) -> &str {
    match text.split_once('\n') {
        Some((first, rest)) if first.starts_with(DIRECTIVE) => rest,
        _ => text,
    }
}

/// Those that this crate reads.
pub static KINDS: [FileKind; 4] = [
    FileKind {
        name: "suite",
        about: "A suite: cases with a workload, nodes, recipes and assertions.",
        form: suite::file_form,
        files: &["suites/*.toml"],
    },
    FileKind {
        name: "inventory",
        about: "An inventory: the nodes of a cluster, and how they are reached.",
        form: inventory::form::file,
        files: &["inventory/*.toml"],
    },
    FileKind {
        name: "instance",
        about: "An instance profile: GPUs, NICs, line rates and counters of a node.",
        form: inventory::form::instance,
        files: &["inventory/instances/*.toml"],
    },
    FileKind {
        name: "baselines",
        about: "Baselines: what was measured before on an instance type.",
        form: baseline::form::file,
        files: &["baselines/*.toml"],
    },
];

impl FileKind {
    /// The schema, with the names of the catalogue's recipes and metrics.
    pub fn schema(&self, catalogue: &Catalogue) -> Value {
        let head = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": format!("harness: {}", self.name),
            "description": self.about,
        });
        schema_definitions::share(merged(head, table(&(self.form)(), catalogue)))
    }
}

fn merged(first: Value, second: Value) -> Value {
    match (first, second) {
        (Value::Object(mut first), Value::Object(second)) => {
            first.extend(second);
            Value::Object(first)
        }
        (first, _) => first,
    }
}

/// A table. Where its keys depend on another key, the schema lists all of them for editors to complete, and each variant
/// again with those that it has.
fn table(form: &Form, catalogue: &Catalogue) -> Value {
    variant(form, &[], catalogue)
}

fn variant(form: &Form, common: &[&Key], catalogue: &Catalogue) -> Value {
    let own: Vec<&Key> = common.iter().copied().chain(&form.keys).collect();
    let mut schema = json!({ "type": "object" });
    let mut conditions = Vec::new();
    let mut properties = properties(&own, catalogue);
    match &form.variants {
        None => schema["additionalProperties"] = json!(false),
        Some(variants) => {
            for key in form.all_keys() {
                let known = json!({ "description": key.about });
                properties.entry(key.name).or_insert(known);
            }
            for (condition, of) in &variants.forms {
                let by = variants.by;
                let holds = match condition {
                    Condition::Is(word) => {
                        let old = renamed::old_value(by).filter(|old| renamed::value(by, old) == *word);
                        let words: Vec<&str> = std::iter::once(*word).chain(old).collect();
                        json!({ "properties": { by: { "enum": words } }, "required": [by] })
                    }
                    Condition::Present => json!({ "required": [by] }),
                    Condition::Absent => json!({ "not": { "required": [by] } }),
                };
                conditions.push(json!({ "if": holds, "then": variant(of, &own, catalogue) }));
            }
        }
    }
    let required: Vec<&str> = own.iter().filter(|key| key.need == Need::Needed).map(|key| key.name).collect();
    if let Some((matrix, of)) = form.matrix {
        conditions.extend(swept(&mut properties, matrix, of, &own, catalogue));
    }
    if let Some((key, [of, by, word])) = form.needed_unless {
        let is_it = json!({ "properties": { by: { "const": word } }, "required": [by] });
        let there = json!({ "properties": { of: is_it }, "required": [of] });
        conditions.push(json!({ "if": there, "else": { "required": [key] } }));
    }
    schema["properties"] = Value::Object(properties);
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if !conditions.is_empty() {
        schema["allOf"] = Value::Array(conditions);
    }
    schema
}

fn properties(keys: &[&Key], catalogue: &Catalogue) -> Map<String, Value> {
    let mut properties = Map::new();
    for key in keys {
        let about = match key.need {
            Need::Default(default) => format!("{} (default: {default})", key.about),
            Need::Needed | Need::Optional => key.about.to_owned(),
        };
        let mut of = value(&key.value, catalogue);
        let words = of.get_mut("enum").and_then(Value::as_array_mut);
        if let (Some(words), Some(old)) = (words, renamed::old_value(key.name)) {
            words.push(json!(old));
        }
        if let Some(old) = renamed::old_key(key.name) {
            let about = format!("older spelling of `{}`", key.name);
            let old_schema = merged(of.clone(), json!({ "description": about, "deprecated": true }));
            properties.insert(old.to_owned(), old_schema);
        }
        properties.insert(key.name.to_owned(), merged(of, json!({ "description": about })));
    }
    properties
}

/// The values of a matrix stand in for keys of another table, which that table then need not have. What it needs is asked
/// for here, by its kind.
fn swept(
    properties: &mut Map<String, Value>,
    matrix: &str,
    of: &str,
    keys: &[&Key],
    catalogue: &Catalogue,
) -> Vec<Value> {
    let form = keys.iter().find(|key| key.name == of).map(|key| &key.value);
    let Some(Type::Table(form)) = form else { return Vec::new() };
    let Some(variants) = &form.variants else { return Vec::new() };
    if let Some(schema) = properties.get_mut(of) {
        allow_absence(schema, variants.by);
    }
    let condition = |(condition, variant): &(Condition, Form)| {
        let Condition::Is(word) = condition else { return None };
        let by = variants.by;
        let is_kind = json!({ "properties": { by: { "const": word } }, "required": [by] });
        let all: Vec<&Key> =
            form.keys.iter().filter(|key| key.name != by).chain(variant.all_keys()).collect();
        let lists: Map<String, Value> = all
            .iter()
            .map(|key| (key.name.to_owned(), json!({ "items": value(&key.value, catalogue) })))
            .collect();
        let mut then =
            json!({ "properties": { matrix: { "properties": lists, "additionalProperties": false } } });
        let needed = needed(variant, matrix, of);
        if !needed.is_empty() {
            then["allOf"] = Value::Array(needed);
        }
        Some(json!({ "if": { "properties": { of: is_kind }, "required": [of] }, "then": then }))
    };
    variants.forms.iter().filter_map(condition).collect()
}

/// Each key that a table needs stands in it, or in the matrix.
fn needed(form: &Form, matrix: &str, of: &str) -> Vec<Value> {
    let has = |table: &str, inner: Value| json!({ "properties": { table: inner }, "required": [table] });
    let own = form.keys.iter().filter(|key| key.need == Need::Needed).map(|key| {
        let there = json!({ "required": [key.name] });
        json!({ "anyOf": [has(of, there.clone()), has(matrix, there)] })
    });
    let within = form.variants.iter().flat_map(|variants| {
        variants.forms.iter().filter_map(|(condition, form)| {
            let Condition::Is(word) = condition else { return None };
            let by = variants.by;
            let is_it = json!({ "properties": { by: { "const": word } }, "required": [by] });
            let all = needed(form, matrix, of);
            (!all.is_empty()).then(|| json!({ "if": has(of, is_it), "then": { "allOf": all } }))
        })
    });
    own.chain(within).collect()
}

/// No key of the table is required any longer, but for the one that decides which others there are.
fn allow_absence(schema: &mut Value, by: &str) {
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|key| key == by);
    }
    for condition in schema.get_mut("allOf").and_then(Value::as_array_mut).into_iter().flatten() {
        condition.get_mut("then").into_iter().for_each(|then| allow_absence(then, by));
    }
}

fn value(of: &Type, catalogue: &Catalogue) -> Value {
    const SIZE: &str = "^ *[0-9]+ *(B|bytes|[KkMmGgTt]|[KMGT]iB)? *$";
    match of {
        Type::Text => json!({ "type": "string" }),
        Type::Pattern(pattern) => json!({ "type": "string", "pattern": pattern }),
        Type::Boolean => json!({ "type": "boolean" }),
        Type::Off => json!({ "const": false }),
        Type::Whole(range) => match (*range.start(), *range.end()) {
            (least, u64::MAX) => json!({ "type": "integer", "minimum": least }),
            (least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        },
        Type::Number => json!({ "type": "number" }),
        Type::Size => {
            json!({ "anyOf": [{ "type": "string", "pattern": SIZE }, { "type": "integer", "minimum": 1 }] })
        }
        Type::Quantity => json!({ "type": ["string", "number"] }),
        Type::OneOf(words) => json!({ "enum": words(catalogue) }),
        Type::List(of) => json!({ "type": "array", "items": value(of, catalogue) }),
        Type::Table(form) => table(form, catalogue),
        Type::Map(of) => json!({ "type": "object", "additionalProperties": value(of, catalogue) }),
        Type::Either(types) => {
            json!({ "anyOf": types.iter().map(|of| value(of, catalogue)).collect::<Vec<_>>() })
        }
    }
}
