//! How a job under Slurm ended, from whatever still knows it: scontrol for some minutes, as text and where that cannot
//! be read as JSON, then the accounting, then the exit code that the job itself wrote. And which nodes Slurm has given
//! up on, by sinfo.

use super::folder::refresh;
use super::slurm::{QueueLine, job_name};
use super::slurm_json::{self, SlurmJob};
use super::step_end::StepEnd;
use super::{Poll, QUERY_LIMIT};
use crate::reach::slurm_state::{JobState, StateSet, refused_instance};
use crate::reach::{Answer, Command, Host, Reach, ReachError};
use base::nodeset;
use job::script::files;
use model::artefact::{Blamed, Ended, PlannedJob};

/// Asks scontrol for one job, then whatever still knows its end.
pub(crate) async fn ask(reach: &dyn Reach, job: &PlannedJob, id: &str) -> Poll {
    let command = Command::new(["scontrol", "--all", "--oneliner", "show", "job", id], QUERY_LIMIT);
    let answer = match reach.exec(&Host::Here, &command).await {
        Ok(answer) if answer.succeeded() => answer,
        Ok(answer) if answer.complaint().contains("Invalid job id") => {
            return forgotten(reach, job, recorded(reach, job, id, None).await).await;
        }
        Ok(answer) => {
            return Poll::Unknown(format!(
                "`scontrol show job {id}` ended with {}: {}",
                answer.status,
                answer.complaint()
            ));
        }
        Err(error) => return Poll::Unknown(error.to_string()),
    };
    let text = answer.stdout_text();
    let field = |name: &str| {
        text.split_whitespace().find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
    };
    let state = field("JobState").map(|word| JobState::parse(&word));
    let shown = state.map(|state| SlurmJob {
        state,
        exit_code: field("ExitCode"),
        reason: field("Reason").unwrap_or_default(),
    });
    let is_clear = |shown: &SlurmJob| match shown.state {
        JobState::Unknown(_) => false,
        JobState::Completed | JobState::Failed => shown.exit_code.as_deref().is_some_and(is_exit_code),
        _ => true,
    };
    let shown = match shown {
        Some(shown) if is_clear(&shown) => Some(shown),
        shown => slurm_json::ask(reach, id).await.or(shown),
    };
    let Some(SlurmJob { state, exit_code, reason }) = shown else {
        return Poll::Unknown(format!("`scontrol show job {id}` printed no JobState"));
    };
    let end = match ended(&state, exit_code.as_deref(), job) {
        // Slurm removes a partition from under its jobs, and no node has failed.
        Some(Ended::NodeFail) if reason == "PartitionDown" => Ended::Lost {
            why: "Slurm ended it with its partition, which was removed (NODE_FAIL, PartitionDown)".to_owned(),
        },
        Some(end) => end,
        // A limit or a lost node that ended it shows as a reason, or as another code than the script's.
        None if state == JobState::Completing && OWN_END.contains(&reason.as_str()) => {
            match own_code(reach, job).await {
                Some(code) if exit_code == Some(format!("{code}:0")) => Ended::Exited { code },
                _ => return Poll::Running,
            }
        }
        None => return QueueLine { state, reason }.poll(),
    };
    // `None` where it never was.
    let was_suspended =
        field("SuspendTime").is_some_and(|time| time.starts_with(|c: char| c.is_ascii_digit()));
    let restarts = field("Restarts").and_then(|number| number.parse::<u64>().ok()).unwrap_or_default();
    let is_unbegun = reason == LAUNCH_FAILURE
        && restarts == 0
        && matches!(end, Ended::Exited { .. } | Ended::Killed { .. })
        && !has_begun(reach, job).await;
    if is_unbegun {
        let why = format!("Slurm could not start its script ({LAUNCH_FAILURE}); `sinfo -R` may show why");
        return Poll::ended(Ended::LaunchFailed { why }, None);
    }
    poll_ended(reach, job, if was_suspended { suspended() } else { after_restarts(end, restarts) }).await
}

/// Slurm's reasons for jobs that ended by themselves.
const OWN_END: [&str; 3] = ["", "None", "NonZeroExitCode"];

/// What its script wrote last, as far as that can be read.
async fn own_code(reach: &dyn Reach, job: &PlannedJob) -> Option<i32> {
    let bytes = reach.get(&Host::Here, &format!("{}/{}", job.folder, files::EXIT_CODE)).await.ok()?;
    String::from_utf8_lossy(&bytes).trim().parse().ok()
}

