//! The properties of a simulated cluster that real clusters differ in, as the table `[world]` of its inventory sets them.
//! A stock ParallelCluster p5 fleet is the default. The simulator obeys them; a real inventory has no such table.

use super::form;
use crate::toml_reader::Table;
use crate::toml_reader::quantity::share_of;
use std::collections::BTreeMap;

/// `[world]` of a simulated inventory.
#[derive(Debug, Clone, PartialEq)]
pub struct WorldSettings {
    /// Slurm has GRES configured. Without it, sbatch and srun refuse `--gres` and `--gpus-per-node`.
    pub gres: bool,
    /// The Slurm controller answers.
    pub controller: bool,
    /// Idle nodes are powered down (`idle~`), and a job on them is CONFIGURING for so many seconds.
    pub boot_s: u64,
    /// Slurm's commands and mpirun are on the PATH of a shell that is no login shell.
    pub tools_on_path: bool,
    /// Open MPI's major release: 4 aborts in MPI_Init inside a Slurm step without PMIx, 5 starts alone.
    pub openmpi: u32,
    /// srun has the PMIx plugin.
    pub pmix: bool,
    /// srun knows `--overlap`, as it does from 20.11 on.
    pub overlap: bool,
    /// Steps with `--overlap` share memory and GPUs too, as from 22.05 on. Otherwise a step waits until no other of its job
    /// holds what it claims: all memory without `--mem=0`, all GPUs unless it asks for none.
    pub steps_overlap: bool,
    /// srun starts the sampler of a job.
    pub sampler_starts: bool,
    /// What the container image's own ENV sets: it beats exported variables that `--container-env` does not name.
    pub image_env: BTreeMap<String, String>,
    /// Nodes have docker0 with the same address on each: Open MPI's TCP picks it and hangs, unless it is excluded.
    pub docker0: bool,
    /// The EFA driver is 2.17 or newer and has the `retrans_*` counters.
    pub retrans_counters: bool,
    /// RDMA devices on each node that are not EFA, such as the two mlx5 of a p6-b200.
    pub other_rdma_devices: u32,
    /// The flow tools are installed.
    pub flow_tools: bool,
    /// They were built with CUDA, and so can move GPU memory.
    pub flow_tools_cuda: bool,
    /// ib_write_bw knows SRD writes.
    pub flow_tools_srd: bool,
    /// Programs of tests of a node that no node has, as `dcgmi`, or that one has not, as `p5-002:dcgmi`. Of `nv-hostengine`:
    /// that does not run.
    pub absent_programs: Vec<String>,
    /// aws-ofi-nccl is installed. Without it NCCL talks TCP.
    pub ofi_plugin: bool,
    /// Relative standard deviation from run to run, where it is not the model's own.
    pub run_noise: Option<f64>,
    /// Relative standard deviation from node to node; all nodes are alike where absent.
    pub node_noise: Option<f64>,
    /// One value in so many is 10 % low, by chance.
    pub outlier_every: Option<u32>,
    /// The user's QOS takes no more jobs than this at the same time (MaxSubmitJobsPerUser).
    pub most_submitted: Option<u32>,
    /// What the shell that submits jobs exports: sbatch hands it on to each job.
    pub shell_env: BTreeMap<String, String>,
    /// What sbatch and srun print when they refuse every request: an account, a QOS, a partition, a lua script.
    pub sbatch_refuses: Option<String>,
    /// The partition's MaxTime in minutes: what asks for more is never started.
    pub max_minutes: Option<u32>,
    /// What the site's submit plugin gives every job in place of the name that it asks for.
    pub job_name: Option<String>,
    /// What it gives every job in place of the working folder that it asks for.
    pub job_folder: Option<String>,
    /// Open MPI was built for another PMI than srun's, so that every rank aborts in MPI_Init.
    pub mpi_start_fails: bool,
    /// No node can import or pull the container image.
    pub image_import_fails: bool,
    /// Seconds that the start of a job takes on one node over ssh: more on a busy machine.
    pub ssh_launch_s: f64,
    /// Nodes, GPUs as `p5-002:gpu3` and NICs as `p5-002:rdmap79s0` that are other hardware under their old names; each time
    /// once.
    pub replaced: Vec<String>,
    /// The remaining fraction of every rate where a job has this variable (`NCCL_ALGO=Tree`) or image; 0 where it cannot start.
    pub slow_with: BTreeMap<String, f64>,
    /// Seconds that each answer of a host takes over ssh, where it is more than usual.
    pub ssh_answer_s: BTreeMap<String, u64>,
}

