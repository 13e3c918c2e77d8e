//! Why a training failed by its own messages: an exception of a rank, or a failed rendezvous. Only an error of the hardware
//! or a signal blames a node. An exception of the program has no culprit, and after a failed rendezvous either end may be
//! at fault.

use super::{Failure, JobInput, failure, named_node, node_of};
use crate::recipe::training_log::TrainingFinding;
use logs::torch_failure::Account;

/// The failure that torch itself reports, if any. `shown` is the file that the lines stand in.
pub(crate) fn failed_by(
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
