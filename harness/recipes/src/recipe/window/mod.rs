//! Compares the requested window of steps with what the reports show: which steps were profiled on each rank, and
//! whether these are the requested ones. Numbers of another window prove nothing. The launcher opens windows, not this
//! recipe.

mod measured;
#[cfg(test)]
mod tests;

use self::measured::{EFA_PER_STEP, STEP_TIME, Span, Spans};
use super::{Contradiction, FileRole, InputFile, JobInput, LIST, Output, RecipeSpec, Workload};
use crate::recipe::shared_findings::{RateFinding, ReportFinding};
use crate::steps::{Source, StepRequest as StepSearch, find_in_trace, stem};
use logs::window_mark::{MARKS, Mark};
use metric::finding::Finding;
use metric::finding_kinds;
use metric::unit::{Better, Unit};
use metric::{Dim, Dims, Files, MetricSpec};
use nsys::export::ExportError;
use nsys::loss::loss;
use nsys::tables::{DIAGNOSTIC_EVENT, GRAPH_TRACE, KERNEL, NVTX_EVENTS, RUNTIME, STRING_IDS};
use nsys::trace::Trace;
use nsys::trace::nvtx::Ranges;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

const OF_RANK: &[Dim] = &[Dim::Rank, Dim::Node];

const fn rank_metric(name: &'static str, about: &'static str) -> MetricSpec {
    MetricSpec::new(name, about, Unit::Count, Better::Neither, Files::Reports).per(OF_RANK)
}

const OPENED: MetricSpec = rank_metric(
    "window.opened",
    "1 where the window of a rank's session opened; one that did not open has a cause and no number",
);
const STEPS: MetricSpec = rank_metric("window.steps", "number of steps in the window of a rank's session");
const FIRST: MetricSpec = rank_metric("window.first", "the first step in it, counted from 0");
const LAST: MetricSpec = rank_metric("window.last", "the last step in it");

/// For every case with a step window, whether the suite names it or not.
pub const SPEC: RecipeSpec = RecipeSpec {
    name: "window",
    about: "which steps of a training were profiled, compared with the requested ones",
    metrics: &[
        OPENED,
        STEPS,
        FIRST,
        LAST,
        STEP_TIME,
        measured::SAMPLES,
        measured::TOKENS,
        measured::TFLOPS,
        measured::MFU,
        EFA_PER_STEP,
    ],
    tables: &[&KERNEL, &RUNTIME, &STRING_IDS, &GRAPH_TRACE, &NVTX_EVENTS, &DIAGNOSTIC_EVENT],
    findings: &[ReportFinding::ALL, WindowFinding::ALL, RateFinding::ALL],
    reads_nccl_log: false,
    compares_clocks: false,
    reads_inspector: false,
    run: &run,
};

finding_kinds! {
    /// Of the steps that were profiled.
    pub(crate) enum WindowFinding {
        Unknown = "window-unknown": NoNumber,
        Untimed = "window-untimed": NoNumber,
        EfaUnknown = "window-efa-unknown": NoNumber,
        NotAsAsked = "window-not-as-asked": Note,
        Miscounted = "window-miscounted": Note,
    }
}

/// The requested window, both ends included, and the marks left where it was opened, by rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepWindow {
    /// First requested step, counted from 0.
    pub first: u64,
    /// Last requested step, included.
    pub last: u64,
    /// By rank, as the nodes recorded them; unreadable ones are missing.
    pub marks: BTreeMap<u32, Mark>,
    /// The number of steps in the program's command line, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_steps: Option<u64>,
}

impl StepWindow {
    /// How many steps these are: both ends are in it.
    pub(crate) fn count(&self) -> u64 {
        self.last.saturating_sub(self.first) + 1
    }
}

/// The steps that a report shows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct ReportSteps {
    /// The numbers of the hook's ranges.
    marked: BTreeSet<u64>,
    /// Steps found in it independently of the hook's marks: their numbers by thread, where they have some, and how many.
    numbers: Vec<BTreeSet<u64>>,
    count: Option<u64>,
    /// Where these steps come from.
    by: String,
    span: Option<Span>,
}

