//! Compares independent sources of one job: sizes by NCCL's log, by the ranges of reports and by the output of
//! nccl-tests, call by call; bytes over EFA with the least that the logged calls must move between nodes; kernels with
//! calls. Other recipes report what one source says alone.

mod least;
mod logged;
mod recorded;
mod reported;
mod sizes;
#[cfg(test)]
mod tests;

use super::efa_traffic::analysis::{DirectionMap, ExpectedNode, TrafficReader};
use super::inspector::InspectorFinding;
use super::nccl_profile::printed::Printed;
use super::{FileRole, JobInput, Output, RecipeSpec, Workload};
use crate::recipe::shared_findings::{CallFinding, ReportFinding};
use logged::{Log, Logged, Process};
use logs::efa_counters;
use metric::finding::Finding;
use metric::finding_kinds;
use metric::unit::{Better, Unit};
use metric::{Dim, Dims, Files, MetricSpec, Role};
use recorded::Recorded;
use reported::Reported;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufReader;

const OF_RANK: &[Dim] = &[Dim::Rank, Dim::Node];

const fn count(name: &'static str, about: &'static str, better: Better) -> MetricSpec {
    MetricSpec::new(name, about, Unit::Count, better, Files::Reports).per(OF_RANK).with(&[Role::CrossCheck])
}

const fn job_metric(name: &'static str, about: &'static str, unit: Unit) -> MetricSpec {
    MetricSpec::new(name, about, unit, Better::Neither, Files::Reports).with(&[Role::CrossCheck])
}

const ACCOUNTS: MetricSpec = count(
    "crosscheck.accounts",
    "number of sources for a rank's calls: NCCL's log, its report or its records of NCCL's Inspector, the output of \
     nccl-tests",
    Better::Higher,
);
const COMPARED: MetricSpec = count(
    "crosscheck.calls_compared",
    "calls of a rank that are in NCCL's log and in its report, or its records of NCCL's Inspector",
    Better::Neither,
);
const DISAGREE: MetricSpec = count(
    "crosscheck.sizes_disagree",
    "calls of a rank whose operation or size differs between two sources; given where two can be compared",
    Better::Lower,
)
.with(&[Role::CrossCheck, Role::Disagreement]);
const WITHOUT_CALLS: MetricSpec = count(
    "crosscheck.kernels_without_calls",
    "NCCL kernels in a rank's report that none of its calls launched: by graphs, or by calls before the capture",
    Better::Lower,
);
const WITHOUT_KERNELS: MetricSpec = count(
    "crosscheck.calls_without_kernels",
    "NCCL calls in a rank's report that launched none of its kernels",
    Better::Lower,
);
const OF_ANOTHER: MetricSpec = count(
    "crosscheck.kernels_of_another",
    "kernels in a rank's report named after another operation than the call that launched them",
    Better::Lower,
);
const EFA: MetricSpec =
    job_metric("crosscheck.efa_bytes", "bytes sent by all NICs of the job, by their counters", Unit::Bytes);
const LEAST: MetricSpec = job_metric(
    "crosscheck.efa_least_bytes",
    "the least that the logged calls must move between nodes, by the algorithm that the log names",
    Unit::Bytes,
);
const SHARE: MetricSpec = job_metric(
    "crosscheck.efa_share_of_least",
    "bytes by the counters over that least; below 1 some took another path, or were not counted",
    Unit::Ratio,
);

/// Reads nsys reports, NCCL's log, the output of nccl-tests and EFA counters.
pub(crate) const SPEC: RecipeSpec = RecipeSpec {
    name: "cross_checks",
    about: "independent sources of one job compared: NCCL's log, reports or records of NCCL's Inspector, the output of \
            nccl-tests, EFA counters",
    metrics: &[ACCOUNTS, COMPARED, DISAGREE, WITHOUT_CALLS, WITHOUT_KERNELS, OF_ANOTHER, EFA, LEAST, SHARE],
    tables: nsys::nccl::TABLES_AND_DIAGNOSTICS,
    findings: &[ReportFinding::ALL, CallFinding::ALL, CrossFinding::ALL, InspectorFinding::ALL],
    reads_nccl_log: false,
    compares_clocks: false,
    reads_inspector: true,
    run: &run,
};

