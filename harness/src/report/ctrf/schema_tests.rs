//! The published schema of CTRF, for tests: those keywords of JSON Schema that it uses, and an error for any other.

use regex::Regex;
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

const SCHEMA: &str = include_str!("../../../../tests/schemas/ctrf-0.0.json");

/// All that the schema does not allow.
pub(super) fn violations(document: &Value) -> Vec<String> {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let mut found = Vec::new();
    check(&schema, &schema, document, "", &mut found);
    found
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => panic!("a type that JSON Schema does not have: {kind}"),
    }
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    let rules = schema.as_object().unwrap();
    for (keyword, rule) in rules {
        let is_kept = match keyword.as_str() {
            "$schema" | "title" | "description" | "definitions" => true,
            "$ref" => {
                let place = rule.as_str().unwrap().strip_prefix('#').unwrap();
                check(root, root.pointer(place).unwrap(), value, at, found);
                true
            }
            "type" => is_of(rule.as_str().unwrap(), value),
            "const" => value == rule,
            "enum" => rule.as_array().unwrap().contains(value),
            "anyOf" => rule.as_array().unwrap().iter().any(|one| {
                let mut wrong = Vec::new();
                check(root, one, value, at, &mut wrong);
                wrong.is_empty()
            }),
            "pattern" => {
                value.as_str().is_none_or(|text| Regex::new(rule.as_str().unwrap()).unwrap().is_match(text))
            }
            "format" => value.as_str().is_none_or(|text| match rule.as_str().unwrap() {
                "date-time" => OffsetDateTime::parse(text, &Rfc3339).is_ok(),
                format => panic!("{at}: no document of ours has a {format}"),
            }),
            "minimum" => value.as_f64().is_none_or(|number| number >= rule.as_f64().unwrap()),
            "minLength" => {
                value.as_str().is_none_or(|text| text.chars().count() as u64 >= rule.as_u64().unwrap())
            }
            "minItems" => value.as_array().is_none_or(|items| items.len() as u64 >= rule.as_u64().unwrap()),
            "required" => value.as_object().is_none_or(|fields| {
                rule.as_array().unwrap().iter().all(|key| fields.contains_key(key.as_str().unwrap()))
            }),
            "properties" => {
                for (key, field) in value.as_object().into_iter().flatten() {
                    if let Some(rule) = rule.get(key) {
                        check(root, rule, field, &format!("{at}/{key}"), found);
                    }
                }
                true
            }
            "additionalProperties" => {
                let is_named = |key: &String| schema["properties"].get(key).is_some();
                let mut others = value.as_object().into_iter().flatten().filter(|(key, _)| !is_named(key));
                match rule {
                    Value::Bool(allowed) => *allowed || others.next().is_none(),
                    rule => {
                        others
                            .for_each(|(key, field)| check(root, rule, field, &format!("{at}/{key}"), found));
                        true
                    }
                }
            }
            "items" => {
                for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, rule, item, &format!("{at}/{number}"), found);
                }
                true
            }
            _ => panic!("{at}: the schema has the keyword `{keyword}`, which this test does not know"),
        };
        if !is_kept {
            found.push(format!("{at}: {keyword} {rule}: {value}"));
        }
    }
}
