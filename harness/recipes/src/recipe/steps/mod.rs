//! The steps of a run in a suite: how long each took on each rank, how much they differ and whether they grow.
//! `crate::steps` finds them without knowing their name.

#[cfg(test)]
mod tests;

use super::{FileRole, InputFile, JobInput, Output, RecipeSpec};
use crate::recipe::shared_findings::ReportFinding;
use crate::steps::{Figures, Found, StepRequest, figures, find_in_trace};
use metric::finding::Finding;
use metric::finding_kinds;
use metric::unit::{Better, Unit};
use metric::{Dim, Dims, Files, MetricSpec, RunNoise};
use nsys::export::ExportError;
use nsys::loss::loss;
use nsys::tables::{DIAGNOSTIC_EVENT, GRAPH_TRACE, KERNEL, NVTX_EVENTS, RUNTIME, STRING_IDS};
use nsys::trace::Trace;
use std::collections::BTreeMap;

const fn rank_metric(name: &'static str, about: &'static str, unit: Unit, better: Better) -> MetricSpec {
    MetricSpec::new(name, about, unit, better, Files::Reports)
        .per(&[Dim::Rank, Dim::Node])
        .next("run `harness recipe steps` on the case's reports: it lists each step of each rank")
}

const TIME: MetricSpec = rank_metric(
    "step.time",
    "how long a step took on a rank; steps are counted from 0 in each report, or by their own numbers",
    Unit::Nanoseconds,
    Better::Lower,
)
.per(&[Dim::Rank, Dim::Node, Dim::Step]);
const MEDIAN: MetricSpec =
    rank_metric("step.time_median", "the median of a rank's steps", Unit::Nanoseconds, Better::Lower);
const CV: MetricSpec = rank_metric(
    "step.time_cv",
    "coefficient of variation of a rank's step times",
    Unit::Ratio,
    Better::Lower,
)
.varying(RunNoise::FRACTION);
const SLOPE: MetricSpec = rank_metric(
    "step.slope",
    "growth of a rank's step time per step; the median over all pairs",
    Unit::Nanoseconds,
    Better::Lower,
)
.varying(RunNoise::NotComparable);
const COUNT: MetricSpec =
    rank_metric("step.count", "number of complete steps in a rank's report", Unit::Count, Better::Neither)
        .varying(RunNoise::NotComparable);

/// For profiled cases, by rank; `harness recipe steps` reads stored reports.
pub(crate) const SPEC: RecipeSpec = RecipeSpec {
    name: "steps",
    about: "the steps of an iterative run, from nsys reports",
    metrics: &[TIME, MEDIAN, CV, SLOPE, COUNT],
    tables: &[&KERNEL, &RUNTIME, &STRING_IDS, &GRAPH_TRACE, &NVTX_EVENTS, &DIAGNOSTIC_EVENT],
    findings: &[ReportFinding::ALL, StepFinding::ALL],
    reads_nccl_log: false,
    compares_clocks: false,
    reads_inspector: false,
    run: &run,
};

finding_kinds! {
    /// Of steps in reports.
    pub(crate) enum StepFinding {
        NoSteps = "no-steps": NoNumber,
        Noted = "steps": Note,
        Differ = "steps-differ": Note,
    }
}

/// Only the first steps get a metric each; the statistics cover all.
const MOST_STEPS: usize = 2000;

fn run(job: &JobInput) -> Output {
    let mut output = Output::default();
    // By how many steps there are, the ranks that have them.
    let mut counts: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for file in job.files_of(FileRole::NsysExport) {
        let (Some(rank), Some(node)) = (file.rank, &file.node) else { continue };
        match job.report_extract(SPEC.name, file, || read_rank(file)) {
            Err(finding) => output.findings.push(*finding),
            Ok((found, figures)) => {
                let notes =
                    found.notes.iter().map(|note| file.finding(StepFinding::Noted.code(), note.clone()));
                output.findings.extend(notes);
                let dims = job.dims().with(Dim::Rank, rank).with(Dim::Node, node.as_str());
                counts.entry(per_rank(&dims, &found, &figures, &mut output)).or_default().push(rank);
            }
        }
    }
    if counts.len() > 1 {
        let parts = counts.iter().map(|(count, ranks)| {
            let shown: Vec<String> = ranks.iter().take(8).map(u32::to_string).collect();
            let more = ranks.len().saturating_sub(shown.len());
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("{count} on ranks {}{more}", shown.join(", "))
        });
        let why = format!("step counts differ between ranks: {}", parts.collect::<Vec<_>>().join("; "));
        output.findings.push(Finding::new(StepFinding::Differ.code(), why));
    }
    output
}

/// The steps of a report with their figures, or why there are none.
fn read_rank(file: &InputFile) -> Result<(Found, Figures), (&'static str, String)> {
    let unreadable = |error: ExportError| (ReportFinding::Unreadable.code(), error.to_string());
    let trace = Trace::open(&file.path).map_err(unreadable)?;
    // With dropped events a step may look shorter or longer, and two may look like one.
    if let Some((code, text)) = loss(trace.export()).map_err(unreadable)? {
        return Err((code, format!("the profiler reported: {text}")));
    }
    let found = match find_in_trace(&trace, &StepRequest::default()).map_err(unreadable)? {
        Ok(found) => found,
        Err(why) => return Err((StepFinding::NoSteps.code(), format!("no steps found: {}", why.join("; ")))),
    };
    let steps: Vec<_> = found.steps.iter().collect();
    match figures(&steps) {
        Some(figures) => Ok((found, figures)),
        None => Err((StepFinding::NoSteps.code(), "no complete step".to_owned())),
    }
}

/// Returns the number of complete steps.
fn per_rank(dims: &Dims, found: &Found, figures: &Figures, output: &mut Output) -> u64 {
    let whole = found.steps.iter().filter(|step| step.is_whole()).count() as u64;
    output.metrics.push(COUNT.of(dims.clone(), whole as f64));
    output.metrics.push(MEDIAN.of(dims.clone(), figures.stats.median));
    if let Some(cv) = figures.cv {
        output.metrics.push(CV.of(dims.clone(), cv));
    }
    if let Some(slope) = figures.slope {
        output.metrics.push(SLOPE.of(dims.clone(), slope.slope));
    }
    // Range numbers count only if each step has one of its own.
    let numbers: Option<Vec<u64>> = found.steps.iter().map(|step| step.number).collect();
    let numbers = numbers.filter(|numbers| numbers.is_sorted_by(|a, b| a < b));
    let timed = found.steps.iter().enumerate().filter(|(_, step)| step.is_whole() && step.has_end);
    for (at, step) in timed.take(MOST_STEPS) {
        let number = numbers.as_ref().map_or(at as u64, |numbers| numbers[at]);
        output.metrics.push(TIME.of(dims.clone().with(Dim::Step, number), step.ns() as f64));
    }
    whole
}
