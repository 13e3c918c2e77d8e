//! The output of nccl-tests, as text of every era or as the file that `-J` writes, as it stands and unjudged.
//! What the numbers mean for a verdict is `recipes::recipe::nccl_tests`'s business.
//!
//! Strict in what counts as a row, tolerant about all that surrounds it: launcher prefixes, NCCL's own log in the
//! middle of a row, colours, several runs in one file. What looks like a row and cannot be trusted is a finding:
//!
//! - `row-cut`: a row that ends early; `row-odd`: a row with cells that no version prints there;
//! - `not-a-number`: a row with NaN, infinity or a negative figure; `size-overflowed`: a size that wrapped around;
//! - `not-concluded`: rows, and no closing lines; `no-rows`: a head, and neither rows nor a failure;
//! - `line-too-long`: lines of which the end was left out; `read-in-part`: more than is held, and nothing behind it was read;
//! - `foreign-column`: a column that nccl-tests does not print; `interleaved-tables`: tables that ran at once, whose rows
//!   cannot be separated: none of them is returned;
//! - `nccl-warn`, `error-noted`: warnings of a run that ended well; `truncated-json`: a file that ends early;
//! - `bandwidth-disagrees`: a figure that does not follow from the others (made by `recompute`);
//! - `average-disagrees`, `rows-missing`, `wrong-disagrees`, `closing-odd`, `no-rows`: closing lines or a head that the rows do not bear out (made by
//!   `closing`).

mod cell;
mod closing;
mod failure;
mod head;
mod json;
mod line;
mod nccl_log;
mod recompute;
mod render;
mod row;
#[cfg(test)]
mod tests;
mod text;

pub use cell::element_bytes;
pub use closing::closing;
pub(crate) use failure::slurm_failure;
pub(super) use nccl_log::log_host;
pub use recompute::{ranks_from_ratio, ratio_matches, recompute, unlisted};
pub use render::render;

use crate::encoding;
use metric::finding::Finding;
use metric::finding_kinds;
use metric::op::Op;
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, BufRead, Read};

/// So much of a file is looked at beforehand: in which form it is, and which hosts it names.
const HEAD: usize = 4 << 20;

/// The same of bytes that are there.
pub fn read(bytes: &[u8], file: &str) -> Result<NcclTests, NotUnderstood> {
    read_stream(bytes, file).unwrap_or_else(|error| Err(NotUnderstood { reason: error.to_string() }))
}

/// Reads text or JSON, whichever it is, in bounded memory. `file` is how the file is called in findings.
pub fn read_stream(mut from: impl BufRead, file: &str) -> io::Result<Result<NcclTests, NotUnderstood>> {
    let mut head = Vec::new();
    from.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
    if let Some(reason) = encoding::refusal(&head) {
        return Ok(Err(NotUnderstood { reason: reason.to_owned() }));
    }
    let is_json = json::looks_like_it(&without_mark(&head));
    if is_json {
        from.by_ref().take((json::MOST_BYTES - HEAD) as u64).read_to_end(&mut head)?;
    }
    let is_whole = from.fill_buf()?.is_empty();
    let mut read = match is_json {
        // A line of JSON, or of Python, may stand before a log.
        true => match if is_whole { json::read(&without_mark(&head)) } else { Err(json::too_large()) } {
            Ok(read) => Ok(read),
            Err(why) => text::read(&head, is_whole, from)?.map_err(|_| why),
        },
        false => text::read(&head, is_whole, from)?,
    };
    for finding in read.iter_mut().flat_map(|read| &mut read.findings) {
        finding.file.get_or_insert_with(|| file.to_owned());
    }
    Ok(read)
}

/// Some editors put a mark before the first line.
fn without_mark(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes))
}

/// All that one file held.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct NcclTests {
    /// In the order in which they began; never empty.
    pub runs: Vec<NcclRun>,
    /// Of all runs, with the codes that this module's first lines list.
    pub findings: Vec<Finding>,
    /// Lines of the file, as far as it was read.
    pub lines: u64,
    /// Lines of nccl-tests or of NCCL, and failures.
    pub understood: u64,
}

/// Why nothing of nccl-tests is in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{reason}")]
pub struct NotUnderstood {
    /// For people, such as `the file is empty`.
    pub reason: String,
}

