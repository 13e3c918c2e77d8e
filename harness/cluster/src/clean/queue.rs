//! The jobs of a run in Slurm's queue: those whose ids the run has written down, and those that have the name, the
//! folder or the script of one of its jobs, for `SBATCH_JOB_NAME` and a submit plugin rename jobs, and the last id may
//! not have been written any more. They are ended by their ids. Slurm gives ids again after a reset: an id alone ends
//! nothing.

use super::{Cleaned, Job, Jobs, Leftover, LeftoverKind, QUEUE, Recorded, accounting};
use crate::launch::QUERY_LIMIT;
use crate::reach::{Command, Host, Reach};
use job::script::files;
use std::collections::BTreeSet;
use std::time::Duration;

/// What the queue is asked of the user's own, each job by its id. Name, folder and script last: they may hold anything.
pub(super) const JOBS: [&str; 5] = ["squeue", "--noheader", "--all", "--me", "--format=%i|%T|%N|%j|%Z|%o"];
/// The same of the user's own, each task by the id of its array.
pub(super) const OWN_ARRAYS: [&str; 5] =
    ["squeue", "--noheader", "--all", "--me", "--format=%F|%T|%N|%j|%Z|%o"];
/// The same of everybody's, with the owner and the time of submission.
const EVERYBODYS: [&str; 4] = ["squeue", "--noheader", "--all", "--format=%i|%u|%V|%j|%Z|%o"];
/// Slurm gives the last processes of a job their own time to end, half a minute where nothing else is configured.
const PATIENCE_S: u64 = 60;
/// An argument list has its limits.
const AT_ONCE: usize = 200;

/// A line of the queue: a job's id, two fields as they were asked for, and the rest.
pub(super) struct Queued {
    pub id: String,
    fields: [String; 2],
    /// Name, folder and script.
    pub name: String,
}

impl Queued {
    fn read(line: &str) -> Option<Queued> {
        let mut fields = line.trim().splitn(4, '|').map(str::to_owned);
        let id = fields.next()?;
        Some(Queued { id, fields: [fields.next()?, fields.next()?], name: fields.next()? })
    }

    /// Without the number of a task.
    fn job_id(&self) -> &str {
        self.id.split(['_', '+']).next().unwrap_or_default()
    }
}

/// What the queue has of the run.
pub(super) async fn look(
    jobs: &Jobs,
    recorded: &Recorded,
    reach: &dyn Reach,
    cleaned: &mut Cleaned,
) -> BTreeSet<Leftover> {
    let own = match listed(&JOBS, reach).await {
        Ok(own) => own,
        Err(why) => {
            cleaned.unasked.insert(QUEUE.to_owned(), why);
            return BTreeSet::new();
        }
    };
    let mut found = BTreeSet::new();
    let mut missing = recorded.ids.clone();
    for queued in own {
        let id = queued.job_id().to_owned();
        let was_launched = missing.remove(&id).is_some() || recorded.ids.contains_key(&id);
        let [state, nodes] = &queued.fields;
        let at = match nodes.as_str() {
            "" => format!("{QUEUE}, {state}"),
            nodes => format!("{QUEUE}, {state} on {nodes}"),
        };
        match jobs.find_listed(&queued.name) {
            Some(job) => {
                found.insert(Leftover {
                    at,
                    what: LeftoverKind::Queued,
                    which: queued.id,
                    job: job.to_owned(),
                });
            }
            None if was_launched => {
                let seen = queued.name.escape_debug();
                cleaned.unclear.insert(format!(
                    "job {id} has an id of this run, but another name, folder and script (`{seen}`); if it belongs to \
                     the run, end it: `scancel {id}`"
                ));
            }
            None => {}
        }
    }
    if missing.is_empty() {
        return found;
    }
    match listed_ids(&missing.keys().cloned().collect(), reach).await {
        Ok(others) => {
            for queued in others {
                let id = queued.job_id().to_owned();
                missing.remove(&id);
                let [owner, submitted] = &queued.fields;
                match jobs.find_listed(&queued.name) {
                    Some(job) => {
                        let (at, job) = (format!("{QUEUE}, of {}", owner.escape_debug()), job.to_owned());
                        found.insert(Leftover {
                            at,
                            what: LeftoverKind::QueuedByOther,
                            which: queued.id,
                            job,
                        });
                    }
                    None => {
                        let seen = queued.name.escape_debug();
                        cleaned.not_ours.insert(format!(
                            "job {id} belongs to {}, submitted {}: Slurm has reused an id of this run for `{seen}`",
                            owner.escape_debug(),
                            submitted.escape_debug()
                        ));
                    }
                }
            }
        }
        Err(why) => {
            let ids: Vec<&str> = missing.keys().map(String::as_str).collect();
            cleaned.unasked.insert(format!("{QUEUE} for the recorded jobs {}", ids.join(",")), why);
            return found;
        }
    }
    accounting::look(jobs, &missing, reach, cleaned).await;
    found
}

impl Jobs {
    /// The job of the run that the queue lists so, by its name, its folder or its script.
    pub(super) fn find_listed(&self, listed: &str) -> Option<&str> {
        let job = self.0.iter().find(|job| is_of(job, listed));
        job.map(|job| job.name.as_str())
    }
}

/// Whether name, folder or script, as the queue lists them, is that of a job. Of the user's own no other has any of them.
fn is_of(job: &Job, listed: &str) -> bool {
    let folder = job.folder.trim_end_matches('/');
    let script = format!("|{folder}/{}", files::JOB);
    listed.strip_prefix(&job.queued_as).is_some_and(|rest| rest.starts_with('|'))
        || listed.contains(&format!("|{folder}|"))
        || listed.contains(&format!("|{folder}/|"))
        || listed.ends_with(&script)
}

async fn asked(question: &[&str], reach: &dyn Reach) -> Result<String, String> {
    let command = Command::new(question.iter().copied(), QUERY_LIMIT);
    let answer = reach.exec(&Host::Here, &command).await.map_err(|error| error.to_string())?;
    match answer.succeeded() {
        true => Ok(answer.stdout_text()),
        false => Err(format!("`squeue` ended with {}: {}", answer.status, answer.complaint())),
    }
}

/// The user's own. A line that cannot be read may be a job that would be overlooked.
pub(super) async fn listed(question: &[&str], reach: &dyn Reach) -> Result<Vec<Queued>, String> {
    let text = asked(question, reach).await?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let queued = lines.map(|line| {
        Queued::read(line)
            .ok_or_else(|| format!("`squeue` printed an unexpected line: `{}`", line.escape_debug()))
    });
    queued.collect()
}

/// Jobs of these ids, whosever they are. What others' jobs are called may break lines: those of other ids do not matter.
async fn listed_ids(ids: &BTreeSet<String>, reach: &dyn Reach) -> Result<Vec<Queued>, String> {
    let text = asked(&EVERYBODYS, reach).await?;
    let queued = text.lines().filter_map(Queued::read);
    Ok(queued.filter(|queued| ids.contains(queued.job_id())).collect())
}

/// Ends jobs that the queue listed, and waits until Slurm has seen the last of their processes.
pub(super) async fn end(ids: Vec<String>, question: &[&str], reach: &dyn Reach) {
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
