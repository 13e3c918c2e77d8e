//! Of each GPU how much of its time kernels ran; and of kernels that communicate and kernels that compute, each alone and
//! both at once.

use super::shares::{self, Extract, ProcessGpu, Shares};
use super::window::{BINS, NO_SHIFT};
use crate::busy::{self, Busy, Gpu, Operation};
use crate::recipe::of_reports::columns::TableDoc;
use crate::recipe::of_reports::together::Share;
use crate::recipe::of_reports::{Across, Made, RecipeKind, ReportExtract, ReportRecipe};
use crate::report::argument;
use crate::report::{ArgumentSpec, Arguments, Takes};
use crate::spans::Spans;
use nsys::tables::{GRAPH_TRACE, KERNEL, STRING_IDS};
use nsys::trace::Trace;

pub(in super::super) const CUDA_GPU_TIME_UTIL_MAP: ReportRecipe = ReportRecipe {
    name: "cuda_gpu_time_util_map",
    title: "GPU Time Utilization",
    about: "fraction of time in which kernels ran, by GPU and over time",
    definition: "per rank, process and GPU: a cell is 100 times the length of the union of its kernels within the bin, \
                 divided by the measured part of the bin; kernels are cut at its edges, copies and fills do not count, \
                 graphs that were traced as a whole do. Bins are equal and reach from the first to the last kernel of \
                 all reports, or over the filter's span. Reports are aligned by the UTC of their beginnings, where \
                 each has it. A report counts as measured from its first to its last event of any kind: outside of \
                 that a cell is empty, never 0",
    arguments: &[BINS, NO_SHIFT],
    tables: &[&KERNEL, &GRAPH_TRACE, &STRING_IDS],
    kind: RecipeKind::Together(&Across {
        tables: &[
            TableDoc {
                name: "totals",
                about: "one row per GPU of each process, or per process",
                columns: &[
                    &["Rank", "PID", "Device", "Measured"],
                    &["Kernels Time: time in which kernels ran"],
                    &["Kernels: share of the measured time in which kernels ran"],
                ],
            },
            TableDoc {
                name: "heatmap",
                about: "one row per bin of time of each",
                columns: &[
                    &["Rank", "PID", "Device", "Start", "End", "Measured"],
                    &["Kernels: share of the measured time in which kernels ran"],
                ],
            },
        ],
        charts: &[("kernels", "the share of time in which kernels ran, over time, by GPU")],
        take,
        make,
    }),
};

const OF_KERNELS: Shares = Shares {
    name: CUDA_GPU_TIME_UTIL_MAP.name,
    title: CUDA_GPU_TIME_UTIL_MAP.title,
    kinds: &[shares::ShareKind {
        name: "kernels",
        heading: "Kernels",
        title: "GPU time in which kernels ran",
    }],
    both: None,
};

fn take(trace: &Trace, _: &Arguments) -> Share<Extract> {
    let Some(busy) = Busy::read(trace)? else { return Ok(None) };
    let Some((shown, rows)) = span(&busy, runs) else { return Ok(None) };
    let places = with(&busy, runs).map(|gpu| ProcessGpu {
        process: gpu.process,
        device: Some(gpu.device),
        sets: vec![Some(union(gpu, runs))],
        unknown: Spans::default(),
    });
    Ok(Some((shares::extract(trace, shown, places.collect()), rows)))
}

fn make(reports: &[ReportExtract<&Extract>], arguments: &Arguments) -> Made {
    shares::make(&OF_KERNELS, reports, arguments)
}

/// Kernels, and graphs of which nothing is known but that they ran.
pub(super) fn runs(one: &Operation) -> bool {
    one.kind != busy::Activity::Memory
}

/// The GPUs that have any such operation.
pub(super) fn with<'a>(
    busy: &'a Busy,
    what: impl Fn(&Operation) -> bool + Copy + 'a,
) -> impl Iterator<Item = &'a Gpu> + 'a {
    busy.gpus.iter().filter(move |gpu| gpu.operations.iter().any(what))
}

pub(super) fn union(gpu: &Gpu, what: impl Fn(&Operation) -> bool) -> Spans {
    Spans::union(gpu.operations.iter().filter(|one| what(one)).map(Operation::span))
}

/// From the first to the last of them, and how many there are.
pub(super) fn span(busy: &Busy, what: impl Fn(&Operation) -> bool) -> Option<((i64, i64), u64)> {
    let all = busy.gpus.iter().flat_map(|gpu| &gpu.operations).filter(|one| what(one));
    all.map(|one| (one.span(), 1))
        .reduce(|(all, rows), (one, more)| ((all.0.min(one.0), all.1.max(one.1)), rows + more))
}

