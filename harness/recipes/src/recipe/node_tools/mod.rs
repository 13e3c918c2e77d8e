//! Programs that test one node by itself: DCGM's diagnosis, nvbandwidth, gpu-burn, STREAM, fio. One recipe for each.

mod dcgm_diag;
mod fio;
mod gpu_burn;
mod gpu_state;
mod nvbandwidth;
mod stream;
#[cfg(test)]
mod tests;

use super::shared_findings::FileFinding;
use super::{Failure, FileRole, InputFile, JobInput, Output, RecipeSpec, bytes_of};
use metric::finding::Finding;
use metric::finding_kinds;
use metric::{Dim, Dims};

pub(super) const SPECS: [RecipeSpec<'static>; 6] =
    [dcgm_diag::SPEC, nvbandwidth::SPEC, gpu_burn::SPEC, stream::SPEC, fio::SPEC, gpu_state::SPEC];

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

/// The text of that file.
fn text_of(file: &InputFile, output: &mut Output) -> Option<String> {
    bytes_of(file, output).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
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

/// A finding about the node, or about one of its GPUs.
fn about(job: &JobInput, file: &InputFile, code: &str, gpu: Option<u32>, message: String) -> Finding {
    let finding = Finding::new(code, message).file(&file.shown);
    let finding = match job.nodes.first() {
        Some(node) => finding.node(node.as_str()),
        None => finding,
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
