//! Checks the shape of a sweep of nccl-tests, at whatever rate: larger is not slower, in place is like out of place,
//! time is latency plus size over bandwidth, no size is missing. It needs no baseline. `nccl_tests` reads the table.

pub mod fit;
#[cfg(test)]
mod tests;

use super::nccl_tests::nccl_metric;
use super::{JobInput, Output, RecipeSpec, Workload, nccl_tests};
use fit::FittedLine;
use metric::finding::Finding;
use metric::finding_kinds;
use metric::unit::{Better, Unit};
use metric::{Dim, Dims, Files, Metric, MetricSpec, Role, RunNoise, Sizes};
use std::collections::BTreeMap;

/// Below this size a time is mostly latency and the choice of a protocol, and its shape says little of the hardware.
pub(crate) const FROM_BYTES: u64 = 64 << 20;

const fn shape_metric(name: &'static str, about: &'static str, unit: Unit, better: Better) -> MetricSpec {
    nccl_metric(name, about, unit, better, Files::Output).next(
        "look at the case's table of sizes: the tuner may have chosen another algorithm there (see NCCL_DEBUG=INFO with \
         SUBSYS TUNING), or only that size was slowed down",
    )
}

const COMPARED: &[Role] = &[Role::ComparesWithin, Role::BetweenNodes, Role::ShortName];

const DIP: MetricSpec = shape_metric(
    "nccl.dip",
    "drop of bus bandwidth from the next smaller size of the sweep, as a fraction of it, 0 where it does not drop; from \
     64 MiB up",
    Unit::Ratio,
    Better::Lower,
)
.per(&[Dim::Op, Dim::SizeBytes, Dim::Place])
.at(Sizes::LargeButFirst)
.varying(RunNoise::FRACTION)
.with(COMPARED);
const IN_OVER_OUT: MetricSpec = shape_metric(
    "nccl.in_over_out",
    "ratio of bus bandwidth in place to out of place, from 64 MiB up; not given for one rank, which moves nothing in \
     place",
    Unit::Ratio,
    Better::Neither,
)
.per(&[Dim::Op, Dim::SizeBytes])
.at(Sizes::Large)
.with(COMPARED);
const SIZES_MISSING: MetricSpec = shape_metric(
    "nccl.sizes_missing",
    "declared sizes without a row, of those that the operation prints unchanged",
    Unit::Count,
    Better::Lower,
)
.per(&[Dim::Op]);
const LATENCY: MetricSpec = shape_metric(
    "nccl.fit_latency",
    "latency at 0 bytes, by the line through the sizes from 64 MiB up",
    Unit::Microseconds,
    Better::Lower,
)
// An extrapolation, of sizes whose times are a hundred times it; the times of small sizes are compared.
.varying(RunNoise::NotComparable)
.per(&[Dim::Op, Dim::Place]);
const BANDWIDTH: MetricSpec = shape_metric(
    "nccl.fit_busbw",
    "bus bandwidth without latency, by the line through the sizes from 64 MiB up",
    Unit::GigabytesPerSecond,
    Better::Higher,
)
.per(&[Dim::Op, Dim::Place]);
const RESIDUAL: MetricSpec = shape_metric(
    "nccl.fit_residual",
    "deviation of a size's time from that line, as a fraction of the line's time; from 64 MiB up",
    Unit::Ratio,
    Better::Lower,
)
.per(&[Dim::Op, Dim::SizeBytes, Dim::Place])
.at(Sizes::Large)
// A time varies more than a bandwidth.
.varying(RunNoise::Absolute(0.05))
.with(COMPARED);

/// For cases of nccl-tests: checks the table that `nccl_tests` reads.
pub(crate) const SPEC: RecipeSpec = RecipeSpec {
    name: "nccl_shape",
    about: "whether a sweep has the shape of sound hardware: no dips, in place like out of place, latency and \
            bandwidth, no size missing",
    metrics: &[DIP, IN_OVER_OUT, SIZES_MISSING, LATENCY, BANDWIDTH, RESIDUAL],
    tables: &[],
    findings: &[ShapeFinding::ALL],
    reads_nccl_log: false,
    compares_clocks: false,
    reads_inspector: false,
    run: &run,
};

finding_kinds! {
    /// Of the sizes that were measured.
    pub(crate) enum ShapeFinding {
        SizeMissing = "size-missing": NoNumber,
        TooFewSizes = "too-few-sizes": NoNumber,
    }
}

/// Of the sizes of a sweep, rising, those that a metric is given for.
pub fn sizes_of(metric: &MetricSpec, mut sizes: Vec<u64>) -> Vec<u64> {
    if metric.sizes != Sizes::All {
        sizes.retain(|size| *size >= FROM_BYTES);
    }
    if metric.sizes == Sizes::LargeButFirst && !sizes.is_empty() {
        sizes.remove(0);
    }
    sizes
}

/// One size's bandwidth and time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Half {
    bytes: u64,
    busbw: f64,
    us: f64,
}

/// The halves of one table, rising in size.
#[derive(Default)]
struct Sweep {
    out: BTreeMap<u64, Half>,
    inside: BTreeMap<u64, Half>,
}