/// Slurm's reason for a job whose script never began.
const LAUNCH_FAILURE: &str = "JobLaunchFailure";

/// The signal as which Slurm reports that the daemon could not open the script's output (return code 4021, of which 127
/// are read as a signal).
const NO_OUTPUT: i32 = 53;

/// Whether the files of its output were made, which is when its script begins.
async fn has_begun(reach: &dyn Reach, job: &PlannedJob) -> bool {
    let path = format!("{}/{}", job.folder, files::BATCH_ERR);
    let mut file = reach.get(&Host::Here, &path).await;
    if matches!(file, Err(ReachError::NotFound { .. })) {
        refresh(reach, &job.folder).await;
        file = reach.get(&Host::Here, &path).await;
    }
    // A folder that cannot be read says nothing about the job.
    !matches!(file, Err(ReachError::NotFound { .. }))
}

/// A job that was put back into the queue and ran again between two looks at it left files of both runs. A lost node is
/// one whichever run lost it.
fn after_restarts(end: Ended, restarts: u64) -> Ended {
    match end {
        Ended::Exited { .. } | Ended::Killed { .. } | Ended::TimeLimit { .. } if restarts > 0 => {
            Ended::Requeued { reason: format!("it has run again meanwhile (Restarts={restarts})") }
        }
        end => end,
    }
}

/// The end of a job that was suspended meanwhile, however it ended: its numbers are slow, and its nodes not at fault.
pub(crate) fn suspended() -> Ended {
    Ended::Lost {
        why: "Slurm suspended it (preemption, or an administrator), so its numbers do not count".to_owned(),
    }
}

/// The end of a job that the run has written down and that is not in the queue: its id may be another's by now, so the
/// accounting counts only where it has the job's name, too.
pub(super) async fn gone(reach: &dyn Reach, job: &PlannedJob, id: &str) -> Poll {
    let record = match job_name(job) {
        Ok(name) => recorded(reach, job, id, Some(&name)).await,
        Err(_) => None,
    };
    forgotten(reach, job, record).await
}

/// Slurm keeps a job for some minutes after its end. Then its accounting may know it, and its folder does, as far as it
/// came.
async fn forgotten(reach: &dyn Reach, job: &PlannedJob, record: Option<Ended>) -> Poll {
    let own = match reach.get(&Host::Here, &format!("{}/{}", job.folder, files::EXIT_CODE)).await {
        Ok(bytes) => String::from_utf8_lossy(&bytes).trim().parse::<i32>().ok(),
        Err(ReachError::NotFound { .. }) => None,
        Err(error) => return Poll::Unknown(error.to_string()),
    };
    let end = match (record, own) {
        // A job whose steps were cancelled can be recorded as one that ended well.
        (Some(Ended::Exited { code: 0 }), None) => {
            Ended::Lost { why: "COMPLETED in the accounting, but it wrote no exit code".to_owned() }
        }
        (Some(Ended::Exited { .. }) | None, Some(code)) => Ended::Exited { code },
        (Some(end), _) => end,
        (None, None) => Ended::Lost {
            why: "Slurm has forgotten it, the accounting has no record of it, and it wrote no exit code"
                .to_owned(),
        },
    };
    poll_ended(reach, job, end).await
}

/// What the accounting says, where there is one, of a job with this id, and with this name where one is asked for.
async fn recorded(reach: &dyn Reach, job: &PlannedJob, id: &str, name: Option<&str>) -> Option<Ended> {
    const FORMAT: &str = "--format=State,ExitCode,JobName";
    let jobs = format!("--jobs={id}");
    let argv = ["sacct", "--noheader", "--parsable2", "--allocations", FORMAT, &jobs];
    let answer = reach.exec(&Host::Here, &Command::new(argv, QUERY_LIMIT)).await.ok()?;
    let text = Some(answer).filter(Answer::succeeded)?.stdout_text();
    // Of a job that ran more than once, the last.
    let mut lines = text.lines().rev().filter_map(|line| {
        let mut fields = line.trim().splitn(3, '|');
        Some((fields.next()?, fields.next()?, fields.next().unwrap_or_default()))
    });
    let (state, code, _) = lines.find(|(.., listed)| name.is_none_or(|name| name == *listed))?;
    ended(&JobState::parse(state), Some(code), job)
}

