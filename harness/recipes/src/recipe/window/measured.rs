//! How long the steps of a window took by its report, what the training reached in them, and what each node sent by the counters of its
//! NICs. Whether the
//! window is the one that was asked for is told elsewhere: of another one nothing is measured.

use super::Asked;
use crate::recipe::efa_traffic::analysis::{DirectionMap, sent_within};
use crate::recipe::{FileRole, InputFile, JobInput, Output, Workload, training_log};
use crate::steps::Found;
use logs::efa_counters::{self, Capture};
use logs::window_mark::MARKS;
use metric::finding::Finding;
use metric::unit::{Better, Unit};
use metric::{Blames, Dim, MetricSpec};
use nsys::export::ExportError;
use nsys::trace::Trace;
use nsys::trace::nvtx::Ranges;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;

pub(super) const STEP_TIME: MetricSpec = MetricSpec {
    name: "window.step_time",
    about: "how long a step of the window takes by a rank's report: the mean, from the first one's begin to the last one's end",
    unit: Unit::Seconds,
    better: Better::Lower,
    dims: &[Dim::Rank, Dim::Node],
    blames: Blames::Nobody,
};
const fn of_job(name: &'static str, about: &'static str, unit: Unit) -> MetricSpec {
    MetricSpec { name, about, unit, better: Better::Higher, dims: &[], blames: Blames::Nobody }
}
const SAMPLES: MetricSpec = of_job(
    "window.samples_per_s",
    "samples per second of all ranks in the window, from `window.step_time` and a step's samples as they are stated",
    Unit::PerSecond,
);
const TOKENS: MetricSpec =
    of_job("window.tokens_per_s", "tokens per second of all ranks in the window, alike", Unit::PerSecond);
const TFLOPS: MetricSpec = of_job(
    "window.tflops_per_gpu",
    "what each GPU computes in the window, from its tokens and the model's shape",
    Unit::Teraflops,
);
const MFU: MetricSpec = of_job(
    "window.mfu",
    "the part of a GPU's peak that the model's operations take in the window, alike",
    Unit::Ratio,
);
pub(super) const REACHED: [MetricSpec; 4] = [SAMPLES, TOKENS, TFLOPS, MFU];
pub(super) const EFA_PER_STEP: MetricSpec = MetricSpec {
    name: "window.efa_bytes_per_step",
    about: "bytes that a node sent through its NICs from the begin of the window's first step to the end of its last one, \
            over its steps; counters grow evenly between two readings",
    unit: Unit::Bytes,
    better: Better::Neither,
    dims: &[Dim::Node],
    blames: Blames::Nobody,
};

/// What stands in the code of the finding that says why a node's bytes within the window are not known.
pub(super) const EFA_UNKNOWN: &str = "window-efa-unknown";

/// And of the one that says the same of its time.
pub(super) const UNTIMED: &str = "window-untimed";

/// From the begin of the first step that was asked for to the end of the last one, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Span {
    start: i64,
    end: i64,
    /// The report's time zero in UTC, by the clock of its node.
    epoch: Option<i64>,
}

impl Span {
    /// The hook's own ranges come first; of steps that have no numbers there must be as many as were asked for.
    pub(super) fn of(
        trace: &Trace,
        ranges: Option<&Ranges>,
        found: Option<&Found>,
        asked: &Asked,
    ) -> Result<Option<Span>, ExportError> {
        let marked = ranges.and_then(|ranges| marked(ranges, asked));
        let Some((start, end)) = marked.or_else(|| stepped(found?, asked)) else { return Ok(None) };
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

fn marked(ranges: &Ranges, asked: &Asked) -> Option<(i64, i64)> {
    let of = |number: u64| {
        let name = format!("{MARKS} {number}");
        (0..ranges.len()).filter(move |row| ranges.name(*row) == name)
    };
    let start = of(asked.first).map(|row| ranges.start[row]).min()?;
    Some((start, of(asked.last).map(|row| ranges.end[row]).max()?))
}

fn stepped(found: &Found, asked: &Asked) -> Option<(i64, i64)> {
    let has_number = |number: Option<u64>| number.is_none_or(|it| (asked.first..=asked.last).contains(&it));
    let numbered = found.steps.iter().all(|step| step.number.is_some());
    let steps: Vec<_> =
        found.steps.iter().filter(|step| step.is_whole() && (!numbered || has_number(step.number))).collect();
    let (first, last) = (steps.first()?, steps.last()?);
    let all = steps.len() as u64 == asked.count();
    (all && last.has_end).then_some((first.start, last.end))
}

/// The spans of the reports of one node, by rank: those of windows that are as asked.
pub(super) type Spans = BTreeMap<String, BTreeMap<u32, Span>>;

pub(super) fn put(job: &JobInput, asked: &Asked, spans: &Spans, output: &mut Output) {
    let count = asked.count() as f64;
    for (node, of_rank) in spans {
        for (rank, span) in of_rank {
            let dims = job.dims().with(Dim::Rank, *rank).with(Dim::Node, node.as_str());
            output.metrics.push(STEP_TIME.of(dims, span.seconds() / count));
        }
    }
    reached(job, asked, spans, output);
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
        let sent = captures
            .get(node)
            .ok_or_else(|| "no capture of its counters can be read".to_owned())
            .and_then(|capture| {
                let utc = span.in_utc().ok_or("the report does not say when it began")?;
                sent_within(capture, &job.nics, &map, utc)
            });
        match sent {
            Ok(bytes) => {
                let dims = job.dims().with(Dim::Node, node.as_str());
                output.metrics.push(EFA_PER_STEP.of(dims, bytes as f64 / count));
            }
            Err(why) => {
                let why =
                    format!("what was sent within steps {}..{} is not known: {why}", asked.first, asked.last);
                output.findings.push(Finding::new(EFA_UNKNOWN, why).node(node.as_str()));
            }
        }
    }
}

/// What all ranks reached together, where every report that there must be shows the window.
fn reached(job: &JobInput, asked: &Asked, spans: &Spans, output: &mut Output) {
    let Workload::Training { facts, ranks } = &job.workload else { return };
    let has =
        |(rank, node): &(u32, String)| spans.get(node).is_some_and(|of_rank| of_rank.contains_key(rank));
    let all: Vec<f64> = spans.values().flat_map(BTreeMap::values).map(Span::seconds).collect();
    if all.is_empty() || !job.expected_exports.iter().all(has) {
        return;
    }
    let seconds = all.iter().sum::<f64>() / all.len() as f64 / asked.count() as f64;
    let reached = training_log::by_step_time(facts, *ranks, seconds);
    output.findings.extend(reached.impossible.map(|why| Finding::new("training-impossible", why)));
    let values = [reached.samples_per_s, reached.tokens_per_s, reached.tflops_per_gpu, reached.mfu];
    for (spec, value) in REACHED.iter().zip(values) {
        output
            .metrics
            .extend(value.filter(|value| value.is_finite()).map(|value| spec.of(job.dims(), value)));
    }
}

/// By node. What cannot be read of them is told by `efa_traffic`, whose business they are.
fn captures(job: &JobInput) -> BTreeMap<String, Capture> {
    let read = |file: &InputFile| {
        let from = BufReader::new(File::open(&file.path).ok()?);
        efa_counters::read_stream(from, &file.shown).ok()
    };
    let all = job.files_of(FileRole::Counters).filter_map(read);
    all.map(|capture| (capture.node.clone(), capture)).collect()
}
