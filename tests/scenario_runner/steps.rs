//! A scenario from its files to its last expectation, in a folder of its own.

use crate::pattern::{is_in, is_whole};
use crate::project::{Project, Ran, ran, root};
use crate::scenario::{Scenario, Step, Texts};
use crate::screen;
use crate::small_export::{Report, Row, parquet, sqlite};
use crate::value::Values;
use crate::variables::{Variables, json};
use serde_json::Value;
use std::fs;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;

/// Whole outputs to be written into the scenario: where, and what.
type Rewritten = Vec<(Range<usize>, String)>;

/// One row each, or none.
pub(crate) fn rows(scenario: &Scenario) -> Vec<Option<usize>> {
    match scenario.each.len() {
        0 => vec![None],
        rows => (0..rows).map(Some).collect(),
    }
}

/// What names stand for before the first step.
pub(crate) fn variables(scenario: &Scenario, row: Option<usize>) -> Variables {
    let mut variables = Variables::default();
    variables.set("version", Value::from(env!("CARGO_PKG_VERSION")));
    let row_of = row.map(|row| &scenario.each[row]);
    // Either may use names of the other.
    for table in row_of.into_iter().chain([&scenario.vars]).chain(row_of) {
        variables.add(table);
    }
    variables
}

pub(crate) fn run(scenario: &Scenario, path: &Path, area: &str, row: Option<usize>) -> Result<(), String> {
    let mut variables = variables(scenario, row);
    let project = if scenario.bare { Project::bare() } else { Project::new() };
    for area in scenario.from.iter().map(String::as_str).chain([area]) {
        let folder = root().join(crate::FOLDER).join(area).join("files");
        match folder.is_dir() {
            true => copy(&project, &folder, "", &variables),
            false if scenario.from.iter().any(|from| from == area) => {
                return Err(format!("no files in `{area}`"));
            }
            false => {}
        }
    }
    for (name, text) in &scenario.files {
        project.write(&variables.text(name), &variables.text(text));
    }
    for (name, export) in &scenario.exports {
        fn rows(rows: &[(i64, i64, String)]) -> Vec<Row<'_>> {
            rows.iter().map(|(start, end, name)| (*start, *end, name.as_str())).collect()
        }
        let (kernels, calls, ranges) = (rows(&export.kernels), rows(&export.calls), rows(&export.ranges));
        let path = project.path().join(name);
        match name.ends_with("_pqtdir") {
            true => parquet(&path, &kernels),
            false => sqlite(&path, Report { kernels: &kernels, calls: &calls, ranges: &ranges }),
        }
    }
    let mut rewritten = Rewritten::new();
    for (step, at) in scenario.step.iter().zip(1..) {
        known(&before(step), &variables).map_err(|error| format!("step {at}: {error}"))?;
        prepare(&project, step, &variables).map_err(|error| format!("step {at}: {error}"))?;
        let command = step.run.as_ref().map(|line| variables.text(line));
        let ran = match &command {
            Some(line) => {
                let args = arguments(line).map_err(|error| format!("step {at}: {error}"))?;
                execute(&project, &args, step, scenario.bare, &variables)
            }
            None => Ran { code: None, stdout: String::new(), stderr: String::new() },
        };
        if let Ok(id) = fs::read_link(project.latest()) {
            variables.set(&format!("run{at}"), Value::from(id.display().to_string()));
        }
        known(&after(step), &variables).map_err(|error| format!("step {at}: {error}"))?;
        let may_write =
            row.is_none() && std::env::var_os("HARNESS_EXPECT").is_some_and(|what| what == "write");
        let wrong = check(&project, &ran, step, &variables, may_write.then_some(&mut rewritten));
        if !wrong.is_empty() {
            let line = command.map_or_else(String::new, |line| format!("harness {line}"));
            let about = if scenario.about.is_empty() { "" } else { &format!(" ({})", scenario.about) };
            return Err(format!("step {at}: {line}{about}\n  {}\n{}", wrong.join("\n  "), render(&ran)));
        }
        for (name, place) in &step.keep {
            let value = Values { project: &project, ran: &ran }.at(&variables.text(place));
            variables.set(name, value.map_err(|error| format!("step {at}: keep {name}: {error}"))?);
        }
    }
    rewrite(path, rewritten)
}

/// What came, without the beginning of long outputs.
fn render(ran: &Ran) -> String {
    const MOST: usize = 100;
    let end = |text: &str| {
        let lines: Vec<&str> = text.lines().collect();
        let left_out = lines.len().saturating_sub(MOST);
        let head = if left_out > 0 { format!("({left_out} lines before)\n") } else { String::new() };
        head + &lines[left_out..].join("\n")
    };
    Ran { code: ran.code, stdout: end(&ran.stdout), stderr: end(&ran.stderr) }.all()
}

