//! The gate of a job by how it ended, other than by its own exit code: the cause, and the next step of whoever launches
//! jobs by that launcher.

use super::gate::{Gate, error};
use model::artefact::{Ended, Launcher, RunCluster, STEP_NOT_STARTED, WorkloadFailure, kubectl_command};

pub(super) fn by_end(
    launcher: Launcher,
    cluster: Option<&RunCluster>,
    end: &Ended,
    failure: Option<&WorkloadFailure>,
) -> Gate {
    let kubectl = |arguments: &[&str]| format!("`{}`", kubectl_command(cluster, arguments));
    let describe = || kubectl(&["describe", "node"]);
    let events = || kubectl(&["get", "events"]);
    let evidence = failure.map(|failure| format!(": {}", failure.evidence)).unwrap_or_default();
    match end {
        Ended::Exited { .. } => Gate::Open,
        Ended::Killed { signal } => error(
            &end.cause(),
            &format!("the job was killed by signal {signal}{evidence}"),
            "look at stderr of the job",
        ),
        Ended::TimeLimit { limit_s } => error(
            &end.cause(),
            &format!("the job did not end within {limit_s} s{evidence}"),
            "see the last line of its output; if the job is only slow, raise `limit_s`",
        ),
        Ended::Stall { stall_s, last } => error(
            &end.cause(),
            &match failure {
                Some(failure) => format!(
                    "hang: {}; no progress for {stall_s} s, last output: `{}`",
                    failure.evidence,
                    last.trim()
                ),
                None => format!("the job made no progress for {stall_s} s, last output: `{}`", last.trim()),
            },
            "see the last line of its output; if the job only prints rarely, raise `stall_s` in the case's workload",
        ),
        Ended::NodeFail => error(
            &end.cause(),
            &format!("a node was lost{evidence}"),
            &match launcher {
                Launcher::Slurm => "look at `sinfo -R` and at the node's console".to_owned(),
                Launcher::Kubernetes => format!("look at {} and at the node's console", describe()),
                Launcher::Ssh | Launcher::Local => {
                    "look at `uptime` on the node and at its console".to_owned()
                }
            },
        ),
        Ended::BootFail => error(
            &end.cause(),
            &format!("a node failed to boot for the job{evidence}"),
            "look at `sinfo -R` and at the node's console",
        ),
        Ended::OutOfMemory => error(
            &end.cause(),
            &format!("the job ran out of memory{evidence}"),
            &match launcher {
                Launcher::Slurm => {
                    "raise the memory in the partition's defaults, or check what else runs on the nodes"
                        .to_owned()
                }
                Launcher::Kubernetes => format!(
                    "raise the namespace's limit of memory, see {}, or check what else runs on the nodes",
                    kubectl(&["get", "limitrange"])
                ),
                Launcher::Ssh | Launcher::Local => {
                    "look at `dmesg` on the node, and check what else runs there".to_owned()
                }
            },
        ),
        Ended::Requeued { reason } => error(
            &end.cause(),
            &format!("Slurm requeued the job after it had started: {reason}"),
            "look at `sinfo -R` and at slurmctld's log; run it again",
        ),
        Ended::Deadline => error(
            &end.cause(),
            "the job would have missed its deadline",
            "check the limits of the partition and the QOS",
        ),
        Ended::Preempted => error(
            &end.cause(),
            "the job was preempted",
            "run in a reservation or with a QOS that is not preempted",
        ),
        Ended::Cancelled => error(&end.cause(), "the job was cancelled", "run it again"),
        Ended::AllocationOver { limit_s } => error(
            &end.cause(),
            &format!("the allocation that it shares with other jobs reached its time limit of {limit_s} s"),
            "run it again; lower `longest_allocation_s`, or remove `share_allocations`",
        ),
        Ended::QueueStuck { reason } => {
            error(&end.cause(), &format!("the job never started: {reason}"), stuck_next(reason))
        }
        Ended::LaunchFailed { why } => error(
            &end.cause(),
            &format!("the job could not be launched: {why}"),
            "print its command with `harness plan` and try it by hand",
        ),
        Ended::FolderFailed { why } => error(
            &end.cause(),
            &format!("the job's folder could not be written: {why}"),
            "check free space and permissions of `paths.shared` on this machine",
        ),
        Ended::HostUnreachable { why } => {
            let next = match launcher {
                Launcher::Kubernetes => {
                    format!(
                        "look at {} and {}, or exclude the node with --exclude-nodes",
                        describe(),
                        events()
                    )
                }
                _ => "try `ssh` to it by hand, or exclude the node with --exclude-nodes".to_owned(),
            };
            error(&end.cause(), why, &next)
        }
        Ended::Lost { why } => error(
            &end.cause(),
            &format!("lost: {why}"),
            &match launcher {
                Launcher::Slurm => "see the job's stderr and the log of slurmctld".to_owned(),
                Launcher::Kubernetes => format!("see the job's stderr and {}", events()),
                Launcher::Ssh | Launcher::Local => {
                    "see the job's stderr and the log of the node's sshd".to_owned()
                }
            },
        ),
        Ended::Interrupted { why } => {
            error(&end.cause(), &format!("the run was stopped: {why}"), "run it again")
        }
        Ended::LeftOut { node, why, after: Some(case) } => error(
            &end.cause(),
            &format!("{node} was quarantined after `{case}`: {why}"),
            "repair the node and rerun the case; `--keep-bad-nodes` launches on it anyway",
        ),
        Ended::LeftOut { node, why, after: None } => error(
            &end.cause(),
            &format!("{node} was excluded before the launch: {why}"),
            "fix it and check with `harness inventory probe --nodes`; `--no-probe` launches on it anyway",
        ),
        Ended::NotRun { why } => error(&end.cause(), &format!("not run: {why}"), "run it again"),
    }
}

