//! What a job's environment makes of its programs: an image's own variables, the interfaces that Open MPI picks, and
//! where mpirun lies.

use super::cluster::Cluster;
use super::spread::Spread;
use job::script::{AWS_MPIRUN, Container, MPIRUN, Run, Script, Step, is_mpirun};
use std::collections::BTreeMap;

/// The variables that a program sees: the image's own win, but for those that are passed by name.
pub(crate) fn in_container(
    cluster: &Cluster,
    mut exported: BTreeMap<String, String>,
    container: Option<&Container>,
) -> BTreeMap<String, String> {
    let Some(container) = container else { return exported };
    for (name, value) in cluster.world.image_env.iter().filter(|(name, _)| !container.env.contains(name)) {
        exported.insert(name.clone(), value.clone());
    }
    exported
}

/// Whether NCCL has nothing but the network between GPUs of a node.
pub(crate) fn through_nics(variables: &BTreeMap<String, String>) -> bool {
    let is = |name: &str, value: &str| variables.get(name).is_some_and(|set| set == value);
    is("NCCL_P2P_DISABLE", "1") && is("NCCL_SHM_DISABLE", "1")
}

/// The remaining fraction of every rate with the software that a script asks for, as the world has it; 0 where nothing starts.
pub(crate) fn left_by_software(cluster: &Cluster, script: &Script) -> f64 {
    let has = |wanted: &str| {
        script.steps.iter().any(|step| match step {
            Step::Environment { variables } => {
                variables.iter().any(|(name, value)| wanted == format!("{name}={value}"))
            }
            Step::Run(run) => run.container.as_ref().is_some_and(|container| container.image == wanted),
            Step::Gpus(gpus) => gpus.container.as_ref().is_some_and(|container| container.image == wanted),
            _ => false,
        })
    };
    cluster.world.slow_with.iter().filter(|(wanted, _)| has(wanted)).map(|(_, left)| left).product()
}

/// Whether the ranks of a program of MPI wait for each other for ever: docker0 has the same address on every node, and
/// Open MPI's TCP takes it for a path to the others, unless it is excluded or no TCP is used.
pub(crate) fn mpi_hangs(
    cluster: &Cluster,
    variables: &BTreeMap<String, String>,
    nodes: &[String],
    run: &Run,
) -> bool {
    if !cluster.world.docker0 || nodes.len() < 2 || run.mpi.is_none() {
        return false;
    }
    let names = |name: &str, wanted: &str| {
        variables.get(name).is_some_and(|list| list.split(',').any(|word| word == wanted))
    };
    let has = |name: &str| variables.contains_key(name);
    let excluded = names("OMPI_MCA_btl_tcp_if_exclude", "docker0");
    let chosen = has("OMPI_MCA_btl_tcp_if_include") && !names("OMPI_MCA_btl_tcp_if_include", "docker0");
    let without_tcp = names("OMPI_MCA_pml", "cm") || names("OMPI_MCA_btl", "^tcp");
    !(excluded || chosen || without_tcp)
}

/// What a shell that is no login shell says where mpirun is called by a name or a path that it does not find.
pub(crate) fn mpirun_missing(cluster: &Cluster, spread: Spread, run: &Run) -> Option<String> {
    let mpirun = run.mpi.as_deref().filter(|mpi| spread == Spread::Mpirun && is_mpirun(mpi))?;
    if mpirun == MPIRUN && !cluster.world.tools_on_path {
        return Some(format!("job.sh: line 24: {mpirun}: command not found\n"));
    }
    let is_elsewhere = mpirun.starts_with('/') && mpirun != AWS_MPIRUN;
    is_elsewhere.then(|| format!("job.sh: line 24: {mpirun}: No such file or directory\n"))
}
