//! The verb `harness recipe`: recipes over given reports. `recipes::recipe::of_reports` computes them,
//! `recipes::result_table` formats the tables; nothing is judged here.

pub mod docs;
mod escapes;
mod folder;
mod inspected;
mod manual;
mod pages;
mod progress;
mod request;
mod sets;
mod summary;

pub use manual::{list, manual};
pub use pages::index;
pub use request::RecipeRequest;
pub(crate) use request::parse_request;

use crate::publish::RemoteInputs;
use crate::stats::{ChosenExport, Exporting, choose};
use crate::tasks::{self, Cluster, Failed, Joined};
use base::text::SIMULATED;
use folder::Folder;
use model::exit_code;
use nsys::report_file;
use nsys::trace::Filter;
use progress::Bar;
use recipes::catalogue::Catalogue;
use recipes::diagnosis::Diagnosis;
use recipes::recipe::of_reports::{Input, Outcome, ReportRecipe, Survey, survey};
use recipes::report::Arguments;
use recipes::result_table::{FORMS, FormSpec, Look, ResultTable, parquet, visible};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use summary::SurveyRun;

/// What the command line requests.
pub(crate) struct Order<'a> {
    /// What recipes there are.
    pub catalogue: &'a Catalogue,
    /// Recipes by name, group and set, with their arguments.
    pub asked: RecipeRequest<'a>,
    /// Reports, exports and folders of them.
    pub inputs: RemoteInputs,
    /// From `--filter-time` or `--filter-nvtx`.
    pub filter: Option<Filter>,
    /// The filter as it was written.
    pub filtered: Option<String>,
    /// Formats of tables; if empty, text on stdout and Parquet in a folder.
    pub forms: Vec<TableForm>,
    /// The folder's name as it was written, with its `%` words; without one, tables go to stdout.
    pub output: Option<String>,
    /// `--force-overwrite`: replace an existing folder.
    pub overwrite: bool,
    /// Which tables are printed; the first one if empty.
    pub tables: Vec<String>,
    /// How many reports are open at once.
    pub jobs: usize,
    /// How reports without an export are read.
    pub exporting: Exporting,
    /// `--timeunit`.
    pub look: Look,
    /// `--quiet`: print only tables, notes and errors.
    pub quiet: bool,
    /// The cluster whose nodes read the reports; this machine if `None`.
    pub on: Option<Cluster>,
}

/// How a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableForm {
    /// For a person, on stdout.
    Console,
    /// `--csv`.
    Csv,
    /// `--json`.
    Json,
    /// `--parquet`: numbers are not rounded.
    Parquet,
    /// All tables and charts of a recipe in one page.
    Html,
}

/// Tables go to `out` or to a folder, all else to `err`. The exit code is 2 where an input could not be read or a table
/// not be written, then 0 where there is a table, then 3; and 3 before all where nodes were to read and could not.
pub(crate) fn recipe(order: &Order<'_>, out: &mut dyn Write, err: &mut dyn Write) -> i32 {
    let mut messages = Messages::naming(err, &order.inputs);
    let given = order.inputs.paths.as_slice();
    if let Some(records) = inspected::records(given) {
        return inspected::recipe(order, &records, out, &mut messages);
    }
    let compares = order.asked.recipes.iter().any(|(recipe, _)| recipe.is_comparison());
    // The two sides of a comparison may be one report; otherwise each report is taken once.
    let named: Vec<&[PathBuf]> = if compares { given.chunks(1).collect() } else { vec![given] };
    let (inputs, _exports) = inputs(&named, &order.exporting, &mut messages);
    if inputs.is_empty() {
        messages.error("no report to read among the inputs");
        return exit_code::USAGE;
    }
    let sides: std::collections::BTreeSet<usize> = inputs.iter().map(|input| input.side).collect();
    if compares && (given.len() != 2 || sides.len() != 2) {
        messages.error(
            "`diff` compares two inputs: `--input BEFORE AFTER`, each a report or a folder of reports",
        );
        return exit_code::USAGE;
    }
    // Before anything is computed: a folder that is there already is not touched.
    let folder = match order.output.as_deref().map(|name| Folder::new(name, order.overwrite)).transpose() {
        Ok(folder) => folder,
        Err(why) => {
            messages.error(&why);
            return exit_code::USAGE;
        }
    };
    let bar = Bar::new(inputs.len(), order.quiet);
    let (asked, is_diagnosed) = with_diagnosis(order);
    let wanted = Survey {
        asked: &asked,
        inputs: &inputs,
        filter: order.filter.as_ref(),
        jobs: order.jobs,
        progress: &|progress| bar.show(progress),
    };
    let joined = match &order.on {
        None => survey(&wanted).map(|outcomes| Joined { outcomes, lost: 0 }).map_err(Failed::Machinery),
        Some(cluster) => tasks::survey(cluster, &wanted, order.catalogue, &mut |what| messages.note(what)),
    };
    bar.end();
    let Joined { mut outcomes, lost } = match joined {
        Ok(joined) => joined,
        Err(Failed::Interrupted(code)) => return code,
        Err(Failed::Machinery(why)) => {
            messages.error(&why);
            return if order.on.is_some() { exit_code::INCONCLUSIVE } else { exit_code::USAGE };
        }
    };
    let of_limits = outcomes.split_off(order.asked.recipes.len().min(outcomes.len()));
    let apart = recipes::diagnosis::started_apart(&inputs).filter(|_| !compares);
    let found = is_diagnosed.then(|| recipes::diagnosis::by_outcomes(&inputs, &of_limits));
    let surveyed = Surveyed { inputs: &inputs, outcomes: &outcomes, found, lost, folder, apart };
    present(order, surveyed, out, &mut messages)
}

