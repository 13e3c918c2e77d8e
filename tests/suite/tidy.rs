//! The house rules that a machine can keep.

use crate::project::root;
use std::collections::BTreeSet;
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

/// The crates of the workspace that one is built with, itself among them, and all other packages that these name.
fn built_with(package: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut ours, mut others, mut open) = (BTreeSet::new(), BTreeSet::new(), vec![package.to_owned()]);
    while let Some(name) = open.pop() {
        let manifest = root().join("harness").join(&name).join("Cargo.toml");
        if !manifest.exists() {
            others.insert(name);
        } else if ours.insert(name) {
            let manifest: toml::Table =
                fs::read_to_string(manifest).expect("a manifest").parse().expect("TOML");
            open.extend(manifest["dependencies"].as_table().expect("a table").keys().cloned());
        }
    }
    (ours, others)
}

/// The same bytes in give the same bytes out: what waits, connects or draws has no place in them.
#[test]
fn crates_that_read_plan_and_judge_cannot_reach_a_cluster() {
    for package in ["recipes", "model", "config", "plan", "verdict"] {
        let (ours, others) = built_with(package);
        for name in ["cluster", "sim", "standin"] {
            assert!(!ours.contains(name), "`{package}` needs `{name}`");
        }
        for name in ["tokio", "openssh", "futures", "indicatif", "clap"] {
            assert!(!others.contains(name), "`{package}` needs `{name}`");
        }
    }
    assert!(built_with("cluster").1.contains("tokio"), "what needs it is seen to need it");
}

/// The names of all packages that a package of `Cargo.lock` needs, whatever for.
fn needed_by(package: &str) -> BTreeSet<String> {
    let lock = fs::read_to_string(root().join("Cargo.lock")).expect("Cargo.lock");
    let lock: toml::Table = lock.parse().expect("TOML");
    let packages = lock["package"].as_array().expect("packages");
    let (mut needed, mut open) = (BTreeSet::new(), vec![package.to_owned()]);
    while let Some(name) = open.pop() {
        let of_name = packages.iter().filter(|one| one["name"].as_str() == Some(name.as_str()));
        assert!(of_name.clone().next().is_some(), "Cargo.lock has no `{name}`");
        for dependency in of_name.filter_map(|one| one.get("dependencies")?.as_array()).flatten() {
            // A version stands behind the name where there are several.
            let dependency = dependency.as_str().and_then(|text| text.split(' ').next()).expect("a name");
            if needed.insert(dependency.to_owned()) {
                open.push(dependency.to_owned());
            }
        }
    }
    needed
}

#[test]
fn readers_of_text_need_no_engine_of_tables() {
    let heavy = |name: &&String| {
        ["polars", "arrow-", "rusqlite", "sqlparser"].iter().any(|engine| name.starts_with(engine))
    };
    for package in ["base", "metric", "logs"] {
        let needed = needed_by(package);
        assert_eq!(needed.iter().find(heavy), None, "`{package}` needs it");
    }
    assert!(needed_by("nsys").contains("polars"), "what needs it is seen to need it");
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
    for line in model::exit_code::TABLE.lines().skip(1) {
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
