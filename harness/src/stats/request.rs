//! Reads the reports, formats and outputs of the command line and pairs them up. All errors are reported at once, with
//! the nearest known name.

use base::suggest::nearest;
use recipes::report::{self, Arguments, ReportSpec};
use recipes::result_table::{FORMS, Form, FormSpec, find_form};
use std::path::PathBuf;

/// One table that is requested of every input.
#[derive(Clone)]
pub struct TableRequest {
    /// Which table it is.
    pub report: &'static ReportSpec,
    /// What stands behind the report's name, as it was written.
    pub words: Vec<String>,
    /// The same words, parsed.
    pub arguments: Arguments,
    /// `None` is left to where it goes.
    pub form: Option<Form>,
    /// Where the table is written.
    pub output: Output,
}

/// Where tables are written, from `--output`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// On stdout.
    Console,
    /// Beside the input, under its name.
    Derived,
    /// In this folder, under the input's name.
    Folder(PathBuf),
    /// Under a name that begins with this path.
    Base(PathBuf),
}

/// The first report takes the first format and the first output, and so on; a list that is too short repeats its last
/// element. Each element may be a list itself, between commas.
pub(crate) fn parse_requests(
    reports: &[String],
    formats: &[String],
    outputs: &[String],
) -> Result<Vec<TableRequest>, Vec<String>> {
    let mut diagnostics = Vec::new();
    let mut read_reports = Vec::new();
    for text in elements(reports) {
        match read_report(&text) {
            Ok(report) => read_reports.push(report),
            Err(why) => diagnostics.push(why),
        }
    }
    if reports.is_empty() {
        let known = report::DEFAULT.iter().filter_map(|name| report::find(name));
        read_reports = known.map(|spec| (spec, Vec::new(), Arguments::default())).collect();
    }
    let mut read_forms = Vec::new();
    for text in elements(formats) {
        match read_form(&text) {
            Ok(form) => read_forms.push(form),
            Err(why) => diagnostics.push(why),
        }
    }
    let mut read_outputs = Vec::new();
    for text in elements(outputs) {
        match read_output(&text) {
            Ok(output) => read_outputs.push(output),
            Err(why) => diagnostics.push(why),
        }
    }
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let most = read_reports.len().max(read_forms.len()).max(read_outputs.len());
    let requests = (0..most).filter_map(|at| {
        let (report, words, arguments) = read_reports.get(at).or(read_reports.last())?.clone();
        let form = read_forms.get(at).or(read_forms.last()).cloned().flatten();
        let output = read_outputs.get(at).or(read_outputs.last()).cloned().unwrap_or(Output::Console);
        Some(TableRequest { report, words, arguments, form, output })
    });
    Ok(requests.collect())
}

/// The report of that name, or which name is like it.
pub(super) fn find_report(name: &str) -> Result<&'static ReportSpec, String> {
    report::find(name).ok_or_else(|| {
        let near = nearest(name, report::LIST.iter().map(|report| report.name));
        format!("no report `{}`; {}`--help-reports` lists them", name.escape_debug(), did_you_mean(near))
    })
}

/// The form of that name; an error lists them all, because they are few.
pub(super) fn find_format(name: &str) -> Result<&'static FormSpec, String> {
    find_form(name).ok_or_else(|| {
        let names: Vec<&str> = FORMS.iter().map(|form| form.name).collect();
        let near = did_you_mean(nearest(name, names.iter().copied()));
        format!("no format `{}`; {near}known formats: {}", name.escape_debug(), names.join(", "))
    })
}

/// To be followed by another advice.
fn did_you_mean(near: Option<&str>) -> String {
    near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default()
}

