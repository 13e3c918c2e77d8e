//! Summaries: the rows of a report in groups, whose figures are taken over all reports together.

use super::{RecipeKind, ReportRecipe};
use crate::report::argument;
use crate::report::{self, ArgumentSpec, Groups, Takes};
use crate::result_table::Quantity;
use nsys::export::ExportError;
use nsys::tables::{
    KERNEL, MEMCPY, MEMCPY_OPER, MEMSET, MPI_COLLECTIVES, MPI_OTHER, MPI_P2P, MPI_START_WAIT, NVTX_EVENTS,
    OSRT_API, RUNTIME, STRING_IDS,
};
use nsys::trace::Trace;

pub(super) const CUDA_API_SUM: ReportRecipe = ReportRecipe {
    name: "cuda_api_sum",
    title: "CUDA API Summary",
    about: "calls of the CUDA runtime and driver, and their time",
    definition: "by name, without a version of four digits at its end; from begin to end of a call",
    arguments: &[],
    tables: &[&RUNTIME, &STRING_IDS],
    kind: RecipeKind::Summary {
        quantity: Quantity::Nanoseconds,
        words: &["Name"],
        groups: |trace, _| report::api_calls(trace),
    },
};

pub(super) const CUDA_GPU_KERN_SUM: ReportRecipe = ReportRecipe {
    name: "cuda_gpu_kern_sum",
    title: "CUDA GPU Kernel Summary",
    about: "kernels, and their time on the GPUs",
    definition: "by whole name; from begin to end on the GPU; kernels side by side count each",
    arguments: &[report::BASE, report::MANGLED],
    tables: &[&KERNEL, &STRING_IDS],
    kind: RecipeKind::Summary {
        quantity: Quantity::Nanoseconds,
        words: &["Name"],
        groups: report::kernels_by_name,
    },
};

pub(super) const CUDA_GPU_MEM_TIME_SUM: ReportRecipe = ReportRecipe {
    name: "cuda_gpu_mem_time_sum",
    title: "CUDA GPU MemOps Summary (by Time)",
    about: "copies and fills of memory, and their time on the GPUs",
    definition: "copies by direction, fills together; from begin to end on the GPU",
    arguments: &[],
    tables: &[&MEMCPY, &MEMSET, &MEMCPY_OPER],
    kind: RecipeKind::Summary {
        quantity: Quantity::Nanoseconds,
        words: &["Operation"],
        groups: |trace, _| report::memory_by_time(trace),
    },
};

pub(super) const CUDA_GPU_MEM_SIZE_SUM: ReportRecipe = ReportRecipe {
    name: "cuda_gpu_mem_size_sum",
    title: "CUDA GPU MemOps Summary (by Size)",
    about: "copies and fills of memory, and the bytes they moved",
    definition: "copies by direction, fills together; printed in MB of 1,000,000 bytes",
    arguments: &[],
    tables: &[&MEMCPY, &MEMSET, &MEMCPY_OPER],
    kind: RecipeKind::Summary {
        quantity: Quantity::Bytes,
        words: &["Operation"],
        groups: |trace, _| report::memory_by_size(trace),
    },
};

pub(super) const NVTX_SUM: ReportRecipe = ReportRecipe {
    name: "nvtx_sum",
    title: "NVTX Range Summary",
    about: "NVTX ranges of programs",
    definition: "by style, domain and name; ranges without an end are left out and counted",
    arguments: &[],
    tables: &[&NVTX_EVENTS, &STRING_IDS],
    kind: RecipeKind::Summary {
        quantity: Quantity::Nanoseconds,
        words: &["Style", "Range"],
        groups: |trace, _| report::ranges_by_name(trace, None),
    },
};

pub(super) const OSRT_SUM: ReportRecipe = ReportRecipe {
    name: "osrt_sum",
    title: "OS Runtime Summary",
    about: "calls into the C library, and their time",
    definition: "by name; calls with only a begin or only an end are left out and counted",
    arguments: &[],
    tables: &[&OSRT_API, &STRING_IDS],
    kind: RecipeKind::Summary {
        quantity: Quantity::Nanoseconds,
        words: &["Name"],
        groups: |trace, _| report::os_calls(trace),
    },
};

pub(super) const MPI_SUM: ReportRecipe = ReportRecipe {
    name: "mpi_sum",
    title: "MPI Summary",
    about: "calls of MPI, and their time",
    definition: "by kind and name; in reports of 2022, which have no tables of MPI, the ranges of NVTX's domain `MPI`",
    arguments: &[],
    tables: &[&MPI_P2P, &MPI_COLLECTIVES, &MPI_START_WAIT, &MPI_OTHER, &NVTX_EVENTS, &STRING_IDS],
    kind: RecipeKind::Summary {
        quantity: Quantity::Nanoseconds,
        words: &["Source", "Name"],
        groups: |trace, _| mpi(trace),
    },
};

fn mpi(trace: &Trace) -> Result<Option<Groups>, ExportError> {
    if let Some(groups) = report::mpi_calls(trace)? {
        return Ok(Some(groups));
    }
    let Some(mut ranges) = report::ranges_by_name(trace, None)? else { return Ok(None) };
    // A group that is not of that domain is none; its label stays, without a row.
    let of_mpi: Vec<Option<String>> = ranges
        .labels
        .iter()
        .map(|words| words.last().and_then(|range| range.strip_prefix("MPI:")).map(str::to_owned))
        .collect();
    for group in &mut ranges.of_row {
        if of_mpi.get(*group as usize).is_none_or(Option::is_none) {
            *group = nsys::trace::NO_GROUP;
        }
    }
    ranges.labels =
        of_mpi.into_iter().map(|name| vec!["nvtx".to_owned(), name.unwrap_or_default()]).collect();
    Ok(ranges.any())
}

/// An argument of `diff` for each summary.
pub(super) const fn named(name: &'static str) -> ArgumentSpec {
    argument!(name, "compares by this summary", Takes::Nothing, "of")
}
