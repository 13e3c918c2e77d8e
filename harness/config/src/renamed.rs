//! Spellings that older files may still have: they are read as the new ones, with a warning that names these.

use crate::diagnostic::Diagnostic;
use crate::toml_reader::line_of;
use toml::Table;

/// The key, its value in older files, and the value that stands for it now.
const VALUES: [(&str, &str, &str); 1] = [("kind", "pretend", "simulated")];

/// The value that is meant.
pub(crate) fn value<'a>(key: &str, text: &'a str) -> &'a str {
    let renamed = VALUES.iter().find(|(of, old, _)| *of == key && *old == text);
    renamed.map_or(text, |(_, _, new)| new)
}

/// One warning for each older spelling at the top of a file. A file that is no TOML has errors instead.
pub fn warnings(text: &str, file: &str) -> Vec<Diagnostic> {
    let table: Table = text.parse().unwrap_or_default();
    let is_old = |key: &str, old: &str| table.get(key).and_then(|value| value.as_str()) == Some(old);
    VALUES
        .iter()
        .filter(|(key, old, _)| is_old(key, old))
        .map(|(key, old, new)| {
            let message = format!("`{key} = {old:?}` is an older spelling");
            Diagnostic::at(file, line_of(text, key), 1, message).suggest(format!("write `{key} = {new:?}`"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_spelling_is_read_as_the_new_one_with_a_warning() {
        assert_eq!(value("kind", "pretend"), "simulated");
        assert_eq!(value("kind", "real"), "real");
        assert_eq!(value("via", "pretend"), "pretend");
        let shown = warnings("instance = \"sim-p5\"\nkind = \"pretend\"\n", "inventory/x.toml");
        let shown: Vec<String> = shown.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            ["inventory/x.toml:2:1: `kind = \"pretend\"` is an older spelling; write `kind = \"simulated\"`"]
        );
        assert_eq!(warnings("kind = \"simulated\"\n", "x"), []);
        assert_eq!(warnings("kind = \"pretend\n", "x"), []);
    }
}
