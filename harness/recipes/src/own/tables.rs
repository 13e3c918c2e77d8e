//! The tables that user queries may name: those of a report as exports hold them, and the composite ones, with their
//! published names and columns.

use super::{Columns, frames};
use crate::recipe::of_reports::{self, ReportRecipe};
use nsys::export::ExportError;
use nsys::tables::{self, ColumnType, TableSpec};
use nsys::trace::Trace;
use polars::prelude::DataFrame;
use std::collections::BTreeSet;

/// A table that a recipe over reports makes, row by row.
struct Composite {
    name: &'static str,
    recipe: &'static str,
    /// Which of the recipe's tables it is.
    table: &'static str,
    integers: &'static [&'static str],
    reals: &'static [&'static str],
    texts: &'static [&'static str],
}

const fn rows(
    name: &'static str,
    integers: &'static [&'static str],
    texts: &'static [&'static str],
) -> Composite {
    Composite { name, recipe: name, table: "rows", integers, reals: &[], texts }
}

/// `GPU_METRICS` is not among them: its columns differ from report to report. The report's own table of that name has a
/// row per sample.
const COMPOSITES: [Composite; 13] = [
    rows(
        "CUDA_GPU",
        &[
            "correlationId",
            "start",
            "end",
            "globalPid",
            "deviceId",
            "contextId",
            "greenContextId",
            "streamId",
            "pid",
        ],
        &[],
    ),
    rows(
        "CUDA_GPU_GRAPH",
        &[
            "correlationId",
            "start",
            "end",
            "globalPid",
            "deviceId",
            "contextId",
            "greenContextId",
            "streamId",
            "pid",
            "graphNodeId",
            "graphId",
        ],
        &[],
    ),
    rows(
        "CUDA_KERNEL",
        &["correlationId", "globalPid", "start", "end", "deviceId", "pid"],
        &["shortName", "mangledName", "demangledName"],
    ),
    rows("CUDA_COMBINED", &COMBINED, &["name"]),
    rows("CUDA_COMBINED_KERNEL", &COMBINED, &["name", "shortName", "mangledName", "demangledName"]),
    rows(
        "NVTX",
        &["start", "end", "globalTid", "endGlobalTid", "domainId", "eventType", "pid", "tid"],
        &["text", "domainName"],
    ),
    rows(
        "NCCL",
        &[
            "start",
            "end",
            "globalTid",
            "endGlobalTid",
            "domainId",
            "eventType",
            "pid",
            "tid",
            "bytes",
            "ranks",
            "rank",
            "root",
            "peer",
            "group",
        ],
        &["text", "domainName", "jsonText", "communicator", "reduction"],
    ),
    rows("MPI", &["globalTid", "start", "end", "pid", "tid"], &["text"]),
    rows("UCX", &["globalTid", "start", "end", "pid", "tid"], &["text"]),
    rows(
        "NIC",
        &["start", "end", "globalId", "value", "metricsListId", "metricsIdx", "nicId", "GUID"],
        &["nic_name", "metric_name"],
    ),
    rows(
        "AWS_OFI_NCCL",
        &["slot", "dev", "rail", "start", "end", "duration", "pid", "tid", "end tid"],
        &["kind", "comm", "event", "open"],
    ),
    Composite {
        name: "AWS_OFI_NCCL_LTTNG",
        recipe: "AWS_OFI_NCCL",
        table: "lttng",
        integers: &["time", "dev", "rail", "size", "msg_seq_num"],
        reals: &[],
        texts: &["host", "event", "comm", "request"],
    },
    Composite {
        name: "GENERIC",
        recipe: "GENERIC",
        table: "rows",
        integers: &["timestamp", "typeId", "genericEventId", "gpuId"],
        reals: &["metricValue"],
        texts: &["metricName", "dataSrc"],
    },
];

const COMBINED: [&str; 12] = [
    "start",
    "end",
    "globalTid",
    "correlationId",
    "gpu_start",
    "gpu_end",
    "pid",
    "tid",
    "deviceId",
    "contextId",
    "greenContextId",
    "streamId",
];

fn composite(name: &str) -> Option<(&'static Composite, ReportRecipe<'static>)> {
    let composite = COMPOSITES.iter().find(|composite| composite.name == name)?;
    Some((composite, of_reports::find(composite.recipe)?))
}

fn report_table(name: &str) -> Option<&'static TableSpec> {
    tables::LIST.into_iter().find(|spec| spec.name == name)
}

/// Every table that a query may name: the composite ones first.
pub fn names() -> Vec<&'static str> {
    COMPOSITES
        .iter()
        .map(|composite| composite.name)
        .chain(tables::LIST.iter().map(|spec| spec.name))
        .collect()
}

/// The columns of a table.
pub fn columns_of(name: &str) -> Option<Columns> {
    if let Some((composite, _)) = composite(name) {
        let of =
            |names: &[&str], kind| names.iter().map(|name| ((*name).to_owned(), kind)).collect::<Columns>();
        let mut columns = of(composite.integers, ColumnType::Integer);
        columns.extend(of(composite.reals, ColumnType::Real));
        columns.extend(of(composite.texts, ColumnType::Text));
        return Some(columns);
    }
    let columns = report_table(name)?.columns.iter().map(|column| (column.name.to_owned(), column.kind));
    Some(columns.collect())
}

/// The tables of a report that it comes from: these must be exported.
pub(super) fn specs(name: &str) -> Vec<&'static TableSpec> {
    match composite(name) {
        Some((_, recipe)) => recipe.tables.to_vec(),
        None => report_table(name).into_iter().collect(),
    }
}

/// The columns of a table that are wanted, all where nothing is said; `None` where the report has no row of it.
pub(super) fn read(
    trace: &Trace,
    name: &str,
    wanted: Option<&BTreeSet<String>>,
) -> Result<Option<DataFrame>, ExportError> {
    let all = columns_of(name).unwrap_or_default();
    let is_wanted = |column: &str| wanted.is_none_or(|wanted| wanted.contains(column));
    let mut columns: Columns = all.iter().filter(|(column, _)| is_wanted(column)).cloned().collect();
    if columns.is_empty() {
        // A query that counts rows names no column, and there must be rows to count.
        columns.extend(all.first().cloned());
    }
    let broken = |why: String| ExportError::Query { what: name.to_owned(), why };
    if let Some((composite, recipe)) = composite(name) {
        return match of_reports::table_of(&recipe, trace, composite.table)? {
            Some(result_table) if result_table.height() > 0 => {
                frames::from_result_table(&result_table, &columns).map(Some).map_err(broken)
            }
            _ => Ok(None),
        };
    }
    let Some(spec) = report_table(name) else { return Ok(None) };
    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    match trace.rows(spec, &names)? {
        Some(rows) => rows.frame().select(names).map(Some).map_err(|error| broken(error.to_string())),
        None => Ok(None),
    }
}
