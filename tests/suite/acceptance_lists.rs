//! The page that maps the field's acceptance lists onto this harness: its rows are complete, its counts are those of its
//! rows, and what it names is there.

use crate::project::root;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = "docs/src/reference/acceptance-lists.md";
const ROWS: usize = 265;
const STATES: [&str; 4] = ["covered", "part", "no", "n/a"];

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The cells of a line of a table.
fn cells(line: &str) -> Option<Vec<&str>> {
    Some(line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").map(str::trim).collect())
}

/// A row of a list.
struct ListRow<'a> {
    list: &'a str,
    number: &'a str,
    state: &'a str,
    by: &'a str,
    red_with: &'a str,
}

/// All rows below a heading whose first cell is a number. A row of another shape is an error.
fn list_rows(page: &str) -> Vec<ListRow<'_>> {
    let (mut list, mut rows) = ("", Vec::new());
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            list = heading;
        }
        let Some(cells) = cells(line) else { continue };
        if cells[0].starts_with(|c: char| c.is_ascii_digit()) {
            let [number, _, state, by, red_with] = cells[..] else { panic!("not five cells: {line}") };
            rows.push(ListRow { list, number, state, by, red_with });
        }
    }
    rows
}

/// The words in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// As the summary writes it: of the rows that apply, those that are covered.
fn share([covered, part, no, _]: [usize; 4]) -> String {
    match covered + part + no {
        0 => "-".to_owned(),
        all => format!("{} %", (100 * covered + all / 2) / all),
    }
}

/// A row of the summary without its first cell.
fn summary_row(counts: [usize; 4]) -> Vec<String> {
    let rows: usize = counts.iter().sum();
    let numbers = [rows].into_iter().chain(counts).map(|count| count.to_string());
    numbers.chain([share(counts)]).collect()
}

#[test]
fn rows_are_complete_and_the_summary_counts_them() {
    let page = read(&root().join(PAGE));
    let rows = list_rows(&page);
    let numbers: Vec<String> = rows.iter().map(|row| row.number.to_owned()).collect();
    let all: Vec<String> = (1..=ROWS).map(|number| number.to_string()).collect();
    assert_eq!(numbers, all, "{PAGE}: each row once, in order");

    let mut counted: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    for row in &rows {
        let state = STATES.iter().position(|state| *state == row.state);
        let state = state.unwrap_or_else(|| panic!("{PAGE}: row {}: no state: {}", row.number, row.state));
        counted.entry(row.list).or_default()[state] += 1;
    }
    let mut total = [0; 4];
    for counts in counted.values() {
        for (sum, count) in total.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    let made: BTreeMap<&str, Vec<String>> = counted
        .into_iter()
        .chain([("all", total)])
        .map(|(list, counts)| (list, summary_row(counts)))
        .collect();
    let summary = page.split("\n## ").next().unwrap_or_default().lines().filter_map(cells);
    let kept: BTreeMap<&str, Vec<String>> = summary
        .filter(|cells| cells.len() == 7 && cells[0] != "list")
        .map(|cells| {
            let list = cells[0].trim_start_matches('[').split(']').next().unwrap_or_default();
            (list, cells[1..].iter().map(|cell| (*cell).to_owned()).collect())
        })
        .collect();
    assert_eq!(kept, made, "{PAGE}: the summary is not what its rows count");
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() { open.push(path) } else { found.push(path) }
        }
    }
    found
}

/// A case's name for each value of its matrix: `node-{op}` is `node-all_reduce` and others.
fn case_names(case: &toml::Table) -> Vec<String> {
    let mut names: Vec<String> =
        case.get("name").and_then(toml::Value::as_str).map(str::to_owned).into_iter().collect();
    for (key, values) in case.get("matrix").and_then(toml::Value::as_table).into_iter().flatten() {
        let field = format!("{{{key}}}");
        let values: Vec<&str> =
            values.as_array().into_iter().flatten().filter_map(toml::Value::as_str).collect();
        names = names
            .iter()
            .flat_map(|name| values.iter().map(|value| name.replace(&field, value)).collect::<Vec<_>>())
            .collect();
    }
    names
}

/// Cases of the suites that ship.
fn cases() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in files(&root().join("suites")) {
        if file.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let suite: toml::Table =
            toml::from_str(&read(&file)).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let cases = suite.get("case").and_then(toml::Value::as_array).into_iter().flatten();
        names.extend(cases.filter_map(toml::Value::as_table).flat_map(case_names));
    }
    names
}

/// What `by` may name: metrics, facts of a probe, culprit codes, cases and verbs.
fn known() -> BTreeSet<String> {
    let metrics = recipes::recipe::LIST.iter().flat_map(|recipe| recipe.metrics);
    let mut known: BTreeSet<String> = metrics.map(|metric| metric.name.to_string()).collect();
    known.extend(config::facts::FACTS.iter().map(|fact| fact.name.to_owned()));
    known.extend(verdict::isolate::code::CODES.iter().map(|code| code.name.to_owned()));
    known.extend(cases());
    // Every verb is on this page: `documents.rs`.
    let verbs = read(&root().join("docs/src/reference/command-line.md"));
    let verb = |line: &str| Some(line.strip_prefix("$ harness ")?.strip_suffix(" --help")?.to_owned());
    known.extend(verbs.lines().filter_map(verb));
    known
}

