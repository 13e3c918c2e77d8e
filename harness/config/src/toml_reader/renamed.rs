//! Spellings that older files may still have: they are read as the new ones, with a warning that names these.

use crate::diagnostic::Diagnostic;
use toml::de::{DeTable, DeValue};

/// The key at the top of a file, its value in older files, and the value that stands for it now.
const VALUES: [(&str, &str, &str); 1] = [("kind", "pretend", "simulated")];

/// The table that holds the key (none at the top of a file), the key in older files, and the key that stands for it now.
const KEYS: [(&str, &str, &str); 3] = [
    ("reach", "lease_s", "heartbeat_timeout_s"),
    ("profile", "bare_twin", "unprofiled_control_run"),
    ("", "picture", "chart"),
];

/// The value that is meant.
pub(crate) fn value<'a>(key: &str, text: &'a str) -> &'a str {
    let renamed = VALUES.iter().find(|(of, old, _)| *of == key && *old == text);
    renamed.map_or(text, |(_, _, new)| new)
}

/// The older spelling of a value of a key.
pub(crate) fn old_value(key: &str) -> Option<&'static str> {
    VALUES.iter().find(|(of, _, _)| *of == key).map(|(_, old, _)| *old)
}

/// The older spelling of a key.
pub(crate) fn old_key(key: &str) -> Option<&'static str> {
    KEYS.iter().find(|(_, _, new)| *new == key).map(|(_, old, _)| *old)
}

/// One warning for each older spelling in a file. A file that is no TOML has errors instead.
pub fn warnings(text: &str, file: &str) -> Vec<Diagnostic> {
    let Ok(document) = DeTable::parse(text) else { return Vec::new() };
    let mut found = Vec::new();
    walk("", document.get_ref(), &mut found);
    found.sort_by_key(|(start, ..)| *start);
    let line = |start: usize| text.get(..start).map_or(1, |before| before.matches('\n').count() + 1);
    found
        .into_iter()
        .map(|(start, old, new)| {
            Diagnostic::at(file, line(start), 1, format!("`{old}` is an older spelling"))
                .suggest(format!("write `{new}`"))
        })
        .collect()
}

/// Where older spellings begin in a table and those below it, with what to write instead.
fn walk(name: &str, table: &DeTable<'_>, found: &mut Vec<(usize, String, String)>) {
    for (key, value) in table.iter() {
        let (start, key) = (key.span().start, key.get_ref().as_ref());
        for (_, old, new) in KEYS.iter().filter(|(of, old, _)| *of == name && *old == key) {
            found.push((start, (*old).to_owned(), (*new).to_owned()));
        }
        match value.get_ref() {
            DeValue::String(text) if name.is_empty() => {
                let is_old = |(of, old, _): &&(&str, &str, &str)| *of == key && *old == text.as_ref();
                found.extend(
                    VALUES
                        .iter()
                        .filter(is_old)
                        .map(|(_, old, new)| (start, format!("{key} = {old:?}"), format!("{key} = {new:?}"))),
                );
            }
            DeValue::Table(below) => walk(key, below, found),
            DeValue::Array(list) => {
                let tables = list.iter().filter_map(|one| one.get_ref().as_table());
                tables.for_each(|below| walk(key, below, found));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;
    use crate::form::{Form, Key, Type};

    fn warned(text: &str) -> Vec<String> {
        warnings(text, "x.toml").iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_older_value_is_read_as_the_new_one_with_a_warning() {
        assert_eq!(value("kind", "pretend"), "simulated");
        assert_eq!(value("kind", "real"), "real");
        assert_eq!(value("via", "pretend"), "pretend");
        assert_eq!(
            warned("instance = \"sim-p5\"\nkind = \"pretend\"\n"),
            ["x.toml:2:1: `kind = \"pretend\"` is an older spelling; write `kind = \"simulated\"`"]
        );
        assert_eq!(warned("kind = \"simulated\"\n"), [] as [&str; 0]);
        assert_eq!(warned("kind = \"pretend\n"), [] as [&str; 0]);
    }

    #[test]
    fn an_older_key_is_warned_about_in_its_own_table_only() {
        assert_eq!(
            warned(
                "[reach]\nlease_s = 30\n[env]\nlease_s = \"1\"\n[[case]]\n[case.profile]\nbare_twin = true\n"
            ),
            [
                "x.toml:2:1: `lease_s` is an older spelling; write `heartbeat_timeout_s`",
                &format!("x.toml:7:1: `{}` is an older spelling; write `unprofiled_control_run`", KEYS[1].1)
            ]
        );
        assert_eq!(
            warned("[[picture]]\nkind = \"bars\"\n"),
            ["x.toml:1:1: `picture` is an older spelling; write `chart`"]
        );
    }

    #[test]
    fn an_older_key_gives_its_value_and_beside_the_new_one_is_an_error() {
        let seconds = |text: &str| {
            read(text, "x.toml", |table| {
                let seconds = table.get("heartbeat_timeout_s").and_then(|value| value.whole(1..=60));
                table.close(|| Form::new([Key::optional("heartbeat_timeout_s", Type::WHOLE, "a time")]));
                seconds
            })
        };
        assert_eq!(seconds("lease_s = 30\n").ok(), Some(30));
        assert_eq!(seconds("heartbeat_timeout_s = 20\n").ok(), Some(20));
        let both = seconds("lease_s = 30\nheartbeat_timeout_s = 20\n").expect_err("which one is meant?");
        assert!(both.to_string().contains(&format!("unknown key: `{}`", KEYS[0].1)), "{both}");
    }
}
