//! The verb `harness stats`: the tables of statistics of reports, each in the format and at the place requested.
//! `recipes::report` computes the tables, `recipes::result_table` formats them; nothing is judged here.

mod help;
mod nsys;
mod request;
mod target;

pub use help::{formats as help_formats, reports as help_reports};
pub use nsys::{ChosenExport, Exporting, choose};
pub(crate) use request::parse_requests;
pub use request::{Output, TableRequest};

use crate::publish::RemoteInputs;
use ::nsys::report_file::{self, Diagnostic, ReportFile};
use ::nsys::trace::{Filter, Trace};
use base::suggest::nearest;
use model::exit_code;
use recipes::result_table::{Look, ResultTable, visible};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use target::Target;

/// What the command line requests.
pub(crate) struct Order {
    /// Reports, exports and folders of them.
    pub inputs: RemoteInputs,
    /// Tables, each with its format and output.
    pub asked: Vec<TableRequest>,
    /// `--headings` and `--timeunit`.
    pub look: Look,
    /// From `--filter-time` or `--filter-nvtx`.
    pub filter: Option<Filter>,
    /// The filter by ranges as it was written: files are named after it.
    pub range: Option<String>,
    /// How reports without an export are read.
    pub exporting: Exporting,
    /// `--force-overwrite`: replace existing files.
    pub overwrite: bool,
    /// Print only skipped tables, notes and errors.
    pub quiet: bool,
    /// Whether stdout is a terminal: its default format is then `column`, else `csv`.
    pub is_terminal: bool,
}

/// Tables go to `out` or to files, all else to `err`. The exit code is 2 where an input could not be read or a table not
/// be written, then 0 where there is a table, then 3.
pub(crate) fn stats(order: &Order, out: &mut dyn Write, err: &mut dyn Write) -> i32 {
    let found = report_file::find(&order.inputs.paths);
    let targets = match target::all(order, &found.reports) {
        Ok(targets) => targets,
        Err(why) => {
            let _ = writeln!(err, "error: {}", visible(&why));
            return exit_code::USAGE;
        }
    };
    let several = found.reports.len() > 1;
    let mut printer = Printer { order, out, err, several, shown: 0, tables: 0, is_bad: false };
    for diagnostic in &found.diagnostics {
        printer.error(&diagnostic.path, &with_suggestion(diagnostic));
    }
    for path in &found.foreign {
        printer.note(path, "not an nsys export but an SQLite file of another program; skipped");
    }
    for (path, as_what) in &found.duplicates {
        printer.note(path, &format!("given twice, read once, as {}", as_what.display()));
    }
    for (report, targets) in found.reports.iter().zip(targets) {
        match printer.report(report, &targets) {
            Ok(()) => {}
            // The reader of stdout has gone away.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
            Err(error) => {
                printer.error(Path::new("stdout"), &error.to_string());
                break;
            }
        }
    }
    for note in order.inputs.notes() {
        let _ = writeln!(printer.err, "note: {}", visible(&note));
    }
    match () {
        () if printer.is_bad => exit_code::USAGE,
        () if printer.tables > 0 => exit_code::PASSED,
        () => exit_code::INCONCLUSIVE,
    }
}

/// Why an input cannot be read, with the nearest file name where it does not exist.
fn with_suggestion(diagnostic: &Diagnostic) -> String {
    let (Some(folder), Some(name)) = (diagnostic.path.parent(), diagnostic.path.file_name()) else {
        return diagnostic.why.clone();
    };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    let near = nearest(&name.to_string_lossy(), names.iter().map(String::as_str));
    match near.filter(|near| !diagnostic.path.exists() && Some(*near) != name.to_str()) {
        Some(near) => format!("{}; did you mean `{near}`?", diagnostic.why),
        None => diagnostic.why.clone(),
    }
}

struct Printer<'a> {
    order: &'a Order,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    /// Titles say of which input a table is.
    several: bool,
    /// Tables on stdout so far.
    shown: usize,
    tables: usize,
    is_bad: bool,
}

