//! From the paths that a person names to reports, each once: files, folders, `folder:n`. Also decides which export
//! stands for a report, and whether it is older than the report. Nothing is exported.

mod order;
#[cfg(test)]
mod tests;

use crate::export::is_foreign;
use logs::efa_counters::is_called_so;
pub use order::natural;
use std::fs;
use std::path::{Path, PathBuf};

/// One report with its exports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportFile {
    /// As it was named, or found in the folder that was named.
    pub named: PathBuf,
    /// Its folder and its name without an ending: what is made of it is named after this.
    pub base: PathBuf,
    /// The report itself, where it is there.
    pub report: Option<PathBuf>,
    /// What was exported of it, best first.
    pub exports: Vec<PathBuf>,
    /// An export was named, and no other will do.
    pub is_export: bool,
}

/// What a report can be read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportState {
    /// No older than the report, or there is no report beside it.
    Fresh(PathBuf),
    /// The report was written after it.
    Stale(PathBuf),
    /// No export was found.
    NotExported,
}

/// What the paths of a command line lead to.
#[derive(Debug, Default)]
pub struct Found {
    /// SQLite files of other programs in the folders: they are left out.
    pub foreign: Vec<PathBuf>,
    /// In the order in which they were named, those of a folder in the order in which a person counts.
    pub reports: Vec<ReportFile>,
    /// Paths that do not exist or contain no report.
    pub diagnostics: Vec<Diagnostic>,
    /// Paths named a second time, with the name under which each is read already.
    pub duplicates: Vec<(PathBuf, PathBuf)>,
}

/// A path that leads to no report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// As it was given.
    pub path: PathBuf,
    /// The reason, without the path.
    pub why: String,
}

const REPORTS: [&str; 2] = [".nsys-rep", ".qdrep"];

/// What `nsys export` calls what it makes, the form that is read fastest first.
const EXPORTS: [(&str, bool); 4] =
    [("_pqtdir", true), (".sqlite", false), (".arrows", false), ("_arwdir", true)];

/// What lies directly in a folder of one export.
const TABLES: [&str; 2] = ["parquet", "arrow"];

/// Finds reports and exports behind files, folders and `folder:n`.
pub fn find(inputs: &[PathBuf]) -> Found {
    let mut found = Found::default();
    for input in inputs {
        match resolve_input(input, &mut found.foreign) {
            Ok(reports) => reports.into_iter().for_each(|report| found.add(report)),
            Err(why) => found.diagnostics.push(Diagnostic { path: input.clone(), why }),
        }
    }
    found
}

impl Found {
    fn add(&mut self, report: ReportFile) {
        let key = whole(&report.base);
        match self.reports.iter().find(|other| whole(&other.base) == key) {
            Some(other) => self.duplicates.push((report.named, other.named.clone())),
            None => self.reports.push(report),
        }
    }
}

impl ReportFile {
    /// The best of the exports that are not older than the report; where all are older, the best of those.
    pub fn export_state(&self) -> ExportState {
        let Some(report) = &self.report else {
            return self
                .exports
                .first()
                .map_or(ExportState::NotExported, |path| ExportState::Fresh(path.clone()));
        };
        match (self.exports.iter().find(|export| !is_older(export, report)), self.exports.first()) {
            (Some(fresh), _) => ExportState::Fresh(fresh.clone()),
            (None, Some(stale)) => ExportState::Stale(stale.clone()),
            (None, None) => ExportState::NotExported,
        }
    }
}

/// Whether any part of an export was last written before the report was. What has no time is no older.
fn is_older(export: &Path, report: &Path) -> bool {
    let parts = match fs::read_dir(export) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).filter(|path| is_table(path)).collect(),
        Err(_) => vec![export.to_owned()],
    };
    let written = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    let oldest = parts.iter().filter_map(|part| written(part)).min();
    matches!((oldest, written(report)), (Some(export), Some(report)) if export < report)
}

fn resolve_input(input: &Path, foreign: &mut Vec<PathBuf>) -> Result<Vec<ReportFile>, String> {
    if input.exists() {
        return resolve_path(input, None, foreign);
    }
    if let Some((folder, most)) = with_number(input).filter(|(folder, _)| folder.exists()) {
        if !folder.is_dir() {
            return Err("`:n` works on folders only".to_owned());
        }
        let most = most.filter(|most| *most > 0);
        let most = most.ok_or("`:n` needs a number of at least 1")?;
        return resolve_path(&folder, Some(most), foreign);
    }
    Err("no such file or folder".to_owned())
}

/// `folder:n`
fn with_number(input: &Path) -> Option<(PathBuf, Option<usize>)> {
    let (folder, most) = input.to_str()?.rsplit_once(':')?;
    Some((PathBuf::from(folder), most.parse().ok()))
}

