//! A window of steps held against what its reports show: which steps were watched on each rank, and whether these are the ones
//! that were asked for. How a window is opened is told elsewhere; numbers of a window that is another one prove nothing.

mod measured;
#[cfg(test)]
mod tests;

use self::measured::{EFA_PER_STEP, EFA_UNKNOWN, REACHED, STEP_TIME, Span, Spans, UNTIMED};
use super::{Doubt, FileRole, InputFile, JobInput, LIST, Output, RecipeSpec, Workload};
use crate::steps::{Asked as Sought, Source, of_trace, stem};
use logs::window_mark::{MARKS, Mark};
use metric::finding::Finding;
use metric::unit::{Better, Unit};
use metric::{Blames, Dim, Dims, MetricSpec};
use nsys::export::ExportError;
use nsys::loss::loss;
use nsys::tables::{DIAGNOSTIC_EVENT, GRAPH_TRACE, KERNEL, NVTX_EVENTS, RUNTIME, STRING_IDS};
use nsys::trace::Trace;
use nsys::trace::nvtx::Ranges;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

const NOT_AS_ASKED: &str = "window-not-as-asked";
const MISCOUNTED: &str = "window-miscounted";

const OF_RANK: &[Dim] = &[Dim::Rank, Dim::Node];

const fn of(name: &'static str, about: &'static str) -> MetricSpec {
    MetricSpec {
        name,
        about,
        unit: Unit::Count,
        better: Better::Neither,
        dims: OF_RANK,
        blames: Blames::Nobody,
    }
}

const OPENED: MetricSpec = of(
    "window.opened",
    "1 where the window of a rank's session opened; one that did not has no number, but a cause",
);
const STEPS: MetricSpec = of("window.steps", "how many steps the window of a rank's session holds");
const FIRST: MetricSpec = of("window.first", "the first step in it, counted from 0");
const LAST: MetricSpec = of("window.last", "the last step in it");

pub const SPEC: RecipeSpec = RecipeSpec {
    name: "window",
    about: "which steps of a training were watched, held against those that were asked for",
    metrics: &[
        OPENED,
        STEPS,
        FIRST,
        LAST,
        STEP_TIME,
        REACHED[0],
        REACHED[1],
        REACHED[2],
        REACHED[3],
        EFA_PER_STEP,
    ],
    tables: &[&KERNEL, &RUNTIME, &STRING_IDS, &GRAPH_TRACE, &NVTX_EVENTS, &DIAGNOSTIC_EVENT],
    causes: &["events-dropped", "target-error", "report-unreadable", "window-unknown", UNTIMED, EFA_UNKNOWN],
    run: &run,
};

/// A window as it was asked for, with both ends, and what was told where it was opened, by rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    pub first: u64,
    pub last: u64,
    pub marks: BTreeMap<u32, Mark>,
    /// How many steps the program's command line allows, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_steps: Option<u64>,
}

impl Asked {
    /// How many steps these are: both ends are in it.
    pub fn count(&self) -> u64 {
        self.last.saturating_sub(self.first) + 1
    }
}

/// What a report shows of steps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Shown {
    /// The numbers of the hook's ranges.
    marked: BTreeSet<u64>,
    /// Steps that are found in it whatever anybody marked: their numbers by thread, where they have some, and how many.
    numbers: Vec<BTreeSet<u64>>,
    count: Option<u64>,
    /// What tells of these.
    by: String,
    span: Option<Span>,
}

fn run(job: &JobInput) -> Output {
    let mut output = Output::default();
    let Some(asked) = &job.window else { return output };
    let mut spans = Spans::new();
    for file in job.files_of(FileRole::NsysExport) {
        let (Some(rank), Some(node)) = (file.rank, &file.node) else { continue };
        let shown = match job.of_report(SPEC.name, file, || take(file, asked)) {
            Ok(shown) => shown,
            Err(finding) => {
                output.findings.push(*finding);
                continue;
            }
        };
        let dims = job.dims().with(Dim::Rank, rank).with(Dim::Node, node.as_str());
        output.metrics.push(OPENED.of(dims.clone(), 1.0));
        let mark = asked.marks.get(&rank);
        let seen = seen(asked, mark, &shown);
        let wrong = match wrong(asked, mark, &shown, &seen) {
            Ok(wrong) => wrong,
            Err(why) => {
                output.findings.push(file.tells("window-unknown", why));
                continue;
            }
        };
        for (spec, value) in [(STEPS, seen.steps), (FIRST, seen.first), (LAST, seen.last)] {
            output.metrics.extend(value.map(|value| spec.of(dims.clone(), value as f64)));
        }
        let wrong = wrong.map(|why| (NOT_AS_ASKED, why));
        let wrong = wrong.or_else(|| miscounted(job, asked, mark).map(|why| (MISCOUNTED, why)));
        match (wrong, shown.span) {
            (Some((cause, why)), _) => doubt(&mut output, file, node, cause, why),
            (None, Some(span)) => drop(spans.entry(node.clone()).or_default().insert(rank, span)),
            (None, None) => {
                let why =
                    "the report does not tell when its first step begins and its last one ends".to_owned();
                output.findings.push(file.tells(UNTIMED, why));
            }
        }
    }
    measured::put(job, asked, &spans, &mut output);
    output
}

