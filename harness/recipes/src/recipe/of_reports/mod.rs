//! Recipes over reports that a person names: many exports in, tables out. Add one by its declaration in the file of its
//! kind and its line in `LIST`. `survey` runs them over many reports.

mod breakdown;
#[cfg(test)]
mod charts_tests;
mod columns;
#[cfg(test)]
mod columns_tests;
mod composite;
mod diagnostics;
mod diff;
pub(crate) mod encoding;
mod expert;
mod generic;
mod groups;
mod histogram;
mod kernel_classes;
mod labels;
mod maps;
mod measures;
mod nccl;
mod network;
mod nvlink;
mod overlap;
mod pace;
#[cfg(test)]
pub(crate) mod part_tests;
mod projections;
#[cfg(test)]
mod projections_tests;
mod report_counts;
mod samples;
mod shared;
mod steps;
#[cfg(test)]
mod steps_tests;
mod stragglers;
mod summaries;
mod survey;
#[cfg(test)]
mod tests;
mod together;
mod unbalanced;

pub use columns::{OutputTable, TableDoc};
pub(crate) use groups::CHARTS;
pub use groups::{COMPOSITE, GROUPS, Group, group_of};
pub(crate) use maps::{NicRates, capture_files, capture_rates, report_rates};
pub use nccl::{Inspected, is_inspected, survey_records};
pub use report_counts::ReportCounts;
pub(crate) use survey::SUMMARY_CHARTS;
pub use survey::{Input, Outcome, Part, Progress, Survey, join, part, survey};
pub use together::{Across, Made, ReportExtract, Together};
pub(crate) use together::{Extract, Share};

use crate::report::{ArgumentSpec, Arguments, Groups};
use crate::result_table::{Quantity, ResultTable};
use nsys::export::ExportError;
use nsys::tables::TableSpec;
use nsys::trace::Trace;
use std::sync::{Mutex, PoisonError};

/// Every built-in recipe over reports, by the name under which it is asked for.
pub const LIST: &[ReportRecipe<'static>] = &[
    summaries::CUDA_API_SUM,
    summaries::CUDA_GPU_KERN_SUM,
    summaries::CUDA_GPU_MEM_SIZE_SUM,
    summaries::CUDA_GPU_MEM_TIME_SUM,
    summaries::NVTX_SUM,
    summaries::OSRT_SUM,
    summaries::MPI_SUM,
    projections::NVTX_GPU_PROJ_SUM,
    projections::NVTX_GPU_PROJ_TRACE,
    projections::NVTX_KERN_SUM,
    projections::CUDA_KERN_EXEC_SUM,
    steps::STEPS,
    pace::CUDA_GPU_KERN_PACE,
    pace::NVTX_PACE,
    pace::NVTX_GPU_PROJ_PACE,
    histogram::CUDA_GPU_KERN_HIST,
    network::NETWORK_SUM,
    nvlink::NVLINK_SUM,
    maps::cuda::CUDA_GPU_TIME_UTIL_MAP,
    maps::gpu_metric::GPU_METRIC_UTIL_MAP,
    maps::host_calls::MPI_GPU_TIME_UTIL_MAP,
    maps::cuda::NCCL_GPU_TIME_UTIL_MAP,
    maps::host_calls::UCX_GPU_TIME_UTIL_MAP,
    maps::network::NETWORK_TRAFFIC_MAP,
    maps::NETWORK_MAP_AWS,
    breakdown::BREAKDOWN,
    kernel_classes::KERNEL_CLASSES,
    overlap::NCCL_GPU_OVERLAP_TRACE,
    expert::CUDA_API_SYNC,
    expert::CUDA_MEMCPY_ASYNC,
    expert::CUDA_MEMCPY_SYNC,
    expert::CUDA_MEMSET_SYNC,
    expert::GPU_GAPS,
    expert::GPU_TIME_UTIL,
    expert::DX12_MEM_OPS,
    nccl::NCCL_MSG,
    nccl::NCCL_SUM,
    nccl::NCCL_GPU_PROJ_SUM,
    stragglers::STRAGGLERS,
    diff::DIFF,
    diagnostics::DIAGNOSTICS,
    unbalanced::NVTX_UNBALANCED,
    composite::gpu::CUDA_GPU,
    composite::gpu::CUDA_GPU_GRAPH,
    composite::gpu::CUDA_KERNEL,
    composite::joined::CUDA_COMBINED,
    composite::joined::CUDA_COMBINED_KERNEL,
    composite::calls::NVTX,
    composite::calls::MPI,
    composite::calls::UCX,
    composite::nccl::NCCL,
    composite::aws_ofi_nccl::AWS_OFI_NCCL,
    composite::sampled::NIC,
    composite::sampled::IB_SWITCH,
    composite::sampled::GPU_METRICS_TABLE,
    composite::sampled::GENERIC,
];

