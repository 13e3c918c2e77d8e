//! Which rank or node of a job keeps the others waiting, from the reports of all its ranks, or from records of NCCL's
//! Inspector. `crate::stragglers` finds it.

pub(crate) mod extract;
pub(crate) mod inspected;
#[cfg(test)]
mod inspected_tests;
#[cfg(test)]
mod tests;

use self::extract::{KernelExtract, RankReport};
use super::{FileRole, InputFile, JobInput, Output, RecipeSpec};
use crate::duration;
use crate::recipe::shared_findings::ReportFinding;
use crate::stragglers::{Culprit, Evidence, Flaw, Judgement, Limits, Rounds, Verdict, Who, judge};
use metric::finding::Finding;
use metric::finding_kinds;
use metric::unit::{Better, Unit};
use metric::{Blames, Dim, Files, MetricSpec, Names, Role, RunNoise};
use nsys::loss::loss;
use nsys::tables::{DIAGNOSTIC_EVENT, KERNEL, NVTX_EVENTS, RUNTIME, SESSION_START, STRING_IDS, SYSTEM_ENV};
use nsys::trace::Trace;
use std::collections::{BTreeMap, BTreeSet};

const fn rank_metric(name: &'static str, about: &'static str, unit: Unit, better: Better) -> MetricSpec {
    MetricSpec::new(name, about, unit, better, Files::Reports).per(&[Dim::Rank, Dim::Node])
}

const fn late(name: &'static str, about: &'static str, unit: Unit) -> MetricSpec {
    rank_metric(name, about, unit, Better::Lower)
        .blaming(Blames::Part)
        .with(&[Role::ComparesRanks])
        .naming(Names::Findings(STRAGGLER))
        .next(
            "on {nodes}, see the rank in the finding: if its kernels are as long as those of others, check its process \
             (CPU, data loader, storage, garbage collection), else its GPU (clocks, temperature)",
        )
}

/// The finding of a rank that keeps the others waiting.
const STRAGGLER: &str = StragglerFinding::Late.code();

const LATE: MetricSpec = late(
    "straggler.late",
    "how much longer than its peers a rank takes in each iteration, waiting excluded; the median, and of several GPUs in \
     a report the latest",
    Unit::Microseconds,
)
// What its share says is compared.
.varying(RunNoise::NotComparable);
const LATE_SHARE: MetricSpec = late(
    "straggler.late_share",
    "the same as a fraction of iteration time: the throughput lost by it, where all ranks wait for each other",
    Unit::Ratio,
)
.varying(RunNoise::FRACTION);
const WAIT: MetricSpec = rank_metric(
    "straggler.wait",
    "how long a rank waits in a collective for the last rank; the median, and of several GPUs in a report the longest",
    Unit::Microseconds,
    Better::Neither,
);
const OFFSET: MetricSpec = MetricSpec::new(
    "clock.offset",
    "how far a node's clock is ahead of the first node's, by the ends of collectives",
    Unit::Microseconds,
    Better::Neither,
    Files::Reports,
)
.per(&[Dim::Node])
.varying(RunNoise::NotComparable)
.blaming(Blames::Node);
const RESIDUAL: MetricSpec = MetricSpec::new(
    "clock.residual",
    "how far the ends of a collective on a node differ from those on the others once clocks are aligned; the \
            robust deviation",
    Unit::Microseconds,
    Better::Lower,
    Files::Reports,
)
.per(&[Dim::Node])
.blaming(Blames::Node);

/// For profiled or inspected cases; no metrics unless every rank left a readable report, or records.
pub(crate) const SPEC: RecipeSpec = RecipeSpec {
    name: "stragglers",
    about: "ranks and nodes that keep the others waiting, from nsys reports, or from records of NCCL's Inspector",
    metrics: &[LATE, LATE_SHARE, WAIT, OFFSET, RESIDUAL],
    // Host names are for `harness recipe`; a run knows the node of each report.
    tables: &[&KERNEL, &STRING_IDS, &RUNTIME, &NVTX_EVENTS, &SESSION_START, &SYSTEM_ENV, &DIAGNOSTIC_EVENT],
    findings: &[ReportFinding::ALL, StragglerFinding::ALL],
    reads_nccl_log: false,
    compares_clocks: true,
    reads_inspector: true,
    run: &run,
};

