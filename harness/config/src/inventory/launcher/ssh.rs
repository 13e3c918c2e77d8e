//! `[reach]` with `via = "ssh"`: how the nodes are connected to, and how long they run without the harness.

use super::{JobNeeds, JobSite, LaunchPlanner};
use crate::form::{Form, Key, Type, names};
use crate::inventory::Paths;
use crate::inventory::read::{line_of_text, word_of};
use crate::toml_reader::Table;
use base::nodeset;
use job::script::{self, Run, Script, Start, Step, files, start};
use model::artefact::{Launcher, PlannedFile, RunCluster};

const STARTS: [(&str, SshStart); 2] = [("mpirun", SshStart::Mpirun), ("processes", SshStart::Processes)];
const HEARTBEAT_TIMEOUT_S: u64 = 300;
/// Shorter than the time after which a job that gives no answer is given up, longer than a few looks.
const HEARTBEAT_TIMEOUT_LIMITS_S: std::ops::RangeInclusive<u32> = 30..=540;

/// `[reach]` with `via = "ssh"`.
#[derive(Debug, Clone, PartialEq)]
pub struct SshReach {
    /// `ssh -l`; left to ssh where absent.
    pub user: Option<String>,
    /// `ssh -p`; left to ssh where absent.
    pub port: Option<u16>,
    /// A configuration file for ssh.
    pub config: Option<String>,
    /// `mpirun` by default.
    pub start: SshStart,
    /// What was started on a node ends by itself when the harness has not looked for so long.
    pub heartbeat_timeout_s: u64,
}

/// How the ranks of nccl-tests come about without a scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SshStart {
    /// One mpirun on the first node of a job, which reaches the others by ssh of its own.
    Mpirun,
    /// One process on each node, with its rank in the environment; then nothing connects nccl-tests.
    Processes,
}

/// The key of every launcher whose jobs live by heartbeats.
pub(super) fn heartbeat_key() -> Key {
    let limits = &HEARTBEAT_TIMEOUT_LIMITS_S;
    let limits = u64::from(*limits.start())..=u64::from(*limits.end());
    Key::usual(
        "heartbeat_timeout_s",
        "300",
        Type::Whole(limits),
        "what was started on a node ends by itself when the harness has not looked for so many seconds",
    )
}

pub(super) fn read_heartbeat(table: &Table<'_>) -> Option<u64> {
    table
        .get("heartbeat_timeout_s")
        .map_or(Some(HEARTBEAT_TIMEOUT_S), |value| value.small(HEARTBEAT_TIMEOUT_LIMITS_S).map(u64::from))
}

impl SshReach {
    pub(super) fn form() -> Form {
        Form::new([
            Key::usual("user", "ssh's", Type::Text, "`ssh -l`"),
            Key::usual("port", "ssh's", Type::Whole(1..=65_535), "`ssh -p`"),
            Key::optional("config", Type::Text, "a configuration file of ssh"),
            Key::usual(
                "start",
                "\"mpirun\"",
                Type::OneOf(|_| names(&STARTS)),
                "how the ranks of nccl-tests come about: one mpirun, or processes that nothing connects",
            ),
            heartbeat_key(),
        ])
    }

    pub(super) fn read(table: &Table<'_>) -> Option<SshReach> {
        Some(SshReach {
            user: table.get("user").and_then(|value| word_of(&value)),
            port: table.get("port").and_then(|value| u16::try_from(value.small(1..=65_535)?).ok()),
            config: table.get("config").and_then(|value| line_of_text(&value)),
            start: table.get("start").map_or(Some(SshStart::Mpirun), |value| value.one_of(&STARTS))?,
            heartbeat_timeout_s: read_heartbeat(table)?,
        })
    }
}

impl LaunchPlanner for SshReach {
    fn launcher(&self) -> Launcher {
        Launcher::Ssh
    }

    fn site_names(&self) -> Vec<&str> {
        [&self.user, &self.config].into_iter().flatten().map(String::as_str).collect()
    }

    fn check_when_silent(&self, _cluster: Option<&RunCluster>) -> String {
        "`ssh NODE true` from this machine: names, keys, known hosts, login shell".to_owned()
    }

    fn mpi<'a>(&'a self, paths: &'a Paths) -> Option<&'a str> {
        match self.start {
            SshStart::Mpirun => Some(paths.mpirun.as_deref().unwrap_or(script::FIND_MPIRUN)),
            SshStart::Processes => None,
        }
    }

    /// What needs Slurm is not made to look as if it ran.
    fn refuse_job(&self, needs: &JobNeeds<'_>) -> Result<(), String> {
        if needs.container && needs.runtime.is_none() {
            return Err(
                "`[container]` over ssh needs `runtime = \"docker\"` or `runtime = \"podman\"`".into()
            );
        }
        if needs.mpi && self.start == SshStart::Processes && needs.nodes.len() > 1 {
            return Err(format!(
                "placed on {}, but `start = \"processes\"` runs nccl-tests on one node only; use \
                 `start = \"mpirun\"`",
                nodeset::fold(needs.nodes)
            ));
        }
        if needs.tasks_per_node > 1 {
            return Err(format!(
                "`tasks_per_node = {}` needs Slurm: over ssh a command runs once on each node",
                needs.tasks_per_node
            ));
        }
        Ok(())
    }

    fn start(&self, _job: &JobSite<'_>) -> Start {
        Start::Ssh
    }

    fn launch(&self, folder: &str) -> Vec<String> {
        start::over_ssh(folder, self.heartbeat_timeout_s)
    }

    fn files(&self, script: &Script) -> Vec<PlannedFile> {
        hostfile(script).into_iter().collect()
    }

    fn shared_scripts(&self) -> &'static [&'static str] {
        &[files::SUPERVISOR]
    }

    /// mpirun gathers what its ranks print.
    fn gathers_output(&self, script: &Script) -> bool {
        mpirun_ranks(script).is_some()
    }
}

/// Of the one mpirun of a job, where it has one.
pub(super) fn hostfile(script: &Script) -> Option<PlannedFile> {
    let text = script::hostfile(&script.nodes, mpirun_ranks(script)?);
    Some(PlannedFile { name: files::HOSTFILE.to_owned(), text: Some(text), sha256: None })
}

/// The ranks on each node, where one mpirun starts them all.
pub(super) fn mpirun_ranks(script: &Script) -> Option<u32> {
    script.steps.iter().find_map(|step| match step {
        Step::Run(Run { mpi: Some(_), tasks_per_node, .. }) => Some(*tasks_per_node),
        _ => None,
    })
}
