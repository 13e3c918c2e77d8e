//! Leftovers of a run in the queue, on its nodes and in its folders: found by what the run itself has written down,
//! ended by number and never by name, and looked for again. What cannot be known is reported, and is not nothing. Which
//! run, and what is printed, is the business of `cli`.

mod accounting;
pub mod analyses;
pub mod injector;
mod node;
pub mod pods;
mod queue;

use crate::reach::{Host, Reach};
use futures::stream::{self, StreamExt};
use job::script::Runtime;
use model::artefact::{FolderAccess, Plan, Queue};
use std::collections::{BTreeMap, BTreeSet};

/// Something of a run that is still there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leftover {
    /// The node, the queue, or the folder that all nodes see.
    pub at: String,
    /// A job, a process, a file or a folder.
    pub what: LeftoverKind,
    /// A number, or a file's name.
    pub which: String,
    /// `case/job`
    pub job: String,
}

/// The kinds of leftovers that `harness clean` reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftoverKind {
    /// A job in the queue.
    Queued,
    /// One that another user submitted: it is not ours to end.
    QueuedByOther,
    /// One of a process group that the job's own records name.
    Process,
    /// The mark of a job without a supervisor.
    SupervisorState,
    /// What a job was given and has not read.
    Secret,
    /// A file that was not written to its end, under the name that says so.
    Part,
    /// A file under its own name that is not what was put there.
    Broken,
    /// A container under the label of the job.
    Container,
    /// A pod under the label of the run.
    Pod,
    /// Where tasks of an analysis hand over what they read.
    Folder,
}

impl LeftoverKind {
    /// As `harness clean` prints it: `unread secret`.
    pub fn name(self) -> &'static str {
        match self {
            LeftoverKind::Queued => "job in the queue",
            LeftoverKind::QueuedByOther => "another user's job in the queue",
            LeftoverKind::Process => "process",
            LeftoverKind::SupervisorState => "stale supervisor state",
            LeftoverKind::Secret => "unread secret",
            LeftoverKind::Part => "unfinished file",
            LeftoverKind::Broken => "broken file",
            LeftoverKind::Container => "container",
            LeftoverKind::Pod => "pod",
            LeftoverKind::Folder => "folder",
        }
    }
}

/// What was found, and what of it remains.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// All leftovers that were there at first.
    pub found: BTreeSet<Leftover>,
    /// Those still there after ending them; all of `found` where nothing was to be ended.
    pub left: BTreeSet<Leftover>,
    /// Hosts and queues that gave no answer, and why: leftovers there are not known.
    pub unasked: BTreeMap<String, String>,
    /// Contradictions and ambiguities, a line for each.
    pub unclear: BTreeSet<String>,
    /// What has an id of the run and is somebody else's: it is left alone.
    pub not_ours: BTreeSet<String>,
}

impl Cleaned {
    /// Both together.
    pub fn and(mut self, other: Cleaned) -> Cleaned {
        self.found.extend(other.found);
        self.left.extend(other.left);
        self.unasked.extend(other.unasked);
        self.unclear.extend(other.unclear);
        self.not_ours.extend(other.not_ours);
        self
    }

    /// How much is not known.
    pub fn unknown(&self) -> usize {
        self.unasked.len() + self.unclear.len()
    }
}

/// The ids under which Slurm knows the jobs of a run, as the run has written them down.
#[derive(Debug, Default)]
pub struct Recorded {
    /// By id, the job as `case/job`.
    ids: BTreeMap<String, String>,
    /// Why they are not all.
    unread: Option<String>,
}

impl Recorded {
    /// Jobs as `case/job` with their handles; or why they cannot be read.
    pub fn add(&mut self, read: Result<Vec<(String, String)>, String>) {
        let handles = match read {
            Ok(handles) => handles,
            Err(why) => {
                self.unread.get_or_insert(why);
                return;
            }
        };
        for (job, handle) in handles {
            // A job that was given its turn in an allocation has the allocation's id.
            let id = handle.split('/').next().unwrap_or_default();
            if !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()) {
                self.ids.entry(id.to_owned()).or_insert(job);
            }
        }
    }
}

/// So many nodes are asked at the same time.
const AT_ONCE: usize = 32;
const QUEUE: &str = "queue";
const SHARED: &str = "shared folder";

