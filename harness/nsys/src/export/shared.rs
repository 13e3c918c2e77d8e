//! Columns of one export that several readers have in common: each is decoded once and cached while a reader of its table
//! is still to come, as far as memory allows. Decoding is the caller's.

use super::{ExportError, Rows};
use crate::tables::{ColumnSpec, ColumnType, TableSpec};
use polars::prelude::{Column, DataFrame};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// With so many readers of a table nearly each of its columns is asked for sooner or later, and another pass over the
/// table costs more than a column of numbers.
const MANY: usize = 3;

pub(super) struct Shared {
    /// The limit in bytes.
    room: usize,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    tables: BTreeMap<&'static str, Table>,
    readers: BTreeMap<&'static str, usize>,
    decoded: BTreeMap<&'static str, Decoded>,
    bytes: usize,
    /// Grows with each reading: the column that was read longest ago goes first where there is no room.
    now: u64,
}

#[derive(Default)]
struct Table {
    columns: Vec<CachedColumn>,
    /// It is not there, or has no row.
    is_empty: bool,
    /// Not all of it found room: nothing is read ahead of it any more.
    is_too_large: bool,
}

struct CachedColumn {
    spec: &'static ColumnSpec,
    column: Column,
    bytes: usize,
    read: u64,
}

/// How often a table was read, and each of its columns decoded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decoded {
    /// Passes over the table; each decodes one or more columns.
    pub passes: u32,
    /// By column name: how many passes decoded it.
    pub columns: BTreeMap<&'static str, u32>,
}

impl Shared {
    pub(super) fn with_room(bytes: usize) -> Shared {
        Shared { room: bytes, state: RefCell::default() }
    }

    /// How many readers of each table are still to come. Tables without a reader are dropped.
    pub(super) fn readers(&self, readers: BTreeMap<&'static str, usize>) {
        let mut state = self.state.borrow_mut();
        let State { tables, bytes, .. } = &mut *state;
        tables.retain(|name, table| {
            let stays = readers.contains_key(name);
            if !stays {
                *bytes -= table.columns.iter().map(|cached| cached.bytes).sum::<usize>();
            }
            stays
        });
        state.readers = readers;
    }