fn copy(project: &Project, folder: &Path, below: &str, variables: &Variables) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let name = format!("{below}{}", entry.file_name().to_string_lossy());
        match entry.path().is_dir() {
            true => copy(project, &entry.path(), &format!("{name}/"), variables),
            false => project.write(&name, &variables.text(&fs::read_to_string(entry.path()).expect("text"))),
        }
    }
}

/// Files as the step wants them before its command.
fn prepare(project: &Project, step: &Step, variables: &Variables) -> Result<(), String> {
    for (name, text) in &step.files {
        project.write(&variables.text(name), &variables.text(text));
    }
    for (name, changes) in &step.replace {
        let name = variables.text(name);
        let path = project.path().join(&name);
        let mut text = fs::read_to_string(&path).map_err(|error| format!("{name}: {error}"))?;
        for change in changes {
            let [from, to] = change.each_ref().map(|text| variables.text(text));
            if !text.contains(&from) {
                return Err(format!("{name} has no `{from}` to replace"));
            }
            text = text.replace(&from, &to);
        }
        project.write(&name, &text);
    }
    for name in variables.texts(step.remove.list()) {
        let path = project.path().join(&name);
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.map_err(|error| format!("remove {name}: {error}"))?;
    }
    Ok(())
}

/// As a shell would split them.
fn arguments(line: &str) -> Result<Vec<String>, String> {
    shlex::split(line).ok_or_else(|| format!("an open quote in: {line}"))
}

/// Texts of a step that its command needs. Files may have braces around anything, and so may what is replaced in them.
fn before(step: &Step) -> Vec<&str> {
    let texts = step.run.iter().chain(step.env.values()).chain(step.remove.list());
    texts.chain(step.files.keys()).chain(step.replace.keys()).map(String::as_str).collect()
}

/// Texts that are compared with what came.
fn after(step: &Step) -> Vec<&str> {
    fn texts(value: &toml::Value) -> Vec<&str> {
        match value {
            toml::Value::String(text) => vec![text],
            toml::Value::Array(values) => values.iter().flat_map(texts).collect(),
            toml::Value::Table(fields) => {
                fields.iter().flat_map(|(key, value)| [vec![key.as_str()], texts(value)].concat()).collect()
            }
            _ => Vec::new(),
        }
    }
    let files = || [&step.text, &step.no_text].into_iter().flatten();
    let lists = [&step.out, &step.err, &step.no_out, &step.no_err].into_iter().chain(&step.blamed);
    let whole = [&step.out_is, &step.err_is].into_iter().flatten().map(Spanned::get_ref);
    let texts_of_lists = lists
        .chain(step.screen.values())
        .chain(files().map(|(_, texts)| texts))
        .flat_map(Texts::list)
        .chain(whole);
    let places = files().map(|(name, _)| name).chain(step.is.keys()).chain(step.keep.values());
    let values = step.exit.iter().chain(step.is.values()).flat_map(texts);
    texts_of_lists.chain(places).map(String::as_str).chain(values).collect()
}

/// A name in braces that stands for nothing is an error.
fn known(texts: &[&str], variables: &Variables) -> Result<(), String> {
    let is_name =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    for text in texts.iter().map(|text| variables.text(text)) {
        let mut words = text.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
        if let Some((word, _)) = words.find(|(word, _)| is_name(word)) {
            return Err(format!("no variable `{word}` in: {text}"));
        }
    }
    Ok(())
}

fn execute(project: &Project, args: &[String], step: &Step, bare: bool, variables: &Variables) -> Ran {
    let mut command = project.command(&args.iter().map(String::as_str).collect::<Vec<_>>());
    if bare {
        // No program of a cluster is found by chance.
        command.env("PATH", "/usr/bin:/bin");
    }
    command.envs(step.env.iter().map(|(name, value)| (name, variables.text(value))));
    ran(command.output().expect("the harness starts"))
}