type ReadReport = (&'static ReportSpec, Vec<String>, Arguments);

fn read_report(text: &str) -> Result<ReadReport, String> {
    let mut words = parted(text, ':').into_iter().map(|word| unescaped(&word));
    let spec = find_report(&words.next().unwrap_or_default()).map_err(|why| format!("--report: {why}"))?;
    let words: Vec<String> = words.collect();
    let given: Vec<&str> = words.iter().map(String::as_str).collect();
    let arguments = Arguments::read(spec.name, spec.arguments, &given);
    match arguments {
        Ok(arguments) => Ok((spec, words, arguments)),
        Err(error) => {
            let names = spec.arguments.iter().map(|argument| &*argument.name);
            Err(format!("--report: {error}{}", suggestion(&given, names)))
        }
    }
}

fn read_form(text: &str) -> Result<Option<Form>, String> {
    if text.is_empty() || text == "." {
        return Ok(None);
    }
    let mut words = parted(text, ':').into_iter().map(|word| unescaped(&word));
    let spec = find_format(&words.next().unwrap_or_default()).map_err(|why| format!("--format: {why}"))?;
    let words: Vec<String> = words.collect();
    let given: Vec<&str> = words.iter().map(String::as_str).collect();
    match spec.read(&given) {
        Ok(form) => Ok(Some(form)),
        Err(error) => {
            let names = spec.options.iter().map(|option| option.name.trim_end_matches('='));
            Err(format!("--format: {error}{}", suggestion(&given, names)))
        }
    }
}

/// What the first word that is not known may have been meant to be.
fn suggestion<'a>(words: &[&str], names: impl Iterator<Item = &'a str> + Clone) -> String {
    let name = |word: &&str| word.split('=').next().unwrap_or_default().to_owned();
    let unknown_word = words.iter().map(name).find(|word| names.clone().all(|name| name != word));
    let near = unknown_word.and_then(|word| nearest(&word, names));
    near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

fn read_output(text: &str) -> Result<Output, String> {
    let text = unescaped(text);
    match text.as_str() {
        "" | "-" => Ok(Output::Console),
        "." => Ok(Output::Derived),
        command if command.starts_with('@') => Err(format!(
            "--output: `{}` is not run as a command; pipe stdout into it, or write `./{}` for a file of that name",
            command.escape_debug(),
            command.escape_debug()
        )),
        // Probably an option in place of a file.
        switch if switch.starts_with('-') => {
            let name = switch.escape_debug();
            Err(format!("--output: `{name}` looks like an option; write `./{name}` for a file of that name"))
        }
        folder if folder.ends_with('/') => Ok(Output::Folder(PathBuf::from(folder))),
        base => Ok(Output::Base(PathBuf::from(base))),
    }
}

fn elements(lists: &[String]) -> Vec<String> {
    lists.iter().flat_map(|list| parted(list, ',')).collect()
}

/// Parts at the letter, unless a backslash takes its meaning. Backslashes stay.
fn parted(text: &str, at: char) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut is_escaped = false;
    for c in text.chars() {
        if c == at && !is_escaped {
            parts.push(String::new());
            continue;
        }
        is_escaped = c == '\\' && !is_escaped;
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts
}

/// A backslash means itself but before what it takes the meaning of.
fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        match (c, letters.peek()) {
            ('\\', Some(',' | ':' | '\\')) => plain.extend(letters.next()),
            _ => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn read(reports: &[&str], formats: &[&str], outputs: &[&str]) -> Result<Vec<String>, Vec<String>> {
        let asked = parse_requests(&lists(reports), &lists(formats), &lists(outputs))?;
        let line = |asked: &TableRequest| {
            let form = asked.form.as_ref().map_or("?", |form| form.spec().name);
            format!(
                "{} {form} {:?}",
                [&[asked.report.name.to_owned()], &asked.words[..]].concat().join(":"),
                asked.output
            )
        };
        Ok(asked.iter().map(line).collect())
    }

    #[test]
    fn a_list_that_is_too_short_repeats_its_last_element() {
        assert_eq!(
            read(&["nvtx_sum,cuda_api_sum", "osrt_sum"], &["csv,json"], &["-", "x"]).expect("read"),
            ["nvtx_sum csv Console", "cuda_api_sum json Base(\"x\")", "osrt_sum json Base(\"x\")"]
        );
        assert_eq!(
            read(&["gpukernsum:base"], &["csv", ".", ""], &[".", "out/", "a\\,b"]).expect("read"),
            [
                "cuda_gpu_kern_sum:base csv Derived",
                "cuda_gpu_kern_sum:base ? Folder(\"out/\")",
                "cuda_gpu_kern_sum:base ? Base(\"a,b\")"
            ]
        );
        let all = read(&[], &[], &[]).expect("read");
        assert_eq!(all.len(), report::DEFAULT.len());
        assert_eq!(all[0], "nvtx_sum ? Console");
    }

    #[test]
    fn messages() {
        let refused = read(
            &["cuda_api_smu", "cuda_gpu_kern_sum:bse", "nvtx_sum,", "cuda_gpu_kern_sum:base:mangled"],
            &["cvs", "csv:nohdrs", "hdoc:css=https://x"],
            &["@less,-q"],
        );
        let errors = refused.expect_err("errors");
        assert_eq!(errors.len(), 9);
        insta::assert_snapshot!(errors.join("\n"));
    }

    #[test]
    fn a_backslash_takes_the_meaning_of_commas_and_colons() {
        let asked = parse_requests(&[], &lists(&["hdoc:title=a\\,b\\:c\\\\d\\e"]), &[]).expect("read");
        let result_table = recipes::result_table::ResultTable::new("x", "X", Vec::new());
        let mut out = Vec::new();
        let form = asked[0].form.as_ref().expect("a form");
        form.write(&result_table.render(recipes::result_table::Look::default()), &mut out).expect("written");
        assert!(String::from_utf8_lossy(&out).contains("<title>a,b:c\\d\\e</title>"));
    }
}