/// A job whose step was cancelled goes on without it, and ends with a code of its own: by what srun said of it. srun's
/// own code is 0 where it gave up waiting for a step that was aborted, for no task reported another.
pub(crate) async fn with_step(reach: &dyn Reach, job: &PlannedJob, end: Ended) -> Ended {
    let Ended::Exited { code } = end else { return end };
    let path = format!("{}/{}", job.folder, files::STDERR);
    let mut step = StepEnd::default();
    match reach.fetch(&Host::Here, &path, &mut step).await {
        Ok(_) => step.finish(),
        // That is missed when it is collected.
        Err(ReachError::NotFound { .. }) => return end,
        // srun may have said there that the exit code is none of the workload's.
        Err(error) if code == 0 => {
            return Ended::Lost { why: format!("exit code 0, and stderr cannot be read: {error}") };
        }
        Err(_) => return end,
    }
    if step.is_cancelled() {
        Ended::Cancelled
    } else if let (0, Some(line)) = (code, step.given_up()) {
        Ended::Lost { why: format!("exit code 0, and srun reports: {line}") }
    } else {
        end
    }
}

async fn poll_ended(reach: &dyn Reach, job: &PlannedJob, end: Ended) -> Poll {
    let end = with_step(reach, job, end).await;
    if end == (Ended::Killed { signal: NO_OUTPUT }) && !has_begun(reach, job).await {
        let why = format!(
            "its script never began (signal {NO_OUTPUT}): its node cannot write to `{}`; is it mounted there?",
            job.folder
        );
        return Poll::ended(Ended::LaunchFailed { why }, None);
    }
    if !matches!(end, Ended::NodeFail | Ended::BootFail) {
        return Poll::ended(end, None);
    }
    let mut own = nodes(reach).await.unwrap_or_default();
    own.retain(|node| job.nodes.contains(&node.name));
    let Some(reason) = without_machine(&own) else {
        return Poll::ended(end, down_node(own));
    };
    let path = format!("{}/{}", job.folder, files::BATCH_ERR);
    let has_begun = reach.get(&Host::Here, &path).await.is_ok();
    Poll::ended(if has_begun { Ended::Lost { why: reason } } else { Ended::QueueStuck { reason } }, None)
}

/// Two numbers, code and signal.
fn is_exit_code(text: &str) -> bool {
    text.split_once(':')
        .is_some_and(|(code, signal)| code.parse::<i32>().is_ok() && signal.parse::<i32>().is_ok())
}

/// The end of a job by its state and `ExitCode=code:signal`; nothing while it goes on.
fn ended(state: &JobState, exit_code: Option<&str>, job: &PlannedJob) -> Option<Ended> {
    let (code, signal) = exit_code.and_then(|pair| pair.split_once(':')).unwrap_or_default();
    Some(match state {
        JobState::Completed | JobState::Failed => match (code.parse::<i32>(), signal.parse::<i32>()) {
            (_, Ok(signal)) if signal != 0 => Ended::Killed { signal },
            // Failed with exit code 0 happens where the batch host says so and the code was lost: no success.
            (Ok(0), _) if *state == JobState::Failed => {
                Ended::Lost { why: "FAILED with exit code 0".to_owned() }
            }
            (Ok(code), _) => Ended::Exited { code },
            (Err(_), _) => Ended::Lost { why: format!("no exit code: `{}`", exit_code.unwrap_or_default()) },
        },
        JobState::Timeout => Ended::TimeLimit { limit_s: job.limit_s },
        JobState::Deadline => Ended::Deadline,
        JobState::NodeFail => Ended::NodeFail,
        JobState::BootFail => Ended::BootFail,
        JobState::Preempted => Ended::Preempted,
        JobState::Cancelled => Ended::Cancelled,
        JobState::OutOfMemory => Ended::OutOfMemory,
        JobState::Pending
        | JobState::Configuring
        | JobState::Running
        | JobState::Completing
        | JobState::Suspended
        | JobState::Revoked
        | JobState::Unknown(_) => return None,
    })
}

/// Why a job on these nodes was lost, where EC2 gave no instance for one of them, or none came up in time: then no machine
/// is known to have failed. Nodes in service may still show such a reason.
fn without_machine(own: &[Node]) -> Option<String> {
    let any_lost = own.iter().any(|node| node.state().is_lost());
    let is_absent = |node: &&Node| if any_lost { node.state().is_lost() } else { node.state().boots() };
    own.iter().filter(is_absent).find_map(|node| {
        if let Some(code) = refused_instance(&node.reason) {
            return Some(format!("EC2 gave no instance for {} ({code}): no machine was there", node.name));
        }
        let is_late = node.reason.starts_with("ResumeTimeout reached");
        is_late
            .then(|| format!("{} did not start within Slurm's ResumeTimeout; `sinfo -R` shows it", node.name))
    })
}

