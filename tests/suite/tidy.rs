//! The house rules that a machine can keep.

use crate::project::root;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

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

/// Same bytes in, same bytes out.
const READERS: &[&str] = &["std::net", "std::process", "std::time", "tokio"];

/// What the code of a folder may not use, where no manifest can say so.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("harness/metric/src", READERS),
    ("harness/logs/src", READERS),
    ("harness/nsys/src", READERS),
    ("harness/recipes/src", READERS),
    ("harness/job/src/script", &["std::fs", "std::net", "tokio"]),
    ("harness/plan/src", &["std::fs", "std::net", "tokio"]),
    (
        "harness/verdict/src/judge",
        &["std::fs", "std::net", "tokio", "store", "config::suite", "config::inventory"],
    ),
    (
        "harness/cluster/src/launch",
        &["std::fs", "toml", "plan", "verdict", "config::suite", "config::inventory"],
    ),
    ("harness/cluster/src/reach", &["crate::launch", "crate::run", "plan"]),
    ("harness/cluster/src/probe", &["std::fs", "store", "plan", "verdict", "crate::launch"]),
    ("harness/sim/src", &["std::fs", "store", "plan", "verdict", "cluster::launch", "cluster::run"]),
    (
        "harness/src/report",
        &[
            "std::fs",
            "std::env",
            "tokio",
            "store",
            "plan",
            "verdict::judge",
            "config::suite",
            "cluster::run",
            "cluster::reach",
        ],
    ),
];

/// A file without its tests: a module of tests within it ends it.
fn production(text: &str) -> &str {
    text.find("#[cfg(test)]\nmod tests {").map_or(text, |at| &text[..at])
}

/// The lines of code, with each import of a group on a line of its own.
fn lines(code: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut open: Option<String> = None;
    for line in code.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
        let begins = line.starts_with("use ") || (line.starts_with("pub") && line.contains(" use "));
        match open.take() {
            None if !begins => lines.push(line.to_owned()),
            before => {
                let import = before.unwrap_or_default() + line;
                match import.ends_with(';') {
                    true => expand("", import.trim_end_matches(';'), &mut lines),
                    false => open = Some(import),
                }
            }
        }
    }
    lines
}

fn expand(before: &str, tree: &str, lines: &mut Vec<String>) {
    let Some((head, rest)) = tree.split_once('{') else { return lines.push(format!("{before}{tree}")) };
    let (inner, head) = (rest.strip_suffix('}').unwrap_or(rest), format!("{before}{head}"));
    let (mut depth, mut from) = (0, 0);
    for (at, c) in inner.char_indices().chain([(inner.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let item = inner[from..at].trim();
                if !item.is_empty() {
                    expand(&head, item, lines);
                }
                from = at + 1;
            }
            _ => {}
        }
    }
}

/// Whether a line names a path, and not only the end of a longer word.
fn names(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].strip_suffix("crate::").unwrap_or(&line[..at]);
        let after = &line[at + path.len()..];
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let is_path = after.starts_with("::") || path.contains("::") || line.starts_with("use ");
        is_path && !after.starts_with(is_word) && !before.ends_with(|c: char| is_word(c) || c == ':')
    })
}

#[test]
fn what_is_pure_uses_no_clock_file_or_network() {
    for (folder, forbidden) in FORBIDDEN {
        for (name, text) in sources(folder) {
            let is_test = name.ends_with("tests.rs") || name.contains("/tests/") || name.contains("/testing");
            if is_test || name.ends_with("fixture.rs") {
                continue;
            }
            for line in lines(production(&text)) {
                for path in *forbidden {
                    assert!(!names(&line, path), "{name} uses `{path}`: {line}");
                }
            }
        }
    }
}