fn run(job: &JobInput) -> Output {
    let mut output = Output::default();
    let Some(requested) = &job.window else { return output };
    let mut spans = Spans::new();
    for file in job.files_of(FileRole::NsysExport) {
        let (Some(rank), Some(node)) = (file.rank, &file.node) else { continue };
        let shown = match job.report_extract(SPEC.name, file, || take(file, requested)) {
            Ok(shown) => shown,
            Err(finding) => {
                output.findings.push(*finding);
                continue;
            }
        };
        let dims = job.dims().with(Dim::Rank, rank).with(Dim::Node, node.as_str());
        output.metrics.push(OPENED.of(dims.clone(), 1.0));
        let mark = requested.marks.get(&rank);
        let observed = observe(requested, mark, &shown);
        let reason = match mismatch(requested, mark, &shown, &observed) {
            Ok(reason) => reason,
            Err(why) => {
                output.findings.push(file.finding(WindowFinding::Unknown.code(), why));
                continue;
            }
        };
        for (spec, value) in [(STEPS, observed.steps), (FIRST, observed.first), (LAST, observed.last)] {
            output.metrics.extend(value.map(|value| spec.of(dims.clone(), value as f64)));
        }
        let reason = reason.map(|why| (WindowFinding::NotAsAsked.code(), why));
        let reason = reason
            .or_else(|| miscounted(job, requested, mark).map(|why| (WindowFinding::Miscounted.code(), why)));
        match (reason, shown.span) {
            (Some((cause, why)), _) => distrust_node(&mut output, file, node, cause, why),
            (None, Some(span)) => drop(spans.entry(node.clone()).or_default().insert(rank, span)),
            (None, None) => {
                let why =
                    "step times unknown: the report lacks the begin of the first step or the end of the last"
                        .to_owned();
                output.findings.push(file.finding(WindowFinding::Untimed.code(), why));
            }
        }
    }
    measured::put(job, requested, &spans, &mut output);
    output
}

fn take(file: &InputFile, requested: &StepWindow) -> Result<ReportSteps, (&'static str, String)> {
    let unreadable = |error: ExportError| (ReportFinding::Unreadable.code(), error.to_string());
    let trace = Trace::open(&file.path).map_err(unreadable)?;
    if let Some((code, text)) = loss(trace.export()).map_err(unreadable)? {
        return Err((code, format!("the profiler reported: {text}")));
    }
    let mut shown = ReportSteps::default();
    let ranges = Ranges::read(&trace).map_err(unreadable)?;
    let mut steps = None;
    if let Some(ranges) = &ranges {
        let number = |row: usize| ranges.name(row).strip_prefix(MARKS)?.strip_prefix(' ')?.parse().ok();
        shown.marked = (0..ranges.len()).filter_map(number).collect();
    }
    for source in [Source::Ranges, Source::Kernels] {
        let sought = StepSearch { source: Some(source), range: None };
        let Ok(found) = find_in_trace(&trace, &sought).map_err(unreadable)? else { continue };
        if found.by.trim_start_matches(':').starts_with(MARKS) {
            continue;
        }
        if found.steps.iter().all(|step| step.number.is_some()) {
            shown.numbers = thread_steps(&trace, &found.by).map_err(unreadable)?;
        }
        shown.count = Some(found.steps.len() as u64);
        shown.by = format!("{} `{}`", source.name(), found.by);
        steps = Some(found);
        break;
    }
    shown.span = Span::from_trace(&trace, ranges.as_ref(), steps.as_ref(), requested).map_err(unreadable)?;
    Ok(shown)
}

/// The step numbers in each thread's ranges of this name.
fn thread_steps(trace: &Trace, by: &str) -> Result<Vec<BTreeSet<u64>>, ExportError> {
    let Some(ranges) = Ranges::read(trace)? else { return Ok(Vec::new()) };
    let mut threads: BTreeMap<i64, BTreeSet<u64>> = BTreeMap::new();
    for row in 0..ranges.len() {
        let stem = stem(ranges.name(row));
        if let Some(number) = stem.number.filter(|_| by == format!("{}:{}", ranges.domain(row), stem.text)) {
            threads.entry(ranges.global_tid[row]).or_default().insert(number);
        }
    }
    Ok(threads.into_values().collect())
}

/// The window according to the most reliable source.
struct ObservedWindow {
    steps: Option<u64>,
    first: Option<u64>,
    last: Option<u64>,
    by: String,
}

/// Sources in order of trust: the hook's ranges, which are in the report itself; the mark of a hook, since closing the
/// window cuts the program's own ranges; the program's step numbers, which the watcher's mark may confirm but for the
/// two ends; the watcher's mark; the order of kernels.
fn observe(requested: &StepWindow, mark: Option<&Mark>, shown: &ReportSteps) -> ObservedWindow {
    let of_set = |numbers: &BTreeSet<u64>, by: &str| ObservedWindow {
        steps: Some(numbers.len() as u64),
        first: numbers.first().copied(),
        last: numbers.last().copied(),
        by: by.to_owned(),
    };
    if !shown.marked.is_empty() {
        return of_set(&shown.marked, "the hook's ranges");
    }
    let from_mark = mark.and_then(|mark| {
        let opened = mark.opened?;
        // Without a stop it went on until the program's end.
        let last =
            mark.closed.or(mark.steps.and_then(|steps| steps.checked_sub(1))).filter(|last| *last >= opened);
        let by = format!("the marks of the {}", mark.way);
        Some(ObservedWindow { steps: last.map(|last| last - opened + 1), first: Some(opened), last, by })
    });
    let by_hook = mark.is_some_and(|mark| mark.way == "hook");
    // Processes of one session begin a step a moment apart: a window that one of them shows whole is whole.
    let is_asked = |numbers: &&BTreeSet<u64>| {
        let ends = (numbers.first().copied(), numbers.last().copied());
        ends == (Some(requested.first), Some(requested.last)) && numbers.len() as u64 == requested.count()
    };
    let own =
        shown.numbers.iter().find(is_asked).or(shown.numbers.iter().max_by_key(|numbers| numbers.len()));
    match (own, from_mark) {
        (_, Some(marked)) if by_hook => marked,
        (Some(numbers), Some(marked)) if is_cut(numbers, &marked) => marked,
        (Some(numbers), _) => of_set(numbers, &shown.by),
        (_, Some(marked)) => marked,
        _ => ObservedWindow { steps: shown.count, first: None, last: None, by: shown.by.clone() },
    }
}

