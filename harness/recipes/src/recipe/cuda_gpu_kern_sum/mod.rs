//! Where the GPUs' time went: kernels by name and by class, of each rank and of all ranks together. Shares are of the
//! sum of kernel times, not of wall time: kernels side by side count each.

#[cfg(test)]
mod tests;
mod trace;

pub use trace::{Kernels, durations};

use super::{FileRole, InputFile, JobInput, Output, RecipeSpec, Workload};
use crate::figures::Stats;
use crate::kernel_class::{CLASSES, checks_buffers, class_of};
use crate::recipe::shared_findings::{KernelFinding, ReportFinding};
use metric::finding::Finding;
use metric::finding_kinds;
use metric::unit::{Better, Unit};
use metric::{Blames, Dim, Files, MetricSpec, Role};
use nsys::export::{Export, KNOWN_MAJOR, WrittenBy};
use nsys::loss::loss;
use nsys::tables::{DIAGNOSTIC_EVENT, KERNEL, META_DATA_EXPORT, STRING_IDS};
use std::collections::BTreeMap;

const fn kernel_metric(name: &'static str, about: &'static str, unit: Unit, better: Better) -> MetricSpec {
    MetricSpec::new(name, about, unit, better, Files::Reports)
        .per(&[Dim::Kernel])
        .next("look at `kernel.time` of the case in metrics.parquet, and at the report itself")
}

const SHARE: MetricSpec = kernel_metric(
    "kernel.share",
    "a kernel's fraction of all kernel time, over all profiled ranks",
    Unit::Ratio,
    Better::Neither,
);
const CLASS_SHARE: MetricSpec = kernel_metric(
    "kernel.class_share",
    "the fraction of all kernel time spent in a class of kernels, over all profiled ranks",
    Unit::Ratio,
    Better::Neither,
)
.per(&[Dim::Class])
.with(&[Role::ShowsCommunication]);
const TIME: MetricSpec = kernel_metric(
    "kernel.time",
    "a kernel's time, all its runs on all profiled ranks together",
    Unit::Nanoseconds,
    Better::Neither,
)
.blaming(Blames::Node);
const COUNT: MetricSpec = kernel_metric(
    "kernel.count",
    "how often a kernel ran on all profiled ranks",
    Unit::Count,
    Better::Neither,
);
const MEDIAN: MetricSpec = kernel_metric(
    "kernel.median",
    "the median of a kernel's runs on all profiled ranks",
    Unit::Nanoseconds,
    Better::Lower,
)
.blaming(Blames::Node);
const RANK_CLASS_SHARE: MetricSpec = MetricSpec::new(
    "rank.kernel_class_share",
    "the fraction of a rank's kernel time spent in a class of kernels",
    Unit::Ratio,
    Better::Neither,
    Files::Reports,
)
.per(&[Dim::Rank, Dim::Node, Dim::Class])
.with(&[Role::ShowsCommunication]);

/// Reads nsys reports.
pub(crate) const SPEC: RecipeSpec = RecipeSpec {
    name: "cuda_gpu_kern_sum",
    about: "kernels and their time, from nsys reports",
    metrics: &[SHARE, CLASS_SHARE, TIME, COUNT, MEDIAN, RANK_CLASS_SHARE],
    tables: &[&KERNEL, &STRING_IDS, &DIAGNOSTIC_EVENT, &META_DATA_EXPORT],
    findings: &[ReportFinding::ALL, KernelFinding::ALL, KernelSumFinding::ALL],
    reads_nccl_log: false,
    compares_clocks: false,
    reads_inspector: false,
    run: &run,
};

finding_kinds! {
    /// Of kernels that were summed.
    pub(crate) enum KernelSumFinding {
        ReportTooNew = "report-too-new": Note,
        SmallKernels = "small-kernels": Note,
    }
}

/// Only the kernels with the most time get metrics each; sane workloads have fewer than this.
const MOST_KERNELS: usize = 200;

fn run(job: &JobInput) -> Output {
    let mut output = Output::default();
    let mut all = Kernels::new();
    let mut whole = true;
    let files: Vec<&InputFile> = job.files_of(FileRole::NsysExport).collect();
    for file in &files {
        match read_rank(job, file, &mut output) {
            Some(kernels) => {
                per_rank(job, file, &kernels, &mut output);
                for (name, durations) in kernels {
                    all.entry(name).or_default().extend(durations);
                }
            }
            None => whole = false,
        }
    }
    // Shares need the reports of all ranks. The collector reports missing ones.
    if whole && job.has_every_export() && !files.is_empty() {
        add_job_metrics(job, &all, &mut output);
    }
    output
}

