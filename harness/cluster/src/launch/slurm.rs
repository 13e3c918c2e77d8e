//! Slurm: sbatch, squeue and scancel, through `Reach`. `slurm_end.rs` asks how a job ended; `slurm_state.rs` reads
//! its states.

use super::folder::refresh;
use super::slurm_end;
use super::{Launch, NotLaunched, Poll, QUERY_LIMIT};
use crate::interrupt;
use crate::reach::slurm_refusal::{is_away, next_step};
use crate::reach::slurm_state::{JobState, never_clears};
use crate::reach::stall_request::StallRequest;
use crate::reach::{Answer, Command, Host, Reach, ReachError, Wait};
use job::script::{self, GpuRequest, files};
use model::artefact::PlannedJob;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

/// The launcher for Slurm.
#[derive(Default)]
pub(crate) struct Slurm {
    /// Jobs whose script has begun, by their ids.
    begun: RefCell<BTreeSet<String>>,
    /// Ids of jobs that are the run's for certain: submitted by this process, or seen in the queue as the user's own in
    /// the job's folder. One that the run has written down may be another's by now.
    own: RefCell<BTreeSet<String>>,
    /// Since when jobs are completing, by their ids.
    completing: RefCell<BTreeMap<String, Instant>>,
}

/// Slurm needs seconds to end a job's last processes. Where it takes longer an epilog holds the nodes, maybe for minutes,
/// which is no time of the job.
const COMPLETING_LIMIT: Duration = Duration::from_secs(30);

/// Between two tries to submit while the controller is away: some minutes together, as its restart takes.
pub(super) const PAUSES_S: [u64; 9] = [2, 5, 10, 20, 30, 30, 60, 60, 60];

/// What a person reads while nodes boot or a prolog of the controller runs.
pub(crate) const CONFIGURING: &str = "configuring (nodes boot)";

/// Why a job waits for ever that a cluster of a federation has given up for another one.
pub(super) const REVOKED: &str =
    "REVOKED: another cluster of the federation runs it; add `--cluster-constraint` to `sbatch` in `[reach]`";

/// Asked of squeue: fixed text, since its JSON differs between versions far more than this does.
const FORMAT: &str = "--format=%i|%T|%r|%N";

/// Asked of squeue about all jobs of the user: a submit plugin may have given the job another name and another folder.
/// Its folder last, which may hold anything.
const OWN_JOBS: [&str; 6] = ["squeue", "--noheader", "--all", "--me", "--states=all", "--format=%i|%j|%o|%Z"];

