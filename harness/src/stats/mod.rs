//! The verb `harness stats`: the tables of statistics of reports, each in the form and at the place that were asked for.
//! What a table holds is told in `recipes::report`, how it looks in `recipes::sheet`; nothing is judged here.

mod help;
mod nsys;
mod request;
mod target;

pub use help::{formats as help_formats, reports as help_reports};
pub use nsys::{Chosen, Exporting, choose};
pub use request::{Asked, Output, asked};

use ::nsys::report_file::{self, Diagnostic, ReportFile};
use ::nsys::trace::{Filter, Trace};
use base::suggest::nearest;
use model::exit_code;
use recipes::sheet::{Look, Sheet, visible};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use target::Target;

/// All that a person may ask for.
pub struct Order {
    pub inputs: Vec<PathBuf>,
    pub asked: Vec<Asked>,
    pub look: Look,
    pub filter: Option<Filter>,
    /// The filter by ranges as it was written: files are named after it.
    pub range: Option<String>,
    pub exporting: Exporting,
    pub overwrite: bool,
    /// Say only what is missing and what went wrong.
    pub quiet: bool,
    pub is_terminal: bool,
}

/// Tables go to `out` or to files, all else to `err`. The exit code is 2 where an input could not be read or a table not
/// be written, then 0 where there is a table, then 3.
pub fn stats(order: &Order, out: &mut dyn Write, err: &mut dyn Write) -> i32 {
    let found = report_file::find(&order.inputs);
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
        printer.error(&diagnostic.path, &told(diagnostic));
    }
    for path in &found.foreign {
        printer.note(path, "an SQLite file of another program, left out");
    }
    for (path, as_what) in &found.again {
        printer.note(path, &format!("named twice, looked at once, as: {}", as_what.display()));
    }
    for (report, targets) in found.reports.iter().zip(targets) {
        match printer.report(report, &targets) {
            Ok(()) => {}
            // Nobody reads on.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
            Err(error) => {
                printer.error(Path::new("stdout"), &error.to_string());
                break;
            }
        }
    }
    match () {
        () if printer.is_bad => exit_code::USAGE,
        () if printer.tables > 0 => exit_code::PASSED,
        () => exit_code::INCONCLUSIVE,
    }
}

/// Why an input is none, with what lies there under a name like it.
fn told(diagnostic: &Diagnostic) -> String {
    let (Some(folder), Some(name)) = (diagnostic.path.parent(), diagnostic.path.file_name()) else {
        return diagnostic.why.clone();
    };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    let near = nearest(&name.to_string_lossy(), names.iter().map(String::as_str));
    match near.filter(|near| !diagnostic.path.exists() && Some(*near) != name.to_str()) {
        Some(near) => format!("{}, did you mean `{near}`?", diagnostic.why),
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
    // When nobody listens any more, there is nobody to tell.
    fn error(&mut self, path: &Path, why: &str) {
        self.is_bad = true;
        let _ = writeln!(self.err, "error: {}: {}", shown(path), visible(why));
    }

    fn note(&mut self, path: &Path, what: &str) {
        let _ = writeln!(self.err, "note: {}: {}", shown(path), visible(what));
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
            self.note(path, "what a filter leaves out counts as not there");
        }
        for note in trace.notes() {
            self.note(path, &note);
        }
        ended
    }

    fn table(&mut self, path: &Path, trace: &Trace, target: &Target, skipped: &mut usize) -> io::Result<()> {
        let spec = target.asked.report;
        // Before anything is computed: what is there is not touched, and not taken for what would have been written.
        if let Some(file) = target.file.as_ref().filter(|file| !self.order.overwrite && file.exists()) {
            self.error(file, "it is there already; `--force-overwrite` replaces it");
            return Ok(());
        }
        if !self.order.quiet {
            let words: String = target.asked.words.iter().map(|word| format!(":{word}")).collect();
            let _ =
                writeln!(self.err, "Processing [{}] with [{}{}]...", shown(path), spec.name, visible(&words));
        }
        let sheet = match (spec.run)(trace, &target.asked.arguments) {
            Ok(Some(sheet)) => sheet,
            Ok(None) => {
                *skipped += 1;
                let _ = writeln!(self.err, "SKIPPED: {} does not contain {} data.", shown(path), spec.data);
                return Ok(());
            }
            Err(error) => {
                self.error(path, &format!("{}: {error}", spec.name));
                return Ok(());
            }
        };
        match &target.file {
            Some(file) => {
                self.write_file(file, &sheet, target);
                Ok(())
            }
            None => self.print(path, &sheet, target),
        }
    }

    fn write_file(&mut self, file: &Path, sheet: &Sheet, target: &Target) {
        let written = store::write_whole_by(file, &mut |whole| {
            let mut whole = BufWriter::new(whole);
            target.form.write(&sheet.shown(self.order.look), &mut whole)?;
            whole.flush()
        });
        match written {
            Ok(()) => {
                self.tables += 1;
                if !self.order.quiet {
                    let _ = writeln!(self.err, "written: {}", shown(file));
                }
            }
            Err(error) => {
                self.is_bad = true;
                let _ = writeln!(self.err, "error: {}", visible(&error.to_string()));
            }
        }
    }

    fn print(&mut self, path: &Path, sheet: &Sheet, target: &Target) -> io::Result<()> {
        let spec = target.form.spec();
        // There is a table, whether or not it is read to its end.
        self.tables += 1;
        let mut out = BufWriter::new(&mut *self.out);
        // An array a line is told from the next without an empty one.
        if self.shown > 0 && spec.name != "json" {
            writeln!(out)?;
        }
        if spec.is_for_people {
            let of = if self.several { format!("{}: ", shown(path)) } else { String::new() };
            writeln!(out, " ** {of}{} ({}):\n", sheet.title, sheet.name)?;
        }
        target.form.write(&sheet.shown(self.order.look), &mut out)?;
        out.flush()?;
        drop(out);
        self.shown += 1;
        Ok(())
    }
}

fn shown(path: &Path) -> String {
    visible(&path.display().to_string()).into_owned()
}
