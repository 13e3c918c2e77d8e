//! One exported report, opened read-only: a folder of Parquet or Arrow files, an SQLite file or a file of Arrow
//! streams. It gives declared tables only. A capture of the harness's own sampler is opened like a report, and has no
//! tables.

mod arrow;
#[cfg(test)]
mod bytes_tests;
mod cleaned;
#[cfg(test)]
mod contradiction_tests;
mod copies;
mod parquet_folder;
mod rows;
mod shared;
mod source;
mod sqlite;
mod sqlite_pages;
#[cfg(test)]
mod tests;

pub use cleaned::cleaned;
pub use rows::{MaybeInts, Rows};
pub use shared::Decoded;
pub use source::{ColumnSource, SourceGuard, register};

use crate::regular_file::CHANGED;
use crate::tables::{
    ColumnSpec, ColumnType, KERNEL, MEMCPY, MEMSET, META_DATA_EXPORT, PROCESSES, RUNTIME, TableSpec,
};
use logs::efa_counters::{self, Capture};
use polars::prelude::*;
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Enough to know each form by its first bytes.
const HEAD_BYTES: u64 = 64;

/// The layout that this reader knows. A newer one is read as far as the columns that are asked for are there.
pub const KNOWN_MAJOR: u32 = 3;

/// One export of a report, opened read-only by `Export::open`.
pub struct Export {
    path: PathBuf,
    form: Form,
    shared: Option<shared::Shared>,
    /// Why its kernels do not count, once it was looked for.
    contradiction: OnceCell<Option<String>>,
}

enum Form {
    ParquetFolder,
    ArrowFolder,
    ArrowStreams(arrow::Streams),
    /// Its pages are read here.
    Pages(sqlite_pages::Pages),
    /// It is not of the plain kind, and the whole engine reads it.
    Sqlite(rusqlite::Connection),
    Counters(Box<Capture>),
}

/// By which release an export was written, as it says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenBy {
    /// Release of nsys, such as `2025.3.1`; `None` if not recorded.
    pub product: Option<String>,
    /// Version of the export's layout, such as `3.20.0`; `None` if not recorded.
    pub schema: Option<String>,
}

impl WrittenBy {
    /// First number of `schema`, compared with `KNOWN_MAJOR`.
    pub fn schema_major(&self) -> Option<u32> {
        self.schema.as_deref()?.split('.').next()?.parse().ok()
    }
}

/// Why an export, one of its tables or a user's query cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// It does not exist, or has no form that can be opened.
    #[error("`{}` is not a readable export: {why}", file_name(.path))]
    NotAnExport {
        /// As given to `Export::open`.
        path: PathBuf,
        /// The reason, without the path.
        why: String,
    },
    /// An SQLite file of another program.
    #[error("`{}` is not a readable export: {}", file_name(.path), FOREIGN)]
    Foreign {
        /// As given to `Export::open`.
        path: PathBuf,
    },
    /// A table exists and cannot be read: truncated or damaged.
    #[error("table `{table}` cannot be read: {why}")]
    Broken {
        /// Current name, also where the export has the older one.
        table: &'static str,
        /// What the reader of that form reports.
        why: String,
    },
    /// A table exists and lacks a required column.
    #[error("table `{table}` has no column `{column}` (export schema {schema})")]
    NoColumn {
        /// Current name, also where the export has the older one.
        table: &'static str,
        /// The first required column that is absent.
        column: &'static str,
        /// Version of the export's layout, or `unknown`.
        schema: String,
    },
    /// The query of a user's recipe failed.
    #[error("`{what}`: {why}")]
    Query {
        /// The recipe, or the table that it queries.
        what: String,
        /// What failed.
        why: String,
    },
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().escape_debug().to_string()
}

/// Which of the two is of this report, nothing shows.
fn table_of_both_forms(files: &[PathBuf]) -> Option<String> {
    let all: BTreeSet<&PathBuf> = files.iter().collect();
    let of_both =
        |file: &&PathBuf| parquet_folder::is_of_form(file) && all.contains(&file.with_extension("arrow"));
    let first = files.iter().filter(of_both).min()?;
    Some(first.file_stem()?.to_string_lossy().escape_debug().to_string())
}