/// What is asked, and behind it what a diagnosis reads, where the index of a folder of pages is to begin with one: reports
/// are read once. A diagnosis is of whole reports.
fn with_diagnosis<'a>(order: &Order<'a>) -> (Vec<(ReportRecipe<'a>, Arguments)>, bool) {
    let mut asked = order.asked.recipes.clone();
    let has_index = order.asked.is_survey && order.output.is_some() && order.forms.contains(&TableForm::Html);
    let of_limits = recipes::diagnosis::recipes().ok().filter(|_| has_index && order.filter.is_none());
    let is_diagnosed = of_limits.is_some();
    asked.extend(of_limits.into_iter().flatten());
    (asked, is_diagnosed)
}

/// What came of the recipes.
struct Surveyed<'a> {
    inputs: &'a [Input],
    outcomes: &'a [Outcome],
    /// What limits the work, for the index of pages.
    found: Option<Diagnosis>,
    /// Reports that no node read.
    lost: usize,
    folder: Option<Folder>,
    /// That reports were not recorded at one time.
    apart: Option<String>,
}

/// Prints or writes the tables, and gives the exit code.
fn present(
    order: &Order<'_>,
    surveyed: Surveyed<'_>,
    out: &mut dyn Write,
    messages: &mut Messages<'_>,
) -> i32 {
    let Surveyed { inputs, outcomes, found, lost, folder, apart } = surveyed;
    let labels = request::labels(&order.asked.recipes);
    let run = summary::SurveyRun {
        asked: &order.asked.recipes,
        labels: &labels,
        outcomes,
        inputs,
        left_out: &order.asked.left_out,
        is_filtered: order.filter.is_some(),
    };
    messages.report_outcomes(order, &run);
    if let Some(why) = apart {
        messages.note(&why);
    }
    order.inputs.notes().iter().for_each(|note| messages.note(note));
    let any = outcomes.iter().any(|outcome| !outcome.tables.is_empty());
    let written = match folder {
        Some(folder) if any => to_folder(order, &folder, &run, found, messages),
        Some(_) => Ok(()),
        None => to_stdout(order, &run, out, messages),
    };
    let written = written.and_then(|()| match order.asked.is_survey && !order.quiet {
        true => print(TableForm::Console, order.look, &summary::result_table(&run), out),
        false => Ok(()),
    });
    match written {
        Ok(()) => {}
        // The reader of stdout has gone away.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        Err(error) => messages.error(&error.to_string()),
    }
    match () {
        () if lost > 0 => exit_code::INCONCLUSIVE,
        () if messages.is_bad => exit_code::USAGE,
        () if any => exit_code::PASSED,
        () => exit_code::INCONCLUSIVE,
    }
}

/// The reports in the order in which they are numbered; the exports that were made for them lie as long as these are
/// held.
pub(crate) fn inputs(
    sides: &[&[PathBuf]],
    exporting: &Exporting,
    messages: &mut Messages,
) -> (Vec<Input>, Vec<ChosenExport>) {
    let (mut inputs, mut exports) = (Vec::new(), Vec::new());
    for (side, named) in sides.iter().enumerate() {
        let found = report_file::find(named);
        for diagnostic in &found.diagnostics {
            messages.error(&format!("{}: {}", diagnostic.path.display(), diagnostic.why));
        }
        for path in &found.foreign {
            messages.note(&format!(
                "{}: not an nsys export but an SQLite file of another program; skipped",
                path.display()
            ));
        }
        for (path, as_what) in &found.duplicates {
            messages.note(&format!("{}: given twice, read once, as {}", path.display(), as_what.display()));
        }
        for report in &found.reports {
            let shown = messages.name(&report.named.display().to_string());
            match choose(report, exporting) {
                Ok(chosen) => {
                    if let Some(note) = &chosen.note {
                        messages.note(&format!("{shown}: {note}"));
                    }
                    inputs.push(Input { path: chosen.path.clone(), shown, side });
                    exports.push(chosen);
                }
                Err(why) => messages.error(&format!("{shown}: {why}")),
            }
        }
    }
    (inputs, exports)
}

