//! How a planned job is started, watched and ended: the trait, and the list of launchers.
//! When a job may start and how long it may take is decided in `run`; a launcher reads no TOML.

pub mod folder;
pub(crate) mod image;
pub mod local;
pub mod slurm;
pub mod slurm_array;
pub(crate) mod slurm_end;
pub(crate) mod slurm_json;
pub(crate) mod slurm_turns;
pub mod ssh;
mod ssh_heartbeat;
mod ssh_node;
mod ssh_watch;
pub mod stderr_blame;
mod step_end;
pub mod waiting_step;

use crate::reach::stall_request::StallRequest;
use crate::reach::{Host, Reach, ReachError, Wait};
use base::nodeset::fold;
use metric::finding::Finding;
use model::artefact::{Blamed, Ended, FolderAccess, Launcher, PlannedJob};
use std::time::Duration;

/// How long one question to a launcher may take: a query without a limit hangs the whole run.
pub const QUERY_LIMIT: Duration = Duration::from_secs(60);

/// A launcher: starts planned jobs, polls them and ends them.
pub trait Launch {
    /// Hands the job over; gives the handle by which it is known from then on.
    fn submit<'a>(
        &'a self,
        reach: &'a dyn Reach,
        job: &'a PlannedJob,
    ) -> Wait<'a, Result<String, NotLaunched>>;

    /// The handle of a job that was handed over before, if it was: asked where the answer to `submit` may have been
    /// lost. Where that is unknown it is an error, since launching twice measures twice.
    fn find_started<'a>(
        &'a self,
        reach: &'a dyn Reach,
        job: &'a PlannedJob,
    ) -> Wait<'a, Result<Option<String>, NotLaunched>>;

    /// What the launcher knows of each job, in the order asked. A failed query is `Unknown` for all of them.
    fn poll<'a>(&'a self, reach: &'a dyn Reach, jobs: &'a [(&'a PlannedJob, &'a str)])
    -> Wait<'a, Vec<Poll>>;

    /// Keeps what was launched alive, for as long as it is polled. It never ends.
    fn heartbeat<'a>(&'a self, _reach: &'a dyn Reach) -> Wait<'a, ()> {
        Box::pin(std::future::pending())
    }

    /// The job is given up: nothing keeps it alive any more.
    fn forget(&self, _handle: &str) {}

    /// What runs a request once on each of the job's nodes, beside the job that runs there as `handle`, and the host of each.
    fn beside(&self, job: &PlannedJob, _handle: &str) -> Vec<(Host, Vec<String>)> {
        let all = StallRequest::for_nodes(job);
        all.map(|(node, request)| (Host::Node(node.to_owned()), request.arguments())).collect()
    }

    /// Asks the job to end by itself.
    fn interrupt<'a>(&'a self, reach: &'a dyn Reach, job: &'a PlannedJob, handle: &'a str) -> Wait<'a, ()>;

    /// Ends the job. Ending one that has ended already is no error.
    fn cancel<'a>(&'a self, reach: &'a dyn Reach, job: &'a PlannedJob, handle: &'a str) -> Wait<'a, ()>;
}

/// What a launcher reports of one job.
#[derive(Debug, Clone, PartialEq)]
pub enum Poll {
    /// The launcher could not be asked, or gave an answer that says nothing. Never "no such job".
    Unknown(String),
    /// Not started yet, and why; `never` where that reason does not clear by waiting.
    Waiting {
        /// Such as Slurm's `Resources`.
        reason: String,
        /// Waiting does not clear the reason.
        never: bool,
    },
    /// It has its nodes, and its script has not begun on them: they boot, or a prolog runs. It waits, and is no longer
    /// queued.
    Starting {
        /// Such as `configuring (nodes boot)`.
        reason: String,
    },
    /// Its script runs on its nodes.
    Running,
    /// Slurm has stopped its processes, and may let them go on.
    Suspended,
    /// It has ended, or is lost.
    Ended {
        /// By an exit code, by a signal, or by what ended it.
        end: Ended,
        /// The node at fault; None where none is known.
        blamed: Option<Blamed>,
        /// What was odd on the way, and changes no verdict.
        findings: Vec<Finding>,
    },
}

impl Poll {
    /// An end without findings.
    pub fn ended(end: Ended, blamed: Option<Blamed>) -> Poll {
        Poll::Ended { end, blamed, findings: Vec::new() }
    }
}

/// Why a job was not handed over, and the node that it failed on.
#[derive(Debug, Clone, PartialEq)]
pub struct NotLaunched {
    /// `LaunchFailed`, `FolderFailed` or `HostUnreachable`, or how its allocation was lost.
    pub end: Ended,
    /// None where no node is at fault.
    pub blamed: Option<Blamed>,
}

impl NotLaunched {
    /// On one host, which is to blame.
    pub(crate) fn on(host: &Host, error: &ReachError) -> NotLaunched {
        let why = error.to_string();
        let blamed = match host {
            Host::Node(node) if !error.may_be_fault_of(node) => None,
            Host::Node(node) => Some(Blamed { node: node.clone(), evidence: why.clone() }),
            Host::Here => None,
        };
        let end = match error {
            ReachError::Unreachable { .. } | ReachError::TimedOut { .. } if blamed.is_some() => {
                Ended::HostUnreachable { why }
            }
            _ => Ended::LaunchFailed { why },
        };
        NotLaunched { end, blamed }
    }

    /// These of the job's nodes failed as well.
    fn blaming_none(mut self, more: &[&str]) -> NotLaunched {
        if let Ended::LaunchFailed { why } | Ended::HostUnreachable { why } = &mut self.end {
            why.push_str(&format!("; failed too: {}", fold(more)));
        }
        self.blamed = None;
        self
    }

    /// Slurm takes it once others of this user's jobs have ended.
    pub(crate) fn clears_later(&self) -> bool {
        matches!(&self.end, Ended::LaunchFailed { why } if crate::reach::slurm_refusal::is_submit_limit(why))
    }

    /// The message of the failure; empty where its end has none.
    pub(crate) fn why(&self) -> &str {
        match &self.end {
            Ended::LaunchFailed { why } | Ended::FolderFailed { why } | Ended::HostUnreachable { why } => why,
            _ => "",
        }
    }
}

impl NotLaunched {
    /// The job's folder, by whoever fills it: a node or this machine.
    pub(crate) fn on_folder(launcher: Launcher, error: &ReachError, job: &PlannedJob) -> NotLaunched {
        match launcher.facts().folder {
            FolderAccess::Nodes => ssh::on_folder(error, job),
            FolderAccess::ThisMachine => {
                NotLaunched { end: Ended::FolderFailed { why: error.to_string() }, blamed: None }
            }
        }
    }
}

impl From<String> for NotLaunched {
    fn from(why: String) -> Self {
        NotLaunched { end: Ended::LaunchFailed { why }, blamed: None }
    }
}

/// The launcher of a plan.
pub(crate) fn find(launcher: Launcher) -> Box<dyn Launch> {
    match launcher {
        Launcher::Slurm => Box::new(slurm::Slurm::default()),
        // Pods are hosts: only the reach below differs.
        Launcher::Ssh | Launcher::Kubernetes => Box::new(ssh::Ssh::default()),
        Launcher::Local => Box::new(local::Local),
    }
}
