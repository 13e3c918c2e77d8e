//! Recipes over all reports at once: something is taken from each report while it is open, and tables are made of what was
//! taken from all. What is taken must be small beside the report: it is kept until the last report is read.

use super::written;
use crate::picture::Picture;
use crate::report::Arguments;
use crate::sheet::Sheet;
use nsys::export::ExportError;
use nsys::trace::Trace;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::Any;
use std::sync::Mutex;

/// What was taken from one report, of which nothing but its recipe knows the type.
pub(crate) type Taken = Box<dyn Any + Send + Sync>;

/// A recipe over all reports, whatever it takes from each; `Across` is the one that is declared.
pub trait Together: Sync {
    /// The names of the tables that it may give.
    fn tables(&self) -> &'static [&'static str];

    /// The pictures that it may give, and what each shows. What stands in capital letters in a name stands for others.
    fn pictures(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// What all reports add to while they are read, one at a time and in no order; nothing for most recipes.
    fn begin(&self) -> Taken {
        Box::new(())
    }

    /// Puts what other reports added to, in another process, to what these added to.
    fn join(&self, _all: &mut Taken, _more: Taken) {}

    /// What was taken from one report, for another process.
    fn to_bytes(&self, taken: &Taken) -> Result<Vec<u8>, String>;

    fn of_bytes(&self, bytes: &[u8]) -> Result<Taken, String>;

    /// The same of what all reports add to, which most recipes have none of.
    fn all_to_bytes(&self, _all: &Taken) -> Result<Vec<u8>, String> {
        Ok(Vec::new())
    }

    fn all_of_bytes(&self, _bytes: &[u8]) -> Result<Taken, String> {
        Ok(Box::new(()))
    }

    /// Nothing where the report has nothing of what is looked for; else what was taken, and of how many rows.
    fn take(&self, trace: &Trace, arguments: &Arguments, all: &Mutex<Taken>) -> Share<Taken>;

    /// In the order in which reports are numbered; those that had nothing are not among them.
    fn make(&self, all: Taken, reports: Vec<Of<&Taken>>, arguments: &Arguments) -> Made;

    /// The same, and why it is not whole, for a recipe that may fail over what was taken.
    fn try_make(
        &self,
        all: Taken,
        reports: Vec<Of<&Taken>>,
        arguments: &Arguments,
    ) -> (Made, Option<String>) {
        (self.make(all, reports, arguments), None)
    }

    /// Whether tables without a row say something, where reports were looked at and had nothing.
    fn tells_of_none(&self) -> bool {
        false
    }
}

/// One report, and what was taken from it.
#[derive(Debug, Clone)]
pub struct Of<T> {
    pub rank: i64,
    /// How the report is called where it is spoken of.
    pub file: String,
    pub host: Option<String>,
    /// What its clock's zero is in UTC, by the clock of its host.
    pub utc_epoch_ns: Option<i64>,
    pub taken: T,
}

/// Tables, each under the name of its file, pictures of them, and what is to be told of them.
#[derive(Debug, Default)]
pub struct Made {
    pub tables: Vec<(&'static str, Sheet)>,
    pub pictures: Vec<Picture>,
    pub notes: Vec<String>,
    /// Reports that could be read at first, and not when they were looked at again; and why. Or the recipe itself, where it
    /// failed over what was taken of all.
    pub unreadable: Vec<(String, String)>,
}

/// From one report, and of how many rows.
pub(crate) type Share<T> = Result<Option<(T, u64)>, ExportError>;

pub struct Across<T> {
    pub tables: &'static [&'static str],
    pub pictures: &'static [(&'static str, &'static str)],
    pub take: fn(&Trace, &Arguments) -> Share<T>,
    pub make: fn(&[Of<&T>], &Arguments) -> Made,
}

impl<T: Any + Send + Sync + Serialize + DeserializeOwned> Together for Across<T> {
    fn tables(&self) -> &'static [&'static str] {
        self.tables
    }

    fn pictures(&self) -> &'static [(&'static str, &'static str)] {
        self.pictures
    }

    fn to_bytes(&self, taken: &Taken) -> Result<Vec<u8>, String> {
        written::taken_to_bytes::<T>(taken)
    }

    fn of_bytes(&self, bytes: &[u8]) -> Result<Taken, String> {
        written::taken_from_bytes::<T>(bytes)
    }

    fn take(&self, trace: &Trace, arguments: &Arguments, _: &Mutex<Taken>) -> Share<Taken> {
        Ok((self.take)(trace, arguments)?.map(|(taken, rows)| (Box::new(taken) as Taken, rows)))
    }

    fn make(&self, _: Taken, reports: Vec<Of<&Taken>>, arguments: &Arguments) -> Made {
        // All of them were taken by this very recipe, so that none is left out here.
        let reports = reports.into_iter().filter_map(|report| {
            let taken = report.taken.downcast_ref::<T>()?;
            let Of { rank, file, host, utc_epoch_ns, .. } = report;
            Some(Of { rank, file, host, utc_epoch_ns, taken })
        });
        (self.make)(&reports.collect::<Vec<_>>(), arguments)
    }
}
