//! Calls of MPI, by name: their time, and the bytes of their messages.

use super::ReportSpec;
use super::summary::{Groups, Summary};
use crate::result_table::{Quantity, ResultTable};
use nsys::export::ExportError;
use nsys::tables::{MPI_COLLECTIVES, MPI_OTHER, MPI_P2P, MPI_START_WAIT, STRING_IDS, TableSpec};
use nsys::trace::NO_GROUP;
use nsys::trace::{Part, Trace};

/// Each table with what the column `Source` calls it.
pub(crate) const SOURCES: [(&str, &TableSpec); 4] = [
    ("p2p", &MPI_P2P),
    ("collectives", &MPI_COLLECTIVES),
    ("start_wait", &MPI_START_WAIT),
    ("other", &MPI_OTHER),
];

impl Groups {
    fn take(
        &mut self,
        source: &'static str,
        names: &Part<String>,
        values: impl Iterator<Item = Option<u64>>,
    ) {
        let before = self.labels.len() as u32;
        self.labels.extend(names.labels.iter().map(|name| vec![source.to_owned(), name.clone()]));
        for (group, value) in names.of_row.iter().zip(values) {
            let known = value.is_some() && *group != NO_GROUP;
            self.of_row.push(if known { before + group } else { NO_GROUP });
            self.values.push(value.unwrap_or_default());
        }
    }
}

fn names(trace: &Trace, ids: &nsys::export::MaybeInts, rows: usize) -> Result<Part<String>, ExportError> {
    // A call without a name keeps its place, under the number that no string has.
    let ids = (0..rows).map(|row| ids.get(row).unwrap_or(NO_STRING));
    Ok(Part::named(ids, trace.strings()?, |name| name))
}

const NO_STRING: i64 = -1;

pub(super) const MPI_EVENT_SUM: ReportSpec = ReportSpec {
    name: "mpi_event_sum",
    title: "MPI Event Summary",
    about: "calls of MPI by kind and name; calls without an end are left out",
    data: "MPI",
    arguments: &[],
    tables: &[&MPI_P2P, &MPI_COLLECTIVES, &MPI_START_WAIT, &MPI_OTHER, &STRING_IDS],
    run: |trace, _| {
        let Some(groups) = calls(trace)? else { return Ok(None) };
        let words = ["Source", "Name"];
        Summary::new(groups).time_table("mpi_event_sum", "MPI Event Summary", "Instances", &words).map(Some)
    },
};

/// Calls by kind and name, with their durations.
pub(crate) fn calls(trace: &Trace) -> Result<Option<Groups>, ExportError> {
    let mut all = Groups::default();
    for (source, spec) in SOURCES {
        let Some(rows) = trace.rows(spec, &["start", "end", "textId"])? else { continue };
        let (starts, ends) = (rows.ints("start")?, rows.maybe_ints("end")?);
        let mut names = names(trace, &rows.maybe_ints("textId")?, rows.len())?;
        let durations = trace.open_durations("calls of MPI", starts, &ends);
        durations.mask(starts, |row| ends.get(row), &mut names.of_row);
        all.take(source, &names, durations.ns().iter().map(|ns| Some(*ns)));
    }
    Ok(all.any())
}

pub(super) const MPI_MSG_SIZE_SUM: ReportSpec = ReportSpec {
    name: "mpi_msg_size_sum",
    title: "MPI Message Size Summary",
    about: "bytes of messages by kind and name of the call; what a collective sends and receives is listed apart",
    data: "MPI",
    arguments: &[],
    tables: &[&MPI_P2P, &MPI_COLLECTIVES, &STRING_IDS],
    run: |trace, _| {
        let mut all = Groups::default();
        for (source, spec, size) in [
            ("p2p", &MPI_P2P, "size"),
            ("coll_send", &MPI_COLLECTIVES, "size"),
            ("coll_recv", &MPI_COLLECTIVES, "recvSize"),
        ] {
            let Some(rows) = trace.rows(spec, &["textId", size])? else { continue };
            let names = names(trace, &rows.maybe_ints("textId")?, rows.len())?;
            let sizes = rows.maybe_ints(size)?;
            let negative = sizes.iter().flatten().filter(|size| *size < 0).count();
            if negative > 0 {
                trace.note(format!("messages of a negative size, left out: {negative}"));
            }
            all.take(source, &names, sizes.iter().map(|size| size.and_then(|size| u64::try_from(size).ok())));
        }
        let Some(all) = all.any() else { return Ok(None) };
        let summary = Summary::new(all);
        let (name, title) = ("mpi_msg_size_sum", "MPI Message Size Summary");
        let mut columns =
            vec![summary.totals(name, "Total Message Volume", Quantity::Plain)?, summary.counts("Instances")];
        columns.extend(summary.figures(Quantity::Plain));
        columns.extend(summary.key_columns(&["Source", "Name"]));
        Ok(Some(ResultTable::new(name, title, columns)))
    },
};
