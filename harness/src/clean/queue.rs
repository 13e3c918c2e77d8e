//! The jobs of a run in Slurm's queue, by the names that carry the run's id or by their folders: `SBATCH_JOB_NAME` and a
//! submit plugin rename jobs. They are ended by their numbers.

use super::{Job, Jobs, Left, QUEUE, What};
use crate::launch::QUERY_LIMIT;
use crate::reach::{Command, Host, Reach};
use std::time::Duration;

/// What the queue is asked of the user's own, each job by its number. Name and folder last: they may hold anything.
pub const JOBS: [&str; 4] = ["squeue", "--noheader", "--me", "--format=%i|%T|%N|%j|%Z"];
/// The same of the user's own, each task by the number of its array.
pub const OWN_ARRAYS: [&str; 4] = ["squeue", "--noheader", "--me", "--format=%F|%T|%N|%j"];
/// Slurm gives the last processes of a job their own time to end, half a minute where nothing else is configured.
const PATIENCE_S: u64 = 60;
/// An argument list has its limits.
const AT_ONCE: usize = 200;

/// A line of the queue.
pub struct Queued {
    pub id: String,
    state: String,
    nodes: String,
    pub name: String,
}

/// One question for all jobs.
pub async fn look(jobs: &Jobs, reach: &dyn Reach) -> Result<Vec<Left>, String> {
    let left = listed(&JOBS, reach).await?.into_iter().filter_map(|queued| {
        let job = jobs.0.iter().find(|job| is_of(job, &queued.name))?;
        let at = match queued.nodes.as_str() {
            "" => format!("{QUEUE}, {}", queued.state),
            nodes => format!("{QUEUE}, {} on {nodes}", queued.state),
        };
        Some(Left { at, what: What::Queued, which: queued.id, job: job.name.clone() })
    });
    Ok(left.collect())
}

/// Whether name or folder, as the queue lists them, is that of a job. Of the user's own no other has either.
fn is_of(job: &Job, listed: &str) -> bool {
    let folder = job.folder.trim_end_matches('/');
    listed.strip_prefix(&job.queued_as).is_some_and(|rest| rest.starts_with('|'))
        || listed.trim_end_matches('/').strip_suffix(folder).is_some_and(|rest| rest.ends_with('|'))
}

pub async fn listed(question: &[&str], reach: &dyn Reach) -> Result<Vec<Queued>, String> {
    let command = Command::new(question.iter().copied(), QUERY_LIMIT);
    let answer = reach.exec(&Host::Here, &command).await.map_err(|error| error.to_string())?;
    if !answer.succeeded() {
        return Err(format!("`squeue` ended with {}: {}", answer.status, answer.complaint()));
    }
    let text = answer.stdout_text();
    let queued = text.lines().filter_map(|line| {
        let mut fields = line.trim().splitn(4, '|').map(str::to_owned);
        Some(Queued {
            id: fields.next()?,
            state: fields.next()?,
            nodes: fields.next()?,
            name: fields.next()?,
        })
    });
    Ok(queued.collect())
}

/// Ends jobs that the queue told of, and waits until Slurm has seen the last of their processes.
pub async fn end(ids: Vec<String>, question: &[&str], reach: &dyn Reach) {
    for some in ids.chunks(AT_ONCE) {
        let argv = std::iter::once("scancel".to_owned()).chain(some.iter().cloned());
        // Whether it worked is seen by looking again.
        let _ = reach.exec(&Host::Here, &Command::new(argv, QUERY_LIMIT)).await;
    }
    for _ in 0..if ids.is_empty() { 0 } else { PATIENCE_S } {
        let listed = listed(question, reach).await;
        if listed.is_ok_and(|listed| !listed.iter().any(|queued| ids.contains(&queued.id))) {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
