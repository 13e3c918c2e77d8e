//! Every message of the program is held by a test: rendered in a snapshot, a scenario, a page of the documents or an
//! assertion, or, where no test provokes it, by its own text in `tests/messages.txt`. `tests/expected messages` writes that.

use crate::project::root;
use aho_corasick::AhoCorasick;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

const LIST: &str = "tests/messages.txt";
/// Shorter ones are names and units.
const LEAST_WORDS: usize = 3;
const LEAST_FRAGMENT: usize = 8;
/// What they print is for the developers of this project, or is what programs of a cluster print.
const NOT_OF_THE_PROGRAM: [&str; 5] =
    ["harness/sim/", "harness/standin/", "harness/fixture/", "harness/src/sweep/", "harness/src/page/"];

fn files() -> Vec<(String, String)> {
    let (mut found, mut open) =
        (Vec::new(), ["harness", "tests", "docs"].map(|name| root().join(name)).to_vec());
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let path: PathBuf = entry.path();
            let extension = path.extension().and_then(|extension| extension.to_str());
            if path.is_dir() {
                open.push(path);
            } else if matches!(extension, Some("rs" | "md" | "snap" | "toml")) {
                let name = path.strip_prefix(root()).expect("inside").display().to_string();
                found.push((name, fs::read_to_string(&path).expect("text")));
            }
        }
    }
    found.sort();
    found
}

fn is_test(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or_default();
    !name.ends_with(".rs")
        || name.starts_with("tests/")
        || name.contains("/tests/")
        || name.contains("/benches/")
        || file.contains("test")
}

/// The literals of code that is no test, without comments and documentation.
fn literals(code: TokenStream, found: &mut Vec<String>) {
    let mut of_test = false;
    let mut tokens = code.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(mark) if mark.as_char() == '#' => {
                tokens.next_if(|next| matches!(next, TokenTree::Punct(mark) if mark.as_char() == '!'));
                if let Some(TokenTree::Group(attribute)) =
                    tokens.next_if(|next| matches!(next, TokenTree::Group(_)))
                {
                    let text = attribute.stream().to_string().replace(' ', "");
                    of_test |= text == "cfg(test)";
                    if !text.starts_with("doc=") {
                        literals(attribute.stream(), found);
                    }
                }
            }
            TokenTree::Group(group) => {
                let skipped = of_test && group.delimiter() == Delimiter::Brace;
                if skipped {
                    of_test = false;
                } else {
                    literals(group.stream(), found);
                }
            }
            TokenTree::Punct(mark) if mark.as_char() == ';' => of_test = false,
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                if let Some(text) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
                    found.push(text.to_owned());
                }
            }
            _ => {}
        }
    }
}

/// As it stands in a file: lines that go on in the next are joined, white space is one blank.
fn plain(text: &str) -> String {
    let joined: Vec<&str> = text
        .split("\\\n")
        .enumerate()
        .map(|(at, line)| if at > 0 { line.trim_start() } else { line })
        .collect();
    let text = joined.concat().replace("\\n", " ").replace("\\\"", "\"");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What stands between the values of a message.
fn fragments(message: &str) -> Vec<String> {
    let (mut fragments, mut depth) = (vec![String::new()], 0);
    let mut letters = message.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '{' if letters.next_if_eq(&'{').is_none() => depth += 1,
            '}' if depth > 0 => {
                depth -= 1;
                fragments.push(String::new());
            }
            '}' => {
                letters.next_if_eq(&'}');
                fragments.last_mut().expect("one").push('}');
            }
            _ if depth > 0 => {}
            letter => fragments.last_mut().expect("one").push(letter),
        }
    }
    fragments.iter().map(|fragment| plain(fragment)).collect()
}

/// The longest fragment of a message with values; nothing of a text that is none.
fn searched(literal: &str) -> Option<String> {
    let fragments = fragments(literal);
    let words: usize = fragments.iter().map(|fragment| fragment.split_whitespace().count()).sum();
    let longest = fragments.iter().max_by_key(|fragment| fragment.len())?;
    let is_markup = literal.trim_start_matches("\\n").starts_with('<');
    (fragments.len() > 1 && words >= LEAST_WORDS && longest.len() >= LEAST_FRAGMENT && !is_markup)
        .then(|| longest.clone())
}

#[test]
fn every_message_is_held() {
    let (mut messages, mut held) = (Vec::new(), String::new());
    for (name, text) in files() {
        if is_test(&name) {
            held.push_str(&plain(&text));
            held.push('\n');
            continue;
        }
        // Tests beside the code.
        if let Some(at) = text.find("#[cfg(test)]\nmod tests {") {
            held.push_str(&plain(text.get(at..).unwrap_or_default()));
            held.push('\n');
        }
        if NOT_OF_THE_PROGRAM.iter().any(|folder| name.starts_with(folder)) {
            continue;
        }
        let mut found = Vec::new();
        literals(text.parse().expect("Rust"), &mut found);
        messages.extend(
            found.iter().filter_map(|literal| Some((name.clone(), plain(literal), searched(literal)?))),
        );
    }
    assert!(messages.len() > 1000, "{} messages are seen", messages.len());
    let wanted: BTreeSet<&str> = messages.iter().map(|(_, _, fragment)| fragment.as_str()).collect();
    let wanted: Vec<&str> = wanted.into_iter().collect();
    let search = AhoCorasick::new(&wanted).expect("a search");
    let seen: BTreeSet<&str> =
        search.find_overlapping_iter(&held).map(|found| wanted[found.pattern().as_usize()]).collect();
    let mut by_file: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (file, message, _) in messages.iter().filter(|(_, _, fragment)| !seen.contains(fragment.as_str())) {
        by_file.entry(file).or_default().insert(message);
    }
    let mut list =
        "Messages that no test provokes, held by their text. `tests/expected messages` writes this list.\n"
            .to_owned();
    for (file, messages) in &by_file {
        list.push_str(&format!("\n{file}\n"));
        messages.iter().for_each(|message| list.push_str(&format!("  {message}\n")));
    }
    let path = root().join(LIST);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &list).expect("written");
        return;
    }
    let known = fs::read_to_string(&path).expect(LIST);
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<String>>();
    let (known, found) = (lines(&known), lines(&list));
    let (new, gone): (Vec<_>, Vec<_>) =
        (found.difference(&known).collect(), known.difference(&found).collect());
    assert!(
        new.is_empty() && gone.is_empty(),
        "hold each new message by a test, or run `tests/expected messages`\nnew: {new:#?}\ngone: {gone:#?}"
    );
}

#[test]
fn messages_are_taken_from_code_alone() {
    let code = r#"
        /// A comment with {three} words.
        #[error("cannot read `{path}`: {why}")]
        fn f() { format!("no more than {n} \
            of them"); g("{{x}} is plain text"); }
        #[cfg(test)]
        mod tests { fn t() { format!("of a {test} alone"); } }
    "#;
    let mut found = Vec::new();
    literals(code.parse().expect("Rust"), &mut found);
    let messages: Vec<(String, Option<String>)> =
        found.iter().map(|literal| (plain(literal), searched(literal))).collect();
    assert_eq!(
        messages,
        [
            ("cannot read `{path}`: {why}".to_owned(), Some("cannot read `".to_owned())),
            ("no more than {n} of them".to_owned(), Some("no more than".to_owned())),
            ("{{x}} is plain text".to_owned(), None),
        ]
    );
}