fn resolve_path(
    path: &Path,
    most: Option<usize>,
    foreign: &mut Vec<PathBuf>,
) -> Result<Vec<ReportFile>, String> {
    let name = match path.file_name() {
        Some(name) => name.to_string_lossy().into_owned(),
        // `.` and `..` have no name of their own.
        None => whole(path).file_name().unwrap_or_default().to_string_lossy().into_owned(),
    };
    if !path.is_dir() {
        return Ok(vec![from_file(path, &name)]);
    }
    if EXPORTS.iter().any(|(ending, is_folder)| *is_folder && name.ends_with(ending)) {
        return Ok(vec![from_file(path, &name)]);
    }
    let entries = fs::read_dir(path).map_err(|error| format!("cannot be read: {error}"))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| format!("cannot be read: {error}"))?;
        // What is no text cannot end as a report does.
        if let Ok(name) = entry.file_name().into_string() {
            names.push(name);
        }
    }
    names.sort_by(|a, b| natural(a, b));
    let mut reports: Vec<ReportFile> = Vec::new();
    // Reports first: the export beside one is of that report.
    for is_report in [true, false] {
        for name in &names {
            let entry = path.join(name);
            let Some((stem, _)) = stem_of(&entry, name).filter(|(_, report)| *report == is_report) else {
                continue;
            };
            // A file of another program takes no rank.
            if !is_report && is_foreign(&entry) {
                foreign.push(entry);
                continue;
            }
            if reports.iter().all(|known| known.base != path.join(stem)) {
                reports.push(ReportFile { is_export: false, ..from_file(&entry, name) });
            }
        }
    }
    reports.sort_by(|a, b| natural(&a.base.to_string_lossy(), &b.base.to_string_lossy()));
    match reports.is_empty() {
        // A folder of tables under another name is an export too.
        true if most.is_none() && names.iter().any(|name| is_table(Path::new(name))) => {
            Ok(vec![from_file(path, &name)])
        }
        // Where nothing was profiled, counters may have been sampled.
        true if names.iter().any(|name| is_called_so(name)) => {
            let captures = names.iter().filter(|name| is_called_so(name));
            let captures = captures.map(|name| from_file(&path.join(name), name));
            Ok(captures.take(most.unwrap_or(usize::MAX)).collect())
        }
        true => Err("no report or export in this folder".to_owned()),
        false => {
            reports.truncate(most.unwrap_or(usize::MAX));
            Ok(reports)
        }
    }
}

fn from_file(path: &Path, name: &str) -> ReportFile {
    let folder = path.parent().unwrap_or(Path::new(""));
    match stem_of(path, name) {
        Some((stem, true)) => ReportFile {
            named: path.to_owned(),
            base: folder.join(stem),
            report: Some(path.to_owned()),
            exports: exports(folder, stem),
            is_export: false,
        },
        Some((stem, false)) => ReportFile {
            named: path.to_owned(),
            base: folder.join(stem),
            report: beside(folder, stem, &REPORTS),
            exports: vec![path.to_owned()],
            is_export: true,
        },
        // What it is will be seen when it is opened.
        None => ReportFile {
            named: path.to_owned(),
            base: path.to_owned(),
            report: None,
            exports: vec![path.to_owned()],
            is_export: true,
        },
    }
}

/// The name without its ending, and whether it is that of a report; `None` where it is of neither a report nor an export.
fn stem_of<'a>(path: &Path, name: &'a str) -> Option<(&'a str, bool)> {
    let is_folder = path.is_dir();
    let reports = REPORTS.iter().filter(|_| !is_folder).map(|ending| (*ending, true));
    let exports =
        EXPORTS.iter().filter(|(_, folder)| *folder == is_folder).map(|(ending, _)| (*ending, false));
    let mut endings = reports.chain(exports);
    endings.find_map(|(ending, is_report)| {
        let stem = name.strip_suffix(ending)?;
        (!stem.is_empty()).then_some((stem, is_report))
    })
}

fn exports(folder: &Path, stem: &str) -> Vec<PathBuf> {
    let all = EXPORTS.iter().map(|(ending, is_folder)| (folder.join(format!("{stem}{ending}")), *is_folder));
    all.filter(|(path, is_folder)| if *is_folder { path.is_dir() } else { path.is_file() })
        .map(|(path, _)| path)
        .collect()
}

fn beside(folder: &Path, stem: &str, endings: &[&str]) -> Option<PathBuf> {
    endings.iter().map(|ending| folder.join(format!("{stem}{ending}"))).find(|path| path.is_file())
}

fn is_table(path: &Path) -> bool {
    path.extension().is_some_and(|extension| TABLES.iter().any(|table| extension == *table))
}

/// The same for every way to write a path.
fn whole(path: &Path) -> PathBuf {
    if let Ok(whole) = path.canonicalize() {
        return whole;
    }
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            folder.canonicalize().unwrap_or_else(|_| folder.to_owned()).join(name)
        }
        _ => path.to_owned(),
    }
}
