//! The crate graph in ARCHITECTURE.md is what the manifests of the workspace declare.
//! `UPDATE_DOCS=1 cargo test -p harness --test suite architecture` writes it.

use crate::project::root;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

const BEGIN: &str = "<!-- crates: generated from the manifests by `tests/expected architecture` -->\n";
const END: &str = "<!-- end of crates -->\n";
const MOST_LINES: usize = 100;

struct Member {
    description: String,
    needs: Vec<String>,
}

fn cargo(arguments: &[&str]) -> Vec<u8> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(arguments).args(["--locked", "--offline"]).current_dir(root());
    let output = command.output().expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// The crates of the workspace by name, each with those that it is built with.
fn members() -> BTreeMap<String, Member> {
    let metadata = cargo(&["metadata", "--no-deps", "--format-version", "1"]);
    let metadata: Value = serde_json::from_slice(&metadata).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let names: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let member = |package: &Value| {
        let dependencies = package["dependencies"].as_array().expect("dependencies");
        let built_with = dependencies.iter().filter(|dependency| dependency["kind"].is_null());
        let mut needs: Vec<String> = built_with
            .filter_map(|dependency| dependency["name"].as_str())
            .filter(|name| names.contains(name))
            .map(str::to_owned)
            .collect();
        needs.sort();
        needs.dedup();
        Member { description: package["description"].as_str().unwrap_or_default().to_owned(), needs }
    };
    packages
        .iter()
        .map(|package| (package["name"].as_str().expect("a name").to_owned(), member(package)))
        .collect()
}

/// Two lines for each crate, those first that need no other; a crate stands behind all that it needs.
fn graph(members: &BTreeMap<String, Member>) -> String {
    let mut order: Vec<&str> = Vec::new();
    let mut text = String::new();
    while order.len() < members.len() {
        let ready = |(name, member): &(&String, &Member)| {
            !order.contains(&name.as_str()) && member.needs.iter().all(|need| order.contains(&need.as_str()))
        };
        let (name, member) = members.iter().find(ready).expect("cargo allows no cycle");
        let needs: Vec<String> = member.needs.iter().map(|need| format!("`{need}`")).collect();
        let needs = if needs.is_empty() { "no other crate".to_owned() } else { needs.join(", ") };
        text += &format!("- **{name}**: {}\n  - needs {needs}\n", member.description);
        order.push(name);
    }
    text
}

#[test]
fn the_crate_graph_is_what_the_manifests_declare() {
    let path = root().join("ARCHITECTURE.md");
    let text = fs::read_to_string(&path).expect("ARCHITECTURE.md");
    let (before, rest) = text.split_once(BEGIN).expect("the marker before the graph");
    let (kept, after) = rest.split_once(END).expect("the marker behind the graph");
    let made = graph(&members());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, [before, BEGIN, &made, END, after].concat()).expect("written");
        return;
    }
    assert_eq!(
        kept, made,
        "ARCHITECTURE.md is not what the manifests declare: run `tests/expected architecture`"
    );
}

#[test]
fn each_crate_is_described_in_one_sentence() {
    for (name, member) in members() {
        let sentence = member.description;
        assert!((20..=110).contains(&sentence.chars().count()), "description of {name}: {sentence:?}");
        assert!(!sentence.ends_with('.') && !sentence.contains(". "), "description of {name}: {sentence:?}");
    }
}

#[test]
fn the_architecture_fits_on_two_screens() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let lines = text.lines().count();
    assert!(lines <= MOST_LINES, "ARCHITECTURE.md has {lines} lines, limit {MOST_LINES}");
}

#[test]
fn a_crate_stands_behind_what_it_needs() {
    let member = |needs: &[&str]| Member {
        description: "a crate".to_owned(),
        needs: needs.iter().map(|need| (*need).to_owned()).collect(),
    };
    let members = BTreeMap::from([
        ("app", member(&["logs", "metric"])),
        ("metric", member(&[])),
        ("logs", member(&["metric"])),
    ]);
    let members = members.into_iter().map(|(name, member)| (name.to_owned(), member)).collect();
    assert_eq!(
        graph(&members),
        "- **metric**: a crate\n  - needs no other crate\n- **logs**: a crate\n  - needs `metric`\n\
         - **app**: a crate\n  - needs `logs`, `metric`\n"
    );
}

/// A feature of polars brings its second engine, and with it a client for cloud storage; ours is the only one, and polars
/// uses none.
#[test]
fn one_http_client_is_built_in_and_polars_uses_none() {
    let tree = cargo(&["tree", "--package", "harness", "--edges", "normal", "--prefix", "none"]);
    let tree = String::from_utf8(tree).expect("text");
    let built: BTreeSet<(&str, &str)> = tree
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            Some((words.next()?, words.next()?))
        })
        .collect();
    let versions = |name: &str| built.iter().filter(|(built, _)| *built == name).count();
    assert_eq!(versions("polars-parquet"), 1, "{tree}");
    for unwanted in ["aws-lc-rs", "native-tls", "openssl", "polars-stream"] {
        assert_eq!(
            versions(unwanted),
            0,
            "{unwanted} is built in; see polars-io and object_store in Cargo.toml"
        );
    }
    for single in ["hyper", "object_store", "reqwest", "ring", "rustls"] {
        assert_eq!(versions(single), 1, "{single}: {} versions are built in", versions(single));
    }
    let users = cargo(&[
        "tree",
        "--package",
        "harness",
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--invert",
        "object_store",
    ]);
    let users = String::from_utf8(users).expect("text");
    assert!(!users.contains("polars"), "polars brings object storage: {users}");
}
