//! Why a training failed by its own messages: an exception of a rank, or a failed rendezvous. Only an error of the hardware
//! or a signal blames a node. An exception of the program has no culprit, and after a failed rendezvous either end may be
//! at fault.

use super::{Failure, InputFile, JobInput, failure, named_node, node_of};
use crate::recipe::training_log::TrainingFinding;
use logs::torch_failure::{Account, CLOSE_MS};

/// Why the job failed, as one file of it has it.
pub(super) struct Raised<'a> {
    failure: Failure,
    /// By a root cause, or a rendezvous that was given up.
    is_sure: bool,
    is_victim: bool,
    time_ms: Option<i64>,
    by: Option<&'a str>,
}

impl<'a> Raised<'a> {
    pub(super) fn new(
        job: &JobInput,
        ranks: Option<u32>,
        account: &Account,
        file: &'a InputFile,
    ) -> Option<Raised<'a>> {
        let failure = failed_by(job, ranks, account, &file.shown, file.node.as_ref())?;
        let is_sure =
            account.root_cause.is_some() || account.failed_rendezvous().is_some_and(|met| !met.is_warning);
        let time_ms = account.root_cause.as_ref().and_then(|cause| cause.time_ms);
        let (is_victim, by) = (account.is_of_victim(), file.node.as_deref());
        Some(Raised { failure, is_sure, is_victim, time_ms, by })
    }
}

/// The first failure of all files. Where nodes have files of their own, the torchrun of each reports how its own ranks ended,
/// also where it killed them itself because those of another node had failed. No node is named where another one may have
/// been first.
pub(super) fn first_failure(mut all: Vec<Raised<'_>>) -> Option<Failure> {
    all.sort_by_key(|it| (!it.is_sure, it.is_victim, it.time_ms.unwrap_or(i64::MAX)));
    let mut all = all.into_iter();
    let mut first = all.next()?;
    let is_rival = |other: Raised<'_>| {
        let is_close = match (first.time_ms, other.time_ms) {
            (Some(one), Some(two)) => two.saturating_sub(one) <= CLOSE_MS,
            _ => true,
        };
        match first.failure.cause.as_str() {
            GPU_ERROR => other.failure.cause == GPU_ERROR && other.failure.node != first.failure.node,
            // torchrun may have been ended before it reported the rank whose GPU failed.
            _ if other.failure.cause == GPU_ERROR => other.by != first.by,
            _ => other.is_sure && !other.is_victim && other.by != first.by && is_close,
        }
    };
    let has_rival = all.any(is_rival);
    if has_rival {
        first.failure.node = None;
    }
    Some(first.failure)
}

/// The failure that torch itself reports, if any. `shown` is the file that the lines stand in.
fn failed_by(
    job: &JobInput,
    ranks: Option<u32>,
    account: &Account,
    shown: &str,
    by: Option<&String>,
) -> Option<Failure> {
    if let Some(met) = account.failed_rendezvous() {
        let said = &met.said;
        let ends = met.to.as_ref().map(|(host, port)| {
            let from = by
                .cloned()
                .or_else(|| other_end(job, host))
                .unwrap_or_else(|| "a node of the job".to_owned());
            format!("{from} did not reach {host}:{port}: ")
        });
        let evidence = format!("{shown}:{}: {}{}", said.line, ends.unwrap_or_default(), said.text);
        return Some(failure(RENDEZVOUS, None, evidence));
    }
    let cause = account.root_cause.as_ref();
    let host = cause.and_then(|cause| named_node(job, cause.host.as_deref()?));
    // Other ranks are where their numbers say only if the root cause is.
    let home = |rank: Option<u64>| match (rank, cause.and_then(|cause| cause.rank)) {
        (Some(rank), Some(known)) if rank != known => {
            let is_in_order = host.is_some() && node_of(job, ranks, known) == host;
            if is_in_order { node_of(job, ranks, rank) } else { None }
        }
        (Some(_), None) => None,
        _ => host,
    };
    let signal = cause.and_then(|cause| cause.exit_code).filter(|code| *code < 0);
    let who = |rank: Option<u64>| {
        let shown = rank.map_or_else(|| "a rank".to_owned(), |rank| format!("rank {rank}"));
        home(rank).map_or_else(|| shown.clone(), |node| format!("{shown} on {node}"))
    };
    // Who lost a peer knows less than how that one ended.
    let exception = account.first_exception();
    let exception =
        exception.filter(|(_, said)| signal.is_none_or(|code| !is_crash(code)) || !said.is_of_lost_peer());
    match (exception, signal) {
        (Some((rank, said)), _) => {
            let evidence = format!("{shown}:{}: {}: {}", said.line, who(rank), said.text);
            let sign = hardware_error(&said.text);
            // What fails alike on several nodes is not the hardware of one.
            let is_elsewhere = account.exceptions.iter().any(|(other, it)| {
                other.is_some() && hardware_error(&it.text) == sign && home(*other) != home(rank)
            });
            match sign {
                Some(_) if !is_elsewhere => Some(failure(GPU_ERROR, home(rank), evidence)),
                _ => Some(failure(EXCEPTION, None, evidence)),
            }
        }
        (None, Some(signal)) => {
            let cause = cause?;
            let evidence =
                format!("{shown}:{}: {} was killed by signal {}", cause.line, who(cause.rank), -signal);
            match is_crash(signal) {
                true => {
                    let others = account.rivals.iter().map(|other| {
                        let name = other.host.as_deref().unwrap_or("another host");
                        format!(
                            "; {name} reports a failure within 5 s of it, exit code {}",
                            other.exit_code.unwrap_or_default()
                        )
                    });
                    let evidence = evidence + &others.take(3).collect::<String>();
                    Some(failure("rank-died", host.filter(|_| account.rivals.is_empty()), evidence))
                }
                false => Some(failure(EXCEPTION, None, evidence)),
            }
        }
        (None, None) => None,
    }
}

