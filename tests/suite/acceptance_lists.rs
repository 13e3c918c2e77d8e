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

/// One fault for each fact: which fact is bad is part of its name here.
const BAD_FACT: &str = "bad-fact@";

/// What `red with` may name: faults that the canary or a scenario plants, and scenarios.
fn rehearsed() -> BTreeSet<String> {
    let scenarios = files(&root().join("tests/scenarios"));
    let canary = root().join("suites/canary.toml");
    let (mut planted, mut bad_facts) = (BTreeSet::new(), BTreeSet::new());
    for file in scenarios.iter().chain([&canary]) {
        let text = read(file);
        let is_fact = |c: char| c.is_ascii_lowercase() || c == '_';
        bad_facts.extend(text.match_indices(BAD_FACT).map(|(at, _)| {
            let fact: String = text[at + BAD_FACT.len()..].chars().take_while(|c| is_fact(*c)).collect();
            format!("{BAD_FACT}{fact}")
        }));
        let words = text.split(|c: char| !c.is_ascii_lowercase() && c != '-');
        planted.extend(words.map(str::to_owned));
    }
    let kinds = model::fault::Fault::FORMS.into_iter().filter_map(|form| form.split(['=', '@']).next());
    let mut names: BTreeSet<String> =
        kinds.filter(|kind| planted.contains(*kind)).map(str::to_owned).collect();
    names.extend(bad_facts);
    let stems = scenarios.iter().filter_map(|file| file.file_stem());
    names.extend(stems.map(|stem| stem.to_string_lossy().into_owned()));
    names
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
            wrong.push(format!("{place}: `red with`: no fault that is planted, and no scenario: {word}"));
        }
    }
    assert!(wrong.is_empty(), "{PAGE}: {wrong:#?}");
}
