//! Why a training failed by its own messages: an exception of a rank, or a failed rendezvous. Only a GPU error or a
//! signal blames a node. An exception of the program has no culprit, and after a failed rendezvous either end may be at
//! fault.

use super::{Failure, JobInput, failure};
use crate::recipe::training_log::TrainingFinding;
use logs::torch_failure::Account;

/// The failure that torch itself reports, if any. `shown` is the file that the lines stand in.
pub(crate) fn failed_by(
    job: &JobInput,
    account: &Account,
    shown: &str,
    by: Option<&String>,
) -> Option<Failure> {
    if let Some(met) = &account.rendezvous {
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
    let node = cause.and_then(|cause| node_of(job, cause.host.as_deref()?));
    let signal = cause.and_then(|cause| cause.exit_code).filter(|code| *code < 0);
    let who = |rank: Option<u64>| {
        let rank = rank.map_or_else(|| "a rank".to_owned(), |rank| format!("rank {rank}"));
        node.map_or_else(|| rank.clone(), |node| format!("{rank} on {node}"))
    };
    match (account.first_exception(), signal) {
        (Some((rank, said)), _) => {
            let evidence = format!("{shown}:{}: {}: {}", said.line, who(rank), said.text);
            match is_hardware_error(&said.text) {
                true => Some(failure(GPU_ERROR, node, evidence)),
                false => Some(failure(EXCEPTION, None, evidence)),
            }
        }
        (None, Some(signal)) => {
            let cause = cause?;
            let evidence =
                format!("{shown}:{}: {} was killed by signal {}", cause.line, who(cause.rank), -signal);
            Some(failure("rank-died", node, evidence))
        }
        (None, None) => None,
    }
}

/// Cause: a failed rendezvous; it has no culprit.
pub(super) const RENDEZVOUS: &str = TrainingFinding::Rendezvous.code();
/// Cause: an exception of the program; it has no culprit.
pub const EXCEPTION: &str = TrainingFinding::Exception.code();
const GPU_ERROR: &str = "gpu-error";

/// Signs of a GPU or of its links; a program that asks for too much memory is none.
fn is_hardware_error(text: &str) -> bool {
    let signs = ["CUDA error", "uncorrectable", "ECC error", "NVLink", "Xid", "unspecified launch failure"];
    signs.iter().any(|sign| text.contains(sign)) && !text.contains("out of memory")
}

/// Hosts name themselves with or without their domain.
fn node_of<'a>(job: &'a JobInput, host: &str) -> Option<&'a String> {
    job.nodes.iter().find(|node| host == *node || host.split('.').next() == Some(node.as_str()))
}

fn other_end(job: &JobInput, host: &str) -> Option<String> {
    let others: Vec<&String> = job.nodes.iter().filter(|node| *node != host).collect();
    match others.as_slice() {
        [one] => Some((*one).clone()),
        _ => None,
    }
}
