//! Which window is shown: the one that was asked for, or the collective that shows most of what is wrong.

use super::Report;
use super::clocks::Clocks;
use crate::steps::{StepRequest, find_in_trace};
use crate::stragglers::{Alignment, CollectiveRun, Evidence, Verdict, Who};
use nsys::export::ExportError;
use nsys::trace::nvtx::ranges_named;
use nsys::trace::{RangeFilter, TimeFilter, Trace};
use std::collections::BTreeMap;
use std::str::FromStr;

/// The window as a person asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WindowRequest {
    /// The collective for which a straggler is waited for longest; else one that takes long.
    Auto,
    /// From and to, in nanoseconds of the first report.
    Time(i64, i64),
    /// An NVTX range, as filters name it, or a collective such as `AllReduce/3`.
    Named(RangeFilter),
}

impl FromStr for WindowRequest {
    type Err = String;

    fn from_str(text: &str) -> Result<WindowRequest, String> {
        // A name may have a comma: only two times are a span.
        if let Some((from, to)) = text.split_once(',')
            && let Ok(TimeFilter { start: Some(from), end: Some(to) }) = format!("{from}/{to}").parse()
        {
            return Ok(WindowRequest::Time(from, to));
        }
        let named = text.parse().map_err(|why| format!("{why}; a span of time is `1.5s,1.7s`"))?;
        Ok(WindowRequest::Named(named))
    }
}

/// Of each report a span of its own time, where it has one.
type SpanOfEach = Vec<Option<(i64, i64)>>;

/// The window that is shown.
pub(super) struct Window {
    pub label: String,
    /// Of each report, in its own time; `None` where it has no such window.
    pub spans: Vec<Option<(i64, i64)>>,
    /// Begin and end by the clock of all, where clocks are aligned.
    aligned: Option<(i128, i128)>,
    pub run: Option<CollectiveRun>,
    /// Of each report when it came to that collective.
    arrivals: Vec<Option<i128>>,
    /// Reports of the ranks that keep others waiting.
    pub late: Vec<usize>,
}

/// Before and behind a collective or step, as a part of it.
const MARGIN: i128 = 50;
/// Of the transfers of a series, the one at this part of them: the first ones of a run are longer than all others.
const TYPICAL_LONG: f64 = 0.9;

