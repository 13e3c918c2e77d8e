//! Whether an MPI program starts in the environment that a step gives it, as Open MPI 4 decides it.

use super::cluster::Cluster;
use job::script::{GPUS_SH, Run, Start};

/// Open MPI 4 takes a process that has both for one that srun launched itself, and such a one needs PMIx.
pub const DIRECT_LAUNCH: [&str; 2] = ["SLURM_NODELIST", "SLURM_STEP_ID"];

/// What Open MPI 4 prints before MPI_Init aborts the process.
pub const ABORT: &str = "\
--------------------------------------------------------------------------
The application appears to have been direct launched using \"srun\",
but OMPI was not built with SLURM's PMI support and therefore cannot
execute. There are several options for building PMI support under
SLURM, depending upon the SLURM version you are using:

  version 16.05 or later: you can use SLURM's PMIx support. This
  requires that you configure and build SLURM --with-pmix.

  Versions earlier than 16.05: you must use either SLURM's PMI-1 or
  PMI-2 support. SLURM builds PMI-1 by default, or you can manually
  install PMI-2. You must then build Open MPI using --with-pmi pointing
  to the SLURM PMI library location.

Please configure as appropriate and try again.
--------------------------------------------------------------------------
*** An error occurred in MPI_Init
*** on a NULL communicator
*** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,
***    and potentially your MPI job)
";

/// What srun prints where it has no plugin of the name that it is asked for, as 22.05 says it: it starts nothing.
const NO_PLUGIN: [&str; 5] = [
    "Couldn't find the specified plugin name for mpi/PLUGIN looking at all files",
    "cannot find mpi plugin for mpi/PLUGIN",
    "MPI: Cannot create context for mpi/PLUGIN",
    "MPI: Unable to load any plugin",
    "Invalid MPI type 'PLUGIN', --mpi=list for acceptable types",
];

/// What srun refuses a step with, where this Slurm was built without PMIx.
pub(crate) fn plugin_missing(cluster: &Cluster, start: &Start, run: &Run) -> Option<String> {
    let plugin = pmix(run).filter(|_| !cluster.world.pmix && matches!(start, Start::Slurm(_)))?;
    Some(NO_PLUGIN.map(|line| format!("srun: error: {}\n", line.replace("PLUGIN", plugin))).concat())
}

/// Whether ranks of a program of MPI abort, which a step starts by itself: AWS's Open MPI knows PMIx alone.
pub(crate) fn ranks_abort(cluster: &Cluster, start: &Start, run: &Run) -> bool {
    is_direct(cluster, start) && pmix(run).is_none()
}

fn pmix(run: &Run) -> Option<&str> {
    run.mpi.as_deref().filter(|mpi| mpi.starts_with("pmix"))
}

/// Whether the processes of `gpus.sh` abort: a step without PMI starts the script, and the script starts them.
pub(crate) fn each_gpu_aborts(cluster: &Cluster, start: &Start) -> bool {
    is_direct(cluster, start) && DIRECT_LAUNCH.iter().all(|name| !removes(GPUS_SH, name))
}

fn is_direct(cluster: &Cluster, start: &Start) -> bool {
    cluster.world.openmpi == 4 && matches!(start, Start::Slurm(_))
}

/// Whether a script of bash takes a variable out of its environment before it starts its arguments.
fn removes(text: &str, variable: &str) -> bool {
    let starts = |line: &&str| line.contains("\"$@\"");
    let before = text.lines().take_while(|line| !starts(line));
    before.chain(text.lines().find(starts)).any(|line| {
        let words: Vec<String> = shlex::Shlex::new(line.trim()).collect();
        let named = |word: &String| match word.strip_prefix("${!").and_then(|word| word.strip_suffix("@}")) {
            Some(prefix) => variable.starts_with(prefix),
            None => word == variable,
        };
        let by_env = words.windows(2).any(|pair| pair[0] == "-u" && pair[1] == variable);
        (words.first().is_some_and(|word| word == "unset") && words.iter().skip(1).any(named)) || by_env
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_gone_where_the_text_removes_it_before_the_start() {
        let table = [
            ("unset \"${!SLURM@}\"\n\"$@\" &\n", true),
            ("unset SLURM_STEP_ID SLURM_NODELIST\n\"$@\" &\n", true),
            ("  X=1 env -u SLURM_NODELIST \"$@\" > out &\n", true),
            ("\"$@\" &\nunset \"${!SLURM@}\"\n", false),
            ("unset \"${!PMI@}\"\n\"$@\" &\n", false),
            ("# unset SLURM_NODELIST\n\"$@\"\n", false),
        ];
        for (text, gone) in table {
            assert_eq!(removes(text, "SLURM_NODELIST"), gone, "{text}");
        }
    }
}
