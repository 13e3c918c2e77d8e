//! How long the steps of a window took by its report, the throughput of the training in them, and what each node sent
//! by the counters of its NICs. Measured only where the window is the requested one, which the parent module checks.

use super::StepWindow;
use crate::recipe::efa_traffic::analysis::{DirectionMap, sent_within};
use crate::recipe::shared_findings::RateFinding;
use crate::recipe::window::WindowFinding;
use crate::recipe::{FileRole, InputFile, JobInput, Output, Workload, training_log};
use crate::steps::Found;
use logs::efa_counters::{self, Capture};
use logs::window_mark::MARKS;
use metric::finding::Finding;
use metric::unit::{Better, Unit};
use metric::{Dim, Files, MetricSpec};
use nsys::export::ExportError;
use nsys::trace::Trace;
use nsys::trace::nvtx::Ranges;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;

pub(super) const STEP_TIME: MetricSpec = MetricSpec::new("window.step_time", "mean step time of the window by a rank's report: from the begin of the first step to the end of the last \
            one", Unit::Seconds, Better::Lower, Files::Reports).per(&[Dim::Rank, Dim::Node]);
const fn job_metric(name: &'static str, about: &'static str, unit: Unit) -> MetricSpec {
    MetricSpec::new(name, about, unit, Better::Higher, Files::Reports)
}
pub(super) const SAMPLES: MetricSpec = job_metric(
    "window.samples_per_s",
    "samples per second of all ranks in the window, from `window.step_time` and the stated samples per step",
    Unit::PerSecond,
);
pub(super) const TOKENS: MetricSpec = job_metric(
    "window.tokens_per_s",
    "tokens per second of all ranks in the window, from its samples per second and the \
                                   stated tokens per sample",
    Unit::PerSecond,
);
pub(super) const TFLOPS: MetricSpec = job_metric(
    "window.tflops_per_gpu",
    "TFLOP/s of each GPU in the window, from its tokens and the model's shape",
    Unit::Teraflops,
);
pub(super) const MFU: MetricSpec = job_metric(
    "window.mfu",
    "model FLOPs utilization in the window, as a fraction of the GPU's peak",
    Unit::Ratio,
);
pub(super) const REACHED: [MetricSpec; 4] = [SAMPLES, TOKENS, TFLOPS, MFU];
pub(super) const EFA_PER_STEP: MetricSpec = MetricSpec::new("window.efa_bytes_per_step", "bytes per step that a node sent through its NICs from the begin of the window's first step to the end of \
            its last one; counters are interpolated linearly between two readings", Unit::Bytes, Better::Neither, Files::Reports).per(&[Dim::Node]);

/// From the begin of the first requested step to the end of the last one, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Span {
    start: i64,
    end: i64,
    /// The report's time zero in UTC, by the clock of its node.
    epoch: Option<i64>,
}

impl Span {
    /// The hook's own ranges come first; steps without numbers count only if there are as many as were requested.
    pub(super) fn from_trace(
        trace: &Trace,
        ranges: Option<&Ranges>,
        found: Option<&Found>,
        requested: &StepWindow,
    ) -> Result<Option<Span>, ExportError> {
        let of_marks = ranges.and_then(|ranges| range_of_marks(ranges, requested));
        let Some((start, end)) = of_marks.or_else(|| range_of_steps(found?, requested)) else {
            return Ok(None);
        };
        Ok(Some(Span { start, end, epoch: trace.utc_epoch_ns()? }))
    }

    fn seconds(&self) -> f64 {
        self.end.saturating_sub(self.start) as f64 / 1e9
    }

    fn in_utc(&self) -> Option<(i64, i64)> {
        let at = |moment: i64| self.epoch?.checked_add(moment);
        Some((at(self.start)?, at(self.end)?))
    }
}

fn range_of_marks(ranges: &Ranges, requested: &StepWindow) -> Option<(i64, i64)> {
    let of = |number: u64| {
        let name = format!("{MARKS} {number}");
        (0..ranges.len()).filter(move |row| ranges.name(*row) == name)
    };
    let start = of(requested.first).map(|row| ranges.start[row]).min()?;
    Some((start, of(requested.last).map(|row| ranges.end[row]).max()?))
}