impl Window {
    pub(super) fn choose(
        request: &WindowRequest,
        reports: &[Report<'_>],
        evidence: &Evidence<'_>,
        clocks: &Clocks<'_>,
        verdict: &Verdict,
    ) -> Result<Window, String> {
        let late = late_reports(evidence, clocks, verdict);
        let base = |label: String| Window {
            label,
            spans: vec![None; reports.len()],
            aligned: None,
            run: None,
            arrivals: vec![None; reports.len()],
            late: late.clone(),
        };
        match request {
            WindowRequest::Time(from, to) => {
                let mut window = base(format!("{} to {}", ms(*from), ms(*to)));
                match clocks.is_aligned {
                    true => window.put(clocks, (clocks.at(0, *from), clocks.at(0, *to)), 0),
                    false => window.spans.fill(Some((*from, *to))),
                }
                Ok(window)
            }
            WindowRequest::Named(range) => {
                if let Some(found) = Spans::find(reports, range)? {
                    let mut window = base(found.label);
                    window.put_spans(clocks, found.spans);
                    return Ok(window);
                }
                let is_named = |run: &CollectiveRun| {
                    run.kind.name().eq_ignore_ascii_case(&range.name)
                        && range.index.is_none_or(|index| index == run.number)
                };
                match pick(clocks, &late, &is_named) {
                    Some(run) => Ok(base(String::new()).with_run(run, clocks, reports.len())),
                    None => Err(not_found(reports, range)),
                }
            }
            WindowRequest::Auto => {
                if let Some(run) = pick(clocks, &late, &|_| true) {
                    return Ok(base(String::new()).with_run(run, clocks, reports.len()));
                }
                let (label, spans) = longest_step(reports).map_err(|error| error.to_string())?;
                let mut window = base(label);
                window.put_spans(clocks, spans);
                if window.spans.iter().all(Option::is_none) {
                    return Err("no report has an event with a time".to_owned());
                }
                Ok(window)
            }
        }
    }

    /// Why nothing is shown of a window in which no report has work, and where the first one has some.
    pub(super) fn empty(&self, first: &Report<'_>) -> String {
        let label = &self.label;
        match first.extract.span() {
            Some((from, to)) => format!(
                "{label}: no report has work then; collectives of {} run from {} to {}",
                first.input.shown,
                ms(from),
                ms(to)
            ),
            None => format!("{label}: no report has work then"),
        }
    }

    pub(super) fn ns(&self) -> u64 {
        let lengths = self.spans.iter().flatten().map(|(start, end)| end.wrapping_sub(*start).max(0) as u64);
        let aligned = self.aligned.map(|(from, to)| u64::try_from(to - from).unwrap_or(u64::MAX));
        aligned.or(lengths.max()).unwrap_or_default().max(1)
    }

    /// What is subtracted from the times of a report: where clocks are not aligned nothing is, so that no two ranks
    /// look as if they were.
    pub(super) fn origin(&self) -> i128 {
        self.aligned.map_or(0, |(from, _)| from)
    }

    /// How late a report came to the collective.
    pub(super) fn arrival(&self, report: usize) -> i128 {
        self.arrivals[report].unwrap_or(i128::MIN)
    }

    fn put(&mut self, clocks: &Clocks<'_>, (from, to): (i128, i128), margin: i128) {
        let (from, to) = (from - margin, to + margin);
        self.aligned = Some((from, to));
        for (report, span) in self.spans.iter_mut().enumerate() {
            *span = Some((clocks.back(report, from), clocks.back(report, to)));
        }
    }

    fn put_spans(&mut self, clocks: &Clocks<'_>, spans: Vec<Option<(i64, i64)>>) {
        let all = || spans.iter().enumerate().filter_map(|(report, span)| Some((report, (*span)?)));
        let from = all().map(|(report, (start, _))| clocks.at(report, start)).min();
        let to = all().map(|(report, (_, end))| clocks.at(report, end)).max();
        match (clocks.is_aligned, from, to) {
            (true, Some(from), Some(to)) => self.put(clocks, (from, to), (to - from) / MARGIN),
            _ => self.spans = spans,
        }
    }

    fn with_run(mut self, run: CollectiveRun, clocks: &Clocks<'_>, reports: usize) -> Window {
        self.label =
            format!("{} number {} of its communicator, {} ranks", run.kind.name(), run.number, run.ranks);
        let from = run.before.filter(|before| *before < run.first_start).unwrap_or(run.first_start);
        for report in 0..reports {
            let rank = clocks.rank_of(report);
            self.arrivals[report] = rank.and_then(|rank| clocks.alignment.arrival(&run, rank));
        }
        self.put(clocks, (from, run.end), (run.end - from) / MARGIN);
        self.run = Some(run);
        self
    }
}

fn late_reports(evidence: &Evidence<'_>, clocks: &Clocks<'_>, verdict: &Verdict) -> Vec<usize> {
    let Verdict::Named(culprits) = verdict else { return Vec::new() };
    let of_culprit = culprits.iter().flat_map(|culprit| {
        (0..evidence.ranks.len()).filter(move |at| {
            let rank = &evidence.ranks[*at];
            match &culprit.who {
                Who::Rank { rank: named, gpu, .. } => rank.rank == *named && rank.gpu == *gpu,
                Who::Node { node, ranks } => rank.node == *node && ranks.contains(&rank.rank),
            }
        })
    });
    let mut late: Vec<usize> = of_culprit.filter_map(|rank| clocks.report_of(rank)).collect();
    late.dedup();
    late
}

/// Where a rank is late, the collective for which it is waited for longest; else of the series that takes longest one
/// whose transfer is long.
fn pick(
    clocks: &Clocks<'_>,
    late: &[usize],
    is_wanted: &dyn Fn(&CollectiveRun) -> bool,
) -> Option<CollectiveRun> {
    // Whatever was not aligned has no common time.
    if !clocks.is_aligned {
        return None;
    }
    let runs = || clocks.alignment.runs().filter(|run| is_wanted(run));
    let spread = |run: &CollectiveRun| run.last_start - run.first_start;
    let is_for =
        |run: &CollectiveRun| clocks.report_of(run.last_rank).is_some_and(|report| late.contains(&report));
    let waited = runs().filter(is_for).max_by_key(|run| (spread(run), std::cmp::Reverse(run.number)));
    waited.or_else(|| {
        let mut total: BTreeMap<usize, i128> = BTreeMap::new();
        for run in runs() {
            *total.entry(Alignment::series_of(&run)).or_default() += (run.end - run.last_start).max(0);
        }
        let (longest, _) = total.into_iter().max_by_key(|(series, ns)| (*ns, std::cmp::Reverse(*series)))?;
        let mut of_series: Vec<CollectiveRun> =
            runs().filter(|run| Alignment::series_of(run) == longest).collect();
        of_series.sort_by_key(|run| (run.end - run.last_start, run.number));
        let at = ((of_series.len().saturating_sub(1)) as f64 * TYPICAL_LONG).floor() as usize;
        (at < of_series.len()).then(|| of_series.swap_remove(at))
    })
}

/// Ranges of one name, the same one of each report.
struct Spans {
    label: String,
    spans: Vec<Option<(i64, i64)>>,
}

impl Spans {
    /// Without an index, the one that took longest on any rank.
    fn find(reports: &[Report<'_>], range: &RangeFilter) -> Result<Option<Spans>, String> {
        let all = RangeFilter { index: None, ..range.clone() };
        let mut found = Vec::new();
        for report in reports {
            let spans = Trace::open(&report.input.path).and_then(|trace| ranges_named(&trace, &all));
            found.push(spans.map_err(|error| format!("{}: {error}", report.input.shown))?);
        }
        let most = found.iter().map(Vec::len).max().unwrap_or(0);
        let longest = |index: &usize| {
            let spans = found.iter().filter_map(|spans| spans.get(*index));
            spans.map(|(start, end)| end.wrapping_sub(*start) as u64).max()
        };
        let index = range.index.filter(|index| *index < most);
        let index = match range.index {
            Some(_) => index,
            None => (0..most).max_by_key(|index| (longest(index), std::cmp::Reverse(*index))),
        };
        Ok(index.map(|index| Spans {
            label: format!("range `{}`, number {index} of {most}", range.name),
            spans: found.iter().map(|spans| spans.get(index).copied()).collect(),
        }))
    }
}

/// Without collectives: the longest step of any report, else all that was recorded.
fn longest_step(reports: &[Report<'_>]) -> Result<(String, SpanOfEach), ExportError> {
    let mut of_reports = Vec::new();
    for report in reports {
        let trace = Trace::open(&report.input.path)?;
        let found = find_in_trace(&trace, &StepRequest { source: None, range: None })?.ok();
        let steps = found.map(|found| found.steps).unwrap_or_default();
        of_reports.push((steps, trace.recorded()));
    }
    let most = of_reports.iter().map(|(steps, _)| steps.len()).max().unwrap_or(0);
    let longest = (0..most).max_by_key(|index| {
        let steps = of_reports.iter().filter_map(|(steps, _)| steps.get(*index));
        let whole = steps.filter(|step| step.has_end && step.is_whole());
        (whole.map(|step| step.ns()).max(), std::cmp::Reverse(*index))
    });
    Ok(match longest {
        Some(index) => {
            let spans =
                of_reports.iter().map(|(steps, _)| steps.get(index).map(|step| (step.start, step.end)));
            (format!("the longest step, number {index} of {most}"), spans.collect())
        }
        None => {
            let spans = of_reports.iter().map(|(_, recorded)| recorded.filter(|(start, end)| start < end));
            ("all that was recorded".to_owned(), spans.collect())
        }
    })
}

fn not_found(reports: &[Report<'_>], range: &RangeFilter) -> String {
    let index = range.index.map(|index| format!("/{index}")).unwrap_or_default();
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for report in reports.iter().take(1) {
        let ranges =
            Trace::open(&report.input.path).and_then(|trace| nsys::trace::nvtx::Ranges::read(&trace));
        if let Ok(Some(ranges)) = ranges {
            for row in 0..ranges.len() {
                *times.entry(ranges.name(row).to_owned()).or_default() += 1;
            }
        }
    }
    let mut names: Vec<(usize, String)> = times.into_iter().map(|(name, times)| (times, name)).collect();
    names.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let names: Vec<String> =
        names.iter().take(5).map(|(_, name)| format!("`{}`", super::slices::short(name))).collect();
    let there = match names.is_empty() {
        true => "; the first report has no ranges".to_owned(),
        false => format!("; ranges of the first report: {}", names.join(", ")),
    };
    format!("no range or collective `{}{index}` in these reports{there}", range.name)
}

fn ms(ns: i64) -> String {
    format!("{:.3} ms", ns as f64 / 1e6)
}
