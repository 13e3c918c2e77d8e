//! What the launcher's tools print where no rank of any job comes to its work: Open MPI without srun's PMI, and a
//! container image that Pyxis cannot import. No node is at fault for either.

use super::cluster::Cluster;
use super::commands::exits;
use super::spread::Spread;
use super::work::Work;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokenStart {
    Mpi,
    /// The same, where a script starts the programs and keeps their stderr in files of their own.
    MpiOfEachGpu,
    Image,
}

/// What an Open MPI 4 prints that srun started and that knows no PMI of Slurm.
const MPI: &str = "\
--------------------------------------------------------------------------
The application appears to have been direct launched using \"srun\",
but OMPI was not built with SLURM's PMI support and therefore cannot
execute.
--------------------------------------------------------------------------
*** An error occurred in MPI_Init
*** on a NULL communicator
*** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,
***    and potentially your MPI job)
";

impl BrokenStart {
    /// `left` is the fraction of every rate that the job's software leaves.
    pub(crate) fn find(cluster: &Cluster, work: &Work, left: f64) -> Option<BrokenStart> {
        let world = &cluster.world;
        match work {
            _ if world.image_import_fails || left == 0.0 => Some(BrokenStart::Image),
            Work::Tables(_) if world.mpi_start_fails => Some(BrokenStart::Mpi),
            Work::Gpus(_) if world.mpi_start_fails => Some(BrokenStart::MpiOfEachGpu),
            _ => None,
        }
    }

    pub(crate) fn work(self, nodes: &[String], spread: Spread) -> Work {
        let own = match self {
            BrokenStart::Mpi => nodes.iter().map(|node| mpi(node)).collect(),
            BrokenStart::MpiOfEachGpu => String::new(),
            BrokenStart::Image => pyxis(nodes),
        };
        let of_launcher = match spread {
            Spread::Srun => exits(nodes, 1, 1),
            Spread::Mpirun | Spread::Each => String::new(),
        };
        Work::Command { stdout: Vec::new(), stderr: own + &of_launcher, code: 1, seconds: 1.0 }
    }

    /// What a program of `gpus.sh` left in a file of that name.
    pub(crate) fn gpu_program_output(self, name: &str, node: &str) -> Option<String> {
        let is_of_gpu = name.starts_with("gpu") && self == BrokenStart::MpiOfEachGpu;
        match name.strip_suffix(&format!(".{node}.err")) {
            Some(_) if is_of_gpu => Some(mpi(node)),
            _ => name.strip_suffix(&format!(".{node}.out")).filter(|_| is_of_gpu).map(|_| String::new()),
        }
    }
}

fn mpi(node: &str) -> String {
    format!(
        "{MPI}[{node}:{}] Local abort before MPI_INIT completed completed successfully, but am not able to aggregate error messages\n",
        4000 + node.len()
    )
}

fn pyxis(nodes: &[String]) -> String {
    let lines = [
        "pyxis: child 12345 failed with error code: 1",
        "pyxis: failed to import docker image",
        "pyxis: printing enroot log file:",
        "pyxis:     [INFO] Querying registry for permission grant",
        "pyxis:     [ERROR] URL https://registry-1.docker.io/v2/library/nccl/manifests/latest returned error code: 401 Unauthorized",
        "pyxis: couldn't start container",
        "spank: required plugin spank_pyxis.so: task_init() failed with rc=-1",
        "Failed to invoke spank plugin stack",
    ];
    nodes.iter().flat_map(|_| lines).map(|line| format!("slurmstepd: error: {line}\n")).collect()
}