/// Prints errors and notes, and remembers whether there was an error.
pub(crate) struct Messages<'a> {
    err: &'a mut dyn Write,
    /// What their paths are called.
    names: &'a RemoteInputs,
    /// Whether there was an error.
    pub is_bad: bool,
}

impl<'a> Messages<'a> {
    /// Nothing was printed yet.
    pub(crate) fn naming(err: &'a mut dyn Write, names: &'a RemoteInputs) -> Messages<'a> {
        Messages { err, names, is_bad: false }
    }

    /// A text whose paths are called as a person did.
    fn name(&self, text: &str) -> String {
        self.names.as_given(text)
    }

    // A closed stderr is no error of the verb.
    pub(crate) fn error(&mut self, why: &str) {
        self.is_bad = true;
        let named = self.name(why);
        let _ = writeln!(self.err, "error: {}", visible(&named));
    }

    pub(crate) fn note(&mut self, what: &str) {
        let named = self.name(what);
        let _ = writeln!(self.err, "note: {}", visible(&named));
    }

    fn report_outcomes(&mut self, order: &Order<'_>, run: &SurveyRun) {
        let reports = run.inputs.len();
        let mut printed_before = std::collections::BTreeSet::new();
        if run.outcomes.iter().any(|outcome| outcome.simulated) {
            self.note(SIMULATED);
        }
        for outcome in run.outcomes {
            for (report, why) in &outcome.unreadable {
                let why = format!("{report}: {why}");
                if printed_before.insert(why.clone()) {
                    self.error(&why);
                }
            }
            for note in &outcome.notes {
                if printed_before.insert(note.clone()) {
                    self.note(note);
                }
            }
            // For many recipes the summary has it.
            if outcome.tables.is_empty() && !order.asked.is_survey {
                let filtered = if order.filter.is_some() { " within the filter" } else { "" };
                let of = if reports == 1 {
                    "the report has".to_owned()
                } else {
                    format!("{reports} reports have")
                };
                self.note(&format!("{}: {of} no data for it{filtered}", outcome.recipe));
            }
        }
    }
}

/// The tables requested by name; otherwise the first one.
fn printed<'a>(order: &Order<'_>, outcome: &'a Outcome) -> Vec<&'a (&'static str, ResultTable)> {
    let asked = |(at, (name, _)): &(usize, &(&'static str, ResultTable))| match order.tables.as_slice() {
        [] => *at == 0,
        names => names.iter().any(|asked| asked == name),
    };
    outcome.tables.iter().enumerate().filter(asked).map(|(_, table)| table).collect()
}

fn form(of: TableForm) -> Option<&'static FormSpec> {
    let name = match of {
        TableForm::Console => "column",
        TableForm::Csv => "csv",
        TableForm::Json => "json",
        TableForm::Parquet | TableForm::Html => return None,
    };
    FORMS.into_iter().find(|form| form.name == name)
}

fn to_stdout(
    order: &Order<'_>,
    run: &SurveyRun,
    out: &mut dyn Write,
    messages: &mut Messages,
) -> io::Result<()> {
    let form_of = order.forms.first().copied().unwrap_or(TableForm::Console);
    let Some(form) = form(form_of).map(FormSpec::plain) else {
        messages.error("Parquet and pages need a folder: add `--output DIR`");
        return Ok(());
    };
    let mut out = BufWriter::new(out);
    let mut shown = 0;
    for (outcome, (_, arguments)) in run.outcomes.iter().zip(run.asked) {
        let tables = printed(order, outcome);
        if tables.is_empty() && !outcome.tables.is_empty() {
            let there: Vec<&str> = outcome.tables.iter().map(|(name, _)| *name).collect();
            messages.error(&format!(
                "{}: no table `{}`; its tables are `{}`",
                outcome.recipe,
                order.tables.join("`, `"),
                there.join("`, `")
            ));
        }
        if form_of == TableForm::Json {
            write!(out, "{{\"recipe\":\"{}\",", outcome.recipe)?;
            let words = arguments.to_strings();
            if !words.is_empty() {
                write!(out, "\"arguments\":{},", serde_json::Value::from(words))?;
            }
            write!(out, "\"tables\":{{")?;
            for (at, (name, result_table)) in tables.iter().enumerate() {
                write!(out, "{}\"{name}\":", if at > 0 { "," } else { "" })?;
                let mut array = Vec::new();
                form.write(&result_table.render(order.look), &mut array)?;
                out.write_all(array.trim_ascii_end())?;
            }
            writeln!(out, "}}}}")?;
            continue;
        }
        for (name, result_table) in tables {
            if let Some(lines) = result_table.lines() {
                text(lines, &mut out)?;
                shown += 1;
                continue;
            }
            if shown > 0 {
                writeln!(out)?;
            }
            if form_of == TableForm::Console {
                writeln!(out, " ** {} ({}, {name}):\n", result_table.title, outcome.recipe)?;
            }
            form.write(&result_table.render(order.look), &mut out)?;
            shown += 1;
        }
    }
    out.flush()
}