impl Launch for Slurm {
    fn submit<'a>(
        &'a self,
        reach: &'a dyn Reach,
        job: &'a PlannedJob,
    ) -> Wait<'a, Result<String, NotLaunched>> {
        Box::pin(async move {
            let mut pauses = PAUSES_S.iter();
            let mut may_be_there = false;
            // Why the answer of a submission that succeeded names no job.
            let mut unread = None;
            loop {
                let why = if may_be_there {
                    // Submitting again where the answer alone was lost would run it twice.
                    match self.find_started(reach, job).await {
                        Ok(Some(id)) => return Ok(id),
                        Ok(None) => match unread.take() {
                            Some(not) => return Err(not),
                            None => {
                                may_be_there = false;
                                continue;
                            }
                        },
                        Err(not) => not,
                    }
                } else {
                    let submit = Command::new(job.launch.clone(), QUERY_LIMIT);
                    match reach.exec(&Host::Here, &submit).await {
                        Ok(answer) if answer.succeeded() => match id(&answer) {
                            Ok(id) => {
                                if let Some(cluster) = cluster(&answer) {
                                    return self.on_cluster(reach, job, id, &cluster).await;
                                }
                                // Behind a banner any number may stand: the queue is asked before that job is ended.
                                if is_bare(&answer) {
                                    self.own.borrow_mut().insert(id.clone());
                                }
                                return Ok(id);
                            }
                            Err(not) => {
                                unread = Some(not.clone());
                                not
                            }
                        },
                        Ok(answer) => {
                            let complaint = answer.complaint();
                            let why = format!("`sbatch` ended with {}: {complaint}", answer.status);
                            if !is_away(&complaint) {
                                return Err(format!("{why}{}", next_step(&complaint)).into());
                            }
                            why.into()
                        }
                        Err(error @ (ReachError::TimedOut { .. } | ReachError::Unreachable { .. })) => {
                            error.to_string().into()
                        }
                        Err(error) => return Err(error.to_string().into()),
                    }
                };
                may_be_there = true;
                match pauses.next() {
                    Some(seconds) if pause(*seconds).await => {}
                    _ => return Err(why),
                }
            }
        })
    }

    fn find_started<'a>(
        &'a self,
        reach: &'a dyn Reach,
        job: &'a PlannedJob,
    ) -> Wait<'a, Result<Option<String>, NotLaunched>> {
        Box::pin(async move {
            let name = job_name(job)?;
            let answer = reach
                .exec(&Host::Here, &Command::new(OWN_JOBS, QUERY_LIMIT))
                .await
                .map_err(|error| format!("unknown whether it was launched before: {error}"))?;
            if !answer.succeeded() {
                let why = answer.complaint();
                return Err(format!("unknown whether it was launched before: `squeue`: {why}").into());
            }
            if let Some(id) = own_id(&answer.stdout_text(), &name, &job.folder)? {
                self.own.borrow_mut().insert(id.clone());
                return Ok(Some(id));
            }
            // Slurm forgets a job some minutes after its end; the file of its output stays.
            match reach.get(&Host::Here, &format!("{}/{}", job.folder, files::BATCH_ERR)).await {
                Err(ReachError::NotFound { .. }) => Ok(None),
                Ok(_) => Err("it was launched before, but Slurm has forgotten it".to_owned().into()),
                Err(error) => Err(format!("unknown whether it was launched before: {error}").into()),
            }
        })
    }

    fn poll<'a>(
        &'a self,
        reach: &'a dyn Reach,
        jobs: &'a [(&'a PlannedJob, &'a str)],
    ) -> Wait<'a, Vec<Poll>> {
        Box::pin(async move {
            let ids: Vec<&str> = jobs.iter().map(|(_, id)| *id).collect();
            let argv = [
                "squeue",
                "--noheader",
                "--all",
                "--states=all",
                FORMAT,
                &format!("--jobs={}", ids.join(",")),
            ];
            let listed = match reach.exec(&Host::Here, &Command::new(argv, QUERY_LIMIT)).await {
                Ok(answer) if answer.succeeded() => lines_by_id(&answer.stdout_text()),
                // One id that squeue has forgotten spoils the whole answer: each is asked for by itself below.
                Ok(answer) if answer.complaint().contains("Invalid job id") => BTreeMap::new(),
                Ok(answer) => {
                    let why = format!("`squeue` ended with {}: {}", answer.status, answer.complaint());
                    return vec![Poll::Unknown(why); jobs.len()];
                }
                Err(error) => return vec![Poll::Unknown(error.to_string()); jobs.len()],
            };
            if let Err(why) = self.recognize(reach, jobs).await {
                return vec![Poll::Unknown(why); jobs.len()];
            }
            let mut polls = Vec::with_capacity(jobs.len());
            for (job, id) in jobs {
                let poll = match listed.get(*id) {
                    _ if !self.own.borrow().contains(*id) => slurm_end::gone(reach, job, id).await,
                    Some(line) if line.state == JobState::Completing && self.is_held(id) => {
                        slurm_end::ask(reach, job, id).await
                    }
                    Some(line) if !line.state.has_ended() => self.begun(reach, job, id, line.poll()).await,
                    // Ended, or forgotten by squeue: scontrol knows the exit code, and knows a job a while longer.
                    _ => slurm_end::ask(reach, job, id).await,
                };
                polls.push(poll);
            }
            slurm_end::explain_waiting(reach, jobs, &mut polls).await;
            polls
        })
    }

    /// A step of the job itself, which takes nothing from its others; a Slurm that cannot start one beside them refuses soon.
    fn beside(&self, job: &PlannedJob, handle: &str) -> Vec<(Host, Vec<String>)> {
        let jobid = format!("--jobid={handle}");
        let text =
            job.files.iter().find(|file| file.name == files::JOB).and_then(|file| file.text.as_deref());
        let script = text.and_then(|text| script::read(text).ok());
        let gpus = script.map_or(GpuRequest::None, |script| script.start.gpu_request());
        let options = script::options_beside(gpus);
        let mut argv: Vec<String> = ["srun", &jobid, "--immediate=10"].map(str::to_owned).to_vec();
        argv.extend(options.into_iter().map(str::to_owned));
        argv.push(format!("--nodes={}", job.nodes.len()));
        argv.extend(["--ntasks-per-node=1", "--cpu-bind=none", "--mpi=none"].map(str::to_owned));
        argv.extend(StallRequest::by_slurm(job).arguments());
        vec![(Host::Here, argv)]
    }

    fn interrupt<'a>(&'a self, reach: &'a dyn Reach, job: &'a PlannedJob, handle: &'a str) -> Wait<'a, ()> {
        Box::pin(async move {
            if !self.is_own(reach, job, handle).await {
                return;
            }
            let command = Command::new(["scancel", "--signal=INT", "--full", handle], QUERY_LIMIT);
            // Whether it worked is seen by polling; the cancel that follows does not depend on it.
            let _ = reach.exec(&Host::Here, &command).await;
        })
    }

    fn cancel<'a>(&'a self, reach: &'a dyn Reach, job: &'a PlannedJob, handle: &'a str) -> Wait<'a, ()> {
        Box::pin(async move {
            if !self.is_own(reach, job, handle).await {
                return;
            }
            let _ = reach.exec(&Host::Here, &Command::new(["scancel", handle], QUERY_LIMIT)).await;
        })
    }
}