/// Whether these are the steps that a watcher marked. It reacts a moment late: the beginning of its first step is
/// missing, and that of the step behind its last one is there.
fn is_cut(numbers: &BTreeSet<u64>, marked: &ObservedWindow) -> bool {
    let Some((first, last)) = marked.first.zip(marked.last) else { return false };
    numbers.iter().all(|number| (first..=last + 1).contains(number))
        && (first + 1..=last).all(|number| numbers.contains(&number))
}

/// Why the window is not the requested one; an error where that is unknown.
fn mismatch(
    requested: &StepWindow,
    mark: Option<&Mark>,
    shown: &ReportSteps,
    observed: &ObservedWindow,
) -> Result<Option<String>, String> {
    let Some(steps) = observed.steps else {
        return Err("profiled steps unknown: no range, no mark, and no repeating order of kernels".to_owned());
    };
    let wanted = requested.count();
    let without_numbers = observed.first.is_none();
    if without_numbers && steps > wanted + 1 {
        return Err(format!(
            "profiled steps unknown: nothing numbered, and what repeats {steps} times may be parts of steps"
        ));
    }
    if without_numbers && steps.abs_diff(wanted) <= 1 {
        return Ok(None);
    }
    let differs = |wanted: u64, seen: Option<u64>| seen.is_some_and(|seen| seen != wanted);
    if steps != wanted || differs(requested.first, observed.first) || differs(requested.last, observed.last) {
        let number = |number: Option<u64>| number.map_or("?".to_owned(), |number| number.to_string());
        let early = mark.is_some_and(|mark| mark.opened.is_some() && mark.closed.is_none());
        let cause = match mark.and_then(|mark| mark.error.as_ref()) {
            Some(error) => format!("; {error}"),
            None if early => "; the program ended before the window was closed".to_owned(),
            None => String::new(),
        };
        return Ok(Some(format!(
            "requested steps {}..{} ({wanted}), profiled {}..{} ({steps}) according to {}{cause}",
            requested.first,
            requested.last,
            number(observed.first),
            number(observed.last),
            observed.by
        )));
    }
    // A window that opens within a step cuts the program's own ranges at either end. Kernels that repeat may be parts
    // of steps, and contradict nothing.
    let own = shown.numbers.iter().map(|numbers| numbers.len() as u64);
    let apart = own.map(|count| count.abs_diff(steps)).min().unwrap_or(0);
    Ok((apart > 2 && observed.by != shown.by).then(|| {
        let count = shown.count.unwrap_or_default();
        format!("{} show {steps} steps, {} in the report show {count}", observed.by, shown.by)
    }))
}

/// Why the hook's numbers are not those of the program. Its ranges and its marker have one counter, so that neither
/// shows an error of the other; only the planned number of steps does.
fn miscounted(job: &JobInput, requested: &StepWindow, mark: Option<&Mark>) -> Option<String> {
    let counted = mark.filter(|mark| mark.way == "hook")?.steps?;
    let of_suite = match &job.workload {
        Workload::Training { facts, .. } => facts.steps.map(u64::from),
        _ => None,
    };
    // Where the suite and the command line differ, either may be the one that the program kept to.
    let planned = of_suite.or(requested.planned_steps)?;
    let is_planned = counted == planned || requested.planned_steps == Some(counted);
    (!is_planned).then(|| {
        format!(
            "the hook counted {counted} steps, planned {planned}: it counts other steps than the training; use `way = \
             \"watch\"`, or correct the planned steps"
        )
    })
}

/// Marks all numbers of the node as not comparable: measured in another window, they say nothing about the node.
fn distrust_node(output: &mut Output, file: &InputFile, node: &str, cause: &'static str, why: String) {
    let of_reports = LIST.iter().filter(|recipe| !recipe.tables.is_empty()).flat_map(|recipe| recipe.metrics);
    let metrics = of_reports.map(|metric| metric.name.to_string()).filter(|name| *name != OPENED.name);
    let finding: Finding = file.finding(cause, why);
    output.doubts.push(Contradiction {
        metrics: metrics.collect(),
        dims: Dims::new().with(Dim::Node, node),
        cause: cause.to_owned(),
        why: finding.message.clone(),
    });
    output.findings.push(finding);
}