finding_kinds! {
    /// Of ranks that keep others waiting.
    pub(crate) enum StragglerFinding {
        ReportMissing = "report-missing": NoNumber,
        NoCommunication = "no-communication": NoNumber,
        Unknown = "stragglers-untold": NotRecorded("profile more steps of all ranks, `ranks = \"all\"`, then rerun the case"),
        RanksNotRecorded = "ranks-not-recorded": NotRecorded("profile all ranks, `ranks = \"all\"`, then rerun the case"),
        Late = "straggler": Note,
        CollectivesUnequal = "collectives-unequal": Note,
        ClocksApart = "clocks-apart": Note,
        NoTimes = "stragglers-no-times": NoNumber,
    }
}

/// The extract of one report, and where it is from.
struct RankExtract<'a> {
    file: &'a InputFile,
    rank: u32,
    node: &'a str,
    zero: Option<i64>,
    extract: KernelExtract,
}

fn run(job: &JobInput) -> Output {
    let mut output = Output::default();
    let files: Vec<&InputFile> = job.files_of(FileRole::NsysExport).collect();
    let records = job.files_of(FileRole::Inspector).next();
    if let Some(file) = records.filter(|_| files.is_empty() && job.expected_exports.is_empty()) {
        by_records(job, file, &mut output);
        return output;
    }
    let mut reads = Vec::new();
    let mut whole = !files.is_empty();
    for file in &files {
        match read(job, file) {
            Ok(read) => reads.push(read),
            Err(finding) => {
                output.findings.push(*finding);
                whole = false;
            }
        }
    }
    // The one whose report is missing may be the one that all others wait for.
    let missing =
        job.expected_exports.iter().filter(|(rank, _)| !files.iter().any(|file| file.rank == Some(*rank)));
    for (rank, node) in missing {
        let why =
            format!("rank {rank}: no report, so no rank can be called late; find out why it is missing");
        output.findings.push(Finding::new(StragglerFinding::ReportMissing.code(), why).node(node.as_str()));
        whole = false;
    }
    if !whole {
        return output;
    }
    reads.sort_by_key(|read| read.rank);
    let parts: Vec<RankReport> = reads
        .iter()
        .map(|read| {
            let (clock, zero) = extract::clock(Some(read.node), read.zero, &read.file.shown);
            RankReport { rank: i64::from(read.rank), node: read.node, clock, zero, extract: &read.extract }
        })
        .collect();
    let evidence = extract::evidence(&parts);
    let judgement = judge(&evidence, &Limits::default());
    let unknown = waits_unrecorded(&evidence, &judgement);
    report_stragglers(&evidence, &judgement, &unknown, &RankNames::new(&reads), &mut output);
    put_metrics(job, &evidence, &judgement, &unknown, &mut output);
    output
}

fn by_records(job: &JobInput, file: &InputFile, output: &mut Output) {
    let mut find = |why: String| {
        output.findings.push(Finding::new(StragglerFinding::NoTimes.code(), why).file(&file.shown));
    };
    let unknown =
        |why: &str| format!("stragglers unknown: {why}; list `nsys` first in `evidence` to find them");
    let recorded = match inspected::from_job(job, file) {
        Ok(recorded) => recorded,
        Err(why) => return find(unknown(&why)),
    };
    let evidence = recorded.evidence();
    let judgement = judge(&evidence, &recorded.limits(Limits::default()));
    if let Verdict::Inconclusive(why) = &judgement.verdict {
        return find(unknown(why));
    }
    find("records of NCCL's Inspector have no clocks: no `clock.offset` and `clock.residual`".to_owned());
    let names = RankNames::from_ranks(&evidence);
    report_stragglers(&evidence, &judgement, &BTreeSet::new(), &names, output);
    put_metrics(job, &evidence, &judgement, &BTreeSet::new(), output);
}

/// Ranks of a communicator that not all of its ranks recorded: one of those may be late, and what these wait for it looks
/// like time of their own.
fn waits_unrecorded(evidence: &Evidence, judgement: &Judgement) -> BTreeSet<i64> {
    let partial: BTreeSet<u64> = judgement.flaws.iter().filter_map(partial_communicator).collect();
    // Streams in the order of their use may be of some ranks only.
    let is_member = |rank: &&crate::stragglers::Rank| {
        !evidence.by_order
            && rank.work.iter().any(|work| work.communicator.is_some_and(|id| partial.contains(&id)))
    };
    evidence.ranks.iter().filter(is_member).map(|rank| rank.rank).collect()
}

