//! Writes tables as an export into a Parquet folder has them. A simulated profiler writes through the same declarations
//! that the recipes read.

mod columns;

pub use columns::Columns;

use super::KernelRow;
use polars::prelude::*;

/// The bytes of `CUPTI_ACTIVITY_KIND_KERNEL.parquet`. The same rows give the same bytes.
pub fn kernels(rows: &[KernelRow]) -> Result<Vec<u8>, String> {
    let of = |name: &'static str, value: fn(&KernelRow) -> i64| {
        integers(name, rows.iter().map(|row| Some(value(row))))
    };
    table(
        rows.len(),
        vec![
            of("start", |row| row.start),
            of("end", |row| row.end),
            of("deviceId", |row| row.device_id),
            of("contextId", |row| row.context_id),
            of("streamId", |row| row.stream_id),
            integers("correlationId", rows.iter().map(|row| row.correlation_id)),
            integers("globalPid", rows.iter().map(|row| row.global_pid)),
            of("demangledName", |row| row.demangled_name),
            of("shortName", |row| row.short_name),
        ],
    )
}

/// One call of CUDA, as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRow {
    /// Nanoseconds since the start of the session.
    pub start: i64,
    /// Nanoseconds since the start of the session.
    pub end: i64,
    /// The calling thread; `pid_of` and `tid_of` split it.
    pub global_tid: i64,
    /// The same as in the row of the GPU work that it launched.
    pub correlation_id: Option<i64>,
    /// The id of a string.
    pub name: i64,
}

/// The bytes of `CUPTI_ACTIVITY_KIND_RUNTIME.parquet`.
pub fn calls(rows: &[CallRow]) -> Result<Vec<u8>, String> {
    let of = |name: &'static str, value: fn(&CallRow) -> i64| {
        integers(name, rows.iter().map(|row| Some(value(row))))
    };
    table(
        rows.len(),
        vec![
            of("start", |row| row.start),
            of("end", |row| row.end),
            of("globalTid", |row| row.global_tid),
            integers("correlationId", rows.iter().map(|row| row.correlation_id)),
            of("nameId", |row| row.name),
        ],
    )
}

/// The bytes of `StringIds.parquet`.
pub fn strings(rows: &[(i64, String)]) -> Result<Vec<u8>, String> {
    let ids = integers("id", rows.iter().map(|(id, _)| Some(*id)));
    table(rows.len(), vec![ids, texts("value", rows.iter().map(|(_, value)| value.as_str()))])
}

/// The bytes of `DIAGNOSTIC_EVENT.parquet`: severity and text.
pub fn diagnostics(rows: &[(i64, String)]) -> Result<Vec<u8>, String> {
    let zero = |name| integers(name, rows.iter().map(|_| Some(0)));
    let columns = vec![
        zero("timestamp"),
        zero("timestampType"),
        zero("source"),
        integers("severity", rows.iter().map(|(severity, _)| Some(*severity))),
        texts("text", rows.iter().map(|(_, text)| text.as_str())),
    ];
    table(rows.len(), columns)
}

/// The bytes of `META_DATA_EXPORT.parquet`.
pub fn meta(schema: &str, product: &str) -> Result<Vec<u8>, String> {
    let rows = [("EXPORT_PRODUCT_VERSION", product), ("EXPORT_SCHEMA_VERSION", schema)];
    let names = texts("name", rows.iter().map(|(name, _)| *name));
    table(rows.len(), vec![names, texts("value", rows.iter().map(|(_, value)| *value))])
}

fn integers(name: &'static str, values: impl Iterator<Item = Option<i64>>) -> Column {
    Column::new(PlSmallStr::from_static(name), values.collect::<Vec<_>>())
}

fn texts<'a>(name: &'static str, values: impl Iterator<Item = &'a str>) -> Column {
    Column::new(PlSmallStr::from_static(name), values.collect::<Vec<_>>())
}

fn table(height: usize, columns: Vec<Column>) -> Result<Vec<u8>, String> {
    let write = || -> PolarsResult<Vec<u8>> {
        let mut frame = DataFrame::new(height, columns)?;
        let mut bytes = Vec::new();
        ParquetWriter::new(&mut bytes).with_compression(ParquetCompression::Snappy).finish(&mut frame)?;
        Ok(bytes)
    };
    write().map_err(|error| error.to_string())
}
