//! What planning and reporting ask of a launcher. Nothing here touches the cluster.

use crate::inventory::Paths;
use job::script::{Runtime, Script, Start};
use model::artefact::{Launcher, PlannedFile, RunCluster};

/// A launcher before anything is launched, by what its table says.
pub trait LaunchPlanner {
    /// Which one it is.
    fn launcher(&self) -> Launcher;

    /// Names of the site that stand in its table: a published certificate must not hold them.
    fn site_names(&self) -> Vec<&str>;

    /// What to check where no node answers, as the message of it ends; in pods of this cluster.
    fn check_when_silent(&self, cluster: Option<&RunCluster>) -> String;

    /// Whether that answer for a node means no more than that it is busy: jobs wait for it.
    fn is_busy(&self, _answer: &str) -> bool {
        false
    }

    /// Why a simulated cluster cannot be reached so, if it cannot.
    fn refuse_simulated(&self) -> Option<&'static str> {
        None
    }

    /// So many jobs of a run are handed over at the same time; as many as nodes allow, where absent.
    fn most_jobs(&self) -> Option<u32> {
        None
    }

    /// Nodes can be taken out of its queue.
    fn drains(&self) -> bool {
        false
    }

    /// What connects the ranks of a job by MPI, as its script names it; absent where nothing does.
    fn mpi<'a>(&'a self, paths: &'a Paths) -> Option<&'a str>;

    /// One process of nccl-tests drives all GPUs of a job's only node, which may have no MPI.
    fn spares_mpi_on_one_node(&self) -> bool {
        false
    }

    /// It starts every rank as a task with a number; otherwise one process on each node starts the others there.
    fn numbers_tasks(&self) -> bool {
        false
    }

    /// Jobs can run in the image of a container.
    fn runs_images(&self) -> bool {
        false
    }

    /// Why it cannot start such a job, if it cannot.
    fn refuse_job(&self, _needs: &JobNeeds<'_>) -> Result<(), String> {
        Ok(())
    }

    /// Why a case with such jobs is skipped, while the rest of its suite runs.
    fn unsupported(&self, _needs: &JobNeeds<'_>) -> Option<String> {
        None
    }

    /// Why no step of a job can be given some of its GPUs.
    fn refuse_shared_gpus(&self) -> Option<String> {
        Some("Slurm gives steps of a job their GPUs, and does not start jobs here".to_owned())
    }

    /// How the script of a job begins.
    fn start(&self, job: &JobSite<'_>) -> Start;

    /// The arguments that start the job of this folder.
    fn launch(&self, folder: &str) -> Vec<String>;

    /// Files of the job that only this launcher needs.
    fn files(&self, _script: &Script) -> Vec<PlannedFile> {
        Vec::new()
    }

    /// Shared scripts that only this launcher needs, by name.
    fn shared_scripts(&self) -> &'static [&'static str] {
        &[]
    }

    /// What the nodes print comes into one file; otherwise each writes files of its own.
    fn gathers_output(&self, _script: &Script) -> bool {
        true
    }

    /// The script writes down the environment that it was given.
    fn records_environment(&self) -> bool {
        false
    }
}

/// What a job needs of its launcher.
pub struct JobNeeds<'a> {
    /// Its nodes.
    pub nodes: &'a [String],
    /// It runs in the inventory's container.
    pub container: bool,
    /// What runs that one, where it is not Pyxis.
    pub runtime: Option<Runtime>,
    /// Of a container that its case names.
    pub image: Option<&'a str>,
    /// Only MPI connects its ranks.
    pub mpi: bool,
    /// As the suite has it.
    pub tasks_per_node: u32,
}

/// Where and for how long a job runs.
pub struct JobSite<'a> {
    /// The name of the job in a queue.
    pub queued_as: String,
    /// Its folder on the nodes.
    pub folder: &'a str,
    /// Processes that are started on each node.
    pub tasks_per_node: u32,
    /// Of a node.
    pub gpus: u32,
    /// The harness ends it after so long.
    pub limit_s: u64,
}