fn range_of_steps(found: &Found, requested: &StepWindow) -> Option<(i64, i64)> {
    let has_number =
        |number: Option<u64>| number.is_none_or(|it| (requested.first..=requested.last).contains(&it));
    let numbered = found.steps.iter().all(|step| step.number.is_some());
    let steps: Vec<_> =
        found.steps.iter().filter(|step| step.is_whole() && (!numbered || has_number(step.number))).collect();
    let (first, last) = (steps.first()?, steps.last()?);
    let all = steps.len() as u64 == requested.count();
    (all && last.has_end).then_some((first.start, last.end))
}

/// The spans of the reports of one node, by rank: those of windows that are as asked.
pub(super) type Spans = BTreeMap<String, BTreeMap<u32, Span>>;

pub(super) fn put(job: &JobInput, requested: &StepWindow, spans: &Spans, output: &mut Output) {
    let count = requested.count() as f64;
    for (node, of_rank) in spans {
        for (rank, span) in of_rank {
            let dims = job.dims().with(Dim::Rank, *rank).with(Dim::Node, node.as_str());
            output.metrics.push(STEP_TIME.of(dims, span.seconds() / count));
        }
    }
    put_throughput(job, requested, spans, output);
    if job.nics.is_empty() || job.files_of(FileRole::Counters).next().is_none() {
        return;
    }
    let captures = captures(job);
    let map = DirectionMap {
        sent: job.tx_counters.clone(),
        received: job.rx_counters.clone(),
        conservation_shown: job.conservation_shown,
    };
    for (node, of_rank) in spans {
        let Some(span) = of_rank.values().next() else { continue };
        let sent = match captures.get(node).map(Vec::as_slice) {
            Some([capture]) => span
                .in_utc()
                .ok_or_else(|| "the report lacks its start time".to_owned())
                .and_then(|utc| sent_within(capture, &job.nics, &map, utc)),
            Some([_, ..]) => Err("the node has more than one counter capture".to_owned()),
            _ => Err("no readable counter capture".to_owned()),
        };
        match sent {
            Ok(bytes) => {
                let dims = job.dims().with(Dim::Node, node.as_str());
                output.metrics.push(EFA_PER_STEP.of(dims, bytes as f64 / count));
            }
            Err(why) => {
                let why =
                    format!("EFA bytes within steps {}..{} unknown: {why}", requested.first, requested.last);
                output.findings.push(Finding::new(WindowFinding::EfaUnknown.code(), why).node(node.as_str()));
            }
        }
    }
}

/// The throughput of all ranks together, where every expected report shows the window.
fn put_throughput(job: &JobInput, requested: &StepWindow, spans: &Spans, output: &mut Output) {
    let Workload::Training { facts, ranks } = &job.workload else { return };
    let has =
        |(rank, node): &(u32, String)| spans.get(node).is_some_and(|of_rank| of_rank.contains_key(rank));
    let all: Vec<f64> = spans.values().flat_map(BTreeMap::values).map(Span::seconds).collect();
    if all.is_empty() || !job.expected_exports.iter().all(has) {
        return;
    }
    let seconds = all.iter().sum::<f64>() / all.len() as f64 / requested.count() as f64;
    let throughput = training_log::by_step_time(facts, *ranks, seconds);
    output
        .findings
        .extend(throughput.impossible.map(|why| Finding::new(RateFinding::Impossible.code(), why)));
    let values =
        [throughput.samples_per_s, throughput.tokens_per_s, throughput.tflops_per_gpu, throughput.mfu];
    for (spec, value) in REACHED.iter().zip(values) {
        output
            .metrics
            .extend(value.filter(|value| value.is_finite()).map(|value| spec.of(job.dims(), value)));
    }
}

/// By node; of several, one may be of another run. `efa_traffic` reports captures that cannot be read.
fn captures(job: &JobInput) -> BTreeMap<String, Vec<Capture>> {
    let read = |file: &InputFile| {
        let from = BufReader::new(File::open(&file.path).ok()?);
        efa_counters::read_stream(from, &file.shown).ok()
    };
    let mut by_node: BTreeMap<String, Vec<Capture>> = BTreeMap::new();
    for capture in job.files_of(FileRole::Counters).filter_map(read) {
        by_node.entry(capture.node.clone()).or_default().push(capture);
    }
    by_node
}
