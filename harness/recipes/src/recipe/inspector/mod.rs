//! Bus bandwidth, calls and losses of each rank, from what NCCL's Inspector recorded. `logs::inspector` reads it; the plan
//! has it written. A call without a record was lost or filtered, and is never taken for one that was not made.

mod calls;
mod overhead;
mod ranks;
#[cfg(test)]
mod tests;

pub(crate) use calls::{RankTimes, times_of_ranks};
pub use overhead::overheads;

use super::{FileRole, JobInput, Output, RecipeSpec, Workload, read_stream};
use crate::recipe::shared_findings::FileFinding;
use logs::inspector::gathered::{self, Gathered};
use logs::inspector::{InspectorLog, Series};
use metric::finding::{Finding, FindingKind, Meaning};
use metric::finding_kinds;
use metric::op::Op;
use metric::unit::{Better, Unit};
use metric::{Blames, Dim, Files, MetricSpec};
use ranks::Ranks;
use std::collections::BTreeMap;

const fn by_size(name: &'static str, about: &'static str) -> MetricSpec {
    MetricSpec::new(name, about, Unit::GigabytesPerSecond, Better::Higher, Files::Inspector)
        .per(&[Dim::Op, Dim::SizeBytes])
}

const fn count(name: &'static str, about: &'static str, better: Better, dims: &'static [Dim]) -> MetricSpec {
    MetricSpec::new(name, about, Unit::Count, better, Files::Inspector).per(dims)
}

const BUSBW: MetricSpec = by_size(
    "inspector.busbw",
    "bus bandwidth by the GPUs' clocks, sizes as nccl-tests counts them: each rank's mean over its calls, the median of \
     all ranks",
)
.blaming(Blames::Node)
.next("run `harness isolate`, or the cases nic-pairs and gpu-each of `nccl-p5`, to find the slow part");
// A kernel waits for the late rank: the lowest is of one that waited.
const LOWEST: MetricSpec = by_size(
    "inspector.busbw_lowest",
    "the same of the rank with the lowest; it may have waited for others, so it names no node",
);
const CALLS: MetricSpec = count(
    "inspector.calls",
    "calls of a rank that have a record, which are not all of its calls",
    Better::Neither,
    &[Dim::Node, Dim::Gpu],
);
const LOST: MetricSpec = count(
    "inspector.calls_lost",
    "calls of a rank that the plugin counted as dropped from its ring; not given where it does not count",
    Better::Lower,
    &[Dim::Node, Dim::Gpu],
);
const RANKS: MetricSpec = count("inspector.ranks", "ranks that have records", Better::Neither, &[]);

/// Made from the rates of a job and of its control run, once all jobs of a case are in.
pub const OVERHEAD: MetricSpec = MetricSpec::new(
    "inspector.overhead",
    "part of `nccl.busbw` that is lost with Inspector, against the same job without it; below 0 where that was slower",
    Unit::Ratio,
    Better::Lower,
    Files::Output,
)
.per(&[Dim::Op, Dim::SizeBytes, Dim::Place])
.next("raise `NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS` in `environment` of the workload, or run without Inspector");

/// Reads the records of cases with `evidence = { inspector = true }`.
pub const SPEC: RecipeSpec = RecipeSpec {
    name: "inspector",
    about: "bus bandwidth, calls and losses of each rank, from the records of NCCL's Inspector",
    metrics: &[BUSBW, LOWEST, CALLS, LOST, RANKS, OVERHEAD],
    tables: &[],
    findings: &[InspectorFinding::ALL, FROM_READER, FileFinding::ALL],
    reads_nccl_log: false,
    compares_clocks: false,
    reads_inspector: true,
    run: &run,
};

finding_kinds! {
    /// Of the records, beside those of their reader.
    pub(crate) enum InspectorFinding {
        Unavailable = "inspector-unavailable": NoNumber,
        Incomplete = "inspector-incomplete": NoNumber,
        NoRecords = "inspector-no-records": NoNumber,
        RankMissing = "inspector-rank-missing": NoNumber,
        Partial = "inspector-partial": NoNumber,
        Filtered = "inspector-filtered": NoNumber,
        SizeLimit = "inspector-size-limit": Note,
    }
}

/// Why ranks of a node left no record, by what it reports to the probe.
pub const UNAVAILABLE: &str = InspectorFinding::Unavailable.code();
/// Ranks left no record.
pub const WITHOUT_RECORDS: [&str; 2] =
    [InspectorFinding::NoRecords.code(), InspectorFinding::RankMissing.code()];

/// Findings of the reader that explain a missing number.
pub(crate) const FROM_READER: &[FindingKind] = &[
    FindingKind { code: "inspector-processes", means: Meaning::NoNumber },
    FindingKind { code: "inspector-copies", means: Meaning::NoNumber },
    FindingKind { code: "inspector-no-room", means: Meaning::NoNumber },
    FindingKind { code: "inspector-host-times", means: Meaning::NoNumber },
    FindingKind { code: "inspector-disagrees", means: Meaning::NoNumber },
    FindingKind { code: "inspector-cut", means: Meaning::NoNumber },
    FindingKind { code: "inspector-garbled", means: Meaning::NoNumber },
    FindingKind { code: "inspector-short", means: Meaning::NoNumber },
    FindingKind { code: "inspector-bare", means: Meaning::NoNumber },
];

/// Of files that lack lines: what they count is too low.
const LACKING: [&str; 5] =
    ["inspector-cut", "inspector-garbled", "inspector-short", "inspector-bare", "inspector-partial"];

