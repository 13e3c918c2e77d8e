//! The words that `tests/vocabulary.toml` lists are replaced by the field's own: how often each stands in the sources and
//! documents may only go down. `tests/expected vocabulary` writes the new numbers.

use crate::project::root;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const LIST: &str = "tests/vocabulary.toml";

/// The sources, and what people read.
fn texts() -> Vec<String> {
    let (mut found, mut open) = (
        Vec::new(),
        ["harness", "tests", "docs", "suites", "inventory"].map(|name| root().join(name)).to_vec(),
    );
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if is_ours(&path) {
                found.push(path);
            }
        }
    }
    found.extend(
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root().join(name)),
    );
    found.iter().map(|path: &PathBuf| fs::read_to_string(path).expect("text")).collect()
}

/// What is written by hand or shown to people; schemas repeat what their types say.
const EXTENSIONS: [&str; 9] = ["rs", "md", "snap", "toml", "sh", "py", "js", "css", "txt"];

fn is_ours(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| EXTENSIONS.contains(&extension)) && !path.ends_with(LIST)
}

/// The words of a text in lower case: `NotGrey`, `not_grey` and `not grey` are the same two.
fn lowercase_words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut inside, mut lower) = (false, false);
    for c in text.chars() {
        let begins = !inside || (lower && c.is_ascii_uppercase());
        match c.is_ascii_alphabetic() {
            false => inside = false,
            true => {
                if begins {
                    words.push(String::new());
                }
                if let Some(word) = words.last_mut() {
                    word.push(c.to_ascii_lowercase());
                }
                inside = true;
            }
        }
        lower = c.is_ascii_lowercase();
    }
    words
}

/// How often each of these stands there, one word or several in a row.
fn counts<'a>(names: impl Iterator<Item = &'a str>, texts: &[String]) -> BTreeMap<String, usize> {
    let texts: Vec<Vec<String>> = texts.iter().map(|text| lowercase_words(text)).collect();
    let count = |name: &str| {
        let wanted = lowercase_words(name);
        texts.iter().map(|text| text.windows(wanted.len()).filter(|found| *found == wanted).count()).sum()
    };
    names.map(|name| (name.to_owned(), count(name))).collect()
}

#[derive(Deserialize)]
struct Replaced {
    count: usize,
    instead: String,
}

#[test]
fn replaced_words_become_fewer() {
    let path = root().join(LIST);
    let text = fs::read_to_string(&path).expect(LIST);
    let known: BTreeMap<String, Replaced> = toml::from_str(&text).expect("words, numbers, and what to write");
    let found = counts(known.keys().map(String::as_str), &texts());
    let is = |word: &str| format!("`{word}` stands {} times", found[word]);
    let more: Vec<String> = known
        .iter()
        .filter(|(word, entry)| found[*word] > entry.count)
        .map(|(word, entry)| format!("{}, limit {}: write `{}`", is(word), entry.count, entry.instead))
        .collect();
    assert!(more.is_empty(), "{more:#?}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let head = text.lines().take_while(|line| line.starts_with('#')).map(str::to_owned);
        let lines = known.iter().map(|(word, entry)| {
            format!("{word:?} = {{ count = {}, instead = {:?} }}", found[word], entry.instead)
        });
        let lines: Vec<String> = head.chain(lines).collect();
        fs::write(&path, lines.join("\n") + "\n").expect("written");
        return;
    }
    let fewer: Vec<String> =
        known.iter().filter(|(word, entry)| found[*word] < entry.count).map(|(word, _)| is(word)).collect();
    assert!(fewer.is_empty(), "fewer than before, run `tests/expected vocabulary`: {fewer:#?}");
}

#[test]
fn listed_words_are_found_in_names_and_in_prose() {
    let texts = ["struct NotGrey; fn grey_of() // Grey.\n seen\nthrough GreyOnce agrey".to_owned()];
    let found = counts(["grey", "seen through", "absent"].into_iter(), &texts);
    assert_eq!(found["grey"], 4);
    assert_eq!(found["seen through"], 1);
    assert_eq!(found["absent"], 0);
}
