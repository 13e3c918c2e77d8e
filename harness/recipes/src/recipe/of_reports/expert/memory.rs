//! Copies and fills of memory that block the host, or that turn out to block although they were asked not to.

use super::{note_none, was_traced};
use crate::recipe::of_reports::{RecipeKind, ReportRecipe};
use crate::report::{api_name, memory_kinds};
use crate::result_table::{Column, Quantity, ResultTable};
use nsys::export::{ExportError, Rows};
use nsys::tables::{MEM_KIND, MEMCPY, MEMSET, RUNTIME, STRING_IDS, TableSpec};
use nsys::trace::launches::Calls;
use nsys::trace::{Part, Trace, pid_of};
use std::collections::HashMap;

pub(in super::super) const CUDA_MEMCPY_ASYNC: ReportRecipe = ReportRecipe {
    name: "cuda_memcpy_async",
    title: "Asynchronous Copies of Pageable Memory",
    about: "asynchronous copies that block, because host memory is pageable",
    definition: "copies with pageable memory on either side whose launching call copies and has `Async` in its name, the \
                 longest first; `Duration` is of the copy on the GPU. Copies whose kinds of memory or whose call are not \
                 recorded are counted in notes",
    arguments: &[],
    tables: &[&MEMCPY, &RUNTIME, &STRING_IDS, &MEM_KIND],
    kind: RecipeKind::Rows {
        columns: &[&[
            "Duration",
            "Start",
            "Source Kind: the kind of memory that is read",
            "Destination Kind: the kind of memory that is written",
            "Bytes",
            "PID",
            "Device",
            "Context",
            "Stream",
            "API",
        ]],
        of: |trace, _| found(trace, &ASYNC_COPIES),
    },
};

pub(in super::super) const CUDA_MEMCPY_SYNC: ReportRecipe = ReportRecipe {
    name: "cuda_memcpy_sync",
    title: "Synchronous Copies",
    about: "copies that block the host until they are done",
    definition: "copies whose launching call copies and has no `Async` in its name, the longest first; copies between \
                 GPUs and within one do not block and do not count",
    arguments: &[],
    tables: &[&MEMCPY, &RUNTIME, &STRING_IDS, &MEM_KIND],
    kind: RecipeKind::Rows {
        columns: &[&[
            "Duration",
            "Start",
            "Source Kind: the kind of memory that is read",
            "Destination Kind: the kind of memory that is written",
            "Bytes",
            "PID",
            "Device",
            "Context",
            "Stream",
            "API",
        ]],
        of: |trace, _| found(trace, &SYNC_COPIES),
    },
};

pub(in super::super) const CUDA_MEMSET_SYNC: ReportRecipe = ReportRecipe {
    name: "cuda_memset_sync",
    title: "Synchronous Fills",
    about: "fills of pinned or managed memory that block the host",
    definition: "fills of pinned, managed or static managed memory whose launching call fills and has no `Async` in its \
                 name, the longest first. Fills whose kind of memory or whose call is not recorded are counted in notes",
    arguments: &[],
    tables: &[&MEMSET, &RUNTIME, &STRING_IDS, &MEM_KIND],
    kind: RecipeKind::Rows {
        columns: &[&[
            "Duration",
            "Start",
            "Memory Kind: the kind of memory that is filled",
            "Bytes",
            "PID",
            "Device",
            "Context",
            "Stream",
            "API",
        ]],
        of: |trace, _| found(trace, &SYNC_FILLS),
    },
};

/// A fault, and the table to search.
struct Fault {
    recipe: &'static ReportRecipe<'static>,
    spec: &'static TableSpec,
    what: &'static str,
    /// The part of the launching call's name.
    call: &'static str,
    is_async: bool,
    /// Columns with kinds of memory, and their headings.
    kinds: &'static [(&'static str, &'static str)],
    /// By the kind of the copy and the kinds of memory; `None` where these are not recorded.
    is_fault: fn(Option<i64>, &[Option<i64>]) -> Option<bool>,
}

const PAGEABLE: i64 = 0;
/// Pinned, managed, managed and static.
const BLOCKING: [i64; 3] = [1, 4, 6];
/// Within a GPU, and from one to another.
const BETWEEN_DEVICES: [i64; 2] = [8, 10];

const OF_COPIES: &[(&str, &str)] = &[("srcKind", "Source Kind"), ("dstKind", "Destination Kind")];

const ASYNC_COPIES: Fault = Fault {
    recipe: &CUDA_MEMCPY_ASYNC,
    spec: &MEMCPY,
    what: "copies",
    call: "emcpy",
    is_async: true,
    kinds: OF_COPIES,
    is_fault: |_, kinds| match kinds {
        kinds if kinds.contains(&Some(PAGEABLE)) => Some(true),
        kinds => kinds.iter().all(Option::is_some).then_some(false),
    },
};

const SYNC_COPIES: Fault = Fault {
    recipe: &CUDA_MEMCPY_SYNC,
    spec: &MEMCPY,
    what: "copies",
    call: "emcpy",
    is_async: false,
    kinds: OF_COPIES,
    is_fault: |copy, _| copy.map(|kind| !BETWEEN_DEVICES.contains(&kind)),
};

