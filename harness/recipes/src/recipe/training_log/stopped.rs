//! Why a training stopped, from the messages of PyTorch and Megatron: NCCL calls that timed out, and a rank with NaN.
//! In a hang the waiting ranks complain; the culprit is the rank that stays silent.

use super::hang::{self, Hang, UNDECIDED};
use super::torch_failure::failed_by;
use super::{Failure, FileRole, InputFile, JobInput, NAN_RANK, Output, failure, node_of};
use crate::recipe::ras_hang::{self, Behind, DESYNC, Late};
use logs::nccl_debug::timed_out;
use logs::stream::Pieces;
use logs::torch_failure::Reader;
use metric::finding::Finding;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;

/// Whether a rank reports NaN. `behind`: what it proves that a rank launched less than the others.
pub(in crate::recipe) fn find_causes(
    job: &JobInput,
    ranks: Option<u32>,
    behind: Behind,
    output: &mut Output,
) -> bool {
    let mut waiting: BTreeSet<u64> = BTreeSet::new();
    // Time-outs of which only the number in a smaller group is known.
    let mut unnamed = 0;
    let mut first: Option<(String, u64, String)> = None;
    let mut nan = false;
    // The failure by torch's own report: one with a root cause wins.
    let mut raised: Option<(bool, Failure)> = None;
    for file in job.files_of(FileRole::Stderr).chain(job.files_of(FileRole::Stdout)) {
        // Files that cannot be read are reported where their steps are read.
        let Ok(open) = File::open(&file.path) else { continue };
        let mut pieces = Pieces::new(BufReader::new(open));
        let mut reader = Reader::default();
        while let Ok(Some(piece)) = pieces.next_piece() {
            let line = piece.line;
            reader.line(&piece.text, line);
            let text = piece.plain();
            if let Some(timed_out) = timed_out(&text, line) {
                waiting.extend(timed_out.rank);
                unnamed += u64::from(timed_out.rank.is_none());
                first.get_or_insert_with(|| (file.shown.clone(), line, timed_out.operation));
            }
            if let Some(named) = nan_rank(&text).filter(|_| !nan) {
                nan = true;
                report_nan(job, file, line, &named, output);
            }
        }
        let account = reader.finish();
        let is_sure = account.root_cause.is_some() || account.rendezvous.is_some();
        if let Some(failure) = failed_by(job, ranks, &account, &file.shown, file.node.as_ref())
            && raised.as_ref().is_none_or(|(sure, _)| is_sure && !sure)
        {
            raised = Some((is_sure, failure));
        }
    }
    let dumped = hang::read(job, ranks, output);
    let reported = ras_hang::read(job, ranks, behind, output);
    let (decided, undecided) = together(dumped, reported);
    if let Some(failure) = decided {
        output.failure.get_or_insert(failure);
    }
    if let Some((file, line, operation)) = first {
        output.failure.get_or_insert(timed_out_hang(
            job,
            ranks,
            (&waiting, unnamed),
            &format!("{file}:{line}"),
            &operation,
        ));
    }
    // An exception that a successful program caught is no failure.
    if let Some((_, failure)) = raised.filter(|_| job.exit_code != Some(0)) {
        output.failure.get_or_insert(failure);
    }
    if let Some(failure) = undecided {
        output.failure.get_or_insert(failure);
    }
    nan
}

/// What dumps and RAS show together: a failure that names ranks, and one that does not. Dumps show who waits, so that reports
/// name no rank beside them; reports of other ranks contradict them.
fn together(dumped: Option<Hang>, reported: Option<Late>) -> (Option<Failure>, Option<Failure>) {
    match (dumped, reported) {
        (None, reported) => (reported.map(from_ras), None),
        (Some(Hang { failure: dumped, late }), _) if late.is_empty() => (None, Some(dumped)),
        (Some(Hang { failure: dumped, late }), Some(reported)) if reported.ranks != late => {
            let evidence = format!("{}; but {}", dumped.evidence, reported.evidence);
            (Some(failure(UNDECIDED, None, evidence)), None)
        }
        (Some(Hang { failure: dumped, .. }), _) => (Some(dumped), None),
    }
}

fn from_ras(late: Late) -> Failure {
    let cause = if late.node.is_some() { DESYNC } else { UNDECIDED };
    failure(cause, late.node.as_ref(), late.evidence)
}

fn timed_out_hang(
    job: &JobInput,
    ranks: Option<u32>,
    (waiting, unnamed): (&BTreeSet<u64>, u64),
    place: &str,
    operation: &str,
) -> Failure {
    let silent: Vec<u64> =
        (0..u64::from(ranks.unwrap_or(0))).filter(|rank| !waiting.contains(rank)).collect();
    let waited = format!("ranks that timed out in {operation}: {}", waiting.len() as u64 + unnamed);
    match silent.as_slice() {
        // Silence is evidence only where most ranks wait.
        [rank, more @ ..] if silent.len() * 2 <= waiting.len() && unnamed == 0 => {
            let shown: Vec<String> = silent.iter().map(u64::to_string).collect();
            let which = if more.is_empty() { "rank" } else { "ranks" };
            let node = node_of(job, ranks, *rank);
            let is_same = more.iter().all(|other| node_of(job, ranks, *other) == node);
            let evidence = format!("{place}: {waited}; {which} {} never called it", shown.join(", "));
            failure(DESYNC, node.filter(|_| is_same), evidence)
        }
        _ => failure("collective-timeout", None, format!("{place}: {waited}")),
    }
}

/// A rank that reports NaN.
struct NanReport {
    rank: u64,
    device: Option<u64>,
    node: Option<String>,
    what: String,
}

/// `Rank 13: found NaN in local grad norm in backward pass ... Device: 5, node: p5-002`.
fn nan_rank(text: &str) -> Option<NanReport> {
    let (before, rest) = text.split_once(": found NaN in ")?;
    let rank = before.rsplit_once("Rank ")?.1.parse().ok()?;
    let field = |name: &str| {
        let (_, value) = rest.split_once(name)?;
        value.split([',', ' ', '\n', '\r']).find(|word| !word.is_empty())
    };
    let what = rest.split(['.', '\n']).next().unwrap_or_default().to_owned();
    let device = field("Device: ").and_then(|device| device.trim_end_matches('.').parse().ok());
    Some(NanReport { rank, device, node: field("node: ").map(str::to_owned), what })
}

fn report_nan(job: &JobInput, file: &InputFile, line: u64, named: &NanReport, output: &mut Output) {
    // Hosts name themselves with or without their domain.
    let host = named.node.as_deref().unwrap_or_default();
    let node = job.nodes.iter().find(|node| host == *node || host.split('.').next() == Some(node.as_str()));
    let why = format!("rank {}: found NaN in {}", named.rank, named.what);
    let mut finding = Finding::new(NAN_RANK, why.clone()).file(&file.shown).line(line);
    if let Some(node) = node {
        finding = finding.node(node.as_str());
    }
    if let Some(device) = named.device {
        finding = finding.part(format!("gpu{device}"));
    }
    output.findings.push(finding);
    output.failure = Some(failure("nan", node, format!("{}:{line}: {why}", file.shown)));
}
