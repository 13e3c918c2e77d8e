//! No modules of a crate import each other in a cycle: neither its top-level modules nor those within a module listed
//! here.

use crate::project::root;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

/// Modules of the program that are checked within, too.
const CHECKED_WITHIN: [&str; 4] = ["accept", "cli", "isolate", "session"];

/// Each module with those that it imports, and for each of these a file that does so.
type Imports = BTreeMap<String, BTreeMap<String, String>>;

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = open.pop() {
        let entries = fs::read_dir(&next).unwrap_or_else(|error| panic!("{}: {error}", next.display()));
        for path in entries.flatten().map(|entry| entry.path()) {
            match path.is_dir() {
                true => open.push(path),
                false if path.extension().is_some_and(|extension| extension == "rs") => files.push(path),
                false => {}
            }
        }
    }
    files.sort();
    files
}

/// `cli/inventory/mod.rs` is `cli::inventory`.
fn module_of(file: &Path) -> Vec<String> {
    let file = file.with_extension("");
    let mut parts: Vec<String> = file.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    parts.pop_if(|last| last == "mod");
    parts
}

fn is_test(module: &[String]) -> bool {
    module.iter().any(|part| part == "tests" || part.ends_with("_tests"))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Code without comments and literals.
fn without_literals(text: &str) -> Vec<char> {
    let text: Vec<char> = text.chars().collect();
    let at = |at: usize| text.get(at).copied().unwrap_or('\n');
    let (mut code, mut next) = (Vec::new(), 0);
    while next < text.len() {
        let begin = next;
        match (at(next), at(next + 1)) {
            ('/', '/') => next = (next..).find(|&end| at(end) == '\n').unwrap_or(text.len()),
            ('r', '"' | '#') if begin == 0 || !is_word(at(begin - 1)) => {
                let hashes = text[next + 1..].iter().take_while(|c| **c == '#').count();
                if at(next + 1 + hashes) != '"' {
                    code.push('r');
                    next += 1;
                    continue;
                }
                let ends = |end: &usize| {
                    at(*end) == '"' && (1..=hashes).all(|more| at(end + more) == '#') || *end >= text.len()
                };
                next = (next + hashes + 2..).find(ends).unwrap_or(text.len()) + 1 + hashes;
            }
            ('"', _) => {
                next += 1;
                while next < text.len() && at(next) != '"' {
                    next += if at(next) == '\\' { 2 } else { 1 };
                }
                next += 1;
            }
            ('\'', '\\') => {
                next = (next + 3..).find(|&end| at(end) == '\'' || end >= text.len()).unwrap_or(0) + 1
            }
            ('\'', _) if at(next + 2) == '\'' => next += 3,
            (c, _) => {
                code.push(c);
                next += 1;
            }
        }
    }
    code
}

/// Without what is compiled for tests only.
fn without_tests(mut code: String) -> String {
    while let Some(from) = code.find("#[cfg(test").or_else(|| code.find("#[cfg(all(test")) {
        let mut depth = 0;
        let end = code[from..].char_indices().find_map(|(at, c)| {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            (depth == 0 && (c == '}' || c == ';')).then_some(from + at + 1)
        });
        code.replace_range(from..end.unwrap_or(code.len()), "");
    }
    code
}

/// The paths of a tree of imports such as `a::{b, c::d}`, or of a single one in an expression.
fn paths(tree: &str, before: &[String], found: &mut Vec<Vec<String>>) -> usize {
    let spaces = tree.len() - tree.trim_start().len();
    let mut at = spaces;
    if tree[at..].starts_with('{') {
        at += 1;
        while at < tree.len() {
            at += tree[at..].len()
                - tree[at..].trim_start_matches(|c: char| c.is_whitespace() || c == ',').len();
            if tree[at..].starts_with('}') || at >= tree.len() {
                return at + 1;
            }
            at += paths(&tree[at..], before, found).max(1);
        }
        return at;
    }
    let word: String = tree[at..].chars().take_while(|c| is_word(*c)).collect();
    at += word.len();
    let path = [before, &[word]].concat();
    if let Some(rest) = tree[at..].strip_prefix("::") {
        return at + 2 + paths(rest, &path, found);
    }
    found.push(path);
    let alias = tree[at..]
        .strip_prefix(" as ")
        .map_or(0, |rest| 4 + rest.chars().take_while(|c| is_word(*c)).count());
    at + alias
}

/// The full paths that a module names by `crate::` and `super::`.
fn named_paths(code: &str, module: &[String]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let begins = |at: usize| !code[..at].ends_with(|c: char| is_word(c) || c == ':');
    for (at, prefix) in code.match_indices("crate::").filter(|(at, _)| begins(*at)) {
        paths(&code[at + prefix.len()..], &[], &mut found);
    }
    for (at, _) in code.match_indices("super::").filter(|(at, _)| begins(*at)) {
        let mut rest = &code[at..];
        let mut base = module;
        while let (Some(more), Some((_, parent))) = (rest.strip_prefix("super::"), base.split_last()) {
            (rest, base) = (more, parent);
        }
        paths(rest, base, &mut found);
    }
    found
}

/// The name of a module as far down as it is checked.
fn node(path: &[String], within: &[&str]) -> Option<String> {
    match path {
        [first, second, ..] if within.contains(&first.as_str()) => Some(format!("{first}::{second}")),
        [first, ..] => Some(first.clone()),
        [] => None,
    }
}

/// `files` are names below `src`, and what stands in them.
fn imports(files: &[(PathBuf, String)], within: &[&str]) -> Imports {
    let mut imports = Imports::new();
    let modules = files.iter().map(|(file, text)| (module_of(file), file, text));
    let modules: Vec<_> = modules.filter(|(module, ..)| !is_test(module)).collect();
    for (module, ..) in &modules {
        imports.entry(node(module, within).expect("a module")).or_default();
    }
    let known: BTreeSet<String> = imports.keys().cloned().collect();
    for (module, file, text) in &modules {
        let from = node(module, within).expect("a module");
        let code = without_tests(without_literals(text).into_iter().collect());
        let named = named_paths(&code, module);
        for to in named.iter().filter_map(|path| node(path, within)) {
            if to != from && known.contains(&to) {
                imports.entry(from.clone()).or_default().insert(to, file.display().to_string());
            }
        }
    }
    imports
}

/// The shortest path of imports from a module back to itself.
fn cycle_of<'a>(imports: &'a Imports, start: &'a str) -> Option<Vec<&'a str>> {
    let mut reached = BTreeSet::new();
    let mut open = VecDeque::from([vec![start]]);
    while let Some(path) = open.pop_front() {
        for to in imports.get(*path.last()?)?.keys() {
            let longer = [path.as_slice(), &[to]].concat();
            if to == start {
                return Some(longer);
            }
            if reached.insert(to) {
                open.push_back(longer);
            }
        }
    }
    None
}

/// The shortest cycle, with a file for each of its imports; nothing where there is none.
fn cycle(imports: &Imports) -> Option<String> {
    let shown = |from: &str, to: &str| format!("{from} -> {to} ({})", imports[from][to]);
    let path = imports.keys().filter_map(|start| cycle_of(imports, start)).min_by_key(Vec::len)?;
    Some(path.windows(2).map(|pair| shown(pair[0], pair[1])).collect::<Vec<_>>().join(", "))
}

#[test]
fn no_modules_of_a_crate_import_each_other_in_a_cycle() {
    let folder = root().join("harness");
    let entries = fs::read_dir(&folder).expect("the crates").flatten();
    let members = entries.map(|entry| entry.path()).filter(|path| path.join("Cargo.toml").is_file());
    let mut checked = 0;
    for member in members.chain([folder.clone()]) {
        let source = member.join("src");
        let read = |file: PathBuf| {
            let text = fs::read_to_string(&file).expect("read");
            (file.strip_prefix(&source).expect("inside").to_owned(), text)
        };
        let files: Vec<(PathBuf, String)> = rust_files(&source).into_iter().map(read).collect();
        let within: &[&str] = if member == folder { &CHECKED_WITHIN } else { &[] };
        for module in within {
            assert!(source.join(module).join("mod.rs").is_file(), "no module `{module}` to check within");
        }
        let inner = imports(&files, within);
        let outer = imports(&files, &[]);
        // Modules may be in a cycle though no two of the files within them are.
        let found = cycle(&outer).or_else(|| cycle(&inner).filter(|_| !within.is_empty()));
        assert_eq!(found, None, "modules in a cycle in {}", source.display());
        checked += 1;
    }
    assert!(checked > 10, "{checked} crates");
}

#[test]
fn a_cycle_is_found_at_the_top_and_within_a_module() {
    let files = |texts: &[(&str, &str)]| -> Vec<(PathBuf, String)> {
        texts.iter().map(|(file, text)| (PathBuf::from(file), (*text).to_owned())).collect()
    };
    let top = files(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use std::fmt;\nuse crate::{c, b::{self as other, Deep}};"),
        (
            "b/mod.rs",
            "// crate::a\nconst TEXT: &str = \"crate::a\";\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n",
        ),
        ("b/deep.rs", "pub(crate) fn f() { let c = '\"'; super::super::c::f::<u8>() }"),
        ("b/tests.rs", "use crate::a;"),
        ("c.rs", ""),
    ]);
    let found = imports(&top, &[]);
    assert_eq!(found["a"].keys().collect::<Vec<_>>(), ["b", "c"]);
    assert_eq!(found["b"].keys().collect::<Vec<_>>(), ["c"]);
    assert_eq!(cycle(&found), None);

    let mut closed = top.clone();
    closed[5].1 = "fn f() { crate::a::g(r#\"\"\"#) }".to_owned();
    let found = imports(&closed, &[]);
    assert_eq!(cycle(&found).as_deref(), Some("a -> c (a.rs), c -> a (c.rs)"));

    let within = files(&[
        ("cli/mod.rs", "mod run; mod stop;"),
        ("cli/run.rs", "use super::{home, stop::stop};"),
        ("cli/stop.rs", "use crate::cli::run;"),
    ]);
    assert_eq!(cycle(&imports(&within, &[])), None);
    let found = cycle(&imports(&within, &["cli"]));
    assert_eq!(
        found.as_deref(),
        Some("cli::run -> cli::stop (cli/run.rs), cli::stop -> cli::run (cli/stop.rs)")
    );

    let leaf = files(&[
        ("cli/run.rs", "use crate::session::options;"),
        ("cli/leaf.rs", ""),
        ("session/options.rs", ""),
        ("session/run.rs", "use crate::cli::leaf;"),
    ]);
    assert_eq!(cycle(&imports(&leaf, &["cli", "session"])), None);
    let found = cycle(&imports(&leaf, &[]));
    assert_eq!(found.as_deref(), Some("cli -> session (cli/run.rs), session -> cli (session/run.rs)"));
}