/// The declaration of a recipe; the manual is written from it. A user's borrows from the catalogue that it is in.
#[derive(Clone, Copy)]
pub struct ReportRecipe<'a> {
    /// As in `harness recipe NAME`: `cuda_gpu_kern_sum`.
    pub name: &'a str,
    /// For a heading.
    pub title: &'a str,
    /// Its purpose.
    pub about: &'a str,
    /// How its figures are computed. These definitions are this project's own.
    pub definition: &'a str,
    /// Accepted behind its name, as in `NAME:ARGUMENT`; empty where there are none.
    pub arguments: &'a [ArgumentSpec],
    /// Tables of the export that it reads.
    pub tables: &'a [&'static TableSpec],
    /// A summary, rows, tables over all reports, or a comparison.
    pub kind: RecipeKind<'a>,
}

/// The rows of one report in groups.
pub(crate) type GroupsOf = fn(&Trace, &Arguments) -> Result<Option<Groups>, ExportError>;

/// How a recipe reads reports, and what it makes of several.
#[derive(Clone, Copy)]
pub enum RecipeKind<'a> {
    /// Figures of groups: of all reports together, and of each.
    Summary {
        /// Of the values: most are times in nanoseconds.
        quantity: Quantity,
        /// Headings of the columns that name a group.
        words: &'static [&'static str],
        /// Groups the rows of one report; `None` where it lacks them.
        groups: GroupsOf,
    },
    /// One table per report, below each other.
    Rows {
        /// The columns of the table, as in `TableDoc`.
        columns: &'static [&'static [&'static str]],
        /// Makes the table of one report; `None` where it has no matching rows.
        of: fn(&Trace, &Arguments) -> Result<Option<ResultTable>, ExportError>,
    },
    /// Tables over all reports at once; see `together`.
    Together(&'a dyn Together),
    /// A summary of the first input beside the same of the second.
    Diff,
}

/// A recipe of `LIST`; a catalogue has those of users, too.
pub fn find(name: &str) -> Option<ReportRecipe<'static>> {
    LIST.iter().find(|recipe| recipe.name == name).copied()
}

/// One table of a built-in recipe for one report alone; `None` where it makes no such table.
pub(crate) fn table_of(
    recipe: &ReportRecipe<'_>,
    trace: &Trace,
    table: &str,
) -> Result<Option<ResultTable>, ExportError> {
    let arguments = Arguments::default();
    match &recipe.kind {
        RecipeKind::Rows { of, .. } => of(trace, &arguments),
        RecipeKind::Together(together) => {
            let all = Mutex::new(together.begin());
            let Some((extract, _)) = together.take(trace, &arguments, &all)? else { return Ok(None) };
            let all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
            let report = ReportExtract {
                rank: 0,
                file: String::new(),
                host: None,
                utc_epoch_ns: None,
                extract: &extract,
            };
            let made = together.make(all, vec![report], &arguments);
            Ok(made.tables.into_iter().find(|(name, _)| *name == table).map(|(_, result_table)| result_table))
        }
        RecipeKind::Summary { .. } | RecipeKind::Diff => Ok(None),
    }
}

impl ReportRecipe<'_> {
    /// Whether it compares the first input with the second.
    pub fn is_comparison(&self) -> bool {
        matches!(self.kind, RecipeKind::Diff)
    }

    /// The charts that it may give, and what each shows. Capital letters in a name are a placeholder.
    pub fn charts(&self) -> &'static [(&'static str, &'static str)] {
        match self.kind {
            RecipeKind::Summary { .. } => SUMMARY_CHARTS,
            RecipeKind::Together(together) => together.charts(),
            RecipeKind::Rows { .. } | RecipeKind::Diff => &[],
        }
    }

    /// The tables that it may give, with their columns.
    pub fn output_tables(&self) -> Vec<OutputTable> {
        let mut tables = match self.kind {
            RecipeKind::Summary { quantity, words, .. } => {
                let head = if quantity == Quantity::Nanoseconds { "Time" } else { "Share" };
                let all = || {
                    std::iter::once(head).chain(columns::FIGURES.iter().copied()).chain(words.iter().copied())
                };
                let each = std::iter::once("Rank").chain(all());
                vec![
                    columns::output_table("all_stats", columns::ALL_STATS, all()),
                    columns::output_table("rank_stats", columns::RANK_STATS, each),
                ]
            }
            RecipeKind::Rows { columns, .. } => {
                let columns = std::iter::once("Rank").chain(columns.concat());
                vec![columns::output_table("rows", "the rows of all reports, with the rank of each", columns)]
            }
            RecipeKind::Together(together) => together.tables(),
            RecipeKind::Diff => {
                let about = "one row per group, the largest difference first";
                let words = diff::WORDS.iter().copied();
                vec![columns::output_table("diff", about, diff::COLUMNS.iter().copied().chain(words))]
            }
        };
        tables.push(columns::output_table(
            "files",
            "the rank of each report, and its data",
            columns::FILES.iter().copied(),
        ));
        tables
    }

    /// Whether it gives figures of groups: the tables `all_stats` and `rank_stats`.
    pub fn is_summary(&self) -> bool {
        matches!(self.kind, RecipeKind::Summary { .. })
    }
}