fn run(job: &JobInput) -> Output {
    let mut output = Output::default();
    for file in job.files_of(FileRole::Inspector) {
        let Some(read) = read_stream(file, &mut output, gathered::read) else { continue };
        let Some(read) = read else {
            let why = "not what the job's script makes of the records of NCCL's Inspector";
            output.findings.push(Finding::new(FileFinding::NotUnderstood.code(), why).file(&file.shown));
            continue;
        };
        let mut find = |kind: InspectorFinding, why: String| {
            output.findings.push(Finding::new(kind.code(), why).file(&file.shown));
        };
        if !read.is_complete {
            let why = match read.short.first() {
                Some(first) => format!("lost bytes of files: {}; the first: {first}", read.short.len()),
                None => "breaks off before its last line, or goes on behind it".to_owned(),
            };
            find(InspectorFinding::Incomplete, why);
        }
        if let Some(first) = read.cut.first() {
            let why = format!("files too large to be fetched whole: {}; the first: {first}", read.cut.len());
            find(InspectorFinding::SizeLimit, why);
        }
        if read.log.records == 0 {
            let why = "no rank left a record; check that NCCL is 2.30 or later, and finds the plugin (`nccl_inspector` of \
                       `[paths]`), and that the job runs for several writings";
            find(InspectorFinding::NoRecords, why.to_owned());
        }
        let ranks = Ranks::new(job, &read.log);
        if let Some(why) = ranks.missing() {
            find(InspectorFinding::RankMissing, why);
        }
        if let Some(why) = filtered(job, &read) {
            find(InspectorFinding::Filtered, why);
        }
        let mixed = ranks.mixed();
        let is_of_one_run = mixed.is_none();
        let of_runs = mixed.map(|why| Finding::new("inspector-processes", why).file(&file.shown));
        output.findings.extend(of_runs);
        let is_whole = read.is_complete
            && read.log.records > 0
            && ranks.are_all_there()
            && is_of_one_run
            && untrusted(&read.log).is_none();
        output.findings.extend(read.log.findings.iter().map(|finding| {
            let mut finding = finding.clone();
            finding.node = finding.node.map(|host| ranks.node_of_host(&host).unwrap_or(&host).to_owned());
            finding
        }));
        if is_whole {
            add_metrics(job, &read, &ranks, &mut output);
        }
    }
    output
}

/// The finding of the reader by which no number of the records can be trusted.
pub(crate) fn untrusted(log: &InspectorLog) -> Option<&Finding> {
    // What stands twice weighs twice in every mean.
    const CODES: [&str; 4] =
        ["inspector-processes", "inspector-no-room", "inspector-disagrees", "inspector-copies"];
    log.findings.iter().find(|finding| CODES.contains(&finding.code.as_str()))
}

/// Sizes of the sweep that the plugin was set to leave out.
fn filtered(job: &JobInput, read: &Gathered) -> Option<String> {
    let least = read.number("NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES")?;
    let Workload::NcclTests { op, sizes, ranks_per_communicator, .. } = &job.workload else { return None };
    let part = |size: &u64| match is_by_part(*op) {
        true => size / u64::from(ranks_per_communicator.unwrap_or(1).max(1)),
        false => *size,
    };
    let below = sizes.iter().filter(|size| part(size) < least);
    let last = below.clone().max()?;
    Some(format!(
        "calls below {least} B per rank are filtered: {} of {} sizes, up to {last} B",
        below.count(),
        sizes.len(),
    ))
}

/// Its records have the share of one rank, and nccl-tests prints the whole.
fn is_by_part(op: Op) -> bool {
    matches!(op, Op::AllGather | Op::ReduceScatter)
}

fn op_of(name: &str) -> Option<Op> {
    Some(match name {
        "AllReduce" => Op::AllReduce,
        "AllGather" => Op::AllGather,
        "ReduceScatter" => Op::ReduceScatter,
        "Broadcast" => Op::Broadcast,
        "Reduce" => Op::Reduce,
        _ => return None,
    })
}

fn add_metrics(job: &JobInput, read: &Gathered, ranks: &Ranks<'_>, output: &mut Output) {
    output.metrics.push(RANKS.of(job.dims(), ranks.members().count() as f64));
    let is_counted = !read.log.findings.iter().any(|finding| LACKING.contains(&finding.code.as_str()));
    for (_, member) in ranks.members().filter(|_| is_counted) {
        let Some((node, gpu)) = ranks.place(member) else { continue };
        let dims = job.dims().with(Dim::Node, node).with(Dim::Gpu, gpu);
        output.metrics.push(CALLS.of(dims.clone(), member.records as f64));
        if let Some(lost) = member.dropped {
            output.metrics.push(LOST.of(dims, lost as f64));
        }
    }
    let mut rows: BTreeMap<(Op, u64), Vec<&Series>> = BTreeMap::new();
    for series in &read.log.series {
        let Some(member) = ranks.member(series.member) else { continue };
        let Some(op) = op_of(&series.operation) else { continue };
        let factor = if is_by_part(op) { member.ranks } else { 1 };
        rows.entry((op, series.bytes.saturating_mul(factor))).or_default().push(series);
    }
    let all = ranks.members().count();
    for ((op, bytes), series) in rows {
        let timed = series.iter().filter(|it| it.timed_on_host == 0).filter_map(|it| it.busbw_gb_s);
        let mut values: Vec<f64> = timed.map(|spread| spread.mean).collect();
        if values.len() < all {
            let why =
                format!("{} {bytes} B: {} of {all} ranks have records with times", op.name(), values.len());
            output.findings.push(Finding::new(InspectorFinding::Partial.code(), why));
            continue;
        }
        values.sort_by(f64::total_cmp);
        let dims = job.dims().with(Dim::Op, op.name()).with(Dim::SizeBytes, bytes);
        let (below, above) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        output.metrics.push(BUSBW.of(dims.clone(), below / 2.0 + above / 2.0));
        output.metrics.push(LOWEST.of(dims, values[0]));
    }
}