fn partial_communicator(flaw: &Flaw) -> Option<u64> {
    match flaw {
        Flaw::NotRecorded { communicator, .. } => Some(*communicator),
        Flaw::UnequalCounts { .. } => None,
    }
}

/// What a process is called: its rank in the job. A report of several GPUs is of one process for each of them, or of a
/// launcher: its own rank is that of none of them, and only NCCL's communicator of all GPUs reports theirs.
struct RankNames {
    /// By report and device.
    of_gpus: BTreeMap<(i64, i64), u32>,
    /// Reports of one GPU each.
    single: BTreeSet<i64>,
}

impl RankNames {
    fn new(reads: &[RankExtract<'_>]) -> RankNames {
        let gpus =
            || reads.iter().flat_map(|read| read.extract.gpus.iter().map(|gpu| (i64::from(read.rank), gpu)));
        let of_gpus: BTreeMap<(i64, i64), u32> =
            gpus().filter_map(|(rank, gpu)| Some(((rank, gpu.device), gpu.nccl_rank?))).collect();
        // Ranks of smaller communicators repeat, or leave some out.
        let ranks: BTreeSet<u32> = of_gpus.values().copied().collect();
        let all = gpus().count();
        let is_world = ranks.len() == all && ranks.iter().copied().eq(0..all as u32);
        let single =
            reads.iter().filter(|read| read.extract.gpus.len() == 1).map(|read| i64::from(read.rank));
        RankNames { of_gpus: if is_world { of_gpus } else { BTreeMap::new() }, single: single.collect() }
    }

    /// Of ranks that are known by their numbers in the job.
    fn from_ranks(evidence: &Evidence) -> RankNames {
        let single = evidence.ranks.iter().map(|rank| rank.rank).collect();
        RankNames { of_gpus: BTreeMap::new(), single }
    }

    fn name(&self, report: i64, gpu: Option<i64>) -> String {
        let by_nccl = || gpu.and_then(|gpu| self.of_gpus.get(&(report, gpu))).copied().map(i64::from);
        let rank = if self.single.contains(&report) { Some(report) } else { by_nccl() };
        rank.map_or_else(|| "its process".to_owned(), |rank| format!("rank {rank}"))
    }
}

/// Of one report; else the finding that says why nothing.
fn read<'a>(job: &JobInput, file: &'a InputFile) -> Result<RankExtract<'a>, Box<Finding>> {
    let (Some(rank), Some(node)) = (file.rank, file.node.as_deref()) else {
        return Err(Box::new(file.finding(
            ReportFinding::Unreadable.code(),
            "rank and node of the report are unknown".to_owned(),
        )));
    };
    let (zero, extract) = job.report_extract(SPEC.name, file, || read_rank(file))?;
    Ok(RankExtract { file, rank, node, zero, extract })
}

/// The UTC of its zero, and its extract.
fn read_rank(file: &InputFile) -> Result<(Option<i64>, KernelExtract), (&'static str, String)> {
    let read = Trace::open(&file.path).and_then(|trace| {
        let lost = loss(trace.export())?;
        Ok((lost, extract::take(&trace)?, trace.utc_epoch_ns()?))
    });
    match read {
        Err(error) => Err((ReportFinding::Unreadable.code(), error.to_string())),
        Ok((Some((code, text)), ..)) => Err((code, format!("the profiler reported: {text}"))),
        Ok((None, None, _)) => {
            let why = "no communication kernel was traced; trace `cuda` and `nvtx`, and have the capture include some";
            Err((StragglerFinding::NoCommunication.code(), why.to_owned()))
        }
        Ok((None, Some((extract, _)), zero)) => Ok((zero, extract)),
    }
}