fn take(file: &InputFile, asked: &Asked) -> Result<Shown, (&'static str, String)> {
    let unreadable = |error: ExportError| ("report-unreadable", error.to_string());
    let trace = Trace::open(&file.path).map_err(unreadable)?;
    if let Some((code, text)) = loss(trace.export()).map_err(unreadable)? {
        return Err((code, format!("the report says itself: {text}")));
    }
    let mut shown = Shown::default();
    let ranges = Ranges::read(&trace).map_err(unreadable)?;
    let mut steps = None;
    if let Some(ranges) = &ranges {
        let number = |row: usize| ranges.name(row).strip_prefix(MARKS)?.strip_prefix(' ')?.parse().ok();
        shown.marked = (0..ranges.len()).filter_map(number).collect();
    }
    for source in [Source::Ranges, Source::Kernels] {
        let sought = Sought { source: Some(source), range: None };
        let Ok(found) = of_trace(&trace, &sought).map_err(unreadable)? else { continue };
        if found.by.trim_start_matches(':').starts_with(MARKS) {
            continue;
        }
        if found.steps.iter().all(|step| step.number.is_some()) {
            shown.numbers = of_threads(&trace, &found.by).map_err(unreadable)?;
        }
        shown.count = Some(found.steps.len() as u64);
        shown.by = format!("{} `{}`", source.name(), found.by);
        steps = Some(found);
        break;
    }
    shown.span = Span::of(&trace, ranges.as_ref(), steps.as_ref(), asked).map_err(unreadable)?;
    Ok(shown)
}

