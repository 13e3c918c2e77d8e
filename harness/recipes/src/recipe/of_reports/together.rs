//! Recipes over all reports at once: each makes an extract of each report while it is open, and tables from all
//! extracts. An extract must be small beside the report: it is kept until the last report is read.

use super::columns::{OutputTable, TableDoc};
use super::encoding;
use crate::chart::Chart;
use crate::report::Arguments;
use crate::result_table::ResultTable;
use nsys::export::ExportError;
use nsys::trace::Trace;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::Any;
use std::sync::Mutex;

/// The extract of one report; only its recipe knows the type.
pub(crate) type Extract = Box<dyn Any + Send + Sync>;

/// A recipe over all reports, with any type of extract; `Across` is the declared form.
pub trait Together: Sync {
    /// The tables that it may give, with their columns.
    fn tables(&self) -> Vec<OutputTable>;

    /// The charts that it may give, and what each shows. Capital letters in a name are a placeholder.
    fn charts(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// The accumulator that reports add to while they are read, one at a time and in no order; unused by most recipes.
    fn begin(&self) -> Extract {
        Box::new(())
    }

    /// Merges the accumulator of another process into this one.
    fn join(&self, _all: &mut Extract, _more: Extract) {}

    /// Serialises one extract for another process.
    fn to_bytes(&self, extract: &Extract) -> Result<Vec<u8>, String>;

    /// Reads back what `to_bytes` wrote.
    fn read_bytes(&self, bytes: &[u8]) -> Result<Extract, String>;

    /// The same for the accumulator.
    fn all_to_bytes(&self, _all: &Extract) -> Result<Vec<u8>, String> {
        Ok(Vec::new())
    }

    /// Reads back what `all_to_bytes` wrote.
    fn all_from_bytes(&self, _bytes: &[u8]) -> Result<Extract, String> {
        Ok(Box::new(()))
    }

    /// The extract and the number of rows it is from; `None` where the report has no such data.
    fn take(&self, trace: &Trace, arguments: &Arguments, all: &Mutex<Extract>) -> Share<Extract>;

    /// Reports in order of their numbers, without those that had no data.
    fn make(&self, all: Extract, reports: Vec<ReportExtract<&Extract>>, arguments: &Arguments) -> Made;

    /// The same, with the reason why it is incomplete, for a recipe that may fail on the extracts.
    fn try_make(
        &self,
        all: Extract,
        reports: Vec<ReportExtract<&Extract>>,
        arguments: &Arguments,
    ) -> (Made, Option<String>) {
        (self.make(all, reports, arguments), None)
    }

    /// Whether empty tables are a result, where reports were read and had no matching rows.
    fn shows_empty_tables(&self) -> bool {
        false
    }
}

/// One report and its extract.
#[derive(Debug, Clone)]
pub struct ReportExtract<T> {
    /// Its MPI rank where each report has one of its own, else its number.
    pub rank: i64,
    /// The report's name in messages.
    pub file: String,
    /// Name of the host, where the report has it.
    pub host: Option<String>,
    /// The zero of its clock in UTC, by the clock of its host.
    pub utc_epoch_ns: Option<i64>,
    /// What `take` made of the report.
    pub extract: T,
}

/// Tables, each under the name of its file, their charts, and notes about them.
#[derive(Debug, Default)]
pub struct Made {
    /// As the file is called, without extension: `stats`.
    pub tables: Vec<(&'static str, ResultTable)>,
    /// Drawn with `--html`.
    pub charts: Vec<Chart>,
    /// Lines that follow the notes of the single reports.
    pub notes: Vec<String>,
    /// Reports that could not be re-read, and why. Or the recipe itself, where it failed on the extracts.
    pub unreadable: Vec<(String, String)>,
}

/// The extract of one report, and the number of rows it is from.
pub(crate) type Share<T> = Result<Option<(T, u64)>, ExportError>;

/// The common form of `Together`: no accumulator, and an extract that serde writes.
pub struct Across<T> {
    /// The tables that `make` may give.
    pub tables: &'static [TableDoc],
    /// Charts that `make` may give: name, and what each shows.
    pub charts: &'static [(&'static str, &'static str)],
    /// Makes the extract of one report; see `Together::take`.
    pub take: fn(&Trace, &Arguments) -> Share<T>,
    /// Makes tables and charts from the extracts, in the order of the reports.
    pub make: fn(&[ReportExtract<&T>], &Arguments) -> Made,
}

impl<T: Any + Send + Sync + Serialize + DeserializeOwned> Together for Across<T> {
    fn tables(&self) -> Vec<OutputTable> {
        self.tables.iter().map(TableDoc::table).collect()
    }

    fn charts(&self) -> &'static [(&'static str, &'static str)] {
        self.charts
    }

    fn to_bytes(&self, extract: &Extract) -> Result<Vec<u8>, String> {
        encoding::extract_to_bytes::<T>(extract)
    }

    fn read_bytes(&self, bytes: &[u8]) -> Result<Extract, String> {
        encoding::extract_from_bytes::<T>(bytes)
    }

    fn take(&self, trace: &Trace, arguments: &Arguments, _: &Mutex<Extract>) -> Share<Extract> {
        Ok((self.take)(trace, arguments)?.map(|(extract, rows)| (Box::new(extract) as Extract, rows)))
    }

    fn make(&self, _: Extract, reports: Vec<ReportExtract<&Extract>>, arguments: &Arguments) -> Made {
        // All extracts are of this recipe, so the filter drops none.
        let reports = reports.into_iter().filter_map(|report| {
            let extract = report.extract.downcast_ref::<T>()?;
            let ReportExtract { rank, file, host, utc_epoch_ns, .. } = report;
            Some(ReportExtract { rank, file, host, utc_epoch_ns, extract })
        });
        (self.make)(&reports.collect::<Vec<_>>(), arguments)
    }
}