finding_kinds! {
    /// Of sources that were compared.
    pub(crate) enum CrossFinding {
        NoLog = "crosscheck-no-log": NoNumber,
        NoPrint = "crosscheck-no-print": NoNumber,
        NotCompared = "crosscheck-not-compared": NoNumber,
        NoCounters = "crosscheck-no-counters": NoNumber,
        LogAndReport = "crosscheck-log-and-report": Note,
        NoSizes = "crosscheck-no-sizes": Note,
        NoKernels = "crosscheck-no-kernels": NoNumber,
        LogAndRecords = "crosscheck-log-and-records": Note,
        RecordsAndPrint = "crosscheck-records-and-print": Note,
        LogAndPrint = "crosscheck-log-and-print": Note,
        ReportAndPrint = "crosscheck-report-and-print": Note,
        KernelsWithoutCalls = "crosscheck-kernels-without-calls": Note,
        CallsWithoutKernels = "crosscheck-calls-without-kernels": Note,
        KernelsOfAnother = "crosscheck-kernels-of-another": Note,
        EfaTooLittle = "crosscheck-efa-too-little": Note,
        EfaUnexplained = "crosscheck-efa-unexplained": Note,
    }
}

/// Counters are exact; messages in flight at the last reading are less than this fraction.
const LOST: f64 = 0.001;
/// Small messages are sent with a flag behind each eight bytes, which doubles them: beyond three times the least,
/// traffic is unexplained.
const UNEXPLAINED: f64 = 3.0;

/// One rank by all its sources.
#[derive(Default)]
struct Rank<'a> {
    node: String,
    logged: Option<&'a Process>,
    reported: Option<Reported>,
    recorded: Option<Recorded>,
}

fn run(job: &JobInput) -> Output {
    let mut output = Output::default();
    let reported = reports(job, &mut output);
    let absent = |code: &str, why: String| Finding::new(code, format!("not compared: {why}"));
    let log =
        Log::read(job).map_err(|why| output.findings.push(absent(CrossFinding::NoLog.code(), why))).ok();
    let printed = match matches!(job.workload, Workload::NcclTests { .. }) {
        true => Printed::read(job)
            .map_err(|why| output.findings.push(absent(CrossFinding::NoPrint.code(), why)))
            .ok(),
        false => None,
    };
    let logged = match log.as_ref().map(Log::by_rank) {
        Some(Ok(logged)) => logged,
        Some(Err(why)) => {
            output.findings.push(absent(CrossFinding::NotCompared.code(), why));
            BTreeMap::new()
        }
        None => BTreeMap::new(),
    };
    let mut ranks: BTreeMap<u64, Rank> = BTreeMap::new();
    for (rank, process) in logged {
        let node = node_of(job, &process.host);
        ranks.insert(rank, Rank { node, logged: Some(process), reported: None, recorded: None });
    }
    for (rank, (node, reported)) in reported {
        let it = ranks.entry(rank).or_default();
        (it.node, it.reported) = (node, Some(reported));
    }
    for (rank, node, recorded) in recorded::ranks(job, &mut output) {
        let it = ranks.entry(rank).or_default();
        it.node = node.unwrap_or_else(|| std::mem::take(&mut it.node));
        it.recorded = Some(recorded);
    }
    for (number, rank) in &ranks {
        compare_rank(job, *number, rank, printed.as_ref(), &mut output);
    }
    if let Some(log) = &log {
        efa(job, log, &mut output);
    }
    output
}

/// The job's name of a node for what a log calls it: a log cuts names at the first dot.
fn node_of(job: &JobInput, host: &str) -> String {
    let is_it = |node: &&String| node.split('.').next() == Some(host);
    job.nodes.iter().find(is_it).cloned().unwrap_or_else(|| host.to_owned())
}

/// By rank. A report of one process is of the rank that its file has; several under one launcher have theirs from NCCL.
fn reports(job: &JobInput, output: &mut Output) -> BTreeMap<u64, (String, Reported)> {
    let mut read = Vec::new();
    for file in job.files_of(FileRole::NsysExport) {
        let (Some(rank), Some(node)) = (file.rank, &file.node) else { continue };
        match job.report_extract(SPEC.name, file, || reported::read(file)) {
            Ok(processes) => read.push((file, rank, node, processes)),
            Err(finding) => output.findings.push(*finding),
        }
    }
    let processes: usize = read.iter().map(|(.., processes)| processes.len()).sum();
    let world = match &job.workload {
        Workload::Training { ranks, .. } => *ranks as usize,
        _ => processes,
    };
    let mut all = BTreeMap::new();
    for (file, rank, node, processes) in read {
        let is_alone = processes.len() == 1;
        let count = processes.len();
        let rank_of = |one: &Reported| match one.place {
            _ if is_alone => Some(u64::from(rank)),
            Some((rank, of)) if of as usize == world => Some(u64::from(rank)),
            _ => None,
        };
        let ranked: Option<Vec<_>> = processes.into_iter().map(|one| Some((rank_of(&one)?, one))).collect();
        let known = ranked.filter(|ranked| {
            let own: BTreeSet<u64> = ranked.iter().map(|(rank, _)| *rank).collect();
            own.len() == ranked.len() && own.iter().all(|rank| !all.contains_key(rank))
        });
        match known {
            Some(ranked) => all.extend(ranked.into_iter().map(|(rank, one)| (rank, (node.clone(), one)))),
            None => {
                let why = format!(
                    "not compared: the ranks of its {count} processes are unknown; trace `nvtx` from the start, or start each \
                     rank as a task"
                );
                output.findings.push(file.finding(CrossFinding::NotCompared.code(), why));
            }
        }
    }
    all
}

