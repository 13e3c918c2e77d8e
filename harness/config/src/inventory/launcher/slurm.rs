//! `[reach]` with `via = "slurm"`: what sbatch and srun are given.

use super::{JobNeeds, JobSite, LaunchPlanner, extra};
use crate::form::{Form, Key, Type, names};
use crate::inventory::Paths;
use crate::inventory::read::{line_of_text, word_of};
use crate::toml_reader::Table;
use job::script::{self, Directives, GpuRequest, Script, Start, Step, files};
use model::artefact::{Launcher, PlannedFile, RunCluster};

/// An allocation that jobs share is asked for as a whole: what is longer waits longer in a busy queue, and is bounded by
/// the time limits of most partitions.
const ALLOCATION_S: u64 = 4 * 3600;
const ALLOCATION_LIMITS_S: std::ops::RangeInclusive<u32> = 600..=30 * 24 * 3600;

const GPUS: [(&str, Option<GpuRequest>); 4] = [
    ("auto", None),
    ("gres", Some(GpuRequest::Gres)),
    ("gpus-per-node", Some(GpuRequest::GpusPerNode)),
    ("none", Some(GpuRequest::None)),
];

/// `[reach]` with `via = "slurm"`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SlurmReach {
    /// `--partition`.
    pub partition: Option<String>,
    /// `--account`.
    pub account: Option<String>,
    /// `--reservation`; that of the command line replaces it.
    pub reservation: Option<String>,
    /// `--constraint`, with Slurm's operators on features.
    pub constraint: Option<String>,
    /// `--qos`.
    pub qos: Option<String>,
    /// Of a node; `0` is all of it.
    pub mem: Option<String>,
    /// How GPUs are asked for. Where it does not say, what Slurm reports settles it before anything is launched.
    pub gpus: Option<GpuRequest>,
    /// Further arguments of sbatch, such as `--comment=acceptance`.
    pub sbatch: Vec<String>,
    /// Further arguments of each srun, in jobs and of the probe.
    pub srun: Vec<String>,
    /// Where Slurm's commands are called, over ssh; on this machine, where absent.
    pub login: Option<String>,
    /// A configuration file for the ssh to it.
    pub login_config: Option<String>,
    /// So many jobs of a run are in the queue or run at the same time; as many as nodes allow, where absent.
    pub most_jobs: Option<u32>,
    /// Jobs of a run that follow each other on the same nodes share an allocation of no more than so many seconds; each
    /// has one of its own, where absent.
    pub share: Option<u64>,
    /// What `srun --mpi` is given.
    pub mpi: String,
    /// `--exclusive`: whole nodes; so by default.
    pub exclusive: bool,
}

impl SlurmReach {
    /// Where an inventory says nothing.
    pub(super) fn usual() -> SlurmReach {
        SlurmReach { mpi: "pmix".to_owned(), exclusive: true, ..SlurmReach::default() }
    }