/// The numbers of the steps that each thread marks by ranges of this name.
fn of_threads(trace: &Trace, by: &str) -> Result<Vec<BTreeSet<u64>>, ExportError> {
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

/// The window as the best account of it has it.
struct Seen {
    steps: Option<u64>,
    first: Option<u64>,
    last: Option<u64>,
    by: String,
}

/// The hook's ranges come first, for they are in the report itself; then, where a hook opened it, the hook's word, since what
/// it closes cuts the program's own ranges; then the program's numbers, with which the watcher's word may agree but for its two
/// ends, that word, and the order of kernels.
fn seen(asked: &Asked, mark: Option<&Mark>, shown: &Shown) -> Seen {
    let of_set = |numbers: &BTreeSet<u64>, by: &str| Seen {
        steps: Some(numbers.len() as u64),
        first: numbers.first().copied(),
        last: numbers.last().copied(),
        by: by.to_owned(),
    };
    if !shown.marked.is_empty() {
        return of_set(&shown.marked, "the ranges of the hook");
    }
    let told = mark.and_then(|mark| {
        let opened = mark.opened?;
        // Without a stop it went on until the program's end.
        let last =
            mark.closed.or(mark.steps.and_then(|steps| steps.checked_sub(1))).filter(|last| *last >= opened);
        let by = format!("the word of the {}", mark.way);
        Some(Seen { steps: last.map(|last| last - opened + 1), first: Some(opened), last, by })
    });
    let by_hook = mark.is_some_and(|mark| mark.way == "hook");
    // Processes of one session begin a step a moment apart: a window that one of them shows whole is whole.
    let is_asked = |numbers: &&BTreeSet<u64>| {
        let ends = (numbers.first().copied(), numbers.last().copied());
        ends == (Some(asked.first), Some(asked.last)) && numbers.len() as u64 == asked.count()
    };
    let own =
        shown.numbers.iter().find(is_asked).or(shown.numbers.iter().max_by_key(|numbers| numbers.len()));
    match (own, told) {
        (_, Some(told)) if by_hook => told,
        (Some(numbers), Some(told)) if is_cut(numbers, &told) => told,
        (Some(numbers), _) => of_set(numbers, &shown.by),
        (_, Some(told)) => told,
        _ => Seen { steps: shown.count, first: None, last: None, by: shown.by.clone() },
    }
}

/// Whether these are the steps that a watcher tells of: it comes a moment late, so that of the first the beginning is missing,
/// and of the one behind the last it is there.
fn is_cut(numbers: &BTreeSet<u64>, told: &Seen) -> bool {
    let Some((first, last)) = told.first.zip(told.last) else { return false };
    numbers.iter().all(|number| (first..=last + 1).contains(number))
        && (first + 1..=last).all(|number| numbers.contains(&number))
}

/// Why the window is not the one that was asked for; an error where nobody can tell.
fn wrong(asked: &Asked, mark: Option<&Mark>, shown: &Shown, seen: &Seen) -> Result<Option<String>, String> {
    let Some(steps) = seen.steps else {
        return Err("nothing tells which steps its window holds: no range, no mark, and kernels in no order"
            .to_owned());
    };
    let wanted = asked.count();
    let without_numbers = seen.first.is_none();
    if without_numbers && steps > wanted + 1 {
        return Err(format!(
            "nothing that has a number tells of its steps, and what repeats may be parts of them: {steps} times"
        ));
    }
    if without_numbers && steps.abs_diff(wanted) <= 1 {
        return Ok(None);
    }
    let differs = |wanted: u64, seen: Option<u64>| seen.is_some_and(|seen| seen != wanted);
    if steps != wanted || differs(asked.first, seen.first) || differs(asked.last, seen.last) {
        let number = |number: Option<u64>| number.map_or("?".to_owned(), |number| number.to_string());
        let early = mark.is_some_and(|mark| mark.opened.is_some() && mark.closed.is_none());
        let cause = match mark.and_then(|mark| mark.error.as_ref()) {
            Some(error) => format!("; {error}"),
            None if early => "; the program ended before it was closed".to_owned(),
            None => String::new(),
        };
        return Ok(Some(format!(
            "asked for were steps {}..{} ({wanted}), watched were {}..{} ({steps}), by {}{cause}",
            asked.first,
            asked.last,
            number(seen.first),
            number(seen.last),
            seen.by
        )));
    }
    // A window that opens within a step cuts the program's own ranges at either end. Kernels that repeat may be parts of steps,
    // and contradict nobody.
    let own = shown.numbers.iter().map(|numbers| numbers.len() as u64);
    let apart = own.map(|count| count.abs_diff(steps)).min().unwrap_or(0);
    Ok((apart > 2 && seen.by != shown.by).then(|| {
        let count = shown.count.unwrap_or_default();
        format!("{} has {steps} steps, and the report shows so many by {}: {count}", seen.by, shown.by)
    }))
}

/// Why the hook's numbers are not those of the program. Its ranges and its marker have one counter, so that neither shows an error
/// of the other; only the planned number of steps does.
fn miscounted(job: &JobInput, asked: &Asked, mark: Option<&Mark>) -> Option<String> {
    let counted = mark.filter(|mark| mark.way == "hook")?.steps?;
    let of_suite = match &job.workload {
        Workload::Training { facts, .. } => facts.steps.map(u64::from),
        _ => None,
    };
    // Where the suite and the command line differ, either may be the one that the program kept to.
    let planned = of_suite.or(asked.planned_steps)?;
    let is_planned = counted == planned || asked.planned_steps == Some(counted);
    (!is_planned).then(|| {
        format!(
            "the hook counted {counted} steps, planned are {planned}: its steps are not those of the training; watch the \
             log instead (`way = \"watch\"`), or correct the planned steps"
        )
    })
}

/// What was measured in another window is no measure of this one, and who asked for the wrong steps has no bad node.
fn doubt(output: &mut Output, file: &InputFile, node: &str, cause: &'static str, why: String) {
    let of_reports = LIST.iter().filter(|recipe| !recipe.tables.is_empty()).flat_map(|recipe| recipe.metrics);
    let metrics = of_reports.map(|metric| metric.name.to_owned()).filter(|name| name != OPENED.name);
    let finding: Finding = file.tells(cause, why);
    output.doubts.push(Doubt {
        metrics: metrics.collect(),
        dims: Dims::new().with(Dim::Node, node),
        cause: cause.to_owned(),
        why: finding.message.clone(),
    });
    output.findings.push(finding);
}