fn compare_rank(job: &JobInput, number: u64, rank: &Rank, printed: Option<&Printed>, output: &mut Output) {
    let dims = || job.dims().with(Dim::Rank, number).with(Dim::Node, rank.node.as_str());
    let of_its_own = rank.reported.is_some() || rank.recorded.is_some();
    let accounts = [rank.logged.is_some(), of_its_own, printed.is_some()];
    output.metrics.push(ACCOUNTS.of(dims(), accounts.iter().filter(|is_there| **is_there).count() as f64));
    let mut disagree = None;
    let mut differs = |code: &str, count: u64, why: Option<String>, output: &mut Output| {
        disagree = Some(disagree.unwrap_or(0) + count);
        if let Some(why) = why {
            output
                .findings
                .push(Finding::new(code, format!("rank {number}: {why}")).node(rank.node.as_str()));
        }
    };
    if let (Some(logged), Some(reported)) = (rank.logged, &rank.reported) {
        let log: Vec<sizes::SizedCall> =
            logged.calls.iter().filter_map(|call| Some((call.function()?, call.bytes))).collect();
        let compared = sizes::log_and_report(&log, &reported.calls);
        output.metrics.push(COMPARED.of(dims(), compared.calls as f64));
        let why = compared.first.map(|first| {
            format!(
                "{} of {} calls differ between report and NCCL's log: {first}",
                compared.disagree, compared.calls
            )
        });
        differs(CrossFinding::LogAndReport.code(), compared.disagree, why, output);
        if compared.unsized_calls > 0 {
            let why = format!(
                "rank {number}: {} calls have no size in the report; only their operations were compared",
                compared.unsized_calls
            );
            output.findings.push(Finding::new(CrossFinding::NoSizes.code(), why).node(rank.node.as_str()));
        }
    }
    if let Some(recorded) = &rank.recorded {
        if let Some(logged) = rank.logged {
            let (calls, disagree, first) = recorded.with_log(&logged.calls);
            output.metrics.push(COMPARED.of(dims(), calls as f64));
            let why = first.map(|first| {
                format!("{disagree} of {calls} calls differ between records and NCCL's log: {first}")
            });
            differs(CrossFinding::LogAndRecords.code(), disagree, why, output);
        }
        if let Some(printed) = printed {
            let difference = recorded.with_print(printed).err();
            let why = difference.map(|it| format!("records contradict the output of nccl-tests: {it}"));
            differs(CrossFinding::RecordsAndPrint.code(), u64::from(why.is_some()), why, output);
        }
    }
    if let Some(printed) = printed {
        let against = [
            (CrossFinding::LogAndPrint.code(), "NCCL's log", rank.logged.map(|logged| units(&logged.calls))),
            (
                CrossFinding::ReportAndPrint.code(),
                "the report",
                rank.reported.as_ref().map(|it| it.units.clone()),
            ),
        ];
        for (code, what, units) in against {
            let Some(units) = units else { continue };
            let difference = sizes::with_print(&units, printed).err();
            let why = difference.map(|it| format!("{what} contradicts the output of nccl-tests: {it}"));
            differs(code, u64::from(why.is_some()), why, output);
        }
    }
    if let Some(disagree) = disagree {
        output.metrics.push(DISAGREE.of(dims(), disagree as f64));
    }
    if let Some(reported) = &rank.reported {
        check_kernels(&dims, number, rank, reported, output);
    }
}

/// Calls of one group stand under one number of their communicator.
fn units(calls: &[Logged]) -> Vec<Option<u64>> {
    let groups = calls.chunk_by(|a, b| (a.comm, a.op_count) == (b.comm, b.op_count));
    groups.map(|group| group.first().and_then(|call| call.bytes)).collect()
}

