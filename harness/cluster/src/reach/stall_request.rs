//! What a node is asked while a job stalls: its ranks for dumps of PyTorch's flight recorder, and NCCL's RAS for a report of
//! all ranks. Both are waited for, with a limit, and what became of them is left as files in the job's folder.

use super::Command;
use job::flight_recorder::{DUMP, PIPE, PIPE_ENDS};
use job::ras::{ASKED, PORT};
use model::artefact::{FileKind, PlannedJob};
use std::fmt::Write;
use std::time::Duration;

/// A request, as a node runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StallRequest<'a> {
    /// The job's.
    pub folder: &'a str,
    /// Nothing where Slurm says on each node which it is.
    pub node: Option<&'a str>,
    /// What RAS is asked for.
    pub ras: Ras,
}

/// What a node does about RAS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ras {
    /// Nothing of it is wanted.
    Off,
    /// It leaves its addresses.
    Addresses,
    /// It leaves its addresses and two reports; where Slurm starts it, its first nodes do.
    Reports,
}

/// What became of the request for one rank of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankDump {
    /// Of the whole job.
    pub rank: u32,
    /// Of its dump; nothing where it left none in time.
    pub bytes: Option<u64>,
}

/// A rank looks into its pipe every second.
const TAKEN_WITHIN_S: u64 = 5;
/// And then writes some MiB at most.
const WRITTEN_WITHIN_S: u64 = 10;
/// RAS collects for 10 s at most.
const REPORTED_WITHIN_S: u64 = 12;
/// Between two reports: what differs in one alone may be on its way.
const BETWEEN_S: u64 = 3;
/// Starting and connecting take their own time. RAS is asked while the dumps are written.
const LIMIT: Duration = Duration::from_secs(2 * (REPORTED_WITHIN_S + GREETED_WITHIN_S) + BETWEEN_S + 15);
/// Three lines, each answered within 3 s.
const GREETED_WITHIN_S: u64 = 9;
/// 12 communicators of 1024 ranks in JSON. Two reports are a file, which is read up to 16 MiB.
const MOST_BYTES: u64 = 7 << 20;
const NAME: &str = "harness-stall-request";
/// Stands for the name of the node where Slurm starts it.
const BY_SLURM: &str = "-";

/// The folder is shared, and a pipe is not: a byte that is taken out of one was taken by a rank of this node, which is how it
/// is known to be here. A pipe that is opened to read and to write never blocks. A port on which another user listens is
/// left alone.
const SCRIPT: &str = include_str!("stall_request.sh");

impl<'a> StallRequest<'a> {
    /// What is asked of each node of a job, in their order.
    pub(crate) fn for_nodes(job: &'a PlannedJob) -> impl Iterator<Item = (&'a str, StallRequest<'a>)> {
        let has_ras = StallRequest::has_ras(job);
        job.nodes.iter().enumerate().map(move |(at, node)| {
            let ras = match has_ras {
                false => Ras::Off,
                true if at < ASKED => Ras::Reports,
                true => Ras::Addresses,
            };
            (node.as_str(), StallRequest { folder: &job.folder, node: Some(node), ras })
        })
    }

    /// What is asked of all nodes of a job by one step of Slurm.
    pub(crate) fn by_slurm(job: &'a PlannedJob) -> StallRequest<'a> {
        let ras = if StallRequest::has_ras(job) { Ras::Reports } else { Ras::Off };
        StallRequest { folder: &job.folder, node: None, ras }
    }

    /// Whether a stall of the job is asked about at all.
    pub(crate) fn has_any(job: &PlannedJob) -> bool {
        StallRequest::has_ras(job) || job.expected.iter().any(|file| file.kind == FileKind::FlightDump)
    }

    fn has_ras(job: &PlannedJob) -> bool {
        job.expected.iter().any(|file| file.kind == FileKind::Ras)
    }

    /// What a node runs.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let node = self.node.unwrap_or(BY_SLURM);
        let port = PORT.to_string();
        let numbers =
            [TAKEN_WITHIN_S, WRITTEN_WITHIN_S, REPORTED_WITHIN_S, BETWEEN_S, MOST_BYTES, ASKED as u64];
        let words =
            ["bash", "-c", SCRIPT, NAME, self.folder, node, self.ras.word(), DUMP, PIPE, PIPE_ENDS, &port];
        words.map(str::to_owned).into_iter().chain(numbers.map(|number| number.to_string())).collect()
    }

    /// These arguments, or others that run them.
    pub(crate) fn command(argv: Vec<String>) -> Command {
        Command::new(argv, LIMIT)
    }

    /// The request that an argument list makes, by the very script; nothing where it is any other.
    pub fn read<S: AsRef<str>>(argv: &'a [S]) -> Option<StallRequest<'a>> {
        let words: Vec<&str> = argv.iter().map(AsRef::as_ref).collect();
        let ["bash", "-c", SCRIPT, NAME, folder, node, ras, ..] = words.as_slice() else { return None };
        let ras = [Ras::Off, Ras::Addresses, Ras::Reports].into_iter().find(|known| known.word() == *ras)?;
        Some(StallRequest { folder, node: Some(*node).filter(|node| *node != BY_SLURM), ras })
    }

    /// The request within a step that srun starts in a job that runs: the job's id, and the request.
    pub fn read_step<S: AsRef<str>>(argv: &'a [S]) -> Option<(&'a str, StallRequest<'a>)> {
        let at = argv.iter().position(|word| word.as_ref() == "bash").filter(|at| *at > 0)?;
        let (options, inner) = argv.split_at(at);
        let is_step =
            options.first()?.as_ref() == "srun" && options.iter().any(|word| word.as_ref() == "--overlap");
        let id =
            options.iter().find_map(|word| word.as_ref().strip_prefix("--jobid=")).filter(|_| is_step)?;
        Some((id, StallRequest::read(inner)?))
    }
}

impl Ras {
    fn word(self) -> &'static str {
        match self {
            Ras::Off => "off",
            Ras::Addresses => "addresses",
            Ras::Reports => "reports",
        }
    }
}

/// The file that is left on a node of its dumps.
pub fn render(node: &str, ranks: &[RankDump]) -> String {
    let mut text = format!("node {node}\n");
    for RankDump { rank, bytes } in ranks {
        // Infallible: writing to a string.
        let _ = writeln!(text, "rank {rank} {}", bytes.unwrap_or_default());
    }
    text
}

#[cfg(test)]
#[path = "stall_request_tests.rs"]
mod tests;