impl Default for WorldSettings {
    fn default() -> Self {
        WorldSettings {
            gres: true,
            controller: true,
            boot_s: 0,
            tools_on_path: true,
            openmpi: 4,
            pmix: true,
            overlap: true,
            steps_overlap: true,
            sampler_starts: true,
            image_env: BTreeMap::new(),
            docker0: true,
            retrans_counters: true,
            other_rdma_devices: 0,
            flow_tools: true,
            flow_tools_cuda: true,
            flow_tools_srd: true,
            absent_programs: Vec::new(),
            ofi_plugin: true,
            run_noise: None,
            node_noise: None,
            outlier_every: None,
            most_submitted: None,
            shell_env: BTreeMap::new(),
            sbatch_refuses: None,
            max_minutes: None,
            job_name: None,
            job_folder: None,
            mpi_start_fails: false,
            image_import_fails: false,
            ssh_launch_s: 0.5,
            replaced: Vec::new(),
            slow_with: BTreeMap::new(),
            ssh_answer_s: BTreeMap::new(),
        }
    }
}

impl WorldSettings {
    /// Whether the node has the program.
    pub fn has_program(&self, node: &str, program: &str) -> bool {
        let is_absent = |absent: &String| match absent.split_once(':') {
            Some((of, absent)) => of == node && absent == program,
            None => absent == program,
        };
        !self.absent_programs.iter().any(is_absent)
    }
}

/// Reads the table; what it does not set stays as on a stock cluster.
pub(super) fn read(table: &Table<'_>) -> WorldSettings {
    let mut world = WorldSettings::default();
    let switches: [(&'static str, &mut bool); 13] = [
        ("gres", &mut world.gres),
        ("controller", &mut world.controller),
        ("tools_on_path", &mut world.tools_on_path),
        ("pmix", &mut world.pmix),
        ("overlap", &mut world.overlap),
        ("steps_overlap", &mut world.steps_overlap),
        ("sampler_starts", &mut world.sampler_starts),
        ("docker0", &mut world.docker0),
        ("retrans_counters", &mut world.retrans_counters),
        ("flow_tools", &mut world.flow_tools),
        ("flow_tools_cuda", &mut world.flow_tools_cuda),
        ("flow_tools_srd", &mut world.flow_tools_srd),
        ("ofi_plugin", &mut world.ofi_plugin),
    ];
    for (key, switch) in switches {
        if let Some(value) = table.get(key).and_then(|value| value.boolean()) {
            *switch = value;
        }
    }
    if let Some(seconds) = table.get("boot_s").and_then(|value| value.whole(0..=7200)) {
        world.boot_s = seconds;
    }
    if let Some(release) = table.get("openmpi").and_then(|value| value.small(4..=5)) {
        world.openmpi = release;
    }
    if let Some(devices) = table.get("other_rdma_devices").and_then(|value| value.small(0..=16)) {
        world.other_rdma_devices = devices;
    }
    if let Some(variables) = table.get("image_env").and_then(|value| value.table()) {
        world.image_env = crate::suite::variables(&variables);
    }
    let share = |key| table.get(key).and_then(|value| share_of(&value));
    world.run_noise = share("run_noise");
    world.node_noise = share("node_noise");
    world.most_submitted = table.get("most_submitted").and_then(|value| value.small(1..=10_000));
    if let Some(variables) = table.get("shell_env").and_then(|value| value.table()) {
        world.shell_env = crate::suite::variables(&variables);
    }
    world.outlier_every = table.get("outlier_every").and_then(|value| value.small(2..=1_000_000));
    world.sbatch_refuses = table.get("sbatch_refuses").and_then(|value| value.non_empty_text());
    world.max_minutes = table.get("max_minutes").and_then(|value| value.small(1..=1_000_000));
    world.job_name = table.get("job_name").and_then(|value| value.non_empty_text());
    world.job_folder = table.get("job_folder").and_then(|value| value.non_empty_text());
    let failures: [(&'static str, &mut bool); 2] = [
        ("mpi_start_fails", &mut world.mpi_start_fails),
        ("image_import_fails", &mut world.image_import_fails),
    ];
    for (key, switch) in failures {
        if let Some(value) = table.get(key).and_then(|value| value.boolean()) {
            *switch = value;
        }
    }
    if let Some(seconds) = table.get("ssh_launch_s").and_then(|value| value.number()) {
        world.ssh_launch_s = seconds.clamp(0.0, 60.0);
    }
    world.absent_programs = table.get("absent_programs").map(|value| value.texts()).unwrap_or_default();
    world.replaced = table.get("replaced").map(|value| value.texts()).unwrap_or_default();
    if let Some(stacks) = table.get("slow_with").and_then(|value| value.table()) {
        let left = stacks.entries().into_iter();
        let left =
            left.filter_map(|(stack, _, value)| Some((stack.to_owned(), value.number()?.clamp(0.0, 1.0))));
        world.slow_with = left.collect();
    }
    if let Some(hosts) = table.get("ssh_answer_s").and_then(|value| value.table()) {
        let seconds = hosts.entries().into_iter();
        let seconds = seconds.filter_map(|(host, _, value)| Some((host.to_owned(), value.whole(0..=600)?)));
        world.ssh_answer_s = seconds.collect();
    }
    table.close(form::world);
    world
}