impl Slurm {
    /// Whether a job may be ended: Slurm gives ids again after a reset. Where the queue does not answer it may not; `clean`
    /// finds what is left.
    async fn is_own(&self, reach: &dyn Reach, job: &PlannedJob, id: &str) -> bool {
        self.recognize(reach, &[(job, id)]).await.is_ok() && self.own.borrow().contains(id)
    }

    /// The id of a job on a cluster that `sbatch` names, where that is the one whose queue is asked here. Elsewhere the number
    /// is another job's.
    async fn on_cluster(
        &self,
        reach: &dyn Reach,
        job: &PlannedJob,
        id: String,
        cluster: &str,
    ) -> Result<String, NotLaunched> {
        let is_new = !self.own.borrow().contains(&id);
        if is_new && self.is_own(reach, job, &id).await {
            return Ok(id);
        }
        let name = job_name(job).unwrap_or_default();
        Err(refuse_elsewhere(reach, &Host::Here, &id, cluster, &name).await.into())
    }

    /// Looks in the queue for the jobs that are not known to be the run's: those of the user in the job's folder are.
    async fn recognize(&self, reach: &dyn Reach, jobs: &[(&PlannedJob, &str)]) -> Result<(), String> {
        let unknown = jobs.iter().filter(|(_, id)| !self.own.borrow().contains(*id));
        let unknown: BTreeMap<&str, &PlannedJob> = unknown.map(|(job, id)| (*id, *job)).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let answer = reach.exec(&Host::Here, &Command::new(OWN_JOBS, QUERY_LIMIT)).await;
        let answer = answer.map_err(|error| error.to_string())?;
        if !answer.succeeded() {
            return Err(format!("`squeue` ended with {}: {}", answer.status, answer.complaint()));
        }
        let text = answer.stdout_text();
        let is_own =
            |line: &Listed| unknown.get(line.id).is_some_and(|job: &&PlannedJob| line.is_in(&job.folder));
        let found = text.lines().filter_map(Listed::read).filter(is_own);
        self.own.borrow_mut().extend(found.map(|line| line.id.to_owned()));
        Ok(())
    }