#[test]
fn imports_are_seen_in_groups_too_and_paths_by_whole_words() {
    let code = "use std::{\n    fs::{self, File},\n    io,\n};\n// use std::net;\nlet x = plan::key(plan);\npub(crate) use a::b;";
    let wanted = [
        "use std::fs::self",
        "use std::fs::File",
        "use std::io",
        "let x = plan::key(plan);",
        "pub(crate) use a::b",
    ];
    assert_eq!(lines(code), wanted);
    assert!(names("use std::fs::self", "std::fs") && names("let x = plan::key(plan);", "plan"));
    assert!(!names("use std::fst", "std::fs") && !names("let x = fixture_plan::key(plan);", "plan"));
    assert_eq!(production("a\n#[cfg(test)]\nmod tests;\nb"), "a\n#[cfg(test)]\nmod tests;\nb");
    assert_eq!(production("a\n#[cfg(test)]\nmod tests {\nb"), "a\n");
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

/// Lines of a text that print something and then return: the rest of a test is left out, and it passes.
fn left_out(text: &str) -> Vec<usize> {
    let begins = text.match_indices(PRINTS).filter(|(at, _)| {
        let print = text.get(*at..).unwrap_or_default();
        let behind = print.split_once(");\n").map(|(_, behind)| behind.trim_start());
        behind.is_some_and(|behind| behind.starts_with("return;"))
    });
    begins.map(|(at, _)| text[..at].matches('\n').count() + 1).collect()
}

/// `eprintln!` ends with it.
const PRINTS: &str = concat!("println", "!(");

/// libtest knows no test that is left out while it runs: such a test is a trial of `tests/real` or `tests/live`, which
/// can.
#[test]
fn no_test_passes_by_returning_where_its_data_is_absent() {
    let phrases = ["\"skipped", "\"left out: no"].map(|phrase| format!("{PRINTS}{phrase}"));
    let mut found = Vec::new();
    for folder in ["harness", "tests"] {
        for (name, text) in sources(folder) {
            let lines = text.lines().zip(1..);
            let says = lines.filter(|(line, _)| phrases.iter().any(|phrase| line.contains(phrase)));
            let mut at: Vec<usize> = says.map(|(_, at)| at).collect();
            // Elsewhere a command prints its answer so.
            at.extend(if folder == "tests" { left_out(&text) } else { Vec::new() });
            found.extend(at.into_iter().map(|at| format!("{name}:{at}")));
        }
    }
    assert!(found.is_empty(), "left out, and passed: {found:#?}");
    let no_data =
        format!("let Some(x) = y() else {{\n    e{PRINTS}\n        \"no y\"\n    );\n    return;\n}};\n");
    let not_root = format!("let a = 1;\nif !is_root() {{\n    {PRINTS}\"only root\");\n    return;\n}}\n");
    let goes_on = format!("if x {{\n    {PRINTS}\"slow\");\n}}\nreturn;\n");
    assert_eq!([&no_data, &not_root, &goes_on].map(|text| left_out(text)), [vec![2], vec![3], vec![]]);
}

/// libtest passes where no test has the name that it is asked for.
#[test]
fn tests_that_the_script_runs_by_name_exist() {
    let script = std::fs::read_to_string(root().join("tests/run")).expect("a script");
    let asked = script.split("-- --ignored").nth(1).expect("the tests of collected data");
    let end = asked.find("\nfi").expect("the end of the step");
    let names: Vec<&str> = asked
        .get(..end)
        .unwrap_or_default()
        .split([' ', '\\', '\n'])
        .filter(|name| !name.is_empty())
        .collect();
    assert!(names.len() >= 2, "{names:?}");
    let sources = sources("harness");
    for name in names {
        let test = format!("fn {name}()");
        assert!(
            sources.iter().any(|(_, text)| text.contains(&test)),
            "tests/run asks for {name}, which no test is"
        );
    }
}

/// What a metric is to the judge, the planner and the reports stands in its declaration.
#[test]
fn only_recipes_name_metrics() {
    let names: BTreeSet<&str> =
        recipes::recipe::LIST.iter().flat_map(|recipe| recipe.metrics).map(|metric| &*metric.name).collect();
    let literals = names.iter().flat_map(|name| {
        let prefix = name.split_once('.').map_or(*name, |(prefix, _)| prefix);
        [format!("\"{name}\""), format!("\"{prefix}.\"")]
    });
    let literals: Vec<String> = literals.collect();
    let crates = ["verdict", "plan", "predict", "config", "model", "store", "cluster"]
        .map(|name| format!("{name}/src"));
    let parts = ["accept", "analyze", "bisect", "isolate", "page", "report", "rma", "session"];
    for folder in crates.into_iter().chain(parts.map(|name| format!("src/{name}"))) {
        let all = sources(&format!("harness/{folder}"));
        for (name, text) in all.iter().filter(|(name, _)| !name.contains("tests")) {
            let code = production(text);
            let named: Vec<&String> = literals.iter().filter(|literal| code.contains(*literal)).collect();
            assert!(named.is_empty(), "{name} names {named:?}: declare it with the metric");
        }
    }
}

/// What a recipe and its findings are to the judge, the planner and the reports stands in their declarations.
#[test]
fn only_recipes_name_recipes_and_their_findings() {
    let list = recipes::recipe::LIST;
    let codes = list.iter().flat_map(|recipe| recipe.findings).copied().flatten().map(|kind| kind.code);
    // A word of everyday English may stand for something else.
    let spelt = list.iter().map(|recipe| recipe.name).chain(codes).filter(|word| word.contains(['_', '-']));
    let mut literals: BTreeSet<String> = spelt.map(|word| format!("\"{word}\"")).collect();
    literals.extend(["capture-", "counter-", "flow-", "folder-", "row-"].map(|word| format!("\"{word}\"")));
    let imports: Vec<String> = list.iter().map(|recipe| format!("recipe::{}", recipe.name)).collect();
    for folder in ["harness/verdict/src/judge", "harness/plan/src", "harness/src/report"] {
        let all = sources(folder);
        for (name, text) in all.iter().filter(|(name, _)| !name.contains("tests")) {
            let code = production(text);
            let named: Vec<&String> = literals.iter().filter(|literal| code.contains(*literal)).collect();
            assert!(named.is_empty(), "{name} names {named:?}: declare what it means with the finding");
            for line in lines(code) {
                let imported: Vec<&String> = imports.iter().filter(|path| names(&line, path)).collect();
                assert!(imported.is_empty(), "{name} uses {imported:?}: {line}");
            }
        }
    }
}

/// The crate that a file is compiled into; tests and the program itself are crates too.
fn crate_of(file: &str) -> &str {
    let (folder, rest) = file.split_once("/src/").unwrap_or(("tests", ""));
    if rest == "main.rs" { "the program" } else { folder }
}

fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'))
}