/// Which of the job's nodes Slurm itself has given up on.
fn down_node(own: Vec<Node>) -> Option<Blamed> {
    let lost = own.into_iter().find(|node| node.state().is_lost())?;
    Some(Blamed { evidence: format!("`sinfo` reports {}: {}", lost.words, lost.reason), node: lost.name })
}

/// The first of these nodes that Slurm starts nothing new on, with its words: those that hold an allocation keep it.
pub(crate) async fn barred(reach: &dyn Reach, of: &[String]) -> Option<String> {
    let mut nodes = nodes(reach).await?.into_iter();
    let node = nodes.find(|node| of.contains(&node.name) && node.is_barred())?;
    Some(format!("{} is {}: {}", node.name, node.words, node.reason))
}

/// Slurm names the nodes that a job waits for, and not what is wrong with them: that is put behind its words. From 24.11
/// on it does not name them either: those of the job on which it starts nothing are named as older releases do.
pub(crate) async fn explain_waiting(reach: &dyn Reach, jobs: &[(&PlannedJob, &str)], polls: &mut [Poll]) {
    let says = |reason: &str, words: &[&str]| words.iter().any(|word| reason.contains(word));
    let of_nodes = |poll: &Poll| matches!(poll, Poll::Waiting { reason, .. } if reason.contains(UNAVAILABLE) || says(reason, &UNNAMED));
    if !polls.iter().any(of_nodes) {
        return;
    }
    let Some(nodes) = nodes(reach).await else { return };
    for ((job, _), poll) in jobs.iter().zip(polls) {
        let Poll::Waiting { reason, .. } = poll else { continue };
        if !reason.contains(UNAVAILABLE) && says(reason, &UNNAMED) {
            let barred = nodes.iter().filter(|node| job.nodes.contains(&node.name) && node.is_barred());
            let barred: Vec<String> = barred.map(|node| node.name.clone()).collect();
            if !barred.is_empty() {
                *reason = format!("ReqNodeNotAvail, {UNAVAILABLE}{}", nodeset::fold(&barred));
            }
        }
        let Some((_, list)) = reason.split_once(UNAVAILABLE) else { continue };
        let Ok(named) = nodeset::expand(list.trim_end_matches(')')) else { continue };
        let barred = nodes.iter().filter(|node| named.contains(&node.name) && !node.takes_jobs());
        let states: Vec<String> =
            barred.map(|node| format!("{} is {}: {}", node.name, node.words, node.reason)).collect();
        if !states.is_empty() {
            *reason = format!("{reason} ({})", states.join("; "));
        }
    }
}

const UNAVAILABLE: &str = "UnavailableNodes:";
const UNNAMED: [&str; 2] = ["ReqNodeNotAvail", "Nodes required for job are DOWN, DRAINED"];

struct Node {
    name: String,
    words: String,
    reason: String,
}

impl Node {
    fn state(&self) -> StateSet {
        StateSet::parse(&self.words)
    }

    fn takes_jobs(&self) -> bool {
        self.state().takes_jobs()
    }

    fn is_barred(&self) -> bool {
        let state = self.state();
        state.is_lost() || ["drain", "drained", "draining", "failing"].iter().any(|word| state.has(word))
    }
}

async fn nodes(reach: &dyn Reach) -> Option<Vec<Node>> {
    let command = Command::new(["sinfo", "--noheader", "--Node", "--all", "--format=%N|%T|%E"], QUERY_LIMIT);
    let answer = reach.exec(&Host::Here, &command).await.ok().filter(Answer::succeeded)?;
    let node = |line: &str| {
        let mut fields = line.splitn(3, '|').map(|field| field.trim().to_owned());
        Some(Node { name: fields.next()?, words: fields.next()?, reason: fields.next().unwrap_or_default() })
    };
    let mut nodes: Vec<Node> = answer.stdout_text().lines().filter_map(node).collect();
    // A node stands there once for each of its partitions.
    nodes.dedup_by(|a, b| a.name == b.name);
    Some(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_was_requeued_and_ran_again_between_two_looks_is_no_measurement() {
        for end in [
            Ended::Exited { code: 0 },
            Ended::Exited { code: 1 },
            Ended::Killed { signal: 9 },
            Ended::NodeFail,
        ] {
            assert_eq!(after_restarts(end.clone(), 0), end);
            let is_again = matches!(after_restarts(end.clone(), 2), Ended::Requeued { .. });
            assert_eq!(is_again, end != Ended::NodeFail, "{end:?}");
        }
    }
}
