//! Each kernel, copy and fill on the GPUs.

use super::ReportSpec;
use super::kernels::{BASE, MANGLED, name_column, names};
use super::memory::copy_labels;
use crate::result_table::{Column, Quantity, ResultTable};
use nsys::export::{ExportError, Rows};
use nsys::tables::{KERNEL, MEM_KIND, MEMCPY, MEMCPY_OPER, MEMSET, STRING_IDS, TARGET_INFO_GPU};
use nsys::trace::Trace;
use std::collections::HashMap;

pub(super) const CUDA_GPU_TRACE: ReportSpec = ReportSpec {
    name: "cuda_gpu_trace",
    title: "CUDA GPU Trace",
    about: "each kernel, copy and fill, in the order of their beginnings; 1 MB is 1,000,000 bytes",
    data: "CUDA trace",
    arguments: &[BASE, MANGLED],
    tables: &[&KERNEL, &MEMCPY, &MEMSET, &STRING_IDS, &MEMCPY_OPER, &MEM_KIND, &TARGET_INFO_GPU],
    run: |trace, arguments| {
        let mut all: Vec<Operation> = Vec::new();
        let mut columns: Vec<&str> = KERNEL.columns.iter().map(|column| column.name).collect();
        columns.push(name_column(arguments));
        if let Some(rows) = trace.rows(&KERNEL, &columns)? {
            let names = names(trace, &rows, arguments)?;
            let common = common(trace, &rows, "kernels")?;
            let shape = ["gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread"];
            let mut sides = Vec::new();
            for side in shape {
                sides.push(rows.maybe_ints(side)?);
            }
            let (fixed, asked) =
                (rows.maybe_ints("staticSharedMemory")?, rows.maybe_ints("dynamicSharedMemory")?);
            for (row, mut operation) in common {
                operation.name = names.labels[names.of_row[row] as usize].clone();
                operation.shape = std::array::from_fn(|at| sides[at].get(row));
                operation.shared = [fixed.get(row), asked.get(row)];
                all.push(operation);
            }
        }
        let kinds = memory_kinds(trace)?;
        let kind =
            |id: Option<i64>| id.map(|id| kinds.get(&id).cloned().unwrap_or_else(|| format!("kind {id}")));
        let columns: Vec<&str> = MEMCPY.columns.iter().map(|column| column.name).collect();
        if let Some(rows) = trace.rows(&MEMCPY, &columns)? {
            let labels = copy_labels(trace)?;
            let (copies, bytes) = (rows.ints("copyKind")?, rows.ints("bytes")?);
            let (from, to) = (rows.maybe_ints("srcKind")?, rows.maybe_ints("dstKind")?);
            for (row, mut operation) in common(trace, &rows, "copies")? {
                operation.name = format!("[CUDA memcpy {}]", labels.label(copies[row]));
                operation.bytes = Some(bytes[row]);
                operation.memory = [kind(from.get(row)), kind(to.get(row))];
                all.push(operation);
            }
        }
        let columns: Vec<&str> = MEMSET.columns.iter().map(|column| column.name).collect();
        if let Some(rows) = trace.rows(&MEMSET, &columns)? {
            let (bytes, to) = (rows.ints("bytes")?, rows.maybe_ints("memKind")?);
            for (row, mut operation) in common(trace, &rows, "fills")? {
                operation.name = "[CUDA memset]".to_owned();
                operation.bytes = Some(bytes[row]);
                operation.memory = [None, kind(to.get(row))];
                all.push(operation);
            }
        }
        if all.is_empty() {
            return Ok(None);
        }
        all.sort_by(|a, b| a.order().cmp(&b.order()));
        Ok(Some(table(&all, &devices(trace)?)))
    },
};

struct Operation {
    start: i64,
    end: i64,
    correlation: Option<i64>,
    device: i64,
    context: Option<i64>,
    green_context: Option<i64>,
    stream: Option<i64>,
    name: String,
    /// Grid, block, registers.
    shape: [Option<i64>; 7],
    /// Bytes that were fixed and bytes that were asked for.
    shared: [Option<i64>; 2],
    bytes: Option<i64>,
    /// From and to.
    memory: [Option<String>; 2],
}

impl Operation {
    fn order(&self) -> (i64, i64, i64, Option<i64>, Option<i64>, &str) {
        (self.start, self.end, self.device, self.stream, self.correlation, &self.name)
    }

    /// Bytes per second.
    fn rate(&self) -> Option<f64> {
        let ns = self.end.checked_sub(self.start).filter(|ns| *ns > 0)?;
        Some(self.bytes? as f64 / ns as f64 * 1e9)
    }
}

