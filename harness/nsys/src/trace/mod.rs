//! One report as recipes and statistics tables see it: rows of its tables within the filter, and the strings that they
//! refer to. What was left out is reported in notes.

pub mod balance;
mod filter;
mod keys;
pub mod launches;
mod names;
pub mod nesting;
mod nics;
pub mod nvtx;
#[cfg(test)]
mod nvtx_tests;
mod process;
pub mod projection;
mod recorded;
mod reopenable;
mod session;
#[cfg(test)]
mod tests;

pub use filter::{BadFilter, Filter, RangeFilter, TimeFilter};
pub use keys::{Keys, NO_GROUP, Part};
pub use names::Strings;
pub use nics::{Nic, nics};
pub use process::{pid_of, process_of, tid_of};
pub use recorded::TIMED;
pub use reopenable::Reopenable;

use crate::export::{Export, ExportError, MaybeInts, Rows};
use crate::tables::TableSpec;
use std::cell::{OnceCell, RefCell};
use std::path::Path;

/// One open report, with its filter, its strings and the notes on what was left out.
pub struct Trace {
    export: Export,
    strings: OnceCell<Strings>,
    filter: Option<Filter>,
    windows: Option<filter::Windows>,
    recorded: OnceCell<Option<(i64, i64)>>,
    notes: RefCell<Vec<String>>,
}

impl Trace {
    /// Opens an export without a filter and without a cache of columns.
    pub fn open(path: &Path) -> Result<Trace, ExportError> {
        let export = Export::open(path)?;
        Ok(Trace {
            export,
            strings: OnceCell::new(),
            filter: None,
            windows: None,
            recorded: OnceCell::new(),
            notes: RefCell::default(),
        })
    }

    /// With columns cached for further readers, at most `room` bytes of them; see `Export::shared`.
    pub fn open_shared(path: &Path, room: usize) -> Result<Trace, ExportError> {
        let trace = Trace::open(path)?;
        Ok(Trace { export: trace.export.shared(room), ..trace })
    }

    /// What this makes of the whole report, whatever the filter. It leaves no note.
    pub fn whole<T>(&mut self, make: impl FnOnce(&Trace) -> T) -> T {
        let (windows, notes) = (self.windows.take(), self.notes.take());
        let made = make(self);
        (self.windows, self.notes) = (windows, RefCell::new(notes));
        made
    }

    /// From here on only what overlaps the filter's windows is given. A filter by a range that the report does not have
    /// leaves nothing.
    pub fn filtered(mut self, filter: &Filter) -> Result<Trace, ExportError> {
        self.windows = Some(filter::windows(&self, filter)?);
        self.filter = Some(filter.clone());
        Ok(self)
    }

    /// Whether only a part of it is read.
    pub fn is_filtered(&self) -> bool {
        self.windows.is_some()
    }

    /// To reopen it later, when all reports are known.
    pub fn reopenable(&self) -> Reopenable {
        Reopenable::new(self.export.path(), self.filter.as_ref())
    }

    /// The export itself: its rows are not filtered.
    pub fn export(&self) -> &Export {
        &self.export
    }

    /// The span of time that a person asked for; a side that was left open reaches as far as numbers do.
    pub fn asked_span(&self) -> Option<(i64, i64)> {
        self.windows.as_ref().and_then(filter::Windows::time)
    }

    /// These columns of a table; `None` where nothing of it is there, or nothing of it lies in the window.
    pub fn rows(&self, spec: &'static TableSpec, columns: &[&str]) -> Result<Option<Rows>, ExportError> {
        match &self.windows {
            None => self.export.columns(spec, columns),
            Some(windows) => windows.rows(&self.export, spec, columns),
        }
    }

    /// Strings by id, read at the first call.
    pub fn strings(&self) -> Result<&Strings, ExportError> {
        if let Some(strings) = self.strings.get() {
            return Ok(strings);
        }
        let read = Strings::read(&self.export)?;
        Ok(self.strings.get_or_init(|| read))
    }

    /// Adds a note, unless the same one is there already.
    pub fn note(&self, note: String) {
        let mut notes = self.notes.borrow_mut();
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// What was left out so far, and why.
    pub fn notes(&self) -> Vec<String> {
        self.notes.borrow().clone()
    }

    /// The same, and clears them: the next recipe notes what it leaves out itself.
    pub fn take_notes(&self) -> Vec<String> {
        self.notes.take()
    }

    /// How long each row lasted. A row that ends before it begins lasts `None`: it is counted in a note, and belongs to
    /// no group.
    pub fn durations(&self, what: &str, starts: &[i64], ends: &[i64]) -> Durations {
        let mut backwards = 0usize;
        let ns = starts.iter().zip(ends).map(|(start, end)| {
            backwards += usize::from(end < start);
            // The distance of any two 64-bit numbers fits, where the second is not before the first.
            end.wrapping_sub(*start) as u64
        });
        let ns = ns.collect();
        self.note_backwards(what, backwards);
        Durations { ns, backwards: backwards > 0 }
    }

    fn note_backwards(&self, what: &str, rows: usize) {
        if rows > 0 {
            self.note(format!("{what}: rows that end before they begin, left out: {rows}"));
        }
    }

    /// The same for rows some of which have no end: those were open when the capture ended.
    pub fn open_durations(&self, what: &str, starts: &[i64], ends: &MaybeInts) -> Durations {
        let mut open = 0usize;
        let closed: Vec<i64> = starts
            .iter()
            .enumerate()
            .map(|(row, start)| {
                ends.get(row).unwrap_or_else(|| {
                    open += 1;
                    start.saturating_sub(1)
                })
            })
            .collect();
        if open == 0 {
            return self.durations(what, starts, &closed);
        }
        self.note(format!("{what}: rows without an end, left out: {open}"));
        let backwards = starts.iter().zip(&closed).filter(|(start, end)| end < start).count() - open;
        self.note_backwards(what, backwards);
        let ns = starts.iter().zip(&closed).map(|(start, end)| end.wrapping_sub(*start) as u64).collect();
        Durations { ns, backwards: true }
    }
}

/// Of each row; see `Trace::durations`.
pub struct Durations {
    ns: Vec<u64>,
    backwards: bool,
}

impl Durations {
    /// Nanoseconds by row; rows that end before they begin have no valid value.
    pub fn ns(&self) -> &[u64] {
        &self.ns
    }

    /// As `ns`, without a copy.
    pub fn into_ns(self) -> Vec<u64> {
        self.ns
    }

    /// Takes rows without a valid duration out of their groups.
    pub fn mask(&self, starts: &[i64], ends: impl Fn(usize) -> Option<i64>, groups: &mut [u32]) {
        if self.backwards {
            for (row, group) in groups.iter_mut().enumerate() {
                if ends(row).is_none_or(|end| end < starts[row]) {
                    *group = NO_GROUP;
                }
            }
        }
    }
}