const SYNC_FILLS: Fault = Fault {
    recipe: &CUDA_MEMSET_SYNC,
    spec: &MEMSET,
    what: "fills",
    call: "emset",
    is_async: false,
    kinds: &[("memKind", "Memory Kind")],
    is_fault: |_, kinds| kinds.iter().flatten().next().map(|kind| BLOCKING.contains(kind)),
};

fn found(trace: &Trace, fault: &Fault) -> Result<Option<ResultTable>, ExportError> {
    let mut columns =
        vec!["start", "end", "bytes", "deviceId", "contextId", "streamId", "correlationId", "globalPid"];
    columns.extend(fault.kinds.iter().map(|(column, _)| *column));
    if fault.spec.name == MEMCPY.name {
        columns.push("copyKind");
    }
    let Some(rows) = trace.rows(fault.spec, &columns)? else {
        // Without any of them none is at fault, if they would have been seen.
        if !was_traced(trace)? {
            return Ok(None);
        }
        note_none(trace, fault.recipe.name, fault.what, 0, 0);
        return result_table(trace, fault, None, &[]).map(Some);
    };
    let faulty = faulty(trace, fault, &rows)?;
    note_none(trace, fault.recipe.name, fault.what, rows.len(), faulty.len());
    result_table(trace, fault, Some(&rows), &faulty).map(Some)
}

/// Rows with the names of their calls, the longest first.
fn faulty(trace: &Trace, fault: &Fault, rows: &Rows) -> Result<Vec<(usize, String)>, ExportError> {
    let Some(calls) = Calls::read(trace, &["nameId"])? else {
        trace.note(format!(
            "no calls recorded, so their launches are unknown; left out: {} {}",
            rows.len(),
            fault.what
        ));
        return Ok(Vec::new());
    };
    let names = Part::named(calls.rows().ints("nameId")?.iter().copied(), trace.strings()?, api_name);
    let fits = |name: &String| name.contains(fault.call) && name.contains("Async") == fault.is_async;
    let fitting: Vec<bool> = names.labels.iter().map(fits).collect();
    let (starts, ends) = (rows.ints("start")?, rows.ints("end")?);
    let copies = if fault.spec.name == MEMCPY.name { Some(rows.ints("copyKind")?) } else { None };
    let mut kinds = Vec::new();
    for (column, _) in fault.kinds {
        kinds.push(rows.maybe_ints(column)?);
    }
    let (mut found, mut unknown) = (Vec::new(), 0usize);
    let mut last = None;
    for launch in calls.launches(trace, fault.what, rows)? {
        let (row, name) = (launch.operation as usize, names.of_row[launch.call as usize] as usize);
        // Several calls of one operation: the first that fits speaks for it.
        if last == Some(row) || !fitting[name] {
            continue;
        }
        last = Some(row);
        let of_row: Vec<Option<i64>> = kinds.iter().map(|kinds| kinds.get(row)).collect();
        match (fault.is_fault)(copies.map(|copies| copies[row]), &of_row) {
            Some(true) => found.push((row, names.labels[name].clone())),
            Some(false) => {}
            None => unknown += 1,
        }
    }
    if unknown > 0 {
        trace.note(format!("{}: rows whose kind of memory is not recorded, left out: {unknown}", fault.what));
    }
    found.sort_by_key(|(row, _)| {
        (std::cmp::Reverse(ends[*row].wrapping_sub(starts[*row]) as u64), starts[*row], *row)
    });
    Ok(found)
}

/// Without a row where the report has no such table.
fn result_table(
    trace: &Trace,
    fault: &Fault,
    rows: Option<&Rows>,
    faulty: &[(usize, String)],
) -> Result<ResultTable, ExportError> {
    let of = |column: &str| -> Result<Vec<Option<i64>>, ExportError> {
        let Some(rows) = rows else { return Ok(Vec::new()) };
        let values = rows.maybe_ints(column)?;
        Ok(faulty.iter().map(|(row, _)| values.get(*row)).collect())
    };
    let number = |name: &str, quantity: Quantity, column: &str| -> Result<Column, ExportError> {
        Ok(Column::maybe_integers(name, quantity, of(column)?))
    };
    let (starts, ends) = (of("start")?, of("end")?);
    let durations = starts
        .iter()
        .zip(&ends)
        .map(|(start, end)| end.zip(*start).map(|(end, start)| end.wrapping_sub(start)));
    let mut columns = vec![
        Column::maybe_integers("Duration", Quantity::Nanoseconds, durations),
        number("Start", Quantity::Nanoseconds, "start")?,
    ];
    let labels: HashMap<i64, String> = memory_kinds(trace)?;
    let label = |kind: i64| labels.get(&kind).cloned().unwrap_or_else(|| format!("kind {kind}"));
    for (column, heading) in fault.kinds {
        columns.push(Column::maybe_texts(heading, of(column)?.into_iter().map(|kind| kind.map(label))));
    }
    columns.push(number("Bytes", Quantity::Bytes, "bytes")?);
    let pids = of("globalPid")?.into_iter().map(|process| process.map(pid_of));
    columns.push(Column::maybe_integers("PID", Quantity::Plain, pids));
    for (name, column) in [("Device", "deviceId"), ("Context", "contextId"), ("Stream", "streamId")] {
        columns.push(number(name, Quantity::Plain, column)?);
    }
    columns.push(Column::texts("API", faulty.iter().map(|(_, name)| name.as_str())));
    Ok(ResultTable::new(fault.recipe.name, fault.recipe.title, columns))
}
