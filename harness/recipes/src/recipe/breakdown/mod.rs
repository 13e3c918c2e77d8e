//! Where the GPUs' time went in a job: compute, exposed communication and idle, as fractions of the time from a
//! report's first to its last operation on any GPU. `busy` classifies the moments.

#[cfg(test)]
mod tests;

use super::{FileRole, InputFile, JobInput, Output, RecipeSpec};
use crate::busy::{Activity, Busy, Sets};
use crate::recipe::shared_findings::{KernelFinding, ReportFinding};
use metric::finding_kinds;
use metric::unit::{Better, Unit};
use metric::{Dim, Dims, Files, MetricSpec, Role};
use nsys::export::ExportError;
use nsys::loss::loss;
use nsys::tables::{DIAGNOSTIC_EVENT, GRAPH_TRACE, KERNEL, MEMCPY, MEMSET, META_DATA_EXPORT, STRING_IDS};
use nsys::trace::Trace;
use serde::{Deserialize, Serialize};

const fn share(name: &'static str, about: &'static str, better: Better, dims: &'static [Dim]) -> MetricSpec {
    MetricSpec::new(name, about, Unit::Ratio, better, Files::Reports).per(dims)
}

const OF_RANK: &[Dim] = &[Dim::Rank, Dim::Node];

const EXPOSED: MetricSpec = share(
    "gpu.exposed_comm_share",
    "the fraction of GPU time with communication and no compute beside it, over all profiled ranks",
    Better::Lower,
    &[],
)
.with(&[Role::ShowsCommunication])
.next("run `harness recipe nccl_gpu_overlap_trace` on the case's reports: it lists the collectives that run alone");
const IDLE: MetricSpec = share(
    "gpu.idle_share",
    "the fraction of GPU time without any operation, between the first and the last operation of each report",
    Better::Lower,
    &[],
);
const COMPUTE: MetricSpec = share(
    "gpu.compute_share",
    "the fraction of GPU time with compute, whatever ran beside it, over all profiled ranks",
    Better::Higher,
    &[],
);
const RANK_EXPOSED: MetricSpec = share(
    "rank.exposed_comm_share",
    "the fraction of a rank's GPU time with communication and no compute beside it",
    Better::Lower,
    OF_RANK,
)
.with(&[Role::ShowsCommunication]);
const RANK_IDLE: MetricSpec = share(
    "rank.idle_share",
    "the fraction of a rank's GPU time without any operation",
    Better::Lower,
    OF_RANK,
);
const RANK_COMPUTE: MetricSpec =
    share("rank.compute_share", "the fraction of a rank's GPU time with compute", Better::Higher, OF_RANK);

/// Reads nsys reports.
pub(crate) const SPEC: RecipeSpec = RecipeSpec {
    name: "breakdown",
    about: "where GPU time went: compute, exposed communication, idle; from nsys reports",
    metrics: &[EXPOSED, IDLE, COMPUTE, RANK_EXPOSED, RANK_IDLE, RANK_COMPUTE],
    tables: &[&KERNEL, &MEMCPY, &MEMSET, &GRAPH_TRACE, &STRING_IDS, &DIAGNOSTIC_EVENT, &META_DATA_EXPORT],
    findings: &[ReportFinding::ALL, KernelFinding::ALL, BreakdownFinding::ALL],
    reads_nccl_log: false,
    compares_clocks: false,
    reads_inspector: false,
    run: &run,
};

finding_kinds! {
    /// Of the work of GPUs in reports.
    pub(crate) enum BreakdownFinding {
        GraphsWhole = "graphs-whole": NoNumber,
    }
}

/// Nanoseconds of GPUs, added up.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Times {
    window: u128,
    exposed: u128,
    idle: u128,
    compute: u128,
}

impl Times {
    fn add(&mut self, other: Times) {
        self.window += other.window;
        self.exposed += other.exposed;
        self.idle += other.idle;
        self.compute += other.compute;
    }

    fn put_shares(&self, specs: [&MetricSpec; 3], dims: &Dims, output: &mut Output) {
        for (spec, part) in specs.into_iter().zip([self.exposed, self.idle, self.compute]) {
            output.metrics.push(spec.of(dims.clone(), part as f64 / self.window as f64));
        }
    }
}

fn run(job: &JobInput) -> Output {
    let mut output = Output::default();
    let mut all = Times::default();
    let files: Vec<&InputFile> = job.files_of(FileRole::NsysExport).collect();
    let mut whole = !files.is_empty();
    for file in &files {
        match job.report_extract(SPEC.name, file, || read_times(file)) {
            Ok(times) => {
                all.add(times);
                if let (Some(rank), Some(node)) = (file.rank, &file.node) {
                    let dims = job.dims().with(Dim::Rank, rank).with(Dim::Node, node.as_str());
                    times.put_shares([&RANK_EXPOSED, &RANK_IDLE, &RANK_COMPUTE], &dims, &mut output);
                }
            }
            Err(finding) => {
                whole = false;
                output.findings.push(*finding);
            }
        }
    }
    // Shares need the reports of all ranks. The collector reports missing ones.
    if whole && job.has_every_export() {
        all.put_shares([&EXPOSED, &IDLE, &COMPUTE], &job.dims(), &mut output);
    }
    output
}

/// The times of one report, or the code and reason why there are none.
fn read_times(file: &InputFile) -> Result<Times, (&'static str, String)> {
    let unreadable = |error: ExportError| (ReportFinding::Unreadable.code(), error.to_string());
    let trace = Trace::open(&file.path).map_err(unreadable)?;
    if let Some((code, text)) = loss(trace.export()).map_err(unreadable)? {
        return Err((code, format!("the profiler reported: {text}")));
    }
    let busy = Busy::read(&trace).map_err(unreadable)?;
    let none = "no kernel was traced; trace `cuda`, and have the capture include the workload's kernels";
    let Some(busy) = busy else { return Err((KernelFinding::NoKernels.code(), none.to_owned())) };
    if busy.backwards > 0 {
        return Err((
            KernelFinding::Garbled.code(),
            format!("rows that end before they begin: {}", busy.backwards),
        ));
    }
    if busy.gpus.iter().any(|gpu| gpu.has_whole_graphs()) {
        let why =
            "CUDA graphs were traced as a whole, which hides their kernels; use `--cuda-graph-trace=node`";
        return Err((BreakdownFinding::GraphsWhole.code(), why.to_owned()));
    }
    let is_kernel = |kind: Activity| matches!(kind, Activity::Compute | Activity::Communication);
    let operations = busy.gpus.iter().flat_map(|gpu| &gpu.operations);
    // Without any kernel time there are no shares.
    if operations.filter(|one| is_kernel(one.kind)).all(|one| one.ns() == 0) {
        return Err((KernelFinding::NoKernels.code(), none.to_owned()));
    }
    let mut times = Times::default();
    for gpu in &busy.gpus {
        let shares = Sets::from_operations(gpu.operations.iter()).within(busy.window.0, busy.window.1);
        times.add(Times {
            window: u128::from(shares.window),
            exposed: u128::from(shares.communication_alone + shares.communication_memory),
            idle: u128::from(shares.idle),
            compute: u128::from(shares.compute()),
        });
    }
    Ok(times)
}
