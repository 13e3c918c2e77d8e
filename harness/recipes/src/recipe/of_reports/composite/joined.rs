//! Calls of CUDA with what they launched.

use super::{Numbers, WHOLE};
use crate::recipe::of_reports::{RecipeKind, ReportRecipe};
use crate::result_table::{Column, ResultTable};
use nsys::export::{ExportError, Rows};
use nsys::tables::{KERNEL, MEMCPY, MEMSET, RUNTIME, STRING_IDS, TableSpec};
use nsys::trace::launches::{Calls, Launch};
use nsys::trace::{Trace, pid_of, tid_of};

pub(crate) const CUDA_COMBINED: ReportRecipe = ReportRecipe {
    name: "CUDA_COMBINED",
    title: "CUDA Calls with Kernels and Memory Operations",
    about: "calls of CUDA with the kernels, copies and fills that they launched; calls that launched none are left out",
    definition: WHOLE,
    arguments: &[],
    tables: &[&RUNTIME, &KERNEL, &MEMCPY, &MEMSET, &STRING_IDS],
    kind: RecipeKind::Rows {
        columns: &[&[
            "start",
            "end",
            "globalTid",
            "name",
            "correlationId",
            "gpu_start",
            "gpu_end",
            "pid",
            "tid",
            "deviceId",
            "contextId",
            "greenContextId",
            "streamId",
        ]],
        of: |trace, _| {
            joined(
                trace,
                &[(&KERNEL, "kernels"), (&MEMCPY, "copies"), (&MEMSET, "fills")],
                &[],
                &CUDA_COMBINED,
            )
        },
    },
};

pub(crate) const CUDA_COMBINED_KERNEL: ReportRecipe = ReportRecipe {
    name: "CUDA_COMBINED_KERNEL",
    title: "CUDA Calls with Kernels",
    about: "calls of CUDA with the kernels that they launched, and the names of both",
    definition: WHOLE,
    arguments: &[],
    tables: &[&RUNTIME, &KERNEL, &STRING_IDS],
    kind: RecipeKind::Rows {
        columns: &[&[
            "start",
            "end",
            "globalTid",
            "name",
            "correlationId",
            "gpu_start",
            "gpu_end",
            "pid",
            "tid",
            "deviceId",
            "contextId",
            "greenContextId",
            "streamId",
            "shortName",
            "mangledName",
            "demangledName",
        ]],
        of: |trace, _| joined(trace, &[(&KERNEL, "kernels")], &NAMES, &CUDA_COMBINED_KERNEL),
    },
};

const NAMES: [&str; 3] = ["shortName", "mangledName", "demangledName"];
const PLACES: [&str; 4] = ["deviceId", "contextId", "greenContextId", "streamId"];

/// One launch: the call, and the operation in one of the tables.
struct Pair {
    table: usize,
    launch: Launch,
}

fn joined(
    trace: &Trace,
    tables: &[(&'static TableSpec, &str)],
    names: &[&'static str],
    recipe: &ReportRecipe<'static>,
) -> Result<Option<ResultTable>, ExportError> {
    let Some(calls) = Calls::read(trace, &["nameId"])? else { return Ok(None) };
    let mut wanted = vec!["start", "end", "correlationId", "globalPid"];
    wanted.extend(PLACES);
    wanted.extend(names);
    let mut operations: Vec<Rows> = Vec::new();
    let mut pairs: Vec<Pair> = Vec::new();
    for (spec, what) in tables {
        let Some(rows) = trace.rows(spec, &wanted)? else { continue };
        let table = operations.len();
        pairs.extend(calls.launches(trace, what, &rows)?.into_iter().map(|launch| Pair { table, launch }));
        operations.push(rows);
    }
    if pairs.is_empty() {
        return Ok(None);
    }
    let of_calls = calls.rows();
    let (starts, ends) = (of_calls.ints("start")?, of_calls.ints("end")?);
    pairs.sort_by_key(|pair| {
        (starts[pair.launch.call as usize], pair.launch.call, pair.table, pair.launch.operation)
    });
    let tids = of_calls.maybe_ints("globalTid")?;
    let (ids, strings) = (of_calls.ints("nameId")?, trace.strings()?);
    let call = |value: &dyn Fn(usize) -> Option<i64>, name| {
        Numbers { name, values: pairs.iter().map(|pair| value(pair.launch.call as usize)).collect() }.column()
    };
    let operation = |column: &str, name| -> Result<Column, ExportError> {
        let mut values = Vec::new();
        for rows in &operations {
            values.push(rows.maybe_ints(column)?);
        }
        let of = |pair: &Pair| values[pair.table].get(pair.launch.operation as usize);
        Ok(Numbers { name, values: pairs.iter().map(of).collect() }.column())
    };
    let mut columns = vec![
        call(&|row| Some(starts[row]), "start"),
        call(&|row| Some(ends[row]), "end"),
        call(&|row| tids.get(row), "globalTid"),
        Column::texts("name", pairs.iter().map(|pair| strings.render(ids[pair.launch.call as usize]))),
        operation("correlationId", "correlationId")?,
        operation("start", "gpu_start")?,
        operation("end", "gpu_end")?,
        call(&|row| tids.get(row).map(pid_of), "pid"),
        call(&|row| tids.get(row).map(tid_of), "tid"),
    ];
    for place in PLACES {
        columns.push(operation(place, place)?);
    }
    for name in names {
        let mut of_tables = Vec::new();
        for rows in &operations {
            of_tables.push(rows.maybe_ints(name)?);
        }
        let text = |pair: &Pair| {
            of_tables[pair.table].get(pair.launch.operation as usize).map(|id| strings.render(id))
        };
        columns.push(Column::maybe_texts(name, pairs.iter().map(text)));
    }
    Ok(Some(ResultTable::new(recipe.name, recipe.title, columns)))
}
