//! Secrets that stand in a file that a person wrote: whoever reads the file knows them, and every artefact that is made
//! of it would hold them. Their values are never shown.

use super::{Raw, Source};
use base::redact::{Redactor, is_secret_pair};
use toml::de::{DeTable, DeValue};

const INSTEAD: &str = "write `env:NAME`, and set that variable in the environment of the harness";

/// Every text of the table and below that is a secret, by its own look or by the name that it goes by.
pub(super) fn secrets(table: &DeTable<'_>, source: &Source<'_>) {
    let redactor = Redactor::default();
    for (key, value) in table {
        look(key.get_ref(), value, source, &redactor);
    }
}

fn look(name: &str, raw: &Raw<'_>, source: &Source<'_>, redactor: &Redactor) {
    match raw.get_ref() {
        DeValue::String(text) => {
            let by_name = is_secret_pair(name, text).then(|| name.to_owned());
            let what = by_name.or_else(|| redactor.first(text.as_bytes()).map(|(_, what)| what));
            if let Some(what) = what {
                let message = format!("secret in plain text: `{}`", what.escape_debug());
                source.diagnostic_with(&raw.span(), message, INSTEAD);
            }
        }
        DeValue::Array(list) => {
            // In a list of arguments a flag names what comes after it.
            let mut flag = String::new();
            for inner in list.iter() {
                look(&flag, inner, source, redactor);
                let text = inner.get_ref().as_str().unwrap_or_default();
                flag =
                    text.strip_prefix("--").filter(|flag| !flag.contains('=')).unwrap_or_default().to_owned();
            }
        }
        DeValue::Table(table) => {
            for (key, value) in table {
                look(key.get_ref(), value, source, redactor);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    fn messages(text: &str) -> Vec<String> {
        match super::super::read(text, "x.toml", |_| Some(())) {
            Ok(()) => Vec::new(),
            Err(diagnostics) => diagnostics.0.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn a_secret_in_a_file_is_reported_with_its_place_and_name_and_never_its_value() {
        let token = "ghp_".to_owned() + &"a1".repeat(18);
        let text = format!(
            "about = \"x\"\n[environment]\nHF_TOKEN = \"hunter2\"\nA = \"{token}\"\n[w]\n\
             args = [\"--token\", \"hunter2\", \"--password=hunter2\", \"x\"]\n"
        );
        let messages = messages(&text);
        let places: Vec<&str> =
            messages.iter().map(|line| line.split(": ").next().unwrap_or_default()).collect();
        assert_eq!(places, ["x.toml:3:12", "x.toml:4:5", "x.toml:6:20", "x.toml:6:31"], "{messages:?}");
        assert!(
            messages.iter().all(|line| line.contains("`env:NAME`") && !line.contains("hunter2")),
            "{messages:?}"
        );
        assert!(messages[0].contains("`HF_TOKEN`") && messages[3].contains("`password`"), "{messages:?}");
    }

    #[test]
    fn names_of_variables_and_plain_values_are_none() {
        let text = "[environment]\nHF_TOKEN = \"env:HF_TOKEN\"\nNCCL_DEBUG = \"INFO\"\nTOKENIZERS_PARALLELISM = \"false\"\nargs = [\"--token\", \"env:X\", \"--max-token\", \"128\"]\n";
        assert_eq!(messages(text), [] as [&str; 0]);
    }
}