    pub(super) fn decoded(&self) -> BTreeMap<&'static str, Decoded> {
        self.state.borrow().decoded.clone()
    }

    /// These columns of a table, of which those that are not cached are decoded, in one pass.
    pub(super) fn rows(
        &self,
        spec: &'static TableSpec,
        columns: &[&'static ColumnSpec],
        decode: impl Fn(&[&'static ColumnSpec]) -> Result<Option<Rows>, ExportError>,
    ) -> Result<Option<Rows>, ExportError> {
        if columns.is_empty() {
            return decode(columns);
        }
        let (missing, ahead) = {
            let mut state = self.state.borrow_mut();
            state.now += 1;
            if state.tables.get(spec.name).is_some_and(|table| table.is_empty) {
                return Ok(None);
            }
            let missing: Vec<_> = columns.iter().copied().filter(|column| !state.has(spec, column)).collect();
            if missing.is_empty() {
                return state.select(spec, columns, &[]).map(Some);
            }
            let ahead = state.ahead(spec, &missing);
            (missing, ahead)
        };
        let mut taken = [missing.as_slice(), &ahead].concat();
        let rows = match decode(&taken) {
            // A column read ahead may be damaged: then the requested ones are read alone.
            Err(_) if !ahead.is_empty() => {
                taken = missing;
                decode(&taken)?
            }
            read => read?,
        };
        let mut state = self.state.borrow_mut();
        let decoded = state.decoded.entry(spec.name).or_default();
        decoded.passes += 1;
        for column in &taken {
            *decoded.columns.entry(column.name).or_default() += 1;
        }
        let Some(rows) = rows else {
            state.tables.entry(spec.name).or_default().is_empty = true;
            return Ok(None);
        };
        let fresh = taken.into_iter().map(|column| Ok((column, rows.frame().column(column.name)?.clone())));
        let fresh = fresh.collect::<Result<Vec<_>, polars::error::PolarsError>>();
        let fresh = fresh.map_err(|error| broken(spec, &error))?;
        let selected = state.select(spec, columns, &fresh)?;
        for (column, values) in fresh {
            state.keep(self.room, spec, column, values);
        }
        Ok(Some(selected))
    }
}

impl State {
    fn has(&self, spec: &TableSpec, column: &ColumnSpec) -> bool {
        self.tables
            .get(spec.name)
            .is_some_and(|table| table.columns.iter().any(|cached| cached.spec == column))
    }

    /// What is read beside the missing columns, since others will ask for it.
    fn ahead(&self, spec: &'static TableSpec, missing: &[&ColumnSpec]) -> Vec<&'static ColumnSpec> {
        let too_large = self.tables.get(spec.name).is_some_and(|table| table.is_too_large);
        if too_large || self.readers.get(spec.name).is_none_or(|readers| *readers < MANY) {
            return Vec::new();
        }
        let numbers = spec
            .columns
            .iter()
            .filter(|column| matches!(column.kind, ColumnType::Integer | ColumnType::Real));
        numbers.filter(|column| !missing.contains(column) && !self.has(spec, column)).collect()
    }

    /// The asked columns in their order, from the cache and from what was just read.
    fn select(
        &mut self,
        spec: &'static TableSpec,
        columns: &[&'static ColumnSpec],
        fresh: &[(&'static ColumnSpec, Column)],
    ) -> Result<Rows, ExportError> {
        let now = self.now;
        let mut cached = self.tables.get_mut(spec.name);
        let mut selected: Vec<Column> = Vec::with_capacity(columns.len());
        for column in columns {
            let of_kept = cached.as_mut().and_then(|table| {
                let found = table.columns.iter_mut().find(|cached| cached.spec == *column)?;
                found.read = now;
                Some(&found.column)
            });
            let of_fresh = || fresh.iter().find(|(spec, _)| spec == column).map(|(_, values)| values);
            selected.extend(of_kept.or_else(of_fresh).cloned());
        }
        let height = selected.first().map_or(0, Column::len);
        let frame = DataFrame::new(height, selected).map_err(|error| broken(spec, &error))?;
        Ok(Rows::new(spec, frame))
    }

    /// Keeps a column where there is room for it, for which those that were read longest ago may have to go.
    fn keep(&mut self, room: usize, spec: &'static TableSpec, column: &'static ColumnSpec, values: Column) {
        let bytes = match &values {
            // One value for all rows, such as none.
            Column::Scalar(_) => 0,
            column => column.as_materialized_series().estimated_size(),
        };
        while self.bytes + bytes > room && self.let_go_of_the_oldest() {}
        let fits = self.bytes + bytes <= room;
        let table = self.tables.entry(spec.name).or_default();
        if fits {
            self.bytes += bytes;
            table.columns.push(CachedColumn { spec: column, column: values, bytes, read: self.now });
        } else {
            table.is_too_large = true;
        }
    }

    /// Nothing that was read just now goes.
    fn let_go_of_the_oldest(&mut self) -> bool {
        let all = self
            .tables
            .iter()
            .flat_map(|(name, table)| table.columns.iter().map(move |cached| (*name, cached)));
        let oldest = all.filter(|(_, cached)| cached.read < self.now && cached.bytes > 0);
        let oldest = oldest.min_by_key(|(name, cached)| (cached.read, *name, cached.spec.name));
        let Some((name, column)) = oldest.map(|(name, cached)| (name, cached.spec)) else { return false };
        if let Some(table) = self.tables.get_mut(name)
            && let Some(at) = table.columns.iter().position(|cached| cached.spec == column)
        {
            self.bytes -= table.columns.remove(at).bytes;
        }
        true
    }
}

fn broken(spec: &TableSpec, error: &dyn std::fmt::Display) -> ExportError {
    ExportError::Broken { table: spec.name, why: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::super::Export;
    use crate::tables::{KERNEL, NVTX_EVENTS, RUNTIME};
    use crate::testing::Made;
    use std::collections::BTreeMap;

    fn export(made: &Made, room: usize, readers: &[(&'static str, usize)]) -> Export {
        let export = Export::open(&made.path()).expect("opens").shared(room);
        export.readers(readers.iter().copied().collect());
        export
    }

    fn made() -> Made {
        let made = Made::begin();
        for at in 0..100 {
            made.kernel((at, at + 5), at, 1).call((at, at + 1), 7, at, 2);
        }
        made
    }

    fn decodings(export: &Export) -> Vec<(&'static str, u32, u32)> {
        let decoded = export.decoded();
        decoded
            .into_iter()
            .map(|(name, of)| (name, of.passes, of.columns.values().copied().max().unwrap_or_default()))
            .collect()
    }

    #[test]
    fn a_column_is_decoded_once_and_the_numbers_beside_it_are_read_in_the_same_pass() {
        let made = made();
        let alone = Export::open(&made.path()).expect("opens");
        let shared = export(&made, 1 << 20, &[(KERNEL.name, 3), (RUNTIME.name, 2)]);
        for columns in [&["start", "end"][..], &["correlationId", "start"], &["deviceId"], &["start", "end"]]
        {
            let (one, other) = (shared.columns(&KERNEL, columns), alone.columns(&KERNEL, columns));
            let (one, other) = (one.expect("read").expect("rows"), other.expect("read").expect("rows"));
            assert!(one.frame().equals_missing(other.frame()), "{columns:?}");
        }
        for columns in [&["start"][..], &["start", "end"], &["end"]] {
            shared.columns(&RUNTIME, columns).expect("read").expect("rows");
        }
        assert!(shared.columns(&NVTX_EVENTS, &["start"]).expect("read").is_none());
        assert!(shared.columns(&NVTX_EVENTS, &["start", "end"]).expect("read").is_none());
        let expected = [(KERNEL.name, 1, 1), (RUNTIME.name, 2, 1), (NVTX_EVENTS.name, 1, 1)];
        assert_eq!(decodings(&shared), expected);
    }

    #[test]
    fn without_room_everything_is_read_again_and_nothing_ahead() {
        let made = made();
        // Two columns of a hundred numbers fit, a third one does not.
        let shared = export(&made, 2000, &[(KERNEL.name, 9), (RUNTIME.name, 1)]);
        for _ in 0..3 {
            let rows = shared.columns(&KERNEL, &["start", "end", "deviceId"]).expect("read").expect("rows");
            assert_eq!((rows.len(), rows.ints("end").expect("ints")[99]), (100, 104));
        }
        let decoded = &shared.decoded()[KERNEL.name];
        assert_eq!(decoded.columns.get("gridX"), Some(&1), "read ahead once, and never again");
        assert!(decoded.passes >= 2);
        // What was read longest ago goes first.
        shared.columns(&RUNTIME, &["start", "end"]).expect("read").expect("rows");
        shared.columns(&RUNTIME, &["start", "end"]).expect("read").expect("rows");
        assert_eq!(shared.decoded()[RUNTIME.name].passes, 1);
    }

    #[test]
    fn a_table_without_further_readers_is_dropped() {
        let made = made();
        let shared = export(&made, 1 << 20, &[(KERNEL.name, 1)]);
        shared.columns(&KERNEL, &["start"]).expect("read").expect("rows");
        shared.readers(BTreeMap::from([(RUNTIME.name, 1)]));
        shared.columns(&KERNEL, &["start"]).expect("read").expect("rows");
        assert_eq!(decodings(&shared), [(KERNEL.name, 2, 2)]);
    }

    #[test]
    fn a_bad_column_that_was_read_ahead_fails_nothing() {
        let made = Made::begin();
        let db = rusqlite::Connection::open(made.path()).expect("opens");
        db.execute_batch(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER);
             INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 4);",
        )
        .expect("made");
        let shared = export(&made, 1 << 20, &[(KERNEL.name, 5)]);
        let rows = shared.columns(&KERNEL, &["start", "end"]).expect("read").expect("rows");
        assert_eq!(rows.ints("end").expect("ints"), [4]);
        let error = shared.columns(&KERNEL, &["start", "deviceId"]).expect_err("not there").to_string();
        assert!(error.contains("no column `deviceId`"), "{error}");
    }
}
