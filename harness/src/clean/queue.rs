//! The jobs of a run in Slurm's queue, by the names that carry the run's id. They are ended by their numbers.

use super::{Jobs, Left, QUEUE, What};
use crate::launch::QUERY_LIMIT;
use crate::reach::{Command, Host, Reach};
use std::time::Duration;

/// The name last: it may hold anything.
const FORMAT: &str = "--format=%i|%T|%N|%j";
/// Slurm gives the last processes of a job their own time to end, half a minute where nothing else is configured.
const PATIENCE_S: u64 = 60;
/// An argument list has its limits.
const AT_ONCE: usize = 200;

/// One question for all jobs.
pub async fn look(jobs: &Jobs, reach: &dyn Reach) -> Result<Vec<Left>, String> {
    let command = Command::new(["squeue", "--noheader", FORMAT], QUERY_LIMIT);
    let answer = reach.exec(&Host::Here, &command).await.map_err(|error| error.to_string())?;
    if !answer.succeeded() {
        return Err(format!("`squeue` ended with {}: {}", answer.status, answer.complaint()));
    }
    let text = answer.stdout_text();
    let left = text.lines().filter_map(|line| {
        let mut fields = line.trim_start().splitn(4, '|');
        let (id, state, nodes, name) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let job = jobs.0.iter().find(|job| job.queued_as == name.trim_end())?;
        let at = match nodes {
            "" => format!("{QUEUE}, {state}"),
            nodes => format!("{QUEUE}, {state} on {nodes}"),
        };
        Some(Left { at, what: What::Queued, which: id.to_owned(), job: job.name.clone() })
    });
    Ok(left.collect())
}

/// Ends jobs, and waits until Slurm has seen the last of their processes.
pub async fn end(ids: Vec<String>, reach: &dyn Reach) {
    for some in ids.chunks(AT_ONCE) {
        let argv = std::iter::once("scancel".to_owned()).chain(some.iter().cloned());
        // Whether it worked is seen by looking again.
        let _ = reach.exec(&Host::Here, &Command::new(argv, QUERY_LIMIT)).await;
    }
    for _ in 0..if ids.is_empty() { 0 } else { PATIENCE_S } {
        let command = Command::new(["squeue", "--noheader", FORMAT], QUERY_LIMIT);
        let Ok(answer) = reach.exec(&Host::Here, &command).await else { continue };
        let text = answer.stdout_text();
        let mut listed = text.lines().filter_map(|line| line.trim_start().split('|').next());
        if answer.succeeded() && !listed.any(|id| ids.iter().any(|gone| gone == id)) {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