fn check_kernels(
    dims: &dyn Fn() -> Dims,
    number: u64,
    rank: &Rank,
    reported: &Reported,
    output: &mut Output,
) {
    let counts = [
        (WITHOUT_CALLS, reported.kernels_of_none),
        (WITHOUT_KERNELS, reported.calls_of_none),
        (OF_ANOTHER, reported.of_another),
    ];
    output.metrics.extend(counts.iter().map(|(spec, count)| spec.of(dims(), *count as f64)));
    let calls = reported.calls.len();
    let mut find = |code: &str, why: String| {
        output.findings.push(Finding::new(code, format!("rank {number}: {why}")).node(rank.node.as_str()));
    };
    if reported.kernels_of_none > 0 {
        let why = format!(
            "{} NCCL kernels were launched by none of {calls} calls, but by graphs or before the capture",
            reported.kernels_of_none
        );
        find(CrossFinding::KernelsWithoutCalls.code(), why);
    }
    if reported.calls_of_none > 0 {
        let why = format!("{} of {calls} calls launched no kernel in the report", reported.calls_of_none);
        find(CrossFinding::CallsWithoutKernels.code(), why);
    }
    if let Some((call, kernel)) = &reported.first_of_another {
        let why = format!(
            "{} kernels belong to another operation, the first: `{call}` launched `{kernel}`",
            reported.of_another
        );
        find(CrossFinding::KernelsOfAnother.code(), why);
    }
}

fn efa(job: &JobInput, log: &Log, output: &mut Output) {
    let mut absent = |code: &str, why: String| {
        output.findings.push(Finding::new(code, format!("EFA not compared: {why}")));
    };
    let least = match least::least(log) {
        Ok(least) if least.bytes == 0 => {
            return absent(CrossFinding::NotCompared.code(), "no logged call spans nodes".to_owned());
        }
        Ok(least) => least,
        Err(why) => return absent(CrossFinding::NotCompared.code(), why),
    };
    let sent = match sent(job) {
        Ok(sent) => sent,
        Err(why) => return absent(CrossFinding::NoCounters.code(), why),
    };
    let share = sent as f64 / least.bytes as f64;
    output.metrics.push(EFA.of(job.dims(), sent as f64));
    output.metrics.push(LEAST.of(job.dims(), least.bytes as f64));
    output.metrics.push(SHARE.of(job.dims(), share));
    let numbers = format!(
        "all NICs sent {sent} bytes; the logged calls need at least {} between nodes (by {})",
        least.bytes,
        least::algorithms(&least)
    );
    // NaN agrees with nothing.
    let is_enough = share >= 1.0 - LOST;
    if !is_enough {
        let why = format!("{numbers}; the rest took another path, or was not counted");
        output.findings.push(Finding::new(CrossFinding::EfaTooLittle.code(), why));
    } else if share > UNEXPLAINED {
        let why = format!("{numbers}; {share:.1} times the least is unexplained");
        output.findings.push(Finding::new(CrossFinding::EfaUnexplained.code(), why));
    }
}

/// By all NICs of the job together.
fn sent(job: &JobInput) -> Result<u64, String> {
    if job.nics.is_empty() {
        return Err("the instance has no EFA NICs".to_owned());
    }
    let nodes = job.nodes.iter();
    let expected: Vec<ExpectedNode> =
        nodes.map(|node| ExpectedNode { node: node.clone(), devices: job.nics.clone() }).collect();
    let map = DirectionMap {
        sent: job.tx_counters.clone(),
        received: job.rx_counters.clone(),
        conservation_shown: job.conservation_shown,
    };
    let mut traffic = TrafficReader::new(&expected, &map);
    let mut any = false;
    for file in job.files_of(FileRole::Counters) {
        let from = File::open(&file.path).map_err(|error| format!("{}: {error}", file.shown))?;
        let read = efa_counters::read_stream(BufReader::new(from), &file.shown);
        traffic.read(&read.map_err(|error| format!("{}: {error}", file.shown))?);
        any = true;
    }
    if !any {
        return Err("no counters were captured".to_owned());
    }
    let traffic = traffic.finish();
    let mut sum: u64 = 0;
    let mut unknown = BTreeSet::new();
    for nic in &traffic.nics {
        match nic.all_tx_bytes.or(nic.tx_bytes).and_then(|bytes| sum.checked_add(bytes)) {
            Some(bytes) => sum = bytes,
            None => drop(unknown.insert(format!("{}/{}", nic.node, nic.nic))),
        }
    }
    match unknown.first() {
        None => Ok(sum),
        Some(first) => Err(format!("{} NICs have no usable counters, the first: {first}", unknown.len())),
    }
}
