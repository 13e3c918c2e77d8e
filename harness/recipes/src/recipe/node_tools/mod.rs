//! Programs that test one node by itself, or the NICs between two: DCGM's diagnosis, nvbandwidth, gpu-burn, STREAM, stress-ng,
//! fio, fi_pingpong, iperf3; and GPUs that Slurm gives to steps. One recipe for each.

pub(super) mod dcgm_diag;
pub(super) mod fio;
pub(super) mod gpu_allocation;
pub(super) mod gpu_burn;
pub(super) mod gpu_state;
pub mod growing;
mod host_state;
pub(super) mod iperf3;
pub mod nic_latency;
pub(super) mod nvbandwidth;
pub mod onset;
pub(super) mod stream;
pub(super) mod stress_ng;
#[cfg(test)]
mod tests;

use super::shared_findings::FileFinding;
use super::{Failure, FileRole, InputFile, JobInput, Output, bytes_of};
use metric::finding::Finding;
use metric::finding_kinds;
use metric::{Dim, Dims};

finding_kinds! {
    /// Of a program that tests a node.
    pub(crate) enum ToolFinding {
        /// It ended with an error, and printed no result.
        Failed = "tool-failed": NoPlace,
        /// Part of its result is missing, for the reason that it prints.
        NotMeasured = "tool-not-measured": NoNumber,
    }
}

/// What one node printed, and the dimensions of its numbers; nothing where the job has more nodes than one.
fn printed(job: &JobInput) -> Option<(&InputFile, Dims)> {
    let [node] = job.nodes.as_slice() else { return None };
    let file = job.files_of(FileRole::Stdout).next()?;
    Some((file, job.dims().with(Dim::Node, node.as_str())))
}

/// What the nodes of a job printed together. Where each has an output of its own, only that of the client has results.
fn client_text<'a>(job: &'a JobInput, output: &mut Output) -> Option<(&'a InputFile, String)> {
    let (mut text, mut first) = (String::new(), None);
    for file in job.files_of(FileRole::Stdout) {
        let Some(bytes) = bytes_of(file, output) else { continue };
        text.push_str(&String::from_utf8_lossy(&bytes));
        text.push('\n');
        first.get_or_insert(file);
    }
    Some((first?, text))
}

/// What a reader makes of all that one node printed.
fn read_text<'a, T>(
    job: &'a JobInput,
    output: &mut Output,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Option<(&'a InputFile, Dims, T)> {
    let (file, dims) = printed(job)?;
    let bytes = bytes_of(file, output)?;
    let result = result(job, file, read(&String::from_utf8_lossy(&bytes)), output)?;
    Some((file, dims, result))
}

/// The result that was read, or what is said of its absence: with an error code it is the program's failure.
fn result<T>(job: &JobInput, file: &InputFile, read: Result<T, String>, output: &mut Output) -> Option<T> {
    match read {
        Ok(result) => Some(result),
        Err(why) => {
            if job.exit_code.is_some_and(|code| code != 0) {
                let evidence = format!("{}: {why}", file.shown);
                output.failure =
                    Some(Failure { cause: ToolFinding::Failed.code().to_owned(), node: None, evidence });
            }
            output.findings.push(about(job, file, FileFinding::NotUnderstood.code(), None, why));
            None
        }
    }
}

/// A finding about the node, or about one of its GPUs; between two nodes it is of neither.
fn about(job: &JobInput, file: &InputFile, code: &str, gpu: Option<u32>, message: String) -> Finding {
    let finding = Finding::new(code, message).file(&file.shown);
    let finding = match job.nodes.as_slice() {
        [node] => finding.node(node.as_str()),
        _ => finding,
    };
    match gpu {
        Some(gpu) => finding.part(format!("gpu{gpu}")),
        None => finding,
    }
}

/// How far into a run something began, for a message.
fn after(seconds: f64) -> String {
    if seconds < 120.0 { format!("after {seconds:.0} s") } else { format!("after {:.0} min", seconds / 60.0) }
}
