//! Metrics from NCCL's log of a job: calls and their bytes, the networks in use, and whether all ranks made the same
//! calls. `logs::nccl_debug` reads the log; the plan has it written.

#[cfg(test)]
mod tests;

use super::{FileRole, InputFile, JobInput, Output, RecipeSpec};
use crate::recipe::shared_findings::FileFinding;
use logs::nccl_debug::{NcclLog, OfNvls, Reader};
use metric::finding::{Finding, FindingKind, Meaning};
use metric::finding_kinds;
use metric::unit::{Better, Unit};
use metric::{Blames, Dim, Files, MetricSpec, Role};
use std::fs::File;
use std::io::BufReader;

const NODE: &[Dim] = &[Dim::Node];

const fn count(name: &'static str, about: &'static str, better: Better, dims: &'static [Dim]) -> MetricSpec {
    MetricSpec::new(name, about, Unit::Count, better, Files::Output).per(dims).blaming(Blames::Node)
}

const fn bytes(name: &'static str, about: &'static str) -> MetricSpec {
    MetricSpec::new(name, about, Unit::Bytes, Better::Neither, Files::Output).blaming(Blames::Node)
}

const LINES: MetricSpec = count("nccl_log.lines", "lines of NCCL", Better::Neither, &[]);
const NOT_UNDERSTOOD: MetricSpec = count(
    "nccl_log.lines_not_understood",
    "lines of NCCL that are torn or of unknown kinds",
    Better::Lower,
    &[],
);
const PROCESSES: MetricSpec = count("nccl_log.processes", "processes that wrote lines", Better::Neither, &[]);
const WORLDS: MetricSpec = count(
    "nccl_log.worlds",
    "groups of processes joined by communicators; 1 where all ranks found each other",
    Better::Lower,
    &[],
);
const COLLECTIVES: MetricSpec = count(
    "nccl_log.collectives",
    "calls of collective operations, each rank's line counted",
    Better::Neither,
    &[],
);
const MESSAGES: MetricSpec =
    count("nccl_log.messages", "calls that send or receive, each rank's line counted", Better::Neither, &[]);
const BYTES: MetricSpec = bytes("nccl_log.bytes", "bytes in the lines of all calls");
const MESSAGE_BYTES: MetricSpec = bytes(
    "nccl_log.message_bytes",
    "bytes of all calls, with the parts of all ranks where a line names that of one",
);
const WIRE_BYTES: MetricSpec = bytes(
    "nccl_log.wire_bytes",
    "the least that the calls send from the GPUs, over NVLink and network together",
);
const NICS: MetricSpec =
    count("nccl_log.nics", "NICs that each process of a node found; the fewest of any", Better::Higher, NODE);
const EFA: MetricSpec = count(
    "nccl_log.provider_efa",
    "1 where every process of a node that logs its provider uses `efa`, else 0",
    Better::Higher,
    NODE,
)
.with(&[Role::Downgrade]);
const NOT_GDRDMA: MetricSpec = count(
    "nccl_log.not_gdrdma",
    "network connections of a node that go through host memory; not given without connections",
    Better::Lower,
    NODE,
)
.with(&[Role::Downgrade]);
const NVLS: MetricSpec = count(
    "nccl_log.nvls",
    "1 where NVLink SHARP is available on all GPUs of a node, else 0",
    Better::Higher,
    NODE,
)
.with(&[Role::Downgrade]);
const WARNINGS: MetricSpec = count("nccl_log.warnings", "warning lines of a node", Better::Lower, NODE);
const MISMATCHES: MetricSpec = count(
    "nccl_log.sequence_mismatches",
    "communicators whose ranks made different calls or another order; given where all could be compared",
    Better::Lower,
    &[],
);
const UNMATCHED: MetricSpec = count(
    "nccl_log.sends_unmatched",
    "pairs of ranks whose sends and receives differ; given where all could be compared",
    Better::Lower,
    &[],
);
const TIMED_OUT: MetricSpec =
    count("nccl_log.timed_out", "ranks whose watchdog aborted a call", Better::Lower, &[]);