/// Cause: a failed rendezvous; it has no culprit.
pub(super) const RENDEZVOUS: &str = TrainingFinding::Rendezvous.code();
/// Cause: an exception of the program; it has no culprit.
pub const EXCEPTION: &str = TrainingFinding::Exception.code();
pub(super) const GPU_ERROR: &str = "gpu-error";

/// SIGBUS, SIGKILL and SIGSEGV. An abort is the program's own act, and any other signal is sent by somebody.
fn is_crash(exit_code: i64) -> bool {
    [-7, -9, -11].contains(&exit_code)
}

/// The sign of a GPU or of its links at fault. All other CUDA errors may be the program's: an index out of range, an illegal
/// address, a full GPU, more ranks than GPUs, a wheel without code for this GPU. So may a launch that failed for no reason
/// given, and a corrupt stack: CUDA's documentation names a kernel that leaves its memory first. A GPU is busy or unavailable
/// while another process holds it in an exclusive mode. Programs say of NVLink that they need it.
fn hardware_error(text: &str) -> Option<&'static str> {
    const SIGNS: [&str; 7] = [
        "uncorrectable",
        "ECC error",
        "GPU has fallen off",
        "Xid",
        "NVLink error",
        "system not yet initialized",
        "CUDA error: unknown error",
    ];
    SIGNS.into_iter().find(|sign| text.contains(sign))
}

fn other_end(job: &JobInput, host: &str) -> Option<String> {
    let others: Vec<&String> = job.nodes.iter().filter(|node| *node != host).collect();
    match others.as_slice() {
        [one] => Some((*one).clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{FACTS, block};
    use super::super::{FileRole, SPEC, Workload};
    use super::*;

    #[test]
    fn the_node_that_failed_first_counts_where_nodes_have_files_of_their_own() {
        let failed = |texts: [&str; 2]| {
            let folder = tempfile::tempdir().expect("a folder");
            let file = |(node, text): (&str, &str)| {
                let path = folder.path().join(node);
                std::fs::write(&path, text).expect("written");
                let (shown, node) = (format!("raw/j/stderr.{node}"), Some(node.to_owned()));
                InputFile { role: FileRole::Stderr, path, shown, node, part: None, rank: None }
            };
            let files = ["n1", "n2"].into_iter().zip(texts).map(file).collect();
            let workload = Workload::Training { facts: FACTS, ranks: 16 };
            let blank = crate::recipe::testing::job(workload, &[], |_| "n1".into(), 0);
            let nodes = vec!["n1".into(), "n2".into()];
            let output = (SPEC.run)(&JobInput { files, nodes, exit_code: Some(1), ..blank });
            let failure = output.failure.expect("reported");
            (failure.cause, failure.node)
        };
        let expected = |cause: &str, node: Option<&str>| (cause.to_owned(), node.map(str::to_owned));
        let raised = |rank: u64, why: &str, host: &str, second: u64| {
            format!("[rank{rank}]: {why}\n{}", block(1, host, rank, second))
        };
        // torchrun of n1 killed its ranks, because those of n2 had failed.
        let killed = block(-9, "n1", 3, 50);
        let gpu = raised(9, "RuntimeError: CUDA error: uncorrectable ECC error encountered", "n2", 10);
        assert_eq!(failed([&killed, &gpu]), expected("gpu-error", Some("n2")));
        let program = raised(9, "KeyError: 'input_ids'", "n2", 10);
        assert_eq!(failed([&killed, &program]), expected("exception", None));
        // Which was first is not known.
        assert_eq!(failed([&killed, &block(-9, "n2", 9, 52)]), expected("rank-died", None));
        let lost = "torch.distributed.DistBackendError: NCCL error: Connection closed by remote peer n1";
        assert_eq!(failed([&killed, &raised(9, lost, "n2", 52)]), expected("rank-died", Some("n1")));
        let unreported = "[rank9]: RuntimeError: CUDA error: uncorrectable ECC error encountered\n";
        assert_eq!(failed([&killed, unreported]), expected("rank-died", None));
        // The same error on both is not the hardware of one.
        let both = raised(3, "RuntimeError: CUDA error: uncorrectable ECC error encountered", "n1", 9);
        assert_eq!(failed([&both, &gpu]), expected("gpu-error", None));
    }
}
