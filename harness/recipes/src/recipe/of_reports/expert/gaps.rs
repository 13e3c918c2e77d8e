//! Times at which a GPU had nothing to do, between its first and its last work.

use super::{note_none, overheads, united};
use crate::busy::{Busy, Operation};
use crate::recipe::of_reports::{RecipeKind, ReportRecipe};
use crate::report::argument;
use crate::report::{ArgumentSpec, Takes};
use crate::result_table::{Column, Quantity, ResultTable};
use crate::spans::Spans;
use nsys::tables::{GRAPH_TRACE, KERNEL, MEMCPY, MEMSET, PROFILER_OVERHEAD};

pub(in super::super) const GPU_GAPS: ReportRecipe = ReportRecipe {
    name: "gpu_gaps",
    title: "Gaps of GPUs",
    about: "long times in which a GPU was idle",
    definition: "per process and GPU, between the beginning of its first and the end of its last operation: spans \
                 without a kernel, copy, fill or whole graph that last longer than `gap`, the longest first. The \
                 profiler's own overhead in the process counts as work, so that it ends a gap; the remainders on \
                 either side are separate gaps. `Context` is that of the operation that comes next. A filter by time \
                 cuts operations",
    arguments: &[GAP],
    tables: &[&KERNEL, &MEMCPY, &MEMSET, &GRAPH_TRACE, &PROFILER_OVERHEAD],
    kind: RecipeKind::Rows {
        columns: &[&["Duration", "Start", "PID", "Device", "Context"]],
        of: |trace, arguments| {
            let Some(busy) = Busy::read(trace)? else { return Ok(None) };
            let overheads = overheads(trace)?;
            let least = arguments.number(&GAP).saturating_mul(1_000_000);
            let mut found = Vec::new();
            for gpu in &busy.gpus {
                let worked = Spans::union(gpu.operations.iter().map(Operation::span));
                let Some((first, last)) = worked.bounds() else { continue };
                let overhead = united(gpu.process.and_then(|process| overheads.get(&process)));
                let idle = Spans::one(first, last).without(&worked.or(&overhead));
                for (start, end) in idle.as_slice() {
                    let ns = end.wrapping_sub(*start) as u64;
                    if ns > least {
                        let next = gpu.operations.partition_point(|one| one.start < *end);
                        let context = gpu.operations.get(next).and_then(|one| one.context);
                        found.push((ns, *start, gpu.pid(), gpu.device, context));
                    }
                }
            }
            found.sort_by(|one, two| two.0.cmp(&one.0).then(one.cmp(two)));
            note_none(trace, GPU_GAPS.name, "operations", busy.rows as usize, found.len());
            let (plain, ns) = (Quantity::Plain, Quantity::Nanoseconds);
            let columns = vec![
                Column::maybe_integers("Duration", ns, found.iter().map(|gap| i64::try_from(gap.0).ok())),
                Column::integers("Start", ns, found.iter().map(|gap| gap.1)),
                Column::maybe_integers("PID", plain, found.iter().map(|gap| gap.2)),
                Column::integers("Device", plain, found.iter().map(|gap| gap.3)),
                Column::maybe_integers("Context", plain, found.iter().map(|gap| gap.4)),
            ];
            Ok(Some(ResultTable::new(GPU_GAPS.name, GPU_GAPS.title, columns)))
        },
    },
};

const GAP: ArgumentSpec =
    argument!("gap", "leave out gaps up to this length, in milliseconds", Takes::Number(500));