    /// Whether a job that is completing has been so for longer than Slurm itself needs.
    fn is_held(&self, id: &str) -> bool {
        let mut completing = self.completing.borrow_mut();
        completing.entry(id.to_owned()).or_insert_with(Instant::now).elapsed() >= COMPLETING_LIMIT
    }

    /// A job that Slurm says runs may still wait for a prolog on its nodes: the files of its output are made when its
    /// script begins.
    async fn begun(&self, reach: &dyn Reach, job: &PlannedJob, id: &str, poll: Poll) -> Poll {
        if poll != Poll::Running || self.begun.borrow().contains(id) {
            return poll;
        }
        let path = format!("{}/{}", job.folder, files::BATCH_ERR);
        let mut file = reach.get(&Host::Here, &path).await;
        if matches!(file, Err(ReachError::NotFound { .. })) {
            refresh(reach, &job.folder).await;
            file = reach.get(&Host::Here, &path).await;
        }
        match file {
            Err(ReachError::NotFound { .. }) => {
                return Poll::Starting { reason: "starting (its script has not begun: prolog)".to_owned() };
            }
            // A folder that cannot be read says nothing about the job.
            Ok(_) | Err(_) => self.begun.borrow_mut().insert(id.to_owned()),
        };
        Poll::Running
    }
}

/// What `--parsable` prints: the id, and after a semicolon the cluster's name where there are several. A wrapper of the
/// site's may print its banner before.
pub(super) fn id(answer: &Answer) -> Result<String, NotLaunched> {
    let text = answer.stdout_text();
    let last = last_line(&text);
    let id = last.split(';').next().unwrap_or_default();
    if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_digit()) {
        let last: String = last.chars().take(200).collect();
        return Err(format!("`sbatch` printed no job id: `{}`", last.escape_debug()).into());
    }
    Ok(id.to_owned())
}

fn last_line(text: &str) -> &str {
    text.trim().lines().next_back().unwrap_or_default().trim()
}

/// The cluster that stands behind the id: each has its own numbers.
pub(super) fn cluster(answer: &Answer) -> Option<String> {
    let text = answer.stdout_text();
    let (_, cluster) = last_line(&text).split_once(';')?;
    (!cluster.is_empty()).then(|| cluster.chars().take(64).collect())
}

/// Ends a job on a cluster whose queue is not the one that is asked here; why it is refused.
pub(super) async fn refuse_elsewhere(
    reach: &dyn Reach,
    host: &Host,
    id: &str,
    cluster: &str,
    name: &str,
) -> String {
    // `all` would mean this number on each of them.
    let is_one = cluster != "all" && cluster.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    let mut ended = "cancel it there";
    if is_one && !name.is_empty() {
        // By its name as well, which is the run's alone.
        let argv = ["scancel", &format!("--clusters={cluster}"), &format!("--name={name}"), id];
        let answer = reach.exec(host, &Command::new(argv, QUERY_LIMIT)).await;
        if answer.is_ok_and(|answer| answer.succeeded()) {
            ended = "it was cancelled there";
        }
    }
    let cluster = cluster.escape_debug();
    format!(
        "`sbatch` put job {id} on cluster `{cluster}`, and `squeue` does not list it here: {ended}; \
         set SLURM_CONF to the slurm.conf of `{cluster}`"
    )
}

/// Whether the id is all that was printed.
pub(super) fn is_bare(answer: &Answer) -> bool {
    answer.stdout_text().trim().lines().count() == 1
}

