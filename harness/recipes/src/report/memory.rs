//! Copies and fills of memory: by their time, and by the bytes they moved.

use super::ReportSpec;
use super::summary::{Groups, Summary};
use crate::result_table::{Quantity, ResultTable};
use nsys::export::ExportError;
use nsys::tables::{MEMCPY, MEMCPY_OPER, MEMSET};
use nsys::trace::NO_GROUP;
use nsys::trace::Trace;
use std::collections::HashMap;

/// The memory operations of a report.
pub(super) struct Operations {
    /// Of each operation its kind; of one that ends before it begins none.
    pub of_row: Vec<u32>,
    pub labels: Vec<String>,
    pub ns: Vec<u64>,
    /// Where negative: not known.
    pub bytes: Vec<i64>,
}

pub(super) fn operations(trace: &Trace) -> Result<Option<Operations>, ExportError> {
    let mut all = Operations { of_row: Vec::new(), labels: Vec::new(), ns: Vec::new(), bytes: Vec::new() };
    if let Some(rows) = trace.rows(&MEMCPY, &["start", "end", "bytes", "copyKind"])? {
        let kinds = copy_labels(trace)?;
        let mut group_of: HashMap<i64, u32> = HashMap::new();
        let mut groups = Vec::with_capacity(rows.len());
        for kind in rows.ints("copyKind")? {
            groups.push(*group_of.entry(*kind).or_insert_with(|| {
                all.labels.push(format!("[CUDA memcpy {}]", kinds.label(*kind)));
                all.labels.len() as u32 - 1
            }));
        }
        all.take(trace, "copies", (rows.ints("start")?, rows.ints("end")?, rows.ints("bytes")?), groups);
    }
    if let Some(rows) = trace.rows(&MEMSET, &["start", "end", "bytes"])? {
        let groups = vec![all.labels.len() as u32; rows.len()];
        all.labels.push("[CUDA memset]".to_owned());
        all.take(trace, "fills", (rows.ints("start")?, rows.ints("end")?, rows.ints("bytes")?), groups);
    }
    Ok(all.of_row.iter().any(|group| *group != NO_GROUP).then_some(all))
}

impl Operations {
    fn take(
        &mut self,
        trace: &Trace,
        what: &str,
        (starts, ends, bytes): (&[i64], &[i64], &[i64]),
        mut groups: Vec<u32>,
    ) {
        let durations = trace.durations(what, starts, ends);
        durations.mask(starts, |row| Some(ends[row]), &mut groups);
        self.of_row.extend(groups);
        self.ns.extend(durations.ns());
        self.bytes.extend(bytes);
    }
}

/// Labels of kinds of copies, as the export has them; exports before layout 3 have no such table.
pub(super) struct CopyLabels(HashMap<i64, String>);

const COPY_LABELS: [&str; 14] = [
    "Unknown",
    "Host-to-Device",
    "Device-to-Host",
    "Host-to-Array",
    "Array-to-Host",
    "Array-to-Array",
    "Array-to-Device",
    "Device-to-Array",
    "Device-to-Device",
    "Host-to-Host",
    "Peer-to-Peer",
    "Unified Host-to-Device",
    "Unified Device-to-Host",
    "Unified Device-to-Device",
];

impl CopyLabels {
    pub(super) fn label(&self, kind: i64) -> String {
        let known = usize::try_from(kind).ok().and_then(|kind| COPY_LABELS.get(kind));
        match (self.0.get(&kind), known) {
            (Some(label), _) => label.clone(),
            (None, Some(label)) => (*label).to_owned(),
            (None, None) => format!("kind {kind}"),
        }
    }
}

pub(super) fn copy_labels(trace: &Trace) -> Result<CopyLabels, ExportError> {
    let mut labels = HashMap::new();
    if let Some(rows) = trace.export().table(&MEMCPY_OPER)? {
        for (id, label) in rows.ints("id")?.iter().zip(rows.texts("label")?.iter()) {
            if let Some(label) = label {
                labels.insert(*id, label.to_owned());
            }
        }
    }
    Ok(CopyLabels(labels))
}

pub(super) const CUDA_GPU_MEM_TIME_SUM: ReportSpec = ReportSpec {
    name: "cuda_gpu_mem_time_sum",
    title: "CUDA GPU MemOps Summary (by Time)",
    about: "copies by their direction, and fills, by the time they took on the GPU",
    data: "GPU memory",
    arguments: &[],
    tables: &[&MEMCPY, &MEMSET, &MEMCPY_OPER],
    run: |trace, _| {
        let Some(groups) = by_time(trace)? else { return Ok(None) };
        let title = "CUDA GPU MemOps Summary (by Time)";
        Summary::new(groups).time_table("cuda_gpu_mem_time_sum", title, "Count", &["Operation"]).map(Some)
    },
};

/// Memory operations by kind, with their durations.
pub(crate) fn by_time(trace: &Trace) -> Result<Option<Groups>, ExportError> {
    let all = operations(trace)?;
    Ok(all.and_then(|all| Groups::named(all.of_row, all.ns, all.labels).any()))
}

/// Memory operations by kind, with their bytes.
pub(crate) fn by_size(trace: &Trace) -> Result<Option<Groups>, ExportError> {
    let Some(mut all) = operations(trace)? else { return Ok(None) };
    let mut negative = 0;
    let sizes = all.bytes.iter().zip(&mut all.of_row).map(|(bytes, group)| {
        u64::try_from(*bytes).unwrap_or_else(|_| {
            negative += 1;
            *group = NO_GROUP;
            0
        })
    });
    let sizes: Vec<u64> = sizes.collect();
    if negative > 0 {
        trace.note(format!("memory operations of a negative size, left out: {negative}"));
    }
    Ok(Groups::named(all.of_row, sizes, all.labels).any())
}

pub(super) const CUDA_GPU_MEM_SIZE_SUM: ReportSpec = ReportSpec {
    name: "cuda_gpu_mem_size_sum",
    title: "CUDA GPU MemOps Summary (by Size)",
    about: "copies by their direction, and fills, by the bytes they moved; 1 MB is 1,000,000 bytes",
    data: "GPU memory",
    arguments: &[],
    tables: &[&MEMCPY, &MEMSET, &MEMCPY_OPER],
    run: |trace, _| {
        let Some(groups) = by_size(trace)? else { return Ok(None) };
        let summary = Summary::new(groups);
        let (name, title) = ("cuda_gpu_mem_size_sum", "CUDA GPU MemOps Summary (by Size)");
        let mut columns = vec![summary.totals(name, "Total", Quantity::Bytes)?, summary.counts("Count")];
        columns.extend(summary.figures(Quantity::Bytes));
        columns.extend(summary.key_columns(&["Operation"]));
        Ok(Some(ResultTable::new(name, title, columns)))
    },
};
