//! Events of threads: NVTX ranges, MPI and UCX calls.

use super::WHOLE;
use crate::recipe::of_reports::{RecipeKind, ReportRecipe};
use crate::report::MPI_SOURCES;
use crate::result_table::{Column, Quantity, ResultTable};
use nsys::export::ExportError;
use nsys::tables::{
    MPI_COLLECTIVES, MPI_OTHER, MPI_P2P, MPI_START_WAIT, NVTX_EVENTS, STRING_IDS, TableSpec, UCP,
    UCP_PROGRESS, UCP_SUBMIT,
};
use nsys::trace::nvtx::{Domains, MARK, PUSH_POP, START_END};
use nsys::trace::{Trace, pid_of, tid_of};

pub(crate) const NVTX: ReportRecipe = ReportRecipe {
    name: "NVTX",
    title: "NVTX Ranges and Marks",
    about: "ranges and marks with the names of their domains; the default domain is called `Default`",
    definition: WHOLE,
    arguments: &[],
    tables: &[&NVTX_EVENTS, &STRING_IDS],
    kind: RecipeKind::Rows {
        columns: &[&[
            "text",
            "start",
            "end",
            "globalTid",
            "endGlobalTid",
            "domainId",
            "domainName",
            "eventType",
            "pid",
            "tid",
        ]],
        of: |trace, _| ranges(trace),
    },
};

fn ranges(trace: &Trace) -> Result<Option<ResultTable>, ExportError> {
    let wanted = ["start", "end", "eventType", "text", "textId", "globalTid", "endGlobalTid", "domainId"];
    let Some(rows) = trace.rows(&NVTX_EVENTS, &wanted)? else { return Ok(None) };
    let (starts, types, texts) = (rows.ints("start")?, rows.ints("eventType")?, rows.texts("text")?);
    let mut order: Vec<usize> =
        (0..rows.len()).filter(|row| [MARK, PUSH_POP, START_END].contains(&types[*row])).collect();
    if order.is_empty() {
        return Ok(None);
    }
    order.sort_by_key(|row| (starts[*row], *row));
    let (domains, strings) = (Domains::read(trace.export())?, trace.strings()?);
    let (ids, tids, of_domain) =
        (rows.maybe_ints("textId")?, rows.maybe_ints("globalTid")?, rows.maybe_ints("domainId")?);
    let plain = Quantity::Plain;
    let text = |row: &usize| match texts.get(*row) {
        Some(text) => Some(text.to_owned()),
        None => ids.get(*row).map(|id| strings.render(id).into_owned()),
    };
    let mut columns = vec![Column::maybe_texts("text", order.iter().map(text))];
    for name in ["start", "end", "globalTid", "endGlobalTid", "domainId"] {
        let values = rows.maybe_ints(name)?;
        columns.push(Column::maybe_integers(name, plain, order.iter().map(|row| values.get(*row))));
    }
    let domain = |row: &usize| match of_domain.get(*row) {
        None | Some(0) => "Default".to_owned(),
        Some(id) => domains.name(tids.get(*row).unwrap_or_default(), id).to_owned(),
    };
    columns.push(Column::texts("domainName", order.iter().map(domain)));
    columns.push(Column::integers("eventType", plain, order.iter().map(|row| types[*row])));
    let of_tid =
        |value: fn(i64) -> i64| order.iter().map(|row| tids.get(*row).map(value)).collect::<Vec<_>>();
    columns.push(Column::maybe_integers("pid", plain, of_tid(pid_of)));
    columns.push(Column::maybe_integers("tid", plain, of_tid(tid_of)));
    Ok(Some(ResultTable::new(NVTX.name, NVTX.title, columns)))
}

pub(crate) const MPI: ReportRecipe = ReportRecipe {
    name: "MPI",
    title: "MPI Calls",
    about: "calls of MPI of all kinds",
    definition: WHOLE,
    arguments: &[],
    tables: &[&MPI_P2P, &MPI_COLLECTIVES, &MPI_START_WAIT, &MPI_OTHER, &STRING_IDS],
    kind: RecipeKind::Rows {
        columns: &[&["globalTid", "start", "end", "text", "pid", "tid"]],
        of: |trace, _| calls(trace, &MPI_SOURCES.map(|(_, spec)| spec), &MPI),
    },
};

pub(crate) const UCX: ReportRecipe = ReportRecipe {
    name: "UCX",
    title: "UCX Calls",
    about: "calls of UCX of all kinds",
    definition: WHOLE,
    arguments: &[],
    tables: &[&UCP, &UCP_SUBMIT, &UCP_PROGRESS, &STRING_IDS],
    kind: RecipeKind::Rows {
        columns: &[&["globalTid", "start", "end", "text", "pid", "tid"]],
        of: |trace, _| calls(trace, &[&UCP, &UCP_SUBMIT, &UCP_PROGRESS], &UCX),
    },
};

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Call {
    start: i64,
    end: Option<i64>,
    tid: Option<i64>,
    text: Option<String>,
}

fn calls(
    trace: &Trace,
    tables: &[&'static TableSpec],
    recipe: &ReportRecipe<'static>,
) -> Result<Option<ResultTable>, ExportError> {
    let strings = trace.strings()?;
    let mut all: Vec<Call> = Vec::new();
    for spec in tables {
        let Some(rows) = trace.rows(spec, &["start", "end", "globalTid", "textId"])? else { continue };
        let (starts, ends) = (rows.ints("start")?, rows.maybe_ints("end")?);
        let (tids, texts) = (rows.maybe_ints("globalTid")?, rows.maybe_ints("textId")?);
        all.extend((0..rows.len()).map(|row| {
            let text = texts.get(row).map(|id| strings.render(id).into_owned());
            Call { start: starts[row], end: ends.get(row), tid: tids.get(row), text }
        }));
    }
    if all.is_empty() {
        return Ok(None);
    }
    all.sort();
    let plain = Quantity::Plain;
    let columns = vec![
        Column::maybe_integers("globalTid", plain, all.iter().map(|call| call.tid)),
        Column::integers("start", plain, all.iter().map(|call| call.start)),
        Column::maybe_integers("end", plain, all.iter().map(|call| call.end)),
        Column::maybe_texts("text", all.iter().map(|call| call.text.clone())),
        Column::maybe_integers("pid", plain, all.iter().map(|call| call.tid.map(pid_of))),
        Column::maybe_integers("tid", plain, all.iter().map(|call| call.tid.map(tid_of))),
    ];
    Ok(Some(ResultTable::new(recipe.name, recipe.title, columns)))
}
