//! What a JSON Schema says of a key in many places is written once, under `definitions`.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A shorter text is not longer than a reference to it.
const LEAST: usize = 150;

/// Moves into `definitions` what is said of a key more than once.
pub(crate) fn share(mut schema: Value) -> Value {
    let mut uses = BTreeMap::new();
    count(&schema, &mut uses);
    let mut definitions = Definitions { uses, names: BTreeMap::new(), made: Map::new() };
    definitions.replace_in(&mut schema);
    if !definitions.made.is_empty() {
        schema["definitions"] = Value::Object(definitions.made);
    }
    schema
}

/// How often each text is used, where a text that is used in many places counts once for what stands in it.
fn count(schema: &Value, uses: &mut BTreeMap<String, usize>) {
    match schema {
        Value::Object(map) => {
            for (name, inner) in map {
                match inner {
                    Value::Object(keys) if name == "properties" => {
                        for key in keys.values() {
                            let seen = uses.entry(key.to_string()).or_default();
                            *seen += 1;
                            if *seen == 1 {
                                count(key, uses);
                            }
                        }
                    }
                    _ => count(inner, uses),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|inner| count(inner, uses)),
        _ => {}
    }
}

struct Definitions {
    uses: BTreeMap<String, usize>,
    /// The name of each text that has one.
    names: BTreeMap<String, String>,
    made: Map<String, Value>,
}

impl Definitions {
    fn replace_in(&mut self, schema: &mut Value) {
        match schema {
            Value::Object(map) => {
                for (name, inner) in map {
                    match inner {
                        Value::Object(keys) if name == "properties" => {
                            for (key, of) in keys {
                                self.replace(key, of);
                            }
                        }
                        _ => self.replace_in(inner),
                    }
                }
            }
            Value::Array(list) => list.iter_mut().for_each(|inner| self.replace_in(inner)),
            _ => {}
        }
    }

    fn replace(&mut self, key: &str, schema: &mut Value) {
        let text = schema.to_string();
        if text.len() < LEAST || self.uses.get(&text).is_none_or(|uses| *uses < 2) {
            return self.replace_in(schema);
        }
        let name = match self.names.get(&text) {
            Some(name) => name.clone(),
            None => {
                let name = self.unused_name(key);
                self.names.insert(text, name.clone());
                // Takes the name, which keys inside of it may want too.
                self.made.insert(name.clone(), Value::Null);
                self.replace_in(schema);
                self.made.insert(name.clone(), schema.take());
                name
            }
        };
        *schema = json!({ "$ref": format!("#/definitions/{name}") });
    }

    /// Keys of the same name can mean other things elsewhere: `limit`, `limit-2`.
    fn unused_name(&self, key: &str) -> String {
        let numbered = (2..).map(|number| format!("{key}-{number}"));
        std::iter::once(key.to_owned())
            .chain(numbered)
            .find(|name| !self.made.contains_key(name))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_twice_is_written_once_and_inner_keys_again_only_where_others_use_them() {
        let long = |about: &str| json!({ "description": about.repeat(200), "type": "string" });
        let table = json!({ "type": "object", "properties": { "inner": long("i"), "own": long("o") } });
        let schema = json!({
            "properties": { "a": table, "b": { "type": "string" } },
            "allOf": [{ "properties": { "a": table, "inner": long("i"), "b": { "type": "string" } } }],
        });
        let shared = share(schema);
        let a = json!({ "$ref": "#/definitions/a" });
        let inner = json!({ "$ref": "#/definitions/inner" });
        assert_eq!(shared["properties"], json!({ "a": a, "b": { "type": "string" } }));
        assert_eq!(shared["allOf"][0]["properties"]["inner"], inner);
        assert_eq!(shared["definitions"]["a"]["properties"], json!({ "inner": inner, "own": long("o") }));
        assert_eq!(shared["definitions"].as_object().map(Map::len), Some(2));
    }

    #[test]
    fn the_same_key_with_another_meaning_has_another_name() {
        let long = |about: &str| json!({ "description": about.repeat(200) });
        let of = |about: &str| json!({ "properties": { "limit": long(about) } });
        let shared = share(json!({ "allOf": [of("a"), of("a"), of("b"), of("b")] }));
        assert_eq!(shared["allOf"][2]["properties"]["limit"], json!({ "$ref": "#/definitions/limit-2" }));
        assert_eq!(shared["definitions"]["limit"], long("a"));
    }
}