fn report_stragglers(
    evidence: &Evidence,
    judgement: &Judgement,
    unknown: &BTreeSet<i64>,
    names: &RankNames,
    output: &mut Output,
) {
    let flaws = judgement.flaws.iter().map(|flaw| {
        let kind = match partial_communicator(flaw).filter(|_| !evidence.by_order) {
            Some(_) => StragglerFinding::RanksNotRecorded,
            None => StragglerFinding::CollectivesUnequal,
        };
        Finding::new(kind.code(), extract::describe_flaw(flaw, evidence))
    });
    output.findings.extend(flaws);
    if !judgement.apart.is_empty() {
        let groups: Vec<String> = judgement.apart.iter().map(|group| group.join(", ")).collect();
        let why = format!("clocks cannot be aligned: no collective connects {}", groups.join(" | "));
        output.findings.push(Finding::new(StragglerFinding::ClocksApart.code(), why));
    }
    match &judgement.verdict {
        Verdict::Named(culprits) => {
            let is_known = |culprit: &&Culprit| match &culprit.who {
                Who::Node { ranks, .. } => !ranks.iter().any(|rank| unknown.contains(rank)),
                Who::Rank { rank, .. } => !unknown.contains(rank),
            };
            output.findings.extend(culprits.iter().filter(is_known).map(|culprit| named(culprit, names)))
        }
        Verdict::NoCulprit(_) => {}
        Verdict::Inconclusive(why) => {
            let why = format!("stragglers unknown: {why}; capture more steps of all ranks");
            output.findings.push(Finding::new(StragglerFinding::Unknown.code(), why));
        }
    }
}

fn named(culprit: &Culprit, names: &RankNames) -> Finding {
    let late = format!(
        "{} late in each iteration of {}, {} standard errors; cause: {}; {}",
        duration::time(culprit.late_ns as f64),
        duration::time(culprit.round_ns as f64),
        // Larger values only mean that there was hardly any noise.
        if culprit.sure < 1000.0 { format!("{:.0}", culprit.sure) } else { "more than 1000".to_owned() },
        culprit.cause.name(),
        culprit.evidence
    );
    match &culprit.who {
        Who::Node { node, .. } => {
            Finding::new(STRAGGLER, format!("the node keeps the others waiting: {late}")).node(node.as_str())
        }
        Who::Rank { rank, node, gpu } => {
            let who = names.name(*rank, *gpu);
            let finding = Finding::new(STRAGGLER, format!("{who} keeps the others waiting: {late}"));
            let finding = finding.node(node.as_str());
            match gpu {
                Some(gpu) => finding.part(format!("gpu{gpu}")),
                None => finding,
            }
        }
    }
}

fn put_metrics(
    job: &JobInput,
    evidence: &Evidence,
    judgement: &Judgement,
    unknown: &BTreeSet<i64>,
    output: &mut Output,
) {
    if matches!(judgement.verdict, Verdict::Inconclusive(_)) {
        return;
    }
    let all: Vec<_> = evidence.ranks.iter().zip(&judgement.ranks).collect();
    // The GPUs of one report stand together.
    for gpus in all.chunk_by(|(a, _), (b, _)| a.rank == b.rank) {
        let (rank, node) = (gpus[0].0.rank, gpus[0].0.node);
        let rounds = || gpus.iter().filter_map(|(_, result)| result.rounds);
        let late = rounds().map(|rounds| rounds.late_ns).max();
        let share =
            |rounds: Rounds| (rounds.length_ns > 0).then(|| rounds.late_ns as f64 / rounds.length_ns as f64);
        let share = rounds().filter_map(share).max_by(f64::total_cmp);
        let wait = gpus.iter().filter_map(|(_, result)| Some(result.arrived?.wait_ns)).max();
        let Ok(number) = u64::try_from(rank) else { continue };
        let dims = job.dims().with(Dim::Rank, number).with(Dim::Node, node);
        match late {
            // The finding says why.
            _ if unknown.contains(&rank) => {}
            Some(late) => {
                output.metrics.push(LATE.of(dims.clone(), late as f64 / 1e3));
                output.metrics.extend(share.map(|share| LATE_SHARE.of(dims.clone(), share)));
            }
            None => {
                // A report of several GPUs is of several ranks.
                let why = match gpus {
                    [_] => format!("rank {rank}: no peer to compare with"),
                    _ => "no peer to compare with".to_owned(),
                };
                output.findings.push(Finding::new(StragglerFinding::Unknown.code(), why).node(node));
            }
        }
        output.metrics.extend(wait.map(|wait| WAIT.of(dims, wait as f64 / 1e3)));
    }
    for clock in &judgement.clocks {
        if !evidence.ranks.iter().any(|rank| rank.node == clock.name) {
            continue;
        }
        let dims = job.dims().with(Dim::Node, clock.name.as_str());
        output.metrics.extend(clock.ahead_ns.map(|ns| OFFSET.of(dims.clone(), ns as f64 / 1e3)));
        output.metrics.extend(clock.residual_ns.map(|ns| RESIDUAL.of(dims, ns as f64 / 1e3)));
    }
}
