//! How a job ended, as its launcher reports it or as the harness ended it.

use serde::{Deserialize, Serialize};

/// The cause of what was not launched for a node that was left out.
pub const LEFT_OUT: &str = "left-out";
/// The cause of a job that was not launched, since its run had stopped or a case that it needs had failed.
pub const NOT_RUN: &str = "not-run";
/// The cause where the user may write no more: it hits every node alike, and none is at fault.
pub const DISK_QUOTA: &str = "disk-quota";
/// The cause where a program or a library is not installed: the node has to be set up, and none of its parts is bad.
pub const TOOL_MISSING: &str = "tool-missing";
/// The cause where docker or podman did not start the container of a job on a node: the program did not begin.
pub const CONTAINER_FAILED: &str = "container-failed";
/// The cause where srun knows no such MPI: it refuses the step before any node has to do with it.
pub const MPI_REFUSED: &str = "mpi-refused";
/// The cause where a node took the permission of a step for too old: by its clock, the controller's, or a slow controller.
pub const CREDENTIAL_EXPIRED: &str = "credential-expired";
/// The cause where srun never started the step of the workload: another step of the job held what it asked for.
pub const STEP_NOT_STARTED: &str = "step-not-started";
/// The cause where a disk is full: it has to be cleared, and says nothing about the node's hardware.
pub const DISK_FULL: &str = "disk-full";

/// How a job ended, as far as the launcher knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "kebab-case")]
pub enum Ended {
    /// The script ran to its end.
    Exited {
        /// The script's exit code; over SSH the highest of those that failed first.
        code: i32,
    },
    /// A signal ended it.
    Killed {
        /// As Slurm reports it; 9 where a local process left no exit code.
        signal: i32,
    },
    /// Over its time limit: ended by the harness or by Slurm.
    TimeLimit {
        /// The job's limit, in seconds from its start.
        limit_s: u64,
    },
    /// It made no progress for so long: no output, no counter that moved. Ended by the harness before its time limit.
    Stall {
        /// The case's `stall_s`, in seconds.
        stall_s: u64,
        /// The last line that it printed.
        last: String,
    },
    /// Slurm's NODE_FAIL, or a process over SSH that vanished without an exit status.
    NodeFail,
    /// A node did not come up for it.
    BootFail,
    /// Slurm's OUT_OF_MEMORY; over ssh and in pods the kernel's count of what it ended for memory.
    OutOfMemory,
    /// Slurm's PREEMPTED.
    Preempted,
    /// The launcher put it back into the queue after it had started: what it had measured would be measured again.
    Requeued {
        /// Slurm's reason for waiting again.
        reason: String,
    },
    /// It would not have ended by the moment that it was given.
    Deadline,
    /// By somebody else.
    Cancelled,
    /// It had not ended when the allocation that it shared with other jobs came to its own time limit.
    AllocationOver {
        /// The allocation's limit, in seconds.
        limit_s: u64,
    },
    /// It never started.
    QueueStuck {
        /// The last reason that Slurm gave for waiting.
        reason: String,
    },
    /// The launcher refused it, or it was never started on a node.
    LaunchFailed {
        /// What the launcher or node reported.
        why: String,
    },
    /// What it needs could not be put into the folder that this machine shares with the nodes: the fault of none of them.
    FolderFailed {
        /// The error of the file system or of the copy.
        why: String,
    },
    /// A host gave no answer: it could not be launched there, or nothing more was heard of it.
    HostUnreachable {
        /// The error of SSH, or for how long there was no answer.
        why: String,
    },
    /// The launcher did not answer for longer than could be waited for.
    Lost {
        /// Which answer or exit status is missing.
        why: String,
    },
    /// The run was interrupted, or its own limit passed.
    Interrupted {
        /// What stopped the run.
        why: String,
    },
    /// Never launched: a node of it was left out of the run.
    LeftOut {
        /// The node that was left out.
        node: String,
        /// What the probe or the earlier case showed of that node.
        why: String,
        /// The case after which it was quarantined.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
    },
    /// Never launched.
    NotRun {
        /// What kept it from being launched.
        why: String,
    },
}

impl Ended {
    /// Whether it is reported unchanged even where the harness had asked the job to end meanwhile.
    pub fn is_of_its_own(&self) -> bool {
        matches!(
            self,
            Ended::NodeFail
                | Ended::BootFail
                | Ended::OutOfMemory
                | Ended::Preempted
                | Ended::HostUnreachable { .. }
        )
    }

    /// Whether the cluster itself ended it, whatever it ran: not its own exit, a limit, a person, nor a launch that was
    /// refused and would be again.
    pub fn is_infrastructure(&self) -> bool {
        matches!(
            self,
            Ended::NodeFail
                | Ended::BootFail
                | Ended::Preempted
                | Ended::Requeued { .. }
                | Ended::HostUnreachable { .. }
                | Ended::Lost { .. }
        )
    }

    /// The cause in a word, as a culprit's evidence begins with it.
    pub fn cause(&self) -> String {
        match self {
            Ended::Exited { code } => format!("exit {code}"),
            Ended::Killed { signal } => format!("signal {signal}"),
            Ended::TimeLimit { .. } => "hang".to_owned(),
            Ended::Stall { .. } => "stall".to_owned(),
            Ended::NodeFail => "NODE_FAIL".to_owned(),
            Ended::BootFail => "BOOT_FAIL".to_owned(),
            Ended::OutOfMemory => "OUT_OF_MEMORY".to_owned(),
            Ended::Preempted => "PREEMPTED".to_owned(),
            Ended::Requeued { .. } => "REQUEUED".to_owned(),
            Ended::Deadline => "DEADLINE".to_owned(),
            Ended::Cancelled => "CANCELLED".to_owned(),
            Ended::AllocationOver { .. } => "allocation-over".to_owned(),
            Ended::QueueStuck { .. } => "queue-stuck".to_owned(),
            Ended::LaunchFailed { .. } => "launch-failed".to_owned(),
            Ended::FolderFailed { .. } => "folder-failed".to_owned(),
            Ended::HostUnreachable { .. } => "host-unreachable".to_owned(),
            Ended::Lost { .. } => "lost".to_owned(),
            Ended::Interrupted { .. } => "interrupted".to_owned(),
            Ended::LeftOut { .. } => LEFT_OUT.to_owned(),
            Ended::NotRun { .. } => NOT_RUN.to_owned(),
        }
    }
}
