//! Functions of NCCL by what their threads launched within them on the GPUs.

use crate::recipe::of_reports::{RecipeKind, ReportRecipe};
use crate::report::Groups;
use crate::result_table::Quantity;
use nsys::export::ExportError;
use nsys::nccl::is_of_nccl;
use nsys::tables::{GRAPH_TRACE, KERNEL, MEMCPY, MEMSET, NVTX_EVENTS, RUNTIME, STRING_IDS};
use nsys::trace::NO_GROUP;
use nsys::trace::Trace;
use nsys::trace::nesting::threads;
use nsys::trace::nvtx::Ranges;
use nsys::trace::projection::project;

pub(crate) const NCCL_GPU_PROJ_SUM: ReportRecipe = ReportRecipe {
    name: "nccl_gpu_proj_sum",
    title: "NCCL GPU Projection Summary",
    about: "functions of NCCL by the time from the first to the last operation that they launched on a GPU",
    definition: "as `nvtx_gpu_proj_sum`, of ranges of the domain `NCCL` alone; calls within a group launch nothing \
                 themselves: their work is listed under `ncclGroupEnd`, and a note counts such ranges. See `nccl_msg` \
                 for the calls with their kernels",
    arguments: &[],
    tables: &[&NVTX_EVENTS, &STRING_IDS, &RUNTIME, &KERNEL, &MEMCPY, &MEMSET, &GRAPH_TRACE],
    kind: RecipeKind::Summary {
        quantity: Quantity::Nanoseconds,
        words: &["Range"],
        groups: |trace, _| groups(trace),
    },
};

fn groups(trace: &Trace) -> Result<Option<Groups>, ExportError> {
    let Some(ranges) = Ranges::read(trace)? else { return Ok(None) };
    let of_nccl = |row: usize| is_of_nccl(ranges.domain(row), ranges.domain_id[row], ranges.name(row));
    if !(0..ranges.len()).any(of_nccl) {
        return Ok(None);
    }
    let work = project(trace, &ranges, &threads(&ranges))?;
    let (mut of_row, mut values) = (Vec::with_capacity(work.len()), Vec::with_capacity(work.len()));
    let mut empty = 0usize;
    for (row, work) in work.iter().enumerate() {
        let of_nccl = of_nccl(row);
        empty += usize::from(of_nccl && work.is_none());
        of_row.push(if of_nccl && work.is_some() { ranges.name.of_row[row] } else { NO_GROUP });
        values.push(work.map_or(0, |work| work.ns()));
    }
    if empty > 0 {
        trace.note(format!("NCCL: ranges that launched nothing themselves, left out: {empty}"));
    }
    let labels = ranges.name.labels.iter().map(|name| vec![name.clone()]).collect();
    Ok(Groups { labels, of_row, values }.any())
}