/// One table by itself.
fn print(of: TableForm, look: Look, result_table: &ResultTable, out: &mut dyn Write) -> io::Result<()> {
    let Some(form) = form(of).map(FormSpec::plain) else { return Ok(()) };
    form.write(&result_table.render(look), out)?;
    out.flush()
}

/// As it stands, with nothing around it.
fn text<'a>(lines: impl Iterator<Item = &'a str>, out: &mut dyn Write) -> io::Result<()> {
    for line in lines {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Every table in every form: in the folder itself where one recipe was asked for, else in one folder each.
fn to_folder(
    order: &Order<'_>,
    folder: &Folder,
    run: &SurveyRun,
    found: Option<Diagnosis>,
    messages: &mut Messages,
) -> io::Result<()> {
    folder.make()?;
    let forms: &[TableForm] = if order.forms.is_empty() { &[TableForm::Parquet] } else { &order.forms };
    let several = order.asked.is_survey || run.outcomes.len() > 1;
    let mut pages = 0;
    for ((outcome, label), (recipe, arguments)) in run.outcomes.iter().zip(run.labels).zip(run.asked) {
        if outcome.tables.is_empty() {
            continue;
        }
        let place = if several { folder.path().join(label) } else { folder.path().to_owned() };
        std::fs::create_dir_all(&place)?;
        for (name, result_table) in &outcome.tables {
            if let Some(lines) = result_table.lines() {
                let lines: Vec<&str> = lines.collect();
                let write = &mut |whole: &mut dyn Write| text(lines.iter().copied(), whole);
                store::write_whole_by(&place.join(format!("{name}.txt")), write)
                    .map_err(|error| io::Error::other(error.to_string()))?;
                continue;
            }
            for of in forms.iter().filter(|of| **of != TableForm::Html) {
                write_table(order, &place, name, result_table, *of)?;
            }
        }
        if forms.contains(&TableForm::Html) {
            pages::write(order, &place, recipe, arguments, outcome)?;
            pages += 1;
        }
    }
    if pages > 1 {
        if let Some(found) = found {
            let input = order.inputs.paths.iter().map(|path| messages.name(&path.display().to_string()));
            let input = base::text::command_line(&input.collect::<Vec<_>>());
            pages::write_limits(folder.path(), input, found)?;
        }
        pages::write_index(folder.path())?;
    }
    if order.asked.is_survey {
        write_table(order, folder.path(), "summary", &summary::result_table(run), TableForm::Csv)?;
        let text = format!("{:#}\n", summary::json(run));
        store::write_whole_by(&folder.path().join("summary.json"), &mut |whole| {
            whole.write_all(text.as_bytes())
        })
        .map_err(|error| io::Error::other(error.to_string()))?;
    }
    if !order.quiet {
        let _ = writeln!(messages.err, "written: {}", visible(&folder.path().display().to_string()));
    }
    Ok(())
}

fn write_table(
    order: &Order<'_>,
    place: &Path,
    name: &str,
    result_table: &ResultTable,
    of: TableForm,
) -> io::Result<()> {
    let failed = |error: store::StoreError| io::Error::other(error.to_string());
    let Some(form) = form(of) else {
        let bytes = parquet::bytes(result_table).map_err(io::Error::other)?;
        let path = place.join(format!("{name}.parquet"));
        return store::write_whole_by(&path, &mut |whole| whole.write_all(&bytes)).map_err(failed);
    };
    let path = place.join(format!("{name}.{}", form.extension));
    let plain = form.plain();
    let write = &mut |whole: &mut dyn Write| {
        let mut whole = BufWriter::new(whole);
        plain.write(&result_table.render(order.look), &mut whole)?;
        whole.flush()
    };
    store::write_whole_by(&path, write).map_err(failed)
}
