//! Which rank a process is, on which host, and among which: as srun, mpirun or torchrun reports it, or without a
//! launcher.

use base::nodeset;
use sim::case_and_job;
use std::env;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProcessPlace {
    pub node: String,
    /// Of the whole job, in its order; none where only the ranks themselves know.
    pub nodes: Option<Vec<String>>,
    pub rank: u32,
    pub local: u32,
    pub tasks: u32,
    /// Something wires the ranks together, as an MPI library would find.
    pub wired: bool,
    /// What distinguishes this start of the program from every other.
    pub start: String,
    pub case: String,
    pub job: String,
}

impl ProcessPlace {
    pub(crate) fn from_environment() -> Result<ProcessPlace, String> {
        let folder = env::current_dir().map_err(|error| format!("no working folder: {error}"))?;
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        ProcessPlace::read(
            &|name| env::var(name).ok().filter(|value| !value.is_empty()),
            &folder.to_string_lossy(),
            host.trim(),
        )
    }

    /// By variables, the working folder and the kernel's name of the host.
    pub(crate) fn read(
        of: &dyn Fn(&str) -> Option<String>,
        folder: &str,
        host: &str,
    ) -> Result<ProcessPlace, String> {
        let number = |name: &str| match of(name) {
            None => Ok(None),
            Some(text) => {
                text.parse::<u32>().map(Some).map_err(|_| format!("{name} is not a number: `{text}`"))
            }
        };
        let first = |names: &[&str]| names.iter().find_map(|name| of(name));
        let node = first(&["HARNESS_NODE", "SLURMD_NODENAME", "HOSTNAME"]).unwrap_or_else(|| host.to_owned());
        let (case, job) = case_and_job(folder);
        let list = first(&["HARNESS_STANDIN_NODES", "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"]);
        let nodes = list.map(|list| nodeset::expand(&list)).transpose()?;
        let mut place = ProcessPlace {
            node,
            nodes,
            rank: 0,
            local: 0,
            tasks: 1,
            wired: false,
            start: format!("folder {folder}"),
            case: case.to_owned(),
            job: job.to_owned(),
        };
        // The launcher nearest to the program comes first: mpirun under srun sees srun's variables too.
        if let Some(rank) = number("OMPI_COMM_WORLD_RANK")? {
            place.wired = true;
            place.rank = rank;
            place.local = number("OMPI_COMM_WORLD_LOCAL_RANK")?.unwrap_or_default();
            place.tasks = number("OMPI_COMM_WORLD_SIZE")?.unwrap_or(1);
            place.start = first(&["HARNESS_STANDIN_START", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"])
                .unwrap_or(place.start);
        } else if let Some(rank) = number("SLURM_PROCID")? {
            place.wired = of("PMI_RANK").is_some() || of("PMIX_RANK").is_some();
            place.rank = rank;
            place.local = number("SLURM_LOCALID")?.unwrap_or_default();
            place.tasks = match number("SLURM_STEP_NUM_TASKS")? {
                Some(tasks) => tasks,
                None => number("SLURM_NTASKS")?.unwrap_or(1),
            };
            let part = |name: &str| of(name).unwrap_or_default();
            place.start = format!(
                "slurm {}.{}.{} {folder}",
                part("SLURM_JOB_ID"),
                part("SLURM_STEP_ID"),
                part("SLURM_RESTART_COUNT")
            );
        } else if let (Some(rank), Some(tasks)) = (number("RANK")?, number("WORLD_SIZE")?) {
            place.rank = rank;
            place.local = number("LOCAL_RANK")?.unwrap_or_default();
            place.tasks = tasks;
        }
        if place.nodes.is_none() && place.tasks == 1 {
            place.nodes = Some(vec![place.node.clone()]);
        }
        if place.rank >= place.tasks {
            return Err(format!("rank {} of {} ranks", place.rank, place.tasks));
        }
        Ok(place)
    }
}