    pub(super) fn form() -> Form {
        let slurm = |name, about| Key::usual(name, "Slurm's", Type::Text, about);
        let limits = u64::from(*ALLOCATION_LIMITS_S.start())..=u64::from(*ALLOCATION_LIMITS_S.end());
        Form::new([
            slurm("partition", "`--partition`"),
            slurm("account", "`--account`"),
            slurm("reservation", "`--reservation`; that of the command line replaces it"),
            slurm("constraint", "`--constraint`, with Slurm's operators on features"),
            slurm("qos", "`--qos`"),
            slurm("mem", "memory of a node; `0` is all of it"),
            Key::usual(
                "gpus",
                "\"auto\"",
                Type::OneOf(|_| names(&GPUS)),
                "how GPUs are asked for: `\"none\"` for a Slurm without GRES; `\"auto\"` asks Slurm at the start of a run, and is `\"none\"` where no node has GPUs as GRES, else `\"gres\"`",
            ),
            Key::usual(
                "sbatch",
                "[]",
                Type::texts(),
                "further arguments of sbatch, such as `--comment=acceptance`",
            ),
            Key::usual(
                "srun",
                "[]",
                Type::texts(),
                "further arguments of each srun, in jobs and of the probe",
            ),
            Key::usual(
                "login",
                "this machine",
                Type::Text,
                "the host on which Slurm's commands are called, over ssh",
            ),
            Key::optional("login_config", Type::Text, "the configuration of ssh for it"),
            Key::usual(
                "most_jobs",
                "as many as nodes allow",
                Type::WHOLE,
                "jobs of a run in the queue at the same time",
            ),
            Key::usual(
                "share_allocations",
                "false",
                Type::Boolean,
                "jobs of a run that follow each other on the same nodes share an allocation",
            ),
            Key::usual(
                "longest_allocation_s",
                "14400",
                Type::Whole(limits),
                "seconds that such an allocation lasts",
            ),
            Key::usual("mpi", "\"pmix\"", Type::Text, "of those that `srun --mpi=list` lists"),
            Key::usual("exclusive", "true", Type::Boolean, "whole nodes"),
        ])
    }

    pub(super) fn read(table: &Table<'_>) -> SlurmReach {
        let word = |key: &'static str| table.get(key).and_then(|value| word_of(&value));
        SlurmReach {
            partition: word("partition"),
            account: word("account"),
            reservation: word("reservation"),
            // Slurm's operators on features; it reaches sbatch as one argument of its own.
            constraint: table.get("constraint").and_then(|value| line_of_text(&value)),
            qos: word("qos"),
            mem: word("mem"),
            gpus: table.get("gpus").and_then(|value| value.one_of(&GPUS)).flatten(),
            sbatch: table.get("sbatch").map(|value| extra::read_sbatch(&value)).unwrap_or_default(),
            srun: table.get("srun").map(|value| extra::read_srun(&value)).unwrap_or_default(),
            login: word("login"),
            login_config: table.get("login_config").and_then(|value| line_of_text(&value)),
            most_jobs: table.get("most_jobs").and_then(|value| value.small(1..=100_000)),
            share: read_share(table),
            mpi: word("mpi").unwrap_or_else(|| SlurmReach::usual().mpi),
            exclusive: table.get("exclusive").and_then(|value| value.boolean()).unwrap_or(true),
        }
    }

    /// As the inventory has it or as it was settled, else by GRES.
    pub fn gpu_request(&self) -> GpuRequest {
        self.gpus.unwrap_or_default()
    }

    /// All that sbatch and srun are both given for a job with so many GPUs on each node.
    pub fn options(&self, gpus: u32) -> Vec<String> {
        let gpus = self.gpu_request().option(gpus);
        let mut words: Vec<String> =
            gpus.map(|(name, value)| format!("--{name}={value}")).into_iter().collect();
        words.extend(self.named().map(|(name, value)| format!("--{name}={value}")));
        words.extend(self.mem.iter().map(|value| format!("--mem={value}")));
        words.extend(self.exclusive.then(|| "--exclusive".to_owned()));
        words
    }

    /// What sbatch and srun are both given, by the names of their options.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let named = [
            ("partition", &self.partition),
            ("account", &self.account),
            ("reservation", &self.reservation),
            ("constraint", &self.constraint),
            ("qos", &self.qos),
        ];
        named.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)))
    }
}

/// The longest allocation that jobs may share.
fn read_share(table: &Table<'_>) -> Option<u64> {
    let shares = table.get("share_allocations").and_then(|value| value.boolean()).unwrap_or(false);
    let longest = table.get("longest_allocation_s");
    if let Some(value) = longest.as_ref().filter(|_| !shares) {
        let message = "`longest_allocation_s` needs `share_allocations = true`";
        value.diagnostic_with(message, "add `share_allocations = true`");
    }
    let longest = longest.and_then(|value| value.small(ALLOCATION_LIMITS_S)).map(u64::from);
    shares.then(|| longest.unwrap_or(ALLOCATION_S))
}