/// What all operations have, with the rows they stand in.
fn common(trace: &Trace, rows: &Rows, what: &str) -> Result<Vec<(usize, Operation)>, ExportError> {
    let (starts, ends, devices) = (rows.ints("start")?, rows.ints("end")?, rows.ints("deviceId")?);
    let (ids, contexts) = (rows.maybe_ints("correlationId")?, rows.maybe_ints("contextId")?);
    let (green, streams) = (rows.maybe_ints("greenContextId")?, rows.maybe_ints("streamId")?);
    // Counts what is left out, for the note.
    trace.durations(what, starts, ends);
    let kept = (0..rows.len()).filter(|row| ends[*row] >= starts[*row]);
    let operations = kept.map(|row| {
        let operation = Operation {
            start: starts[row],
            end: ends[row],
            correlation: ids.get(row),
            device: devices[row],
            context: contexts.get(row),
            green_context: green.get(row),
            stream: streams.get(row),
            name: String::new(),
            shape: [None; 7],
            shared: [None; 2],
            bytes: None,
            memory: [None, None],
        };
        (row, operation)
    });
    Ok(operations.collect())
}

fn table(all: &[Operation], devices: &HashMap<i64, String>) -> ResultTable {
    let plain = Quantity::Plain;
    let maybe = |name: &str, quantity: Quantity, value: &dyn Fn(&Operation) -> Option<i64>| {
        Column::maybe_integers(name, quantity, all.iter().map(value))
    };
    let mut columns = vec![
        Column::integers("Start", Quantity::Nanoseconds, all.iter().map(|one| one.start)),
        Column::integers(
            "Duration",
            Quantity::Nanoseconds,
            all.iter().map(|one| one.end.saturating_sub(one.start)),
        ),
        maybe("CorrId", plain, &|one| one.correlation),
    ];
    for (at, name) in ["GrdX", "GrdY", "GrdZ", "BlkX", "BlkY", "BlkZ", "Reg/Trd"].iter().enumerate() {
        columns.push(maybe(name, plain, &|one| one.shape[at]));
    }
    columns.push(maybe("StcSMem", Quantity::Bytes, &|one| one.shared[0]));
    columns.push(maybe("DymSMem", Quantity::Bytes, &|one| one.shared[1]));
    columns.push(maybe("Bytes", Quantity::Bytes, &|one| one.bytes));
    columns.push(Column::maybe_decimals(
        "Throughput",
        Quantity::BytesPerSecond,
        all.iter().map(Operation::rate),
    ));
    columns.push(Column::maybe_texts("SrcMemKd", all.iter().map(|one| one.memory[0].clone())));
    columns.push(Column::maybe_texts("DstMemKd", all.iter().map(|one| one.memory[1].clone())));
    let device = |one: &Operation| match devices.get(&one.device) {
        Some(name) => format!("{name} ({})", one.device),
        None => format!("({})", one.device),
    };
    columns.push(Column::texts("Device", all.iter().map(device)));
    columns.push(maybe("Ctx", plain, &|one| one.context));
    if all.iter().any(|one| one.green_context.is_some()) {
        columns.push(maybe("GreenCtx", plain, &|one| one.green_context));
    }
    columns.push(maybe("Strm", plain, &|one| one.stream));
    columns.push(Column::texts("Name", all.iter().map(|one| one.name.as_str())));
    ResultTable::new("cuda_gpu_trace", "CUDA GPU Trace", columns)
}

/// Names of GPUs by CUDA's number, which is what operations carry; the profiler numbers them in its own way.
fn devices(trace: &Trace) -> Result<HashMap<i64, String>, ExportError> {
    let mut devices = HashMap::new();
    if let Some(rows) = trace.export().table(&TARGET_INFO_GPU)? {
        let (ids, numbers, names) = (rows.ints("id")?, rows.maybe_ints("cuDevice")?, rows.texts("name")?);
        for (row, id) in ids.iter().enumerate() {
            if let Some(name) = names.get(row) {
                devices.entry(numbers.get(row).unwrap_or(*id)).or_insert_with(|| name.to_owned());
            }
        }
    }
    Ok(devices)
}

const MEMORY_KINDS: [&str; 8] =
    ["Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static", "Unknown"];

/// Labels of kinds of memory; exports before layout 3 have no such table.
pub(crate) fn memory_kinds(trace: &Trace) -> Result<HashMap<i64, String>, ExportError> {
    let known = MEMORY_KINDS.iter().enumerate().map(|(id, label)| (id as i64, (*label).to_owned()));
    let mut kinds: HashMap<i64, String> = known.collect();
    if let Some(rows) = trace.export().table(&MEM_KIND)? {
        for (id, label) in rows.ints("id")?.iter().zip(rows.texts("label")?.iter()) {
            if let Some(label) = label {
                kinds.insert(*id, label.to_owned());
            }
        }
    }
    Ok(kinds)
}