/// srun waited until the job ended: what it asked for was another step's of the job.
pub(super) fn step_not_started(evidence: &str) -> Gate {
    error(STEP_NOT_STARTED, &format!("no step of the workload started: {evidence}"), STEP_NOT_STARTED_NEXT)
}

/// Of one job and of all jobs of a case.
pub(super) const STEP_NOT_STARTED_NEXT: &str = "`squeue --steps` while a job waits lists the step that holds its nodes; see `srun` in [reach] of the inventory";

/// Where the partition keeps a job from starting, no node is the reason.
fn stuck_next(reason: &str) -> &'static str {
    match reason.trim_start_matches('(').split([',', ')', ' ', ';']).next() {
        Some("PartitionTimeLimit") => {
            "`scontrol show partition` prints its MaxTime: lower `limit_s`, or set another `partition` in `[reach]`"
        }
        Some("PartitionNodeLimit") => {
            "`scontrol show partition` prints its MaxNodes: run on fewer with --nodes, or set another `partition` in \
             `[reach]`"
        }
        Some("PartitionDown" | "PartitionInactive") => {
            "the partition starts no jobs, see `sinfo -s`: ask the cluster's admins, or set another `partition` in `[reach]`"
        }
        _ => "see `sinfo -R`, or exclude the node with --exclude-nodes",
    }
}

#[cfg(test)]
mod tests {
    use super::stuck_next;

    #[test]
    fn a_job_kept_pending_by_its_partition_advises_the_partition_and_excludes_no_node() {
        for (reason, next) in [
            ("PartitionTimeLimit; requested: --partition=short --time=00:20:00", "lower `limit_s`"),
            ("(PartitionDown)", "the partition starts no jobs"),
            ("ReqNodeNotAvail", "--exclude-nodes"),
        ] {
            assert!(stuck_next(reason).contains(next), "{reason}: {}", stuck_next(reason));
        }
    }
}