pub(in super::super) const NCCL_GPU_TIME_UTIL_MAP: ReportRecipe = ReportRecipe {
    name: "nccl_gpu_time_util_map",
    title: "GPU Time of Communication and Computation",
    about: "fraction of time in which kernels communicated, computed, and did both at once, by GPU and over time",
    definition: "as `cuda_gpu_time_util_map`, for two kinds of kernels and for what they do at once, which is the \
                 intersection of their unions. A kernel communicates if its name begins with `nccl`, the published \
                 rule; with `classes` those do that `kernel_classes` calls nccl or comm: NCCL's, user buffers, DeepEP, \
                 NVSHMEM and the like. All others compute. While a graph ran that was traced as a whole, its kernels \
                 are unknown: that time is not measured",
    arguments: &[BINS, NO_SHIFT, CLASSES],
    tables: &[&KERNEL, &GRAPH_TRACE, &STRING_IDS],
    kind: RecipeKind::Together(&Across {
        tables: &[
            TableDoc {
                name: "totals",
                about: "one row per GPU of each process, or per process",
                columns: &[
                    &["Rank", "PID", "Device", "Measured"],
                    &[
                        "Communication Time: time in which kernels communicated",
                        "Compute Time: time in which kernels computed",
                        "Overlap Time: time in which both went on at once",
                    ],
                    &[
                        "Communication: share of the measured time in which kernels communicated",
                        "Compute: share of the measured time in which kernels computed",
                        "Overlap: share of the measured time in which both went on at once",
                    ],
                ],
            },
            TableDoc {
                name: "heatmap",
                about: "one row per bin of time of each",
                columns: &[
                    &["Rank", "PID", "Device", "Start", "End", "Measured"],
                    &[
                        "Communication: share of the measured time in which kernels communicated",
                        "Compute: share of the measured time in which kernels computed",
                        "Overlap: share of the measured time in which both went on at once",
                    ],
                ],
            },
        ],
        charts: &[
            ("communication", "the share of time in which kernels communicated, over time, by GPU"),
            ("compute", "the same of kernels that computed"),
            ("overlap", "the same of both at once"),
        ],
        take: take_nccl,
        make: make_nccl,
    }),
};

const CLASSES: ArgumentSpec = argument!(
    "classes",
    "communication by the classes of `kernel_classes`, not only names that begin with nccl",
    Takes::Nothing
);

const OF_NCCL: Shares = Shares {
    name: NCCL_GPU_TIME_UTIL_MAP.name,
    title: NCCL_GPU_TIME_UTIL_MAP.title,
    kinds: &[
        shares::ShareKind {
            name: "communication",
            heading: "Communication",
            title: "GPU time in which kernels communicated",
        },
        shares::ShareKind {
            name: "compute",
            heading: "Compute",
            title: "GPU time in which kernels computed",
        },
    ],
    both: Some(shares::ShareKind {
        name: "overlap",
        heading: "Overlap",
        title: "GPU time in which kernels communicated and computed at once",
    }),
};

fn take_nccl(trace: &Trace, arguments: &Arguments) -> Share<Extract> {
    let Some(busy) = Busy::read(trace)? else { return Ok(None) };
    let by_class = arguments.has(CLASSES.name);
    let begins: Vec<bool> =
        busy.kernels.iter().map(|name| name.short.to_lowercase().starts_with("nccl")).collect();
    let begins = |one: &Operation| begins.get(one.name as usize).copied().unwrap_or(false);
    let is_class = |one: &Operation| one.kind == busy::Activity::Communication;
    let communicates = |one: &Operation| if by_class { is_class(one) } else { begins(one) };
    let is_kernel =
        |one: &Operation| matches!(one.kind, busy::Activity::Communication | busy::Activity::Compute);
    let Some((_, rows)) = span(&busy, is_kernel) else { return Ok(None) };
    let Some((shown, _)) = span(&busy, runs) else { return Ok(None) };
    let places = with(&busy, runs).map(|gpu| ProcessGpu {
        process: gpu.process,
        device: Some(gpu.device),
        sets: vec![
            Some(union(gpu, |one| is_kernel(one) && communicates(one))),
            Some(union(gpu, |one| is_kernel(one) && !communicates(one))),
        ],
        unknown: union(gpu, |one| one.kind == busy::Activity::Graph),
    });
    let places = places.collect();
    let operations = busy.gpus.iter().flat_map(|gpu| &gpu.operations);
    let others = operations.filter(|one| is_class(one) && !begins(one)).count();
    if others > 0 && !by_class {
        trace.note(format!(
            "communication kernels counted as compute, as they do not begin with nccl (`classes` changes that): \
             {others}"
        ));
    }
    Ok(Some((shares::extract(trace, shown, places), rows)))
}

fn make_nccl(reports: &[ReportExtract<&Extract>], arguments: &Arguments) -> Made {
    shares::make(&OF_NCCL, reports, arguments)
}