impl Export {
    /// Opens a folder or file; its contents decide in which form it is read.
    pub fn open(path: &Path) -> Result<Export, ExportError> {
        let bad = |why: String| ExportError::NotAnExport { path: path.to_owned(), why };
        if path.is_dir() {
            let entries = std::fs::read_dir(path).map_err(|error| bad(error.to_string()))?;
            let files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
            if let Some(table) = table_of_both_forms(&files) {
                let why = format!(
                    "table `{table}` is there as .parquet and as .arrow: two exports in one folder, remove one of them"
                );
                return Err(bad(why));
            }
            let form = if files.iter().any(|file| parquet_folder::is_of_form(file)) {
                Form::ParquetFolder
            } else if files.iter().any(|file| arrow::is_of_form(file)) {
                Form::ArrowFolder
            } else {
                return Err(bad("the folder has no .parquet or .arrow file".to_owned()));
            };
            return Ok(Export { path: path.to_owned(), form, shared: None, contradiction: OnceCell::new() });
        }
        // A pipe would be waited for, and a device has no end.
        if !std::fs::metadata(path).map_err(|error| bad(error.to_string()))?.is_file() {
            return Err(bad("not a regular file".to_owned()));
        }
        let mut head = Vec::new();
        let read = std::fs::File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
        read.map_err(|error| bad(error.to_string()))?;
        if head.is_empty() {
            return Err(bad("the file is empty".to_owned()));
        }
        if head.starts_with(efa_counters::MAGIC) {
            let capture = efa_counters::read_file(path).map_err(bad)?;
            let form = Form::Counters(Box::new(capture));
            return Ok(Export { path: path.to_owned(), form, shared: None, contradiction: OnceCell::new() });
        }
        if arrow::begins_a_stream(&head) {
            let streams = arrow::Streams::open(path).map_err(bad)?;
            let form = Form::ArrowStreams(streams);
            return Ok(Export { path: path.to_owned(), form, shared: None, contradiction: OnceCell::new() });
        }
        if let Some(why) = logs::encoding::refusal(&head) {
            return Err(bad(why.to_owned()));
        }
        if !head.starts_with(b"SQLite format 3\0") {
            let why = "not a Parquet or Arrow folder, SQLite file or Arrow stream; export the report with \
                       `nsys export --type=parquetdir` or `--type=sqlite`";
            return Err(bad(why.to_owned()));
        }
        let (form, tables) = match sqlite_pages::open(path).map_err(bad)? {
            sqlite_pages::Opened::Plain(pages) => {
                let tables = pages.names();
                (Form::Pages(pages), tables)
            }
            sqlite_pages::Opened::NotPlain(why) => {
                let connection = sqlite::open(path).map_err(|error| bad(format!("{error} ({why})")))?;
                let tables = sqlite::names(&connection).map_err(bad)?;
                (Form::Sqlite(connection), tables)
            }
        };
        if !tables.iter().any(|name| OURS.iter().any(|ours| name.starts_with(ours))) {
            return Err(ExportError::Foreign { path: path.to_owned() });
        }
        Ok(Export { path: path.to_owned(), form, shared: None, contradiction: OnceCell::new() })
    }

    /// From here on columns are cached for further readers, at most `room` bytes of them.
    pub(crate) fn shared(mut self, room: usize) -> Export {
        self.shared = Some(shared::Shared::with_room(room));
        self
    }

    /// Of what is shared: by name how many readers of each table are still to come. Other tables are dropped.
    pub fn readers(&self, readers: BTreeMap<&'static str, usize>) {
        if let Some(shared) = &self.shared {
            shared.readers(readers);
        }
    }