fn run(job: &JobInput) -> Output {
    let Workload::NcclTests { op, sizes, ranks_per_communicator, by_torch, .. } = &job.workload else {
        return Output::default();
    };
    // Verdicts of that recipe on the whole table hold here too; its metrics and findings stay its own.
    let read = (nccl_tests::SPEC.run)(job);
    let sweeps = sweeps(&read.metrics);
    let mut output = Output { metrics: Vec::new(), findings: Vec::new(), ..read };
    // Smaller sizes are rounded until several are printed alike.
    let ranks = ranks_per_communicator.unwrap_or(1);
    let least = 16 * 4 * u64::from(ranks);
    let declared: Vec<u64> = sizes.iter().copied().filter(|size| *size >= least).collect();
    for (dims, sweep) in sweeps {
        let dims = dims.with(Dim::Op, op.name());
        // PyTorch has some operations in one placement only.
        let is_there = |halves: &BTreeMap<u64, Half>| !(*by_torch && halves.is_empty());
        let measured = if is_there(&sweep.out) { &sweep.out } else { &sweep.inside };
        missing(job, &dims, &declared, measured, &mut output);
        for (place, halves) in
            [("out", &sweep.out), ("in", &sweep.inside)].into_iter().filter(|(_, halves)| is_there(halves))
        {
            let dims = dims.clone().with(Dim::Place, place);
            let halves: Vec<Half> = halves.range(FROM_BYTES..).map(|(_, half)| *half).collect();
            dips(&dims, &halves, &mut output);
            fitted(job, &dims, &halves, &mut output);
        }
        if ranks > 1 {
            for (bytes, out) in sweep.out.range(FROM_BYTES..) {
                // An operation that is never run in place has no such number; one that lacks a size has none of it.
                if sweep.inside.is_empty() {
                    break;
                }
                let ratio = sweep.inside.get(bytes).map_or(f64::NAN, |inside| over(inside.busbw, out.busbw));
                output.metrics.push(IN_OVER_OUT.of(dims.clone().with(Dim::SizeBytes, *bytes), ratio));
            }
        }
    }
    output
}

/// By the dimensions that distinguish the tables of the job.
fn sweeps(rows: &[Metric]) -> BTreeMap<Dims, Sweep> {
    let mut sweeps: BTreeMap<Dims, Sweep> = BTreeMap::new();
    for row in rows {
        let (Some(bytes), Some(place)) = (row.dims.number(Dim::SizeBytes), row.dims.word(Dim::Place)) else {
            continue;
        };
        let mut of_table = Dims::new();
        let own = |dim: &Dim| !matches!(dim, Dim::SizeBytes | Dim::Place | Dim::Op);
        row.dims.iter().filter(|(dim, _)| own(dim)).for_each(|(dim, value)| of_table.set(dim, value.clone()));
        let sweep = sweeps.entry(of_table).or_default();
        let halves = if place == "out" { &mut sweep.out } else { &mut sweep.inside };
        let half = halves.entry(bytes).or_default();
        half.bytes = bytes;
        match &*row.name {
            "nccl.busbw" => half.busbw = row.value,
            "nccl.time" => half.us = row.value,
            _ => {}
        }
    }
    sweeps
}

fn missing(
    job: &JobInput,
    dims: &Dims,
    declared: &[u64],
    measured: &BTreeMap<u64, Half>,
    output: &mut Output,
) {
    let gone: Vec<u64> = declared.iter().copied().filter(|size| !measured.contains_key(size)).collect();
    if let (Some(first), Some(last)) = (gone.first(), gone.last()) {
        let why = format!(
            "{}: {} of {} declared sizes are missing, from {first} to {last} bytes; nccl-tests may have lowered its \
             largest size for lack of memory",
            job.job,
            gone.len(),
            declared.len()
        );
        output.findings.push(Finding::new(ShapeFinding::SizeMissing.code(), why));
    }
    output.metrics.push(SIZES_MISSING.of(dims.clone(), gone.len() as f64));
}

fn dips(dims: &Dims, halves: &[Half], output: &mut Output) {
    for pair in halves.windows(2) {
        let [smaller, larger] = pair else { continue };
        // NaN stays NaN: `max` alone would turn it into no dip.
        let fallen = match 1.0 - over(larger.busbw, smaller.busbw) {
            fallen if fallen.is_nan() => fallen,
            fallen => fallen.max(0.0),
        };
        output.metrics.push(DIP.of(dims.clone().with(Dim::SizeBytes, larger.bytes), fallen));
    }
}

/// One bandwidth over another; no number where either was not measured.
fn over(one: f64, other: f64) -> f64 {
    if one > 0.0 && other > 0.0 { one / other } else { f64::NAN }
}

fn fitted(job: &JobInput, dims: &Dims, halves: &[Half], output: &mut Output) {
    let points: Vec<(u64, f64)> = halves.iter().map(|half| (half.bytes, half.us)).collect();
    let (Some(line), Some(last)) = (FittedLine::through(&points), halves.last()) else {
        let place = if dims.word(Dim::Place) == Some("in") { "in" } else { "out of" };
        let why = format!(
            "{}: a fit {place} place needs more sizes from 64 MiB up: measured {}, needed {}",
            job.job,
            points.len(),
            fit::FEWEST
        );
        output.findings.push(Finding::new(ShapeFinding::TooFewSizes.code(), why));
        return;
    };
    output.metrics.push(LATENCY.of(dims.clone(), line.latency_us));
    // The operation's factor, and whatever it counts of its size, stand in each row's own bandwidth.
    let factor = last.busbw * last.us / last.bytes as f64;
    output.metrics.push(BANDWIDTH.of(dims.clone(), factor / line.us_per_byte));
    for half in halves {
        let dims = dims.clone().with(Dim::SizeBytes, half.bytes);
        output.metrics.push(RESIDUAL.of(dims, line.distance(half.bytes, half.us)));
    }
}