/// Name of the function or constant that a line of code makes public.
fn public(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let mut parts =
        rest.split(|c: char| !c.is_alphanumeric() && c != '_').skip_while(|word| *word == "async");
    match (parts.next()?, parts.next()?) {
        ("const" | "unsafe", "fn") => parts.next(),
        ("const" | "fn" | "static", name) => Some(name),
        _ => None,
    }
}

/// What only its own crate uses is `pub(crate)`: the compiler then says when nothing uses it any more.
#[test]
fn public_functions_are_used_by_another_crate() {
    let files = [sources("harness"), sources("tests")].concat();
    let mut used: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, text) in &files {
        identifiers(text).for_each(|word| {
            used.entry(word).or_default().insert(crate_of(name));
        });
    }
    let unused: Vec<String> = files
        .iter()
        .flat_map(|(name, text)| text.lines().filter_map(public).map(move |item| (name, item)))
        .filter(|(name, item)| used[item].iter().all(|user| *user == crate_of(name)))
        .map(|(name, item)| format!("{name}: `{item}`"))
        .collect();
    assert!(
        unused.is_empty(),
        "only their own crate uses these, make them pub(crate):\n{}",
        unused.join("\n")
    );
}

/// GB200 and other Grace machines are arm64: a folder of libraries that a script or an inventory names for one processor is
/// named for the other, too.
#[test]
fn folders_for_one_processor_are_named_for_the_other_too() {
    const X86: &str = "x86_64-linux-gnu";
    let mut texts: Vec<(String, String)> = Vec::new();
    let mut open = vec![root().join("harness"), root().join("inventory")];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "sh" || extension == "toml") {
                texts.push((path.display().to_string(), fs::read_to_string(&path).expect("read")));
            }
        }
    }
    let mut found = 0;
    for (name, text) in texts {
        for (at, _) in text.match_indices(X86) {
            let begins = text[..at].rfind([' ', ':', '"', '\n']).map_or(0, |before| before + 1);
            let folder = &text[begins..at];
            assert!(text.contains(&format!("{folder}aarch64-linux-gnu")), "{name}: {folder}{X86} alone");
            found += 1;
        }
        assert!(!text.contains("linux-x64"), "{name} names a folder of nsys for one processor");
    }
    assert!(found > 3, "the scripts and inventories name such folders: {found}");
}