    /// Of what is shared: how often each table was read.
    pub fn decoded(&self) -> BTreeMap<&'static str, Decoded> {
        self.shared.as_ref().map(shared::Shared::decoded).unwrap_or_default()
    }

    /// The path that was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The counters of one node, where it is no report but a capture of them.
    pub fn capture(&self) -> Option<&Capture> {
        match &self.form {
            Form::Counters(capture) => Some(capture),
            _ => None,
        }
    }

    /// All declared columns of a table, in their order. A table that is not there is `None`, as one without a row is:
    /// exports leave out what they have nothing for.
    pub fn table(&self, spec: &'static TableSpec) -> Result<Option<Rows>, ExportError> {
        self.read(spec, &spec.columns.iter().collect::<Vec<_>>())
    }

    /// These of the declared columns alone: what is not asked for costs nothing.
    pub fn columns(&self, spec: &'static TableSpec, names: &[&str]) -> Result<Option<Rows>, ExportError> {
        self.read(spec, &rows::chosen(spec, names))
    }

    fn read(
        &self,
        spec: &'static TableSpec,
        columns: &[&'static ColumnSpec],
    ) -> Result<Option<Rows>, ExportError> {
        match &self.shared {
            Some(shared) => shared.rows(spec, columns, |columns| self.decode(spec, columns)),
            None => self.decode(spec, columns),
        }
    }

    fn decode(
        &self,
        spec: &'static TableSpec,
        columns: &[&'static ColumnSpec],
    ) -> Result<Option<Rows>, ExportError> {
        for name in [Some(spec.name), spec.older_name].into_iter().flatten() {
            let frame = match self.frame(name, columns) {
                Ok(Some(frame)) => frame,
                Ok(None) => continue,
                Err(Fault::NoColumn(column)) => {
                    let schema = self.schema_for_message(spec);
                    return Err(ExportError::NoColumn { table: spec.name, column, schema });
                }
                Err(Fault::Broken(why)) => return Err(ExportError::Broken { table: spec.name, why }),
            };
            if frame.height() == 0 {
                return Ok(None);
            }
            let rows = Rows::new(spec, rows::without_endless(frame));
            return match self.contradiction(spec, name, &rows) {
                Some(why) => Err(ExportError::Broken { table: spec.name, why }),
                None => Ok(Some(rows)),
            };
        }
        Ok(None)
    }

    fn frame(&self, name: &str, columns: &[&'static ColumnSpec]) -> Result<Option<DataFrame>, Fault> {
        match &self.form {
            Form::ParquetFolder => parquet_folder::table(&self.path, name, columns),
            Form::ArrowFolder => arrow::table_of_folder(&self.path, name, columns),
            Form::ArrowStreams(streams) => streams.table(name, columns),
            Form::Pages(pages) => pages.table(name, columns),
            Form::Sqlite(connection) => sqlite::table(connection, name, columns),
            Form::Counters(_) => Ok(None),
        }
    }

    /// Whether kernels, copies or fills of memory or CUDA calls are there twice, or kernels are of another report.
    fn contradiction(&self, spec: &'static TableSpec, name: &str, rows: &Rows) -> Option<String> {
        if rows.ints("start").is_err() {
            return None;
        }
        if *spec == KERNEL {
            let find = || self.repeated(spec, name, rows).or_else(|| self.other_processes(name));
            return self.contradiction.get_or_init(find).clone();
        }
        let can_repeat = [&MEMCPY, &MEMSET, &RUNTIME].contains(&spec);
        if can_repeat { self.repeated(spec, name, rows) } else { None }
    }

    /// Further columns are read only as long as rows are alike in the others. One that cannot be read shows no difference.
    fn repeated(&self, spec: &'static TableSpec, name: &str, rows: &Rows) -> Option<String> {
        let starts = rows.ints("start").ok()?;
        let mut alike = copies::alike(rows)?;
        for columns in copies::further(spec, rows) {
            let frames = match self.frame(name, &columns) {
                Ok(frame) => vec![frame?],
                Err(_) if columns.iter().any(|column| column.name == copies::LAUNCH) => return None,
                Err(_) => columns.iter().filter_map(|column| self.frame(name, &[*column]).ok()?).collect(),
            };
            for frame in frames {
                let mut frame = rows::without_endless(frame);
                if frame.height() != starts.len() {
                    return Some(CHANGED.to_owned());
                }
                frame.rechunk_mut();
                alike = alike.narrowed(&frame, starts)?;
            }
        }
        Some(alike.copies()?.to_string())
    }

    /// A folder can hold a file of another report. `PROCESSES` lists all processes of a machine.
    fn other_processes(&self, kernels: &str) -> Option<String> {
        if !self.is_folder() {
            return None;
        }
        let known = self.processes(&PROCESSES, PROCESSES.name)?;
        let ran = self.processes(&KERNEL, kernels)?;
        let is_other = !known.is_empty() && !ran.is_empty() && ran.is_disjoint(&known);
        is_other.then(|| {
            "`PROCESSES` lists none of its processes: a file of another report, export it again".to_owned()
        })
    }

    fn processes(&self, spec: &'static TableSpec, name: &str) -> Option<BTreeSet<i64>> {
        let frame = self.frame(name, &rows::chosen(spec, &["globalPid"])).ok()??;
        let column = frame.column("globalPid").ok()?.i64().ok()?;
        let (mut processes, mut last) = (BTreeSet::new(), None);
        for process in column.iter().flatten() {
            if last != Some(process) {
                processes.insert(process);
                last = Some(process);
            }
        }
        Some(processes)
    }

    fn is_folder(&self) -> bool {
        matches!(self.form, Form::ParquetFolder | Form::ArrowFolder)
    }

    /// Whether a folder has lost the file of diagnostics: labels of their severities are written where there are any.
    pub(crate) fn lacks_diagnostics(&self) -> bool {
        let labels = ["parquet", "arrow"].map(|form| format!("ENUM_DIAGNOSTIC_SEVERITY_LEVEL.{form}"));
        self.is_folder() && labels.iter().any(|file| self.path.join(file).is_file())
    }

    /// Reads `META_DATA_EXPORT`; both versions are `None` if the table is absent.
    pub fn written_by(&self) -> Result<WrittenBy, ExportError> {
        let mut written = WrittenBy::default();
        let Some(rows) = self.table(&META_DATA_EXPORT)? else { return Ok(written) };
        for (name, value) in rows.texts("name")?.iter().zip(rows.texts("value")?.iter()) {
            match name {
                Some("EXPORT_PRODUCT_VERSION") => written.product = value.map(str::to_owned),
                Some("EXPORT_SCHEMA_VERSION") => written.schema = value.map(str::to_owned),
                _ => {}
            }
        }
        Ok(written)
    }

    fn schema_for_message(&self, asked: &TableSpec) -> String {
        if *asked == META_DATA_EXPORT {
            return "unknown".to_owned();
        }
        let written = self.written_by().ok().and_then(|written| written.schema);
        written.unwrap_or_else(|| "unknown".to_owned())
    }
}

/// With which names of tables begin that `nsys export` writes. Each export has the first, and one of the next two; what
/// was made of one may have others alone.
const OURS: [&str; 13] = [
    "StringIds",
    "META_DATA_",
    "EXPORT_META_DATA",
    "CUPTI_",
    "NVTX_",
    "MPI_",
    "OSRT_",
    "GPU_METRICS",
    "GENERIC_EVENT",
    "NET_",
    "TARGET_INFO_",
    "DX12_",
    "DIAGNOSTIC_EVENT",
];
const FOREIGN: &str = "an SQLite file of another program: no table `StringIds` or `META_DATA_*`";

/// Whether a file is of SQLite, whole, and of another program.
pub(crate) fn is_foreign(path: &Path) -> bool {
    matches!(Export::open(path), Err(ExportError::Foreign { .. }))
}

/// What can be wrong with an existing table.
enum Fault {
    NoColumn(&'static str),
    Broken(String),
}

impl<E: std::error::Error> From<E> for Fault {
    fn from(error: E) -> Self {
        // Errors of engines have several lines at times; one says enough.
        Fault::Broken(error.to_string().lines().next().unwrap_or_default().to_owned())
    }
}

/// As the engine holds columns of that kind.
pub fn type_of(kind: ColumnType) -> DataType {
    match kind {
        ColumnType::Integer => DataType::Int64,
        ColumnType::Real => DataType::Float64,
        ColumnType::Text => DataType::String,
        ColumnType::Bytes => DataType::Binary,
    }
}
