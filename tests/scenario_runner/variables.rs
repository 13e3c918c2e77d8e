//! What `{name}` stands for: rows, runs, and values that an earlier step kept.

use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Default)]
pub(crate) struct Variables(BTreeMap<String, Value>);

impl Variables {
    pub(crate) fn set(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    pub(crate) fn add(&mut self, table: &toml::Table) {
        for (name, value) in table {
            let value = self.value(&json(value));
            self.set(name, value);
        }
    }

    /// With the values in place of names; braces around anything else stay.
    pub(crate) fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, value) in &self.0 {
            let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            text = text.replace(&format!("{{{name}}}"), &shown);
        }
        text
    }

    /// As above, and a text that is nothing but a name becomes the value, whatever it is.
    pub(crate) fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                let name = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
                let whole = name.and_then(|name| self.0.get(name));
                whole.cloned().unwrap_or_else(|| Value::String(self.text(text)))
            }
            Value::Array(values) => values.iter().map(|value| self.value(value)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(name, value)| (self.text(name), self.value(value))).collect()
            }
            _ => value.clone(),
        }
    }

    /// Texts; one that is nothing but the name of a list stands for its texts.
    pub(crate) fn texts(&self, texts: &[String]) -> Vec<String> {
        let values = texts.iter().map(|text| self.value(&Value::String(text.clone())));
        let flat = values.flat_map(|value| match value {
            Value::Array(values) => values,
            value => vec![value],
        });
        flat.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).collect()
    }

    /// The reverse, for ids of runs.
    pub(crate) fn masked(&self, text: &str) -> String {
        let runs = self.0.iter().filter(|(name, _)| name.starts_with("run"));
        runs.filter_map(|(name, value)| Some((name, value.as_str()?)))
            .fold(text.to_owned(), |text, (name, value)| text.replace(value, &format!("{{{name}}}")))
    }
}

pub(crate) fn json(value: &toml::Value) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}
