//! The house rules that a machine can keep.

use crate::project::root;
use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = vec![root().join(folder)];
    while let Some(next) = open.pop() {
        for entry in
            fs::read_dir(&next).unwrap_or_else(|error| panic!("{}: {error}", next.display())).flatten()
        {
            let path = entry.path();
            if path.is_dir() && entry.file_name() != "target" {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root()).expect("inside").display().to_string();
                found.push((name, fs::read_to_string(&path).expect("read")));
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "{folder} has no sources");
    found
}

#[test]
fn every_file_opens_with_a_sentence_that_says_what_it_is_for() {
    for folder in ["harness", "tests"] {
        for (name, text) in sources(folder) {
            let opens = text.lines().next().is_some_and(|line| line.starts_with("//! "));
            assert!(opens, "{name} does not open with `//! `");
        }
    }
}

#[test]
fn no_file_has_grown_a_second_idea() {
    for folder in ["harness", "tests"] {
        for (name, text) in sources(folder) {
            assert!(text.lines().count() <= 700, "{name} has more than 700 lines");
        }
    }
}

/// What a room may not use: the arrow runs the other way.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("harness/recipes/src", &["std::net", "std::process", "std::time::", "tokio"]),
    (
        "harness/src/judge",
        &[
            "crate::run",
            "crate::collect",
            "crate::reach",
            "crate::report",
            "crate::store",
            "crate::suite",
            "crate::inventory",
            "std::fs",
            "tokio",
        ],
    ),
    (
        "harness/src/report",
        &[
            "crate::run",
            "crate::reach",
            "crate::store",
            "crate::judge",
            "crate::suite",
            "crate::plan",
            "std::fs",
            "std::env",
            "tokio",
        ],
    ),
    (
        "harness/src/plan",
        &["crate::run", "crate::reach", "crate::judge", "crate::report", "std::fs", "tokio"],
    ),
    (
        "harness/src/launch",
        &[
            "crate::suite",
            "crate::plan",
            "crate::judge",
            "crate::report",
            "crate::sim",
            "crate::inventory",
            "toml",
            "std::fs",
        ],
    ),
    ("harness/src/reach", &["crate::launch", "crate::sim", "crate::run", "crate::plan"]),
    (
        "harness/src/sim",
        &[
            "crate::launch",
            "crate::run",
            "crate::judge",
            "crate::report",
            "crate::store",
            "crate::plan",
            "std::fs",
        ],
    ),
    (
        "harness/src/probe",
        &[
            "crate::cli",
            "crate::sim",
            "crate::store",
            "crate::judge",
            "crate::plan",
            "crate::launch",
            "std::fs",
        ],
    ),
    ("harness/src/script", &["crate::launch", "crate::run", "crate::sim", "crate::reach", "std::fs"]),
];

#[test]
fn imports_run_one_way() {
    for (folder, forbidden) in FORBIDDEN {
        for (name, text) in sources(folder) {
            if name.ends_with("tests.rs") {
                continue;
            }
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
                for word in *forbidden {
                    assert!(!line.contains(word), "{name} uses `{word}`: {}", line.trim());
                }
            }
        }
    }
}

#[test]
fn the_map_in_the_readme_names_paths_that_are_there() {
    let readme = fs::read_to_string(root().join("README.md")).expect("README.md");
    let map = readme.split("## The map of the house").nth(1).expect("a map");
    let map = map.split("\n## ").next().expect("an end");
    let mut named = 0;
    for word in map.split('`').skip(1).step_by(2).filter(|word| word.contains('/')) {
        let path = word.split(['*', ' ', '<']).next().unwrap_or_default();
        if path.starts_with("runs/") {
            continue;
        }
        assert!(Path::new(&root()).join(path).exists(), "the map names what is not there: {word}");
        named += 1;
    }
    assert!(named > 15, "the map names only {named} paths");
}

/// Links, and paths in backticks that begin with a folder of the root.
#[test]
fn the_documents_name_paths_that_are_there() {
    const FOLDERS: [&str; 8] =
        [".ci/", ".config/", ".devcontainer/", "baselines/", "harness/", "inventory/", "suites/", "tests/"];
    let mut absent = Vec::new();
    for document in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        let text = fs::read_to_string(root().join(document)).expect(document);
        let linked = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let linked = linked.filter(|path| !path.contains("://") && !path.starts_with('#'));
        let named = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
        // The README names files of its readers, too.
        let named = named
            .filter(|word| document != "README.md" && FOLDERS.iter().any(|folder| word.starts_with(folder)));
        for word in linked.chain(named) {
            let path = word.split(['*', ' ', '<', '#']).next().unwrap_or_default();
            if !root().join(path).exists() {
                absent.push(format!("{document}: {word}"));
            }
        }
    }
    assert!(absent.is_empty(), "{absent:#?}");
}

#[test]
fn the_readme_names_the_exit_codes_as_they_are() {
    let readme = fs::read_to_string(root().join("README.md")).expect("README.md");
    for line in harness::exit_code::TABLE.lines().skip(1) {
        assert!(readme.contains(line.trim()), "not in README.md: {line}");
    }
}

/// libtest knows no test that is left out while it runs: such a test is a trial of `tests/real` or `tests/live`, which can.
#[test]
fn no_test_passes_by_returning_where_its_data_is_absent() {
    let left_out = [["println!(\"", "skipped"].concat(), ["println!(\"", "left out: no"].concat()];
    let mut found = Vec::new();
    for folder in ["harness", "tests"] {
        for (name, text) in sources(folder) {
            let lines =
                text.lines().zip(1..).filter(|(line, _)| left_out.iter().any(|word| line.contains(word)));
            found.extend(lines.map(|(line, at)| format!("{name}:{at}: {}", line.trim())));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}