/// One start of one program. A file may hold several; they stay apart.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct NcclRun {
    /// As named by the program itself or by the command that started it.
    pub program: Option<String>,
    /// Nothing where no text says it; never guessed from the figures.
    pub op: Option<Op>,
    /// By its headings; in a text without any, bare text.
    pub format: Format,
    /// Such as `2.20.0 (b4d5bee)`; None in JSON and in texts of versions that print none.
    pub nccl_tests_version: Option<String>,
    /// Such as `2.9.1+cu129`, where PyTorch runs the collective.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pytorch_version: Option<String>,
    /// Such as `2.26.2`; from NCCL's own log with CUDA's: `2.26.2+cuda12.8`.
    pub nccl_version: Option<String>,
    /// None where no such line was seen.
    pub parameters: Option<Parameters>,
    /// Those that were listed; JSON lists one of each process.
    pub ranks: Vec<RankLine>,
    /// In the order in which they were printed.
    pub rows: Vec<Row>,
    /// Rows that were printed and cannot be read, or cannot be separated from another table's.
    #[serde(skip_serializing_if = "is_zero")]
    pub refused_rows: u64,
    /// The times are of the CPU (`-C`), so the bandwidths do not follow from them.
    pub cpu_time: bool,
    /// None where the run ended without this line.
    pub out_of_bounds: Option<OutOfBounds>,
    /// The mean over all rows and both placements, so it moves with the sizes asked for: kept to be shown, never to be
    /// judged or compared.
    pub average_busbw_gb_s: Option<f64>,
    /// Whether the closing lines were seen.
    pub concluded: bool,
    /// A closing line whose figure cannot be read.
    #[serde(skip)]
    pub odd_closing: Option<String>,
    /// Whether `Collective test starting` was seen, which versions print that print the next one.
    #[serde(skip)]
    pub has_start: bool,
    /// Whether `Collective test concluded` was seen.
    #[serde(skip)]
    pub has_end: bool,
    /// None where nothing failed, or nothing says what did.
    pub failure: Option<Failure>,
}

// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Which form of output it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Rows without headings.
    #[default]
    BareText,
    /// Up to 2.11: the largest error instead of a count, and only the columns that the operation has.
    ErrorText,
    /// 2.13 to 2.17.2.
    WrongText,
    /// Since 2.17.3.
    WideText,
    /// The file of `-J`; its version 1 says no version.
    Json {
        /// The number in the file, 1 where it has none.
        version: u32,
    },
}

/// The line `# nThread ...`, or `config` in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Parameters {
    /// Threads of a process (`-t`).
    pub threads: Option<u64>,
    /// GPUs of a thread (`-g`).
    pub gpus_per_thread: Option<u64>,
    /// The smallest size (`-b`).
    pub min_bytes: Option<u64>,
    /// The largest size (`-e`), or what memory allowed.
    pub max_bytes: Option<u64>,
    /// From one size to the next.
    pub step: Option<Step>,
    /// Iterations before those that are timed (`-w`).
    pub warmup: Option<u64>,
    /// Timed iterations of a size (`-n`).
    pub iterations: Option<u64>,
    /// Operations in one iteration (`-m`).
    pub agg_iterations: Option<u64>,
    /// Iterations whose results are checked (`-c`); 0 checks none.
    pub validation: Option<u64>,
    /// Launches of a CUDA graph (`-G`); 0 captures none.
    pub graph: Option<u64>,
}

/// How the sizes of a sweep follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Each is the one before times this (`-f`).
    Factor(u64),
    /// Each is the one before plus this (`-i`).
    Bytes(u64),
}

/// One rank under `# Using devices`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RankLine {
    /// From 0, over all processes.
    pub rank: u32,
    /// Nothing before groups existed.
    pub group: Option<u32>,
    /// Process id on the host.
    pub pid: u64,
    /// As the rank itself names it.
    pub host: String,
    /// CUDA device index, in the process.
    pub device: u32,
    /// Such as `0000:0b:00`, in old versions `0x00`.
    pub bus_id: String,
    /// The model of the GPU, such as `NVIDIA H100 80GB HBM3`.
    pub name: String,
}

/// One size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// In bytes, as printed; bandwidths follow from it.
    pub size_bytes: u64,
    /// The column `count`: elements, of some operations those of one rank.
    pub count: u64,
    /// The column `type`, such as `float`.
    pub dtype: String,
    /// Nothing where the operation reduces nothing (`none`).
    pub redop: Option<String>,
    /// Nothing where the operation has no root (`-1`).
    pub root: Option<i64>,
    /// None where its cells are `N/A`, or null in JSON.
    pub out_of_place: Option<Half>,
    /// None where its cells are `N/A` or have no columns, or null in JSON.
    pub in_place: Option<Half>,
    /// Such as `2025-01-31 12:00:00`; None without such a column, and in JSON.
    pub timestamp: Option<String>,
    /// One-based; of a row in pieces, where it began. In JSON always 1.
    pub line: u64,
}

