//! One window of a job, small enough to be looked at: what all ranks did in it, on one axis of time, with the counters of
//! their NICs. It is small by construction: the longest slices are kept, all shorter ones are counted by bin of time.

mod clocks;
mod counters;
mod json;
mod lanes;
mod look;
mod read;
mod slices;
#[cfg(test)]
mod tests;
mod window;

pub use json::write;
pub use read::{MOST_BYTES, ReadProcess, ReadSlice, ReadTrace, ReadTrack, read};
pub use window::WindowRequest;

use crate::recipe::stragglers::extract::{self, KernelExtract, RankReport};
use crate::stragglers::{Limits, judge};
use clocks::Clocks;
use counters::Counter;
use nsys::export::ExportError;
use nsys::trace::{Filter, TimeFilter, Trace};
use serde::{Deserialize, Serialize};
use slices::Track;
use std::path::PathBuf;
use window::Window;

/// One report of the job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExcerptInput {
    /// The export.
    pub path: PathBuf,
    /// Its name in messages.
    pub shown: String,
    /// Of the job.
    pub rank: i64,
    /// Its node; `None` where only the report may say.
    pub node: Option<String>,
}

/// What is shown of which reports.
pub struct ExcerptRequest<'a> {
    /// All reports of one job.
    pub inputs: &'a [ExcerptInput],
    /// From when to when.
    pub window: &'a WindowRequest,
    /// How many slices are kept, of all ranks together.
    pub most_slices: usize,
    /// Nodes whose ranks come first, whatever the reports show.
    pub first: &'a [String],
}

/// One window of all ranks. Times are nanoseconds since its begin.
#[derive(Debug)]
pub struct Excerpt {
    /// What the window is: a step, a collective or a span of time.
    pub window: String,
    /// How long it is.
    pub ns: u64,
    /// Whether times of different reports can be compared.
    pub is_aligned: bool,
    /// How the clocks were aligned, or why they were not.
    pub clocks: String,
    /// One line that says what to look at.
    pub look: String,
    /// Whether any report is of a simulated cluster.
    pub is_simulated: bool,
    /// Slices that are shown one by one.
    pub kept: u64,
    /// Shorter ones, which are only counted.
    pub merged: u64,
    /// What was left out, and what limits what can be seen.
    pub notes: Vec<String>,
    /// Reports that could not be read, and why.
    pub unreadable: Vec<(String, String)>,
    processes: Vec<Process>,
    counters: Vec<Counter>,
}

/// What one rank did.
#[derive(Debug)]
struct Process {
    /// As `Report::called`.
    called: String,
    node: String,
    file: String,
    tracks: Vec<Track>,
}

/// One report, read the first time.
struct Report<'a> {
    input: &'a ExcerptInput,
    node: String,
    host: Option<String>,
    utc_epoch_ns: Option<i64>,
    extract: KernelExtract,
}

/// A rank has at least so many slices of each kind, however many ranks there are.
const LEAST_OF_RANK: usize = 12;
/// Notes that are kept.
const MOST_NOTES: usize = 40;