/// What differs from what the step expects, a line each.
fn check(
    project: &Project,
    ran: &Ran,
    step: &Step,
    variables: &Variables,
    mut rewritten: Option<&mut Rewritten>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    if step.run.is_some() {
        let expected = step.exit.as_ref().map_or(Value::from(0), |exit| variables.value(&json(exit)));
        let found = ran.code.map_or(Value::from("killed"), Value::from);
        if expected != found {
            wrong.push(format!("exit: expected {expected}, found {found}"));
        }
    }
    let values = Values { project, ran };
    let files = |files: &'_ std::collections::BTreeMap<String, Texts>| -> Vec<(String, Vec<String>)> {
        files.iter().map(|(name, texts)| (variables.text(name), variables.texts(texts.list()))).collect()
    };
    let stream = |name: &str, texts: &Texts| (name.to_owned(), variables.texts(texts.list()));
    let present = [files(&step.text), vec![stream("out", &step.out), stream("err", &step.err)]].concat();
    let absent =
        [files(&step.no_text), vec![stream("out", &step.no_out), stream("err", &step.no_err)]].concat();
    for (all, is_there) in [(present, true), (absent, false)] {
        for (name, patterns) in all {
            if patterns.iter().any(String::is_empty) {
                wrong.push(format!("{name}: an empty text is expected, which stands everywhere"));
            }
            match values.text(&name) {
                Ok(text) => wrong.extend(
                    patterns.iter().filter(|pattern| is_in(pattern, &text) != is_there).map(|pattern| {
                        let shown = if matches!(name.as_str(), "out" | "err") { "" } else { &text };
                        format!("{name}: {}found: {pattern}\n{shown}", if is_there { "not " } else { "" })
                    }),
                ),
                Err(error) => wrong.push(error),
            }
        }
    }
    for (name, expected, found) in [("out", &step.out_is, &ran.stdout), ("err", &step.err_is, &ran.stderr)] {
        let Some(expected) = expected else { continue };
        if !is_whole(&variables.text(expected.get_ref()), found) {
            match &mut rewritten {
                Some(rewritten) => {
                    rewritten.push((Spanned::span(expected), literal(&variables.masked(found))))
                }
                None => wrong.push(differences(name, &variables.text(expected.get_ref()), found)),
            }
        }
    }
    if let Some(expected) = &step.blamed {
        let expected = variables.texts(expected.list());
        let is_line = |line: &&str| line.starts_with("culprit ") || line.starts_with("suspects ");
        let found: Vec<&str> = ran.stdout.lines().filter(is_line).collect();
        let is = |(pattern, line): (&String, &&str)| {
            let head = if pattern.contains(':') { line } else { line.split(':').next().unwrap_or_default() };
            is_whole(pattern, head)
        };
        if expected.len() != found.len() || !expected.iter().zip(&found).all(is) {
            wrong.push(format!("blamed: expected {expected:#?}, found {found:#?}"));
        }
    }
    for (size, texts) in &step.screen {
        match screen::last(&ran.stdout, size) {
            Ok(screen) => wrong.extend(
                variables
                    .texts(texts.list())
                    .iter()
                    .filter(|pattern| !is_in(pattern, &screen))
                    .map(|pattern| format!("screen {size}: not found: {pattern}\n{screen}")),
            ),
            Err(error) => wrong.push(error),
        }
    }
    if let Some(expected) = step.runs.filter(|expected| *expected != project.runs()) {
        wrong.push(format!("runs: expected {expected}, found {}", project.runs()));
    }
    for (place, expected) in &step.is {
        let place = variables.text(place);
        if let Err(error) = values.check(&place, &variables.value(&json(expected))) {
            wrong.push(format!("{place}: {error}"));
        }
    }
    wrong
}

/// The first line that differs, and its number.
pub(crate) fn differences(name: &str, expected: &str, found: &str) -> String {
    let (mut wanted, mut there) = (expected.split('\n'), found.split('\n'));
    for line in 1.. {
        match (wanted.next(), there.next()) {
            (None, None) => break,
            (Some(one), Some(other)) if is_whole(one, other) => {}
            (one, other) => {
                let shown =
                    |line: Option<&str>| line.map_or("the end".to_owned(), |line| format!("{line:?}"));
                return format!("{name}, line {line}: expected {}, found {}", shown(one), shown(other));
            }
        }
    }
    format!("{name}: not as expected:\n{expected}")
}

/// A text as TOML.
fn literal(text: &str) -> String {
    match text.contains("'''") || text.chars().any(|c| c.is_control() && c != '\n') {
        true => toml::Value::from(text).to_string(),
        false => format!("'''\n{text}'''"),
    }
}

fn rewrite(path: &Path, mut rewritten: Rewritten) -> Result<(), String> {
    if rewritten.is_empty() {
        return Ok(());
    }
    let mut text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    rewritten.sort_by_key(|(at, _)| std::cmp::Reverse(at.start));
    for (at, new) in rewritten {
        text.replace_range(at, &new);
    }
    fs::write(path, text).map_err(|error| error.to_string())
}