/// False once somebody wants the run to end.
pub(super) async fn pause(seconds: u64) -> bool {
    for _ in 0..seconds * 4 {
        if interrupt::asked().is_some() {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    true
}

/// A line of the queue on one of the user's own jobs.
struct Listed<'a> {
    id: &'a str,
    name: &'a str,
    /// Its script and its folder, which may hold anything.
    at: &'a str,
}

impl<'a> Listed<'a> {
    fn read(line: &'a str) -> Option<Listed<'a>> {
        let mut fields = line.trim().splitn(3, '|');
        let id = fields.next().filter(|id| !id.is_empty())?;
        Some(Listed { id, name: fields.next().unwrap_or_default(), at: fields.next().unwrap_or_default() })
    }

    /// Whether it runs in this folder, or runs its script, whatever its name.
    fn is_in(&self, folder: &str) -> bool {
        let folder = folder.trim_end_matches('/');
        let script = format!("{folder}/{}", files::JOB);
        self.at.strip_prefix(&script).is_some_and(|rest| rest.starts_with('|'))
            || self.at.trim_end_matches('/').strip_suffix(folder).is_some_and(|rest| rest.ends_with('|'))
    }
}

/// The job that runs in this folder. One of the same name that does not is not taken for it, nor is it certain enough that
/// none was submitted.
fn own_id(listed: &str, name: &str, folder: &str) -> Result<Option<String>, String> {
    let mut other = None;
    for line in listed.lines().filter_map(Listed::read) {
        if line.is_in(folder) {
            return Ok(Some(line.id.to_owned()));
        }
        if line.name == name {
            let (id, at) = (line.id, line.at.escape_debug());
            other = Some(format!("job {id} in the queue has its name, but another folder: `{at}`"));
        }
    }
    other.map_or(Ok(None), Err)
}

/// As the job's script has it: it holds the run's id, the case and the job.
pub(super) fn job_name(job: &PlannedJob) -> Result<String, String> {
    let script = job.files.iter().find(|file| file.name == files::JOB).and_then(|file| file.text.as_deref());
    let name = script.and_then(|text| text.lines().find_map(|line| line.strip_prefix("#SBATCH --job-name=")));
    name.map(str::to_owned).ok_or_else(|| "its script has no `--job-name`".to_owned())
}

/// A line of squeue on a job that goes on.
pub(crate) struct QueueLine {
    /// As squeue or scontrol reports it.
    pub state: JobState,
    /// Why it waits, in Slurm's word: `Resources`.
    pub reason: String,
}

impl QueueLine {
    /// The poll of a job in this state.
    pub(crate) fn poll(&self) -> Poll {
        match &self.state {
            JobState::Pending => {
                Poll::Waiting { reason: self.reason.clone(), never: never_clears(&self.reason) }
            }
            JobState::Configuring => Poll::Starting { reason: CONFIGURING.to_owned() },
            JobState::Revoked => Poll::Waiting { reason: REVOKED.to_owned(), never: true },
            JobState::Running | JobState::Completing => Poll::Running,
            JobState::Suspended => Poll::Suspended,
            JobState::Unknown(word) => Poll::Unknown(format!("`squeue` reported an unknown state: `{word}`")),
            _ => Poll::Running,
        }
    }
}

fn lines_by_id(text: &str) -> BTreeMap<String, QueueLine> {
    text.lines()
        .filter_map(|line| {
            let mut fields = line.split('|').map(str::trim);
            let (id, state, reason) = (fields.next()?, fields.next()?, fields.next()?);
            Some((id.to_owned(), QueueLine { state: JobState::parse(state), reason: reason.to_owned() }))
        })
        .collect()
}

#[cfg(test)]
#[path = "slurm_begin_tests.rs"]
mod begin_tests;
#[cfg(test)]
#[path = "slurm_held_tests.rs"]
mod held_tests;
#[cfg(test)]
#[path = "slurm_tests.rs"]
mod tests;