/// Makes the excerpt; an error where no report can be read, or none has the window.
pub fn excerpt(request: &ExcerptRequest<'_>) -> Result<Excerpt, String> {
    let (mut unreadable, mut notes, mut is_simulated) = (Vec::new(), Vec::new(), false);
    let mut reports = Vec::new();
    for input in request.inputs {
        match first_look(input) {
            Ok((report, simulated)) => {
                is_simulated |= simulated;
                reports.push(report);
            }
            Err(error) => unreadable.push((input.shown.clone(), error.to_string())),
        }
    }
    if reports.is_empty() {
        let why = unreadable.first().map(|(report, why)| format!("{report}: {why}"));
        return Err(why.unwrap_or_else(|| "no report to read".to_owned()));
    }
    let parts: Vec<RankReport> = reports.iter().map(Report::rank_report).collect();
    let evidence = extract::evidence(&parts);
    let clocks = Clocks::new(&reports, &evidence);
    let judgement = judge(&evidence, &Limits::default());
    let window = Window::choose(request.window, &reports, &evidence, &clocks, &judgement.verdict)?;
    let mut order: Vec<usize> = (0..reports.len()).collect();
    order.sort_by_key(|at| {
        let is_first = request.first.contains(&reports[*at].node);
        (!window.late.contains(at), !is_first, std::cmp::Reverse(window.arrival(*at)), *at)
    });
    let share = request.most_slices / reports.len().max(1);
    let mut processes = Vec::new();
    let (mut kept, mut merged) = (0, 0);
    for at in &order {
        let report = &reports[*at];
        let Some((start, end)) = window.spans[*at] else {
            notes.push(format!("{}: the window is not in this report", report.input.shown));
            continue;
        };
        let at_window = |time: i64| clocks.at(*at, time) - window.origin();
        let most = (share / slices::KINDS).max(LEAST_OF_RANK);
        let made = open_within(report.input, start, end)
            .and_then(|trace| Ok((slices::tracks(&trace, (start, end), &at_window, most)?, trace.notes())));
        match made {
            Ok((made, of_report)) => {
                kept += made.kept;
                merged += made.merged;
                notes.extend(of_report.iter().map(|note| format!("{}: {note}", report.input.shown)));
                let (node, file) = (report.node.clone(), report.input.shown.clone());
                processes.push(Process { called: report.called(), node, file, tracks: made.tracks });
            }
            Err(error) => unreadable.push((report.input.shown.clone(), error.to_string())),
        }
    }
    let is_empty = kept + merged == 0 && unreadable.is_empty();
    if is_empty && matches!(request.window, WindowRequest::Time(..)) {
        return Err(window.empty(&reports[0]));
    }
    let counters = counters::read(&reports, &order, &window, &clocks, &mut notes);
    let look = look::line(&window, &reports, &evidence, &judgement.verdict, &counters);
    notes.dedup();
    if let more @ 1.. = notes.len().saturating_sub(MOST_NOTES) {
        notes.truncate(MOST_NOTES);
        notes.push(format!("more notes: {more}"));
    }
    Ok(Excerpt {
        ns: window.ns(),
        window: window.label,
        is_aligned: clocks.is_aligned,
        clocks: clocks.how,
        look,
        is_simulated,
        kept,
        merged,
        notes,
        unreadable,
        processes,
        counters,
    })
}

fn first_look(input: &ExcerptInput) -> Result<(Report<'_>, bool), ExportError> {
    let trace = Trace::open(&input.path)?;
    let host = trace.host()?;
    let extract = extract::take(&trace)?.map(|(extract, _)| extract).unwrap_or_default();
    let node = input.node.clone().or_else(|| host.clone()).unwrap_or_else(|| input.shown.clone());
    let report = Report { input, node, host, utc_epoch_ns: trace.utc_epoch_ns()?, extract };
    Ok((report, trace.is_simulated()?))
}

fn open_within(input: &ExcerptInput, start: i64, end: i64) -> Result<Trace, ExportError> {
    let filter = Filter::Time(TimeFilter { start: Some(start), end: Some(end) });
    Trace::open(&input.path)?.filtered(&filter)
}

impl Report<'_> {
    /// A process with several GPUs has a rank for each of them, which are not its own number.
    fn called(&self) -> String {
        let what = if self.extract.gpus.len() > 1 { "process" } else { "rank" };
        format!("{what} {}", self.input.rank)
    }

    fn rank_report(&self) -> RankReport<'_> {
        let host = self.input.node.as_deref().or(self.host.as_deref());
        let (clock, zero) = extract::clock(host, self.utc_epoch_ns, &self.input.shown);
        RankReport { rank: self.input.rank, node: &self.node, clock, zero, extract: &self.extract }
    }
}