/// The kernels of one report; `None`, with a finding, where it has none to use.
fn read_rank(job: &JobInput, file: &InputFile, output: &mut Output) -> Option<Kernels> {
    let finding = |code: &str, why: String| file.finding(code, why);
    let (kernels, lost, written) = match job.report_extract(SPEC.name, file, || read(file)) {
        Ok(read) => read,
        Err(finding) => {
            output.findings.push(*finding);
            return None;
        }
    };
    if let Some(major) = written.schema_major().filter(|major| *major > KNOWN_MAJOR) {
        let why = format!(
            "schema version {major} is newer than the newest known one, {KNOWN_MAJOR}; all columns that are \
                     read were found"
        );
        output.findings.push(finding(KernelSumFinding::ReportTooNew.code(), why));
    }
    if let Some(product) = written.product {
        output.versions.entry("nsys".to_owned()).or_default().insert(product);
    }
    if let Some((code, text)) = lost {
        output.findings.push(finding(&code, format!("the profiler reported: {text}")));
        return None;
    }
    let mut kernels = match kernels {
        Ok(kernels) => kernels,
        Err(why) => {
            output.findings.push(finding(KernelFinding::Garbled.code(), why));
            return None;
        }
    };
    if matches!(job.workload, Workload::NcclTests { .. }) {
        kernels.retain(|name, _| !checks_buffers(name));
    }
    // Without any kernel time there are no shares.
    if kernels.values().flatten().all(|ns| *ns == 0) {
        let why = "no kernel was traced; trace `cuda`, and have the capture include the workload's kernels";
        output.findings.push(finding(KernelFinding::NoKernels.code(), why.to_owned()));
        return None;
    }
    Some(kernels)
}

/// The runs of its kernels, or why there are none; lost events; and the version that wrote it.
type OfReport = (Result<Kernels, String>, Option<(String, String)>, WrittenBy);

fn read(file: &InputFile) -> Result<OfReport, (&'static str, String)> {
    let read = Export::open(&file.path).and_then(|export| {
        let lost = loss(&export)?.map(|(code, text)| (code.to_owned(), text));
        let written = export.written_by()?;
        Ok((durations(&export)?, lost, written))
    });
    read.map_err(|error| (ReportFinding::Unreadable.code(), error.to_string()))
}

fn per_rank(job: &JobInput, file: &InputFile, kernels: &Kernels, output: &mut Output) {
    let (Some(rank), Some(node)) = (file.rank, &file.node) else { return };
    let dims = job.dims().with(Dim::Rank, rank).with(Dim::Node, node.as_str());
    for (class, share) in class_shares(kernels) {
        output.metrics.push(RANK_CLASS_SHARE.of(dims.clone().with(Dim::Class, class), share));
    }
}

fn add_job_metrics(job: &JobInput, kernels: &Kernels, output: &mut Output) {
    for (class, share) in class_shares(kernels) {
        output.metrics.push(CLASS_SHARE.of(job.dims().with(Dim::Class, class), share));
    }
    let mut stats: Vec<(&str, Stats)> = kernels
        .iter()
        .filter_map(|(name, durations)| Some((name.as_str(), Stats::from_values(durations)?)))
        .collect();
    let all: u128 = stats.iter().map(|(_, stats)| stats.total).sum();
    stats.sort_by(|a, b| b.1.total.cmp(&a.1.total).then(a.0.cmp(b.0)));
    for (name, stats) in stats.iter().take(MOST_KERNELS) {
        let dims = job.dims().with(Dim::Kernel, *name);
        output.metrics.push(SHARE.of(dims.clone(), share_of(stats.total, all)));
        output.metrics.push(TIME.of(dims.clone(), stats.total as f64));
        output.metrics.push(COUNT.of(dims.clone(), stats.count as f64));
        output.metrics.push(MEDIAN.of(dims, stats.median));
    }
    if let Some(rest) = stats.get(MOST_KERNELS..).filter(|rest| !rest.is_empty()) {
        let total = rest.iter().map(|(_, stats)| stats.total).sum();
        let share = 100.0 * share_of(total, all);
        let text = format!(
            "{} kernels with the least time are not listed; together {share:.2} % of kernel time",
            rest.len()
        );
        output.findings.push(Finding::new(KernelSumFinding::SmallKernels.code(), text));
    }
}

/// Every class, also those that took no time: where kernels were measured, none of a class is a measurement.
fn class_shares(kernels: &Kernels) -> BTreeMap<&'static str, f64> {
    let mut totals: BTreeMap<&'static str, u128> = CLASSES.iter().map(|class| (*class, 0)).collect();
    for (name, durations) in kernels {
        *totals.entry(class_of(name)).or_default() +=
            durations.iter().map(|ns| u128::from(*ns)).sum::<u128>();
    }
    let all: u128 = totals.values().sum();
    totals.into_iter().map(|(class, total)| (class, share_of(total, all))).collect()
}

/// `all` is never 0: reports without kernel time are sorted out before.
fn share_of(total: u128, all: u128) -> f64 {
    total as f64 / all as f64
}