impl Printer<'_> {
    /// A path as a person named it.
    fn name(&self, path: &Path) -> String {
        visible(&self.order.inputs.as_given(&path.display().to_string())).into_owned()
    }

    // A closed stderr is no error of the verb.
    fn error(&mut self, path: &Path, why: &str) {
        self.is_bad = true;
        let named = self.name(path);
        let _ = writeln!(self.err, "error: {named}: {}", visible(why));
    }

    fn note(&mut self, path: &Path, what: &str) {
        let named = self.name(path);
        let _ = writeln!(self.err, "note: {named}: {}", visible(what));
    }

    /// Every table of one report. It fails only where stdout does.
    fn report(&mut self, report: &ReportFile, targets: &[Target]) -> io::Result<()> {
        let chosen = match nsys::choose(report, &self.order.exporting) {
            Ok(chosen) => chosen,
            Err(why) => {
                self.error(&report.named, &why);
                return Ok(());
            }
        };
        let path = chosen.path.as_path();
        if let Some(note) = &chosen.note {
            self.note(path, note);
        }
        let opened = Trace::open(path).and_then(|trace| match &self.order.filter {
            Some(filter) => trace.filtered(filter),
            None => Ok(trace),
        });
        let trace = match opened {
            Ok(trace) => trace,
            Err(error) => {
                self.error(path, &error.to_string());
                return Ok(());
            }
        };
        let mut skipped = 0;
        let mut ended = Ok(());
        for target in targets {
            ended = self.table(path, &trace, target, &mut skipped);
            if ended.is_err() {
                break;
            }
        }
        if skipped > 0 && self.order.filter.is_some() {
            self.note(path, "rows that the filter removes count as missing");
        }
        for note in trace.notes() {
            self.note(path, &note);
        }
        ended
    }

    fn table(&mut self, path: &Path, trace: &Trace, target: &Target, skipped: &mut usize) -> io::Result<()> {
        let (spec, named) = (target.asked.report, self.name(path));
        // Checked before anything is computed.
        if let Some(file) = target.file.as_ref().filter(|file| !self.order.overwrite && file.exists()) {
            self.error(file, "already exists; `--force-overwrite` replaces it");
            return Ok(());
        }
        if !self.order.quiet {
            let words: String = target.asked.words.iter().map(|word| format!(":{word}")).collect();
            let _ = writeln!(self.err, "Processing [{}] with [{}{}]...", named, spec.name, visible(&words));
        }
        let result_table = match (spec.run)(trace, &target.asked.arguments) {
            Ok(Some(result_table)) => result_table,
            Ok(None) => {
                *skipped += 1;
                let _ = writeln!(self.err, "SKIPPED: {named} does not contain {} data.", spec.data);
                return Ok(());
            }
            Err(error) => {
                self.error(path, &format!("{}: {error}", spec.name));
                return Ok(());
            }
        };
        match &target.file {
            Some(file) => {
                self.write_file(file, &result_table, target);
                Ok(())
            }
            None => self.print(path, &result_table, target),
        }
    }

    fn write_file(&mut self, file: &Path, result_table: &ResultTable, target: &Target) {
        let written = store::write_output_by(file, &mut |whole| {
            let mut whole = BufWriter::new(whole);
            target.form.write(&result_table.render(self.order.look), &mut whole)?;
            whole.flush()
        });
        match written {
            Ok(()) => {
                self.tables += 1;
                if !self.order.quiet {
                    let named = self.name(file);
                    let _ = writeln!(self.err, "written: {named}");
                }
            }
            Err(error) => {
                self.is_bad = true;
                let _ = writeln!(self.err, "error: {}", visible(&error.to_string()));
            }
        }
    }

    fn print(&mut self, path: &Path, result_table: &ResultTable, target: &Target) -> io::Result<()> {
        let (spec, named) = (target.form.spec(), self.name(path));
        // There is a table, whether or not it is read to its end.
        self.tables += 1;
        let mut out = BufWriter::new(&mut *self.out);
        // JSON has one array a line, and needs no empty line between.
        if self.shown > 0 && spec.name != "json" {
            writeln!(out)?;
        }
        if spec.is_for_people {
            let of = if self.several { format!("{named}: ") } else { String::new() };
            writeln!(out, " ** {of}{} ({}):\n", result_table.title, result_table.name)?;
        }
        target.form.write(&result_table.render(self.order.look), &mut out)?;
        out.flush()?;
        drop(out);
        self.shown += 1;
        Ok(())
    }
}
