//! Walks a TOML file that a person wrote and collects every error in it, each with its place, instead of stopping
//! at the first. The readers of suites, inventories and baselines know what the keys mean.

mod alike;
pub mod file;
pub mod folder;
mod inner;
mod literal;
pub mod quantity;
pub mod renamed;
mod source;
mod table;
pub mod value;

pub use source::Source;
pub use table::Table;
pub use value::Value;

use crate::diagnostic::Diagnostics;
use serde_spanned::Spanned;
use toml::de::{DeTable, DeValue};

/// Reads `text` with `body`. What `body` gives counts only if nothing at all was wrong.
///
/// A syntax error leaves a tree with holes: its errors are reported too, but for missing keys and for whatever stands
/// on the very line that could not be read.
pub fn read<T>(text: &str, file: &str, body: impl FnOnce(&Table<'_>) -> Option<T>) -> Result<T, Diagnostics> {
    let (document, errors) = DeTable::parse_recoverable(text);
    let keys = keys_in(document.get_ref());
    if keys > MOST_KEYS {
        let message = format!("has {keys} keys, limit {MOST_KEYS}");
        return Err(crate::diagnostic::Diagnostic::in_file(file, message).into());
    }
    let source = Source::new(text, file, &errors);
    let table = Table::root(&source, document.get_ref(), document.span());
    let read = body(&table);
    literal::secrets(document.get_ref(), &source);
    match (source.into_diagnostics(), read) {
        (diagnostics, Some(read)) if diagnostics.is_empty() => Ok(read),
        (diagnostics, _) if !diagnostics.is_empty() => Err(Diagnostics(diagnostics)),
        _ => Err(crate::diagnostic::Diagnostic::in_file(file, "cannot be understood").into()),
    }
}

/// Far more than any file has that a person or a program wrote.
const MOST_KEYS: usize = 50_000;

fn keys_in(table: &DeTable<'_>) -> usize {
    table.iter().map(|(_, value)| 1 + keys_below(value.get_ref())).sum()
}

fn keys_below(value: &DeValue<'_>) -> usize {
    match value {
        DeValue::Table(table) => keys_in(table),
        DeValue::Array(list) => list.iter().map(|value| keys_below(value.get_ref())).sum(),
        _ => 0,
    }
}

/// A value as it lies in toml's tree.
pub(crate) type Raw<'a> = Spanned<DeValue<'a>>;

/// The line of a top-level key, for errors that show only once other files are known.
pub fn line_of(text: &str, key: &str) -> usize {
    let (document, _) = DeTable::parse_recoverable(text);
    let start = document.get_ref().get_key_value(key).map(|(key, _)| key.span().start);
    let before = start.and_then(|start| text.get(..start)).unwrap_or_default();
    before.matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::{Form, Key, Type};

    fn form() -> Form {
        let tags = Key::optional("tags", Type::texts(), "words");
        let seconds = Key::optional("seconds", Type::Whole(1..=60), "a time");
        Form::new([Key::needed("about", Type::Text, "one sentence"), seconds, tags])
    }

    fn messages(text: &str) -> Vec<String> {
        let read = read(text, "x.toml", |table| {
            let about = table.need("about").and_then(|value| value.text());
            let seconds = table.get("seconds").and_then(|value| value.whole(1..=60));
            table.get("tags").map(|value| value.texts());
            table.close(form);
            Some((about?, seconds))
        });
        match read {
            Ok(_) => Vec::new(),
            Err(diagnostics) => diagnostics.0.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn every_error_is_reported_in_the_order_of_the_file() {
        let text = "abuot = \"x\"\nseconds = 61\n\ntags = [\"a\", 7]\n";
        assert_eq!(
            messages(text),
            [
                "x.toml:1:1: missing key: `about`; write `about = \"what it shows\"`",
                "x.toml:1:1: unknown key: `abuot`; did you mean `about`?",
                "x.toml:2:11: `seconds` must lie between 1 and 60, not: 61",
                "x.toml:4:14: `tags` needs a text, not an integer: `7`; write `\"7\"`",
            ]
        );
    }

    #[test]
    fn syntax_errors_are_all_reported_and_hide_only_what_depends_on_them() {
        let messages = messages("about = x y\nseconds = 61\nseconds = 3\ntags = [\n");
        assert!(messages.iter().any(|line| line.starts_with("x.toml:1:")), "{messages:?}");
        assert!(messages.iter().any(|line| line.starts_with("x.toml:2:11: `seconds` must")), "{messages:?}");
        assert!(messages.iter().any(|line| line.starts_with("x.toml:3:1: duplicate key")), "{messages:?}");
        assert!(!messages.iter().any(|line| line.contains("missing key")), "{messages:?}");
    }

    #[test]
    fn more_keys_than_any_file_has_are_one_error() {
        let text: String = (0..=MOST_KEYS).map(|at| format!("k{at} = 1\n")).collect();
        assert_eq!(messages(&text), ["x.toml: has 50001 keys, limit 50000"]);
    }

    #[test]
    fn a_whole_file_without_diagnostics_is_read() {
        assert_eq!(messages("about = \"x\"\nseconds = 0x3c\ntags = []"), [] as [&str; 0]);
    }

    #[test]
    #[should_panic(expected = "keys without a place in the form of their table: [\"color\"]")]
    fn a_key_without_a_place_in_the_form_is_an_error_of_the_reader() {
        let _ = read("about = \"x\"\n", "x.toml", |table| {
            for key in ["about", "seconds", "tags", "color"] {
                table.get(key);
            }
            table.close(form);
            Some(())
        });
    }

    #[test]
    #[should_panic(expected = "keys of a form that are never read: [\"seconds\"]")]
    fn a_key_of_the_form_that_is_never_read_is_an_error_of_the_reader() {
        let _ = read("about = \"x\"\n", "x.toml", |table| {
            for key in ["about", "tags"] {
                table.get(key);
            }
            table.close(form);
            Some(())
        });
    }

    proptest::proptest! {
        #[test]
        fn no_text_at_all_makes_the_reader_panic(text in "[\\PC\n\"=\\[\\]{}]{0,80}") {
            let _ = messages(&text);
        }
    }
}