/// One placement of one size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Half {
    /// Microseconds of one operation; of the CPU where `NcclRun::cpu_time` is set.
    pub time_us: f64,
    /// Size over time, in 10^9 bytes per second.
    pub algbw_gb_s: f64,
    /// In 10^9 bytes per second: algbw times the factor of operation and ranks.
    pub busbw_gb_s: f64,
    /// Of the column `#wrong` or `error`.
    pub wrong: Wrong,
    /// None without `-I`.
    pub iterations: Option<IterStats>,
    /// Of the three figures above.
    pub rounding: Rounding,
}

/// Half a unit of the last digit printed: the truth lies this far away at most.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rounding {
    /// Microseconds.
    pub time_us: f64,
    /// In 10^9 bytes per second.
    pub algbw_gb_s: f64,
    /// In 10^9 bytes per second.
    pub busbw_gb_s: f64,
}

/// Result of the check of one placement's data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wrong {
    /// Elements that came out wrong, rounded to six digits in print.
    Count(f64),
    /// The largest deviation (up to 2.11), whose bound is not printed.
    MaxError(f64),
    /// Checking was off: `N/A`.
    NotChecked,
}

/// The columns of `-I`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct IterStats {
    /// The shortest iteration, in microseconds.
    pub min_us: f64,
    /// The longest iteration, in microseconds.
    pub max_us: f64,
    /// The 99th percentile of iterations, in microseconds.
    pub p99_us: f64,
    /// Coefficient of variation, in percent.
    pub cv_pct: f64,
}

/// The line `# Out of bounds values`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OutOfBounds {
    /// Of tables with wrong values, not of the values.
    pub count: u64,
    /// As printed: `OK` or `FAILED`.
    pub ok: bool,
}

finding_kinds! {
    /// Rows that are left out because they are damaged.
    pub enum RowFinding {
        /// It is incomplete.
        Cut = "row-cut": Garbled,
        /// It has other cells than its table.
        Odd = "row-odd": Garbled,
        /// A value is not a number.
        NotANumber = "not-a-number": Garbled,
    }
}

/// Why a run came to nothing, or to wrong data: the first cause, not the last complaint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The kind of failure.
    pub class: FailureClass,
    /// For people: the line, or in JSON a sentence; at most 400 characters.
    pub cause: String,
    /// One-based; in JSON always 1.
    pub line: u64,
    /// The host that the line names, where it names one.
    pub node: Option<String>,
}

/// Kinds of failures, in kebab case in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureClass {
    /// Data came out wrong.
    OutOfBounds,
    /// Below the bandwidth that `NCCL_TESTS_MIN_BW` asked for.
    BelowMinimum,
    /// libfabric or a network plugin was asked for and not found.
    NetworkNotFound,
    /// A peer closed, refused or reset a connection, or exited.
    ConnectionLost,
    /// A call of CUDA failed, for another reason than memory.
    CudaError,
    /// The GPU's or the host's memory, or the kernel's OOM killer.
    OutOfMemory,
    /// `No space left on device`, usually `/dev/shm`.
    NoSpace,
    /// NCCL's own error without a better reason.
    NcclError,
    /// A watchdog or `-T`.
    TimedOut,
    /// The scheduler's limit.
    TimeLimit,
    /// Slurm reports that a node failed.
    NodeFailure,
    /// Slurm cancelled the step, for no limit and no node failure.
    Cancelled,
    /// Ended by a signal.
    Signal,
    /// The program or MPI aborted: `terminate called`, `Aborted`, `MPI_ABORT`.
    Aborted,
    /// Ended with an exit code, and nothing said why.
    Exited,
    /// The program did not start, or refused its options or devices.
    NotStarted,
}

impl FailureClass {
    /// As in JSON.
    pub fn name(self) -> &'static str {
        match self {
            FailureClass::OutOfBounds => "out-of-bounds",
            FailureClass::BelowMinimum => "below-minimum",
            FailureClass::NetworkNotFound => "network-not-found",
            FailureClass::ConnectionLost => "connection-lost",
            FailureClass::CudaError => "cuda-error",
            FailureClass::OutOfMemory => "out-of-memory",
            FailureClass::NoSpace => "no-space",
            FailureClass::NcclError => "nccl-error",
            FailureClass::TimedOut => "timed-out",
            FailureClass::TimeLimit => "time-limit",
            FailureClass::NodeFailure => "node-failure",
            FailureClass::Cancelled => "cancelled",
            FailureClass::Signal => "signal",
            FailureClass::Aborted => "aborted",
            FailureClass::Exited => "exited",
            FailureClass::NotStarted => "not-started",
        }
    }
}
