//! `harness list`: the suites, inventories, instance profiles and baselines that can be named, and where each is found;
//! with `--suite` the assertions of suites.

use super::columns::columns;
use super::home;
use super::run_suites::{self, RunArgs};
use crate::error::Error;
use crate::library::{Entry, Library};
use base::suggest;
use base::text::shorten;
use clap::Args;
use config::baseline::PENDING;
use libtest_mimic::FormatSetting;
use model::exit_code;
use model::fault::Fault;

const ABOUT: &str = "List suites, inventories, instances and baselines, and where each is found; with -v, what each suite is for; \
     with --suite, assertions.";

/// `harness list`
#[derive(Debug, Args)]
#[command(about = ABOUT)]
pub(super) struct ListArgs {
    /// Print this file, such as `suite/nccl-p5` or `inventory/default`; or `sim-faults`, all faults of the simulated cluster
    #[arg(long, value_name = "KIND/NAME", conflicts_with = "suites")]
    print: Option<String>,
    #[command(flatten)]
    run: RunArgs,
}

/// What is listed: the kind of file, and its folder.
const KINDS: [(&str, &str); 4] = [
    ("suite", "suites"),
    ("inventory", "inventory"),
    ("instance", "inventory/instances"),
    ("baselines", "baselines"),
];

/// Letters of what a suite is for.
const MOST_ABOUT: usize = 120;

/// What `--print` takes beside files.
const SIM_FAULTS: &str = "sim-faults";

pub(super) fn run(args: ListArgs) -> Result<i32, Error> {
    let mut run = args.run;
    if args.print.as_deref() == Some(SIM_FAULTS) {
        print_sim_faults();
        return Ok(exit_code::PASSED);
    }
    if let Some(name) = &args.print {
        return print_file(&Library::for_project(home()?.path()), name);
    }
    if !run.suites.is_empty() {
        run.libtest.list = true;
        return Ok(run_suites::run(&home()?, &run.into_options()));
    }
    if let Some(filter) = run.libtest.filter.as_deref().or(run.cases.first().map(String::as_str)) {
        let why = format!("`{}` selects assertions of a suite: add --suite NAME", filter.escape_debug());
        return Err(Error::Usage(why));
    }
    let library = Library::for_project(home()?.path());
    let is_pending = |entry: &Entry| format!("{}.toml", entry.name()).ends_with(PENDING);
    let entries = KINDS.into_iter().flat_map(|(kind, folder)| {
        library.entries(folder).into_iter().filter(|entry| !is_pending(entry)).map(move |entry| (kind, entry))
    });
    let text = match run.libtest.format {
        Some(FormatSetting::Json) => entries.map(|(kind, entry)| object(kind, &entry)).collect(),
        _ => {
            let head = ["kind", "name", "from", "file", "about"];
            let head = &head[..if run.verbose { 5 } else { 4 }];
            let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
            let row = |(kind, entry): (&str, Entry)| {
                let mut row = vec![
                    kind.to_owned(),
                    entry.name().to_owned(),
                    entry.origin.name().to_owned(),
                    entry.location(),
                ];
                row.extend(run.verbose.then(|| about(&entry)));
                row
            };
            columns(&std::iter::once(head).chain(entries.map(row)).collect::<Vec<_>>())
        }
    };
    crate::standard_output::print(text.as_bytes());
    Ok(exit_code::PASSED)
}

/// What a suite is for, in its own words; nothing of a file that has none or cannot be read.
fn about(entry: &Entry) -> String {
    let table = entry.read().ok().and_then(|text| text.parse::<toml::Table>().ok());
    let about = table.as_ref().and_then(|table| table.get("about")).and_then(toml::Value::as_str);
    shorten(about.unwrap_or_default(), MOST_ABOUT)
}

/// Faults as `--sim-fault` takes them.
fn print_sim_faults() {
    let text: String = Fault::FORMS.iter().map(|form| format!("NODE:{form}\n")).collect();
    crate::standard_output::print(text.as_bytes());
}

/// Prints a file as it is, so that it can be read, or copied and changed.
fn print_file(library: &Library, name: &str) -> Result<i32, Error> {
    let usage = |why: String| Error::Usage(format!("--print: {why}"));
    let kinds = KINDS.map(|(kind, _)| kind).join("`, `");
    let (kind, stem) = name.split_once('/').ok_or_else(|| {
        usage(format!("expected KIND/NAME, such as `suite/nccl-p5`, not: `{}`", name.escape_debug()))
    })?;
    let folder = KINDS.into_iter().find(|(known, _)| *known == kind).map(|(_, folder)| folder);
    let folder = folder
        .ok_or_else(|| usage(format!("unknown kind: `{}`; there are `{kinds}`", kind.escape_debug())))?;
    let entry = library.entries(folder).into_iter().find(|entry| entry.name() == stem).ok_or_else(|| {
        let known = library.names(folder);
        let near = suggest::nearest_name(stem, known.iter().map(String::as_str));
        let near = near.map(|near| format!("did you mean `{kind}/{near}`? ")).unwrap_or_default();
        usage(format!("no `{}`; {near}`harness list` names all", name.escape_debug()))
    })?;
    let text = entry.read().map_err(|error| usage(format!("{}: {error}", entry.file)))?;
    crate::standard_output::print(text.as_bytes());
    Ok(exit_code::PASSED)
}

fn object(kind: &str, entry: &Entry) -> String {
    let (from, file) = (entry.origin.name(), entry.location());
    serde_json::json!({ "kind": kind, "name": entry.name(), "from": from, "file": file }).to_string() + "\n"
}