impl LaunchPlanner for SlurmReach {
    fn launcher(&self) -> Launcher {
        Launcher::Slurm
    }

    fn site_names(&self) -> Vec<&str> {
        let names = [
            &self.partition,
            &self.account,
            &self.qos,
            &self.reservation,
            &self.constraint,
            &self.login,
            &self.login_config,
        ];
        names.into_iter().flatten().map(String::as_str).collect()
    }

    fn check_when_silent(&self, _cluster: Option<&RunCluster>) -> String {
        "`sinfo` and `srun --nodes=1 true` on this machine: is slurmctld up, is slurm.conf the cluster's, do partition, \
         account, QOS and GRES exist?"
            .to_owned()
    }

    fn is_busy(&self, answer: &str) -> bool {
        ["Requested nodes are busy", "Unable to allocate resources: Requested node configuration"]
            .iter()
            .any(|sign| answer.contains(sign))
    }

    fn refuse_simulated(&self) -> Option<&'static str> {
        self.login.is_some().then_some("a simulated cluster has no login host; remove `login`")
    }

    fn most_jobs(&self) -> Option<u32> {
        self.most_jobs
    }

    fn drains(&self) -> bool {
        true
    }

    fn mpi<'a>(&'a self, _paths: &'a Paths) -> Option<&'a str> {
        Some(&self.mpi)
    }

    fn numbers_tasks(&self) -> bool {
        true
    }

    fn refuse_job(&self, needs: &JobNeeds<'_>) -> Result<(), String> {
        match needs.runtime {
            Some(_) => {
                Err("`runtime` of `[container]` is for nodes reached by ssh; Slurm runs images by Pyxis"
                    .into())
            }
            None => Ok(()),
        }
    }

    fn refuse_shared_gpus(&self) -> Option<String> {
        (self.gpu_request() == GpuRequest::None)
            .then(|| "jobs ask for no GPUs here (`gpus = \"none\"`): Slurm knows of none to give".to_owned())
    }

    /// By Pyxis.
    fn runs_images(&self) -> bool {
        true
    }

    fn start(&self, job: &JobSite<'_>) -> Start {
        Start::Slurm(Directives {
            job_name: job.queued_as.clone(),
            folder: job.folder.to_owned(),
            tasks_per_node: job.tasks_per_node,
            gpus_per_node: self.gpu_request().count(job.gpus),
            // Slurm counts in minutes and looks every half minute: its limit stands behind the harness's own.
            minutes: (job.limit_s + 180).div_ceil(60),
            exclusive: self.exclusive,
            stands_alone: true,
            partition: self.partition.clone(),
            account: self.account.clone(),
            reservation: self.reservation.clone(),
            constraint: self.constraint.clone(),
            gpus: self.gpu_request(),
            qos: self.qos.clone(),
            mem: self.mem.clone(),
            sbatch: self.sbatch.clone(),
            srun: self.srun.clone(),
            records_environment: true,
        })
    }

    fn launch(&self, folder: &str) -> Vec<String> {
        vec!["sbatch".to_owned(), "--parsable".to_owned(), format!("{folder}/{}", files::JOB)]
    }

    /// In another order than Slurm's own srun starts ranks by a list.
    fn files(&self, script: &Script) -> Vec<PlannedFile> {
        let steps = script.steps.iter().filter(|_| script::is_reordered(&script.nodes));
        let ranks = steps.filter_map(|step| match step {
            Step::Run(run) => Some(run.tasks_per_node),
            _ => None,
        });
        let list = |tasks_per_node| PlannedFile {
            name: files::HOSTFILE.to_owned(),
            text: Some(script::task_list(&script.nodes, tasks_per_node)),
            sha256: None,
        };
        ranks.map(list).collect()
    }

    fn records_environment(&self) -> bool {
        true
    }
}