fn tables<'a>(table: &'a toml::Table, key: &str) -> Vec<&'a toml::Table> {
    let all = table.get(key).and_then(toml::Value::as_array).into_iter().flatten();
    all.filter_map(toml::Value::as_table).collect()
}

fn text(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The kind of `NODE:FAULT`. There is one fault for each fact: which fact is bad is part of its name here.
fn kind(fault: &str) -> Option<String> {
    let (_, fault) = fault.split_once(':')?;
    let kind = fault.split(['=', '@']).next()?;
    let is_kind = model::fault::Fault::FORMS.iter().any(|form| form.split(['=', '@']).next() == Some(kind));
    let name = if kind == "bad-fact" { fault } else { kind };
    is_kind.then(|| name.to_owned())
}

/// What a scenario with such a text rehearses: the faults that its commands set where they exit red, and itself.
fn rehearsed_by(name: &str, scenario: &toml::Table) -> BTreeSet<String> {
    let (row, mut names) = (toml::Table::new(), BTreeSet::new());
    let rows = tables(scenario, "each");
    for row in if rows.is_empty() { vec![&row] } else { rows } {
        for step in tables(scenario, "step") {
            let field = |key: &str| {
                let written = step.get(key).map(text).unwrap_or_default();
                row.iter().fold(written, |filled, (name, value)| {
                    filled.replace(&format!("{{{name}}}"), &text(value))
                })
            };
            if !["1", "3"].contains(&field("exit").as_str()) {
                continue;
            }
            let command = field("run");
            let words: Vec<&str> = command.split_whitespace().collect();
            let set = words.windows(2).filter(|pair| pair[0] == "--sim-fault");
            names.extend(set.filter_map(|pair| kind(pair[1])).chain([name.to_owned()]));
        }
    }
    names
}

/// What `red with` may name: faults of commands and cases that end red with them, and scenarios with such a command.
fn rehearsed() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in files(&root().join("tests/scenarios")) {
        // Inventories of scenarios have fields that are no TOML yet, and no steps.
        let Ok(scenario) = toml::from_str(&read(&file)) else { continue };
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        names.extend(rehearsed_by(&stem, &scenario));
    }
    let canary: toml::Table = toml::from_str(&read(&root().join("suites/canary.toml"))).expect("a suite");
    let cases = tables(&canary, "case").into_iter().filter(|case| case.contains_key("must_end"));
    let set = cases.filter_map(|case| case.get("sim_faults")?.as_array()).flatten();
    names.extend(set.filter_map(toml::Value::as_str).filter_map(kind));
    names
}

#[test]
fn a_fault_counts_only_where_a_command_sets_it_and_exits_red() {
    let scenario = |text: &str| rehearsed_by("itself", &toml::from_str(text).expect("TOML"));
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<String>>();
    let text = "about = \"gpu-slow, not disk-slow\"\n# nic-slow\neach = [{ fault = \"hang\", exit = 3 }, { fault = \
                \"corrupt@1\", exit = 0 }]\n[[step]]\nrun = \"--sim-fault n:{fault} memory-slow\"\nexit = \"{exit}\"\n\
                out = [\"node-fails\"]\n[[step]]\nrun = \"--sim-fault n:nan-loss\"\nexit = 2\n";
    assert_eq!(scenario(text), set(&["hang", "itself"]));
    let two = "[[step]]\nrun = \"--sim-fault a:bad-fact@swap --sim-fault b:disk-slow=0.4 -q\"\nexit = 1\n";
    assert_eq!(scenario(two), set(&["bad-fact@swap", "disk-slow", "itself"]));
    assert_eq!(scenario("[[step]]\nrun = \"--sim-fault a:no-such\"\nexit = 0\n"), set(&[]));
}

#[test]
fn what_the_rows_name_is_there() {
    let page = read(&root().join(PAGE));
    let (known, rehearsed) = (known(), rehearsed());
    let mut wrong = Vec::new();
    for row in list_rows(&page) {
        let place = format!("row {} of {}", row.number, row.list);
        if row.state == "covered" {
            for (column, cell) in [("by", row.by), ("red with", row.red_with)] {
                if quoted(cell).next().is_none() {
                    wrong.push(format!("{place}: covered, and nothing in `{column}`"));
                }
            }
        }
        for word in quoted(row.by).filter(|word| !known.contains(*word)) {
            wrong.push(format!("{place}: `by`: no metric, fact, code, case or verb: {word}"));
        }
        for word in quoted(row.red_with).filter(|word| !rehearsed.contains(*word)) {
            wrong.push(format!(
                "{place}: `red with`: nothing ends red with this fault, and no such scenario: {word}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{PAGE}: {wrong:#?}");
}