const INIT: MetricSpec = MetricSpec::new(
    "nccl_log.init_time",
    "initialization time of the slowest rank's communicator; not logged before NCCL 2.22",
    Unit::Seconds,
    Better::Lower,
    Files::Output,
)
.blaming(Blames::Node);

/// Reads the output of jobs run with `NCCL_DEBUG=INFO`.
pub const SPEC: RecipeSpec = RecipeSpec {
    name: "nccl_log",
    about: "calls, bytes, networks and whether all ranks made the same calls, from the log of `NCCL_DEBUG=INFO`",
    metrics: &[
        LINES,
        NOT_UNDERSTOOD,
        PROCESSES,
        WORLDS,
        COLLECTIVES,
        MESSAGES,
        BYTES,
        MESSAGE_BYTES,
        WIRE_BYTES,
        NICS,
        EFA,
        NOT_GDRDMA,
        NVLS,
        WARNINGS,
        MISMATCHES,
        UNMATCHED,
        TIMED_OUT,
        INIT,
    ],
    tables: &[],
    findings: &[NcclLogFinding::ALL, FROM_READER, FileFinding::ALL],
    reads_nccl_log: true,
    compares_clocks: false,
    reads_inspector: false,
    run: &run,
};

finding_kinds! {
    /// Of NCCL's log, beside those of its reader.
    pub(crate) enum NcclLogFinding {
        NoLog = "no-nccl-log": NoNumber,
        HostUnknown = "nccl-host-unknown": Note,
    }
}

/// Findings of the reader that explain a missing number.
const FROM_READER: &[FindingKind] = &[
    FindingKind { code: "nccl-sequence-not-compared", means: Meaning::NoNumber },
    FindingKind { code: "nccl-ranks-missing", means: Meaning::NoNumber },
    FindingKind { code: "nccl-left-out", means: Meaning::NoNumber },
];

fn run(job: &JobInput) -> Output {
    let mut output = Output::default();
    let mut reader = Reader::new(&[]);
    if !job.nics.is_empty() {
        reader.expect_nics(job.nics.len() as u64);
    }
    let mut is_whole = true;
    for file in job.files.iter().filter(|file| printed(file)) {
        let read = File::open(&file.path)
            .and_then(|from| reader.read(BufReader::with_capacity(256 << 10, from), &file.shown));
        if let Err(error) = read {
            is_whole = false;
            let why = format!("cannot be read: {error}");
            output.findings.push(Finding::new(FileFinding::Unreadable.code(), why).file(&file.shown));
        }
    }
    let log = reader.finish();
    if log.of_nccl == 0 {
        let why = "no NCCL line in the job's output; check that the program ran and did not change `NCCL_DEBUG=INFO`";
        output.findings.push(Finding::new(NcclLogFinding::NoLog.code(), why));
        return output;
    }
    if is_whole {
        add_job_metrics(job, &log, &mut output);
        add_node_metrics(job, &log, &mut output);
    }
    // GPUs that run by themselves are worlds of their own.
    let alone = job.files_of(FileRole::GpuNcclTests).next().is_some();
    let findings = log.findings.into_iter().filter(|it| !alone || it.code != "nccl-worlds-apart");
    output.findings.extend(findings.map(|mut finding| {
        finding.node = finding.node.map(|host| node_of(job, &host).unwrap_or(host));
        finding
    }));
    for it in &log.versions {
        output.versions.entry("nccl".to_owned()).or_default().insert(it.text.clone());
    }
    for it in &log.plugins {
        if let Some((name, version)) = it.text.split_once(' ') {
            output.versions.entry(name.to_owned()).or_default().insert(version.to_owned());
        }
    }
    output
}

/// NCCL writes to the program's output, PyTorch's watchdog to its errors.
fn printed(file: &InputFile) -> bool {
    matches!(file.role, FileRole::NcclTests | FileRole::GpuNcclTests | FileRole::Stdout | FileRole::Stderr)
}

