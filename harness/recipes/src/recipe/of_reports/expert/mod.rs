//! Recipes that look for one known fault each: calls that wait, copies and fills that block, GPUs that idle. Rows are
//! what was found; where CUDA was traced and nothing found, that is an answer.

mod calls;
mod dx12;
mod gaps;
mod memory;
#[cfg(test)]
mod tests;
mod utilisation;

pub(super) use calls::CUDA_API_SYNC;
pub(super) use dx12::DX12_MEM_OPS;
pub(super) use gaps::GPU_GAPS;
pub(super) use memory::{CUDA_MEMCPY_ASYNC, CUDA_MEMCPY_SYNC, CUDA_MEMSET_SYNC};
pub(super) use utilisation::GPU_TIME_UTIL;

use crate::spans::Spans;
use nsys::export::ExportError;
use nsys::tables::{KERNEL, MEMCPY, MEMSET, PROFILER_OVERHEAD, RUNTIME};
use nsys::trace::{Trace, process_of};
use std::collections::HashMap;

/// Whether the report has anything of CUDA: a table that is absent then means that there was none of it.
fn was_traced(trace: &Trace) -> Result<bool, ExportError> {
    for spec in [&RUNTIME, &KERNEL, &MEMSET, &MEMCPY] {
        if trace.export().columns(spec, &["start"])?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Notes how much was searched, where nothing was found.
fn note_none(trace: &Trace, recipe: &str, what: &str, looked_at: usize, found: usize) {
    if found == 0 {
        trace.note(format!("{recipe}: looked at {looked_at} {what}, found none"));
    }
}

/// When the profiler itself kept a process busy.
fn overheads(trace: &Trace) -> Result<HashMap<i64, Vec<(i64, i64)>>, ExportError> {
    let mut of_process: HashMap<i64, Vec<(i64, i64)>> = HashMap::new();
    let Some(rows) = trace.rows(&PROFILER_OVERHEAD, &["start", "end", "globalTid"])? else {
        return Ok(of_process);
    };
    let (starts, ends, tids) = (rows.ints("start")?, rows.ints("end")?, rows.maybe_ints("globalTid")?);
    for row in 0..rows.len() {
        // Overhead without a process explains no gap of one.
        let Some(tid) = tids.get(row) else { continue };
        of_process.entry(process_of(tid)).or_default().push((starts[row], ends[row]));
    }
    Ok(of_process)
}

fn united(spans: Option<&Vec<(i64, i64)>>) -> Spans {
    Spans::union(spans.into_iter().flatten().copied())
}
