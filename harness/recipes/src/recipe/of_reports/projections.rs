//! Ranges by what they launched, and launches of kernels: the tables of statistics of one report, over many.

use super::measures::Measures;
use super::survey::below_each_other;
use super::{Across, Made, RecipeKind, ReportRecipe};
use crate::recipe::of_reports::columns::TableDoc;
use crate::report::argument;
use crate::report::{self, ArgumentSpec, BASE, MANGLED, Takes};
use crate::result_table::ResultTable;
use nsys::tables::{GRAPH_TRACE, KERNEL, MEMCPY, MEMSET, NVTX_EVENTS, RUNTIME, STRING_IDS, TableSpec};

const TABLES: &[&TableSpec] = &[&NVTX_EVENTS, &STRING_IDS, &RUNTIME, &KERNEL, &MEMCPY, &MEMSET, &GRAPH_TRACE];

pub(super) const NVTX_GPU_PROJ_SUM: ReportRecipe = ReportRecipe {
    name: "nvtx_gpu_proj_sum",
    title: "NVTX GPU Projection Summary",
    about: "ranges by the work that they launched on the GPUs, by name and style",
    definition: "an operation (kernel, copy, fill, or graph that was traced as a whole) belongs to every range of one \
                 thread within which its call lies on that thread, borders included; a range is projected from the \
                 begin of its first operation to the end of its last one, gaps included. Ranges that launched nothing \
                 do not count, ranges in one another count each, children are those that launched something, and \
                 start/end ranges have no level",
    arguments: &[],
    tables: TABLES,
    kind: RecipeKind::Together(&Measures {
        name: "nvtx_gpu_proj_sum",
        title: "NVTX GPU Projection Summary",
        groups: |trace, _| report::projected_by_name(trace),
        shows: report::PROJECTED_SHOWS,
        of_one_report: &[],
    }),
};

const COMPAT: ArgumentSpec = argument!(
    "compat",
    "the columns of nsys 2024.5 and later (Text, Start, End, Children Count, Range ID, Parent ID, PID, Range Stack \
            as a list, Stack Level, TID), and no rows without a range",
    Takes::Nothing
);

pub(super) const NVTX_GPU_PROJ_TRACE: ReportRecipe = ReportRecipe {
    name: "nvtx_gpu_proj_trace",
    title: "NVTX GPU Projection Trace",
    about: "each range that launched work, with the time of that work on the GPUs",
    definition: "projected as in `nvtx_gpu_proj_sum`, in the order of the projections' beginnings. Each thread has one \
                 push/pop stack over all domains; NumChild counts children that have a row. Work that a thread \
                 launched outside all ranges is one row without a name. Times are each report's own",
    arguments: &[COMPAT],
    tables: TABLES,
    kind: RecipeKind::Together(&Across {
        tables: &[TableDoc {
            name: "trace",
            about: "one row per range that launched work",
            columns: &[&[
                "Rank",
                "Name: the range",
                "Projected Start: when the first of its work began on a GPU",
                "Projected Duration: time to the end of the last",
                "Projected End: when the last of it ended on a GPU",
                "Orig Start: when the range began",
                "Orig Duration: time to its end",
                "Style",
                "PID",
                "TID",
                "NumGPUOps: operations that it launched",
                "Lvl: how many ranges it lies in",
                "NumChild: ranges directly within it",
                "RangeId: its number",
                "ParentId: the number of the range that it lies in",
                "RangeStack: the numbers of all ranges that it lies in, its own last",
                "Text: the range",
                "Start: when the first of its work began on a GPU",
                "End: when the last of it ended",
                "Children Count: ranges directly within it",
                "Range ID: its number",
                "Parent ID: the number of the range that it lies in",
                "Range Stack: the numbers of all ranges that it lies in, its own last",
                "Stack Level: how many ranges it lies in",
            ]],
        }],
        charts: &[],
        take: |trace, arguments| {
            let result_table = match arguments.has(COMPAT.name) {
                true => report::projected_newer(trace)?,
                false => report::projected_with_rest(trace)?,
            };
            Ok(result_table.map(|result_table: ResultTable| {
                let rows = result_table.height() as u64;
                (result_table, rows)
            }))
        },
        make: |reports, _| {
            let result_tables: Vec<(i64, &ResultTable)> =
                reports.iter().map(|report| (report.rank, report.extract)).collect();
            let trace = below_each_other(&result_tables).map(|result_table| ("trace", result_table));
            Made { tables: trace.into_iter().collect(), ..Made::default() }
        },
    }),
};

pub(super) const NVTX_KERN_SUM: ReportRecipe = ReportRecipe {
    name: "nvtx_kern_sum",
    title: "NVTX Range Kernel Summary",
    about: "kernels within the ranges that launched them, by range, style and kernel",
    definition: "a kernel belongs to every range of one thread within which its call lies on that thread, borders \
                 included: within two ranges of one name it counts twice. NVTX Inst counts ranges that have such a \
                 kernel. Over all reports, processes and threads are not distinguished",
    arguments: &[BASE, MANGLED],
    tables: &[&NVTX_EVENTS, &STRING_IDS, &RUNTIME, &KERNEL],
    kind: RecipeKind::Together(&Measures {
        name: "nvtx_kern_sum",
        title: "NVTX Range Kernel Summary",
        groups: report::kernels_by_range,
        shows: report::RANGE_SHOWS,
        of_one_report: &[2, 3],
    }),
};

pub(super) const CUDA_KERN_EXEC_SUM: ReportRecipe = ReportRecipe {
    name: "cuda_kern_exec_sum",
    title: "CUDA Kernel Launch & Exec Time Summary",
    about: "kernel launches: time of the call, queue time and run time of the kernel",
    definition: "of a kernel and the call of its process and correlation. A is the time of the call, Q from its end to \
                 the kernel's begin where that lies behind it (QCount of Count), K the time of the kernel, T all from \
                 the begin of the call to the end of both. By call and kernel; of each report by thread and device \
                 too. Kernels without a call are left out and counted",
    arguments: &[BASE, MANGLED],
    tables: &[&KERNEL, &RUNTIME, &STRING_IDS],
    kind: RecipeKind::Together(&Measures {
        name: "cuda_kern_exec_sum",
        title: "CUDA Kernel Launch & Exec Time Summary",
        groups: report::launches_by_name,
        shows: report::LAUNCHED_SHOWS,
        of_one_report: &[0, 1, 2],
    }),
};