fn add_job_metrics(job: &JobInput, log: &NcclLog, output: &mut Output) {
    let mut give = |metric: &MetricSpec, value: f64| output.metrics.push(metric.of(job.dims(), value));
    give(&LINES, log.of_nccl as f64);
    give(&NOT_UNDERSTOOD, (log.of_nccl - log.understood) as f64);
    give(&PROCESSES, log.processes as f64);
    if !log.worlds.is_empty() {
        give(&WORLDS, log.worlds.len() as f64);
    }
    // Without a single call, calls were not logged: unknown, not 0.
    if !log.operations.is_empty() {
        let calls = |collective: bool| {
            let of_kind = log.operations.iter().filter(|it| it.operation.is_collective() == collective);
            of_kind.map(|it| it.calls).sum::<u64>() as f64
        };
        give(&COLLECTIVES, calls(true));
        give(&MESSAGES, calls(false));
        let is_sized = log.operations.iter().all(|it| it.unsized_calls == 0)
            && log.garbled_calls + log.unknown_calls == 0;
        let sums = [
            (&BYTES, log.operations.iter().map(|it| it.total_bytes).sum::<Option<u64>>()),
            (&MESSAGE_BYTES, log.operations.iter().map(|it| it.message_bytes).sum()),
            (&WIRE_BYTES, log.operations.iter().map(|it| it.wire_bytes).sum()),
        ];
        for (metric, sum) in sums {
            if let Some(sum) = sum.filter(|_| is_sized) {
                give(metric, sum as f64);
            }
        }
    }
    let checks = &log.checks;
    // A difference that was seen is one, whatever else could not be compared.
    if checks.mismatches > 0 || (checks.compared > 0 && checks.not_compared == 0) {
        give(&MISMATCHES, checks.mismatches as f64);
    }
    if checks.unmatched > 0 || (checks.pairs > 0 && checks.pairs_not_compared == 0) {
        give(&UNMATCHED, checks.unmatched as f64);
    }
    let mut ranks: Vec<Option<u64>> = log.timed_out.iter().map(|it| it.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    give(&TIMED_OUT, ranks.len() as f64);
    if let Some(slowest) = log.timings.iter().map(|it| it.slowest_s).max_by(f64::total_cmp) {
        give(&INIT, slowest);
    }
}

fn add_node_metrics(job: &JobInput, log: &NcclLog, output: &mut Output) {
    for host in &log.hosts {
        let Some(node) = node_of(job, host) else {
            let why = format!("NCCL lines of host `{host}`, which is not a node of the job");
            output.findings.push(Finding::new(NcclLogFinding::HostUnknown.code(), why).node(host));
            continue;
        };
        let mut give = |metric: &MetricSpec, value: f64| {
            output.metrics.push(metric.of(job.dims().with(Dim::Node, node.as_str()), value));
        };
        let chosen: Vec<_> = log.chosen.iter().filter(|it| it.host == *host).collect();
        if chosen.iter().any(|it| it.what == "provider") || chosen.iter().any(|it| it.name == "Socket") {
            let is_efa = |name: &str| name.split([',', ';']).next() == Some("efa");
            let others = chosen.iter().any(|it| match it.what {
                "provider" => !is_efa(&it.name),
                _ => it.name == "Socket",
            });
            give(&EFA, f64::from(u8::from(!others)));
        }
        let cards = log.nics.iter().filter(|it| it.host == *host && it.by != "NET/Socket");
        if let Some(least) = cards.map(|it| it.least).min() {
            give(&NICS, least as f64);
        }
        if let Some(it) = log.net.iter().find(|it| it.host == *host) {
            give(&NOT_GDRDMA, it.not_gdrdma as f64);
        }
        if let Some(OfNvls { not_available, .. }) = log.nvls.iter().find(|it| it.host == *host) {
            give(&NVLS, f64::from(u8::from(*not_available == 0)));
        }
        let warned = log.warned.iter().find(|it| it.text == *host).map_or(0, |it| it.lines);
        give(&WARNINGS, warned as f64);
    }
}

/// NCCL cuts the name of a host at its first dot.
fn node_of(job: &JobInput, host: &str) -> Option<String> {
    let is = |node: &&String| node.as_str() == host || node.split('.').next() == host.split('.').next();
    job.nodes.iter().find(is).cloned()
}
