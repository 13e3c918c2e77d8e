//! The tables of statistics of one report, under the names and with the columns that nsys publishes for them. Add one by
//! its declaration in the file of its kind and its line in `LIST`.

mod api;
mod arguments;
#[cfg(test)]
mod bad_input;
mod gpu_trace;
mod kernels;
mod launches;
mod measured;
mod memory;
mod mpi;
mod mpi_trace;
mod network;
mod nvtx;
mod os;
mod prefix;
mod projected_rows;
mod projection;
mod pushpop;
mod range_kernels;
mod summary;
#[cfg(test)]
mod tests;
mod united;

pub(crate) use arguments::argument;
pub use arguments::{ArgumentSpec, Arguments, BadArgument, Takes};
pub use summary::Groups;

pub(crate) use api::{api_name, calls as api_calls};
pub(crate) use gpu_trace::memory_kinds;
pub(crate) use kernels::{BASE, MANGLED, by_name as kernels_by_name};
pub(crate) use launches::{LAUNCHED_SHOWS, launches_by_name};
pub(crate) use measured::{Group, GroupKey, Shows, columns as measured_columns, sort as sort_measured};
pub(crate) use memory::{by_size as memory_by_size, by_time as memory_by_time};
pub(crate) use mpi::{SOURCES as MPI_SOURCES, calls as mpi_calls};
pub(crate) use nvtx::by_name as ranges_by_name;
pub(crate) use os::calls as os_calls;
pub(crate) use projected_rows::{newer as projected_newer, with_rest as projected_with_rest};
pub(crate) use projection::{PROJECTED_SHOWS, projected_by_name};
pub(crate) use range_kernels::{RANGE_SHOWS, kernels_by_range};

use crate::result_table::ResultTable;
use nsys::export::ExportError;
use nsys::tables::TableSpec;
use nsys::trace::Trace;

/// Every report, by the name under which it is asked for.
pub const LIST: &[ReportSpec] = &[
    api::CUDA_API_SUM,
    api::CUDA_API_TRACE,
    kernels::CUDA_GPU_KERN_SUM,
    kernels::CUDA_GPU_KERN_GB_SUM,
    launches::CUDA_KERN_EXEC_SUM,
    launches::CUDA_KERN_EXEC_TRACE,
    memory::CUDA_GPU_MEM_TIME_SUM,
    memory::CUDA_GPU_MEM_SIZE_SUM,
    united::CUDA_GPU_SUM,
    united::CUDA_API_GPU_SUM,
    gpu_trace::CUDA_GPU_TRACE,
    nvtx::NVTX_SUM,
    nvtx::NVTX_PUSHPOP_SUM,
    nvtx::NVTX_STARTEND_SUM,
    pushpop::NVTX_PUSHPOP_TRACE,
    projection::NVTX_GPU_PROJ_SUM,
    projection::NVTX_GPU_PROJ_TRACE,
    range_kernels::NVTX_KERN_SUM,
    os::OSRT_SUM,
    mpi::MPI_EVENT_SUM,
    mpi::MPI_MSG_SIZE_SUM,
    mpi_trace::MPI_EVENT_TRACE,
    network::NETWORK_CONGESTION,
];

/// Those that are given where none is asked for.
pub const DEFAULT: &[&str] = &[
    "nvtx_sum",
    "osrt_sum",
    "cuda_api_sum",
    "cuda_gpu_kern_sum",
    "cuda_gpu_mem_time_sum",
    "cuda_gpu_mem_size_sum",
];

/// What a report declares before it computes: the manual is written from it.
pub struct ReportSpec {
    /// As in `harness stats --report NAME`: `cuda_api_sum`.
    pub name: &'static str,
    /// For a person: `CUDA API Summary`.
    pub title: &'static str,
    /// What its rows are, and how they are made.
    pub about: &'static str,
    /// What a report without a row lacks, in words.
    pub data: &'static str,
    /// Accepted behind its name, as in `NAME:base`; empty where there are none.
    pub arguments: &'static [ArgumentSpec],
    /// Tables of the export that it reads.
    pub tables: &'static [&'static TableSpec],
    /// `None` where the report has nothing for it.
    pub run: fn(&Trace, &Arguments) -> Result<Option<ResultTable>, ExportError>,
}

/// By its name, or by that of releases before 2023: `cudaapisum`.
pub fn find(name: &str) -> Option<&'static ReportSpec> {
    LIST.iter().find(|report| report.name == name || older(report.name).iter().any(|older| older == name))
}

/// As releases before 2023 spelt it: `cudaapisum`, `gpukernsum`, `nvtxppsum`.
fn older(name: &str) -> [String; 3] {
    let plain = name.replace('_', "");
    [plain.trim_start_matches("cuda").to_owned(), plain.replace("pushpop", "pp"), plain]
}