/// Looks for leftovers of a run, and ends them, if that is wanted.
pub async fn clean(plan: &Plan, recorded: &Recorded, reach: &dyn Reach, ends: bool) -> Cleaned {
    let jobs = Jobs::from_plan(plan);
    let mut cleaned = Cleaned::default();
    if plan.launcher.facts().queue.is_some()
        && let Some(why) = &recorded.unread
    {
        let why = format!("the run's records cannot be read, so jobs are searched without their ids: {why}");
        cleaned.unclear.insert(why);
    }
    cleaned.found = look(plan, &jobs, recorded, reach, &mut cleaned).await;
    if !ends || cleaned.found.is_empty() {
        cleaned.left = cleaned.found.clone();
        return cleaned;
    }
    let queued = cleaned.found.iter().filter(|left| left.what == LeftoverKind::Queued);
    queue::end(queued.map(|left| left.which.clone()).collect(), &queue::JOBS, reach).await;
    let touched: BTreeSet<&str> =
        cleaned.found.iter().filter(|left| !is_queued(left)).map(|left| left.job.as_str()).collect();
    let stubborn =
        ask(plan, &jobs, reach, "end", &|job| touched.contains(job), &mut Cleaned::default()).await;
    let is_over = |file: &&Leftover| {
        let runs = |left: &Leftover| matches!(left.what, LeftoverKind::Process | LeftoverKind::Container);
        !stubborn.iter().any(|left| runs(left) && left.job == file.job)
    };
    let files = cleaned.found.iter().chain(&stubborn).filter(|left| is_file(left)).filter(is_over);
    node::remove(plan, &jobs, reach, files).await;
    cleaned.left = look(plan, &jobs, recorded, reach, &mut cleaned).await;
    cleaned
}

fn is_file(left: &Leftover) -> bool {
    matches!(left.what, LeftoverKind::Secret | LeftoverKind::Part | LeftoverKind::Broken)
}

fn is_queued(left: &Leftover) -> bool {
    matches!(left.what, LeftoverKind::Queued | LeftoverKind::QueuedByOther)
}

/// The jobs of a plan: their names as `case/job`, and their folders.
pub(crate) struct Jobs(Vec<Job>);

/// A job of the plan, or the batch job of an allocation.
pub(crate) struct Job {
    /// `case/job`, or `allocation/NAME`.
    pub name: String,
    /// Its folder on the nodes, as in the plan.
    pub folder: String,
    /// Over ssh each of them is asked about it.
    pub nodes: Vec<String>,
    /// The name under which Slurm knows it.
    pub queued_as: String,
    /// The files that were put into its folder, with their digests.
    pub files: BTreeMap<String, String>,
    /// What runs its containers.
    pub runtime: Option<Runtime>,
}

impl Jobs {
    fn from_plan(plan: &Plan) -> Jobs {
        let jobs = plan.cases.iter().flat_map(|case| case.jobs.iter().map(move |job| (case, job)));
        let job = jobs.map(|(case, job)| Job {
            name: format!("{}/{}", case.name, job.name),
            folder: job.folder.clone(),
            nodes: job.nodes.clone(),
            queued_as: format!("{}.{}.{}", plan.run_id, case.name, job.name),
            files: job.files.iter().filter_map(node::digest_of).collect(),
            runtime: crate::launch::image::planned(job).map(|(runtime, _)| runtime),
        });
        let batch_job =
            plan.allocations.iter().map(|allocation| &allocation.batch_job).map(|batch_job| Job {
                name: format!("allocation/{}", batch_job.name),
                folder: batch_job.folder.clone(),
                nodes: batch_job.nodes.clone(),
                queued_as: plan::name_of_allocation(&plan.run_id, &batch_job.name),
                files: batch_job.files.iter().filter_map(node::digest_of).collect(),
                runtime: None,
            });
        Jobs(job.chain(batch_job).collect())
    }
}

async fn look(
    plan: &Plan,
    jobs: &Jobs,
    recorded: &Recorded,
    reach: &dyn Reach,
    cleaned: &mut Cleaned,
) -> BTreeSet<Leftover> {
    let mut found = match plan.launcher.facts().queue {
        Some(Queue::Slurm) => queue::look(jobs, recorded, reach, cleaned).await,
        None => BTreeSet::new(),
    };
    found.extend(ask(plan, jobs, reach, "look", &|_| true, cleaned).await);
    found
}

/// Asks every host that has to do with the run about the jobs that are meant.
async fn ask(
    plan: &Plan,
    jobs: &Jobs,
    reach: &dyn Reach,
    verb: &str,
    meant: &dyn Fn(&str) -> bool,
    cleaned: &mut Cleaned,
) -> BTreeSet<Leftover> {
    let here = [Host::Here];
    let nodes: Vec<Host> = plan.nodes.iter().cloned().map(Host::Node).collect();
    let hosts = match plan.launcher.facts().folder {
        FolderAccess::Nodes => nodes.as_slice(),
        FolderAccess::ThisMachine => &here,
    };
    let asked = hosts.iter().map(|host| async move {
        let is_of = |job: &&Job| {
            meant(&job.name)
                && match host {
                    Host::Here => true,
                    Host::Node(node) => job.nodes.contains(node),
                }
        };
        let of_host: Vec<&Job> = jobs.0.iter().filter(is_of).collect();
        (host, node::ask(reach, host, verb, &of_host).await)
    });
    let answers: Vec<_> = stream::iter(asked).buffered(AT_ONCE).collect().await;
    let mut found = BTreeSet::new();
    for (host, answer) in answers {
        match answer {
            Ok(report) => {
                found.extend(report.left);
                cleaned.unclear.extend(report.refused);
            }
            Err(why) => {
                cleaned.unasked.insert(host.to_string(), why);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests;
