//! Jobs of programs that test one node by itself, or what lies between two.

use super::super::placement::{self, Placed};
use super::{Context, JobPlan, LAUNCH_S, PlannedStep, WorkloadPlanner};
use config::inventory::{Instance, SlurmReach};
use config::suite::{Case, Fio, FioDirectory, NicLatency, NodeTool, Placement, Tool, TorchBurn};
use job::script::{Run, Step, files};
use model::artefact::{ExpectedFile, FileKind, WorkloadFacts};
use recipes::recipe::nic_latency::MESSAGE_BYTES;

/// Seconds of a load before the look at the processes beside it.
const MOST_BUSY_AFTER_S: u32 = 30;
/// What nvbandwidth is asked for, in this order.
const COPIES: [&str; 3] =
    ["host_to_device_memcpy_ce", "device_to_host_memcpy_ce", "device_to_device_memcpy_read_ce"];

impl WorkloadPlanner for NodeTool {
    /// Pairs along a ring: each node has two partners, so that a bad one is not taken for its partner.
    fn place(&self, how: Placement, nodes: &[String]) -> Result<Vec<Placed>, String> {
        Ok(if how == Placement::Pairs { placement::ring(nodes) } else { placement::place(&how, nodes) })
    }

    fn variables(&self) -> Vec<(&'static str, String)> {
        match self.tool {
            // CUDA numbers GPUs by their speed otherwise, and the driver by their place.
            Tool::NvBandwidth | Tool::GpuBurn { .. } | Tool::TorchBurn(_) => {
                vec![("CUDA_DEVICE_ORDER", "PCI_BUS_ID".to_owned())]
            }
            Tool::DcgmDiag { .. }
            | Tool::Stream
            | Tool::StressNg { .. }
            | Tool::Fio(_)
            | Tool::NicLatency(_)
            | Tool::Iperf3 { .. }
            | Tool::GpuAllocation { .. } => Vec::new(),
        }
    }

    fn shares_gpus(&self) -> bool {
        matches!(self.tool, Tool::GpuAllocation { .. })
    }

    fn step(&self, site: JobPlan<'_>) -> Result<PlannedStep, String> {
        match &self.tool {
            Tool::NicLatency(messages) => return between_nics(self, messages, &site),
            Tool::Iperf3 { seconds, streams, port } => {
                let limit_s = seconds + LINK_LIMIT_S;
                let numbers =
                    [u32::from(*port), *seconds, *streams, limit_s].map(|number| number.to_string());
                return between(self, "tcp", &site, numbers.into());
            }
            Tool::GpuAllocation { gpus } => return steps_with_gpus(self, gpus, &site),
            _ => {}
        }
        let mut argv = vec![self.program.clone()];
        argv.extend(arguments(&self.tool, &site)?);
        argv.extend(self.args.iter().cloned());
        // The number of seconds is the last word of gpu-burn, and of what prints as it does.
        if let Tool::GpuBurn { seconds, .. } | Tool::TorchBurn(TorchBurn { seconds, .. }) = self.tool {
            argv.push(seconds.to_string());
        }
        if let Tool::StressNg { seconds, .. } = self.tool {
            // In the middle of the load, and soon.
            let after_s = (seconds / 2).clamp(1, MOST_BUSY_AFTER_S).to_string();
            argv.splice(0..0, owned(&["bash", files::BUSY_SCRIPT, &after_s]));
        }
        let by_torch = matches!(self.tool, Tool::TorchBurn(_));
        let mut helpers: Vec<&str> = by_torch.then_some(files::TORCH_BURN).into_iter().collect();
        if let (Some(seconds), [node]) = (self.sample_s, site.placed.nodes.as_slice()) {
            let out = files::gpu_state(node);
            let soaked = self.soaked_s.map(|soaked| format!("@{soaked}")).unwrap_or_default();
            let when = format!("{seconds}{soaked}");
            argv.splice(0..0, owned(&["bash", files::GPU_STATE_SCRIPT, &when, &out]));
            helpers.push(files::GPU_STATE_SCRIPT);
        }
        if matches!(self.tool, Tool::StressNg { .. }) {
            helpers.push(files::BUSY_SCRIPT);
        }
        // These programs are the node's own; images of trainings have none of them but PyTorch.
        let container = site.container.filter(|_| by_torch);
        let run = Run { argv, tasks_per_node: 1, mpi: None, container, profile: None };
        Ok(PlannedStep { step: Step::Run(run), tasks_per_node: 1, ranks: 1, helpers, follows_topology: true })
    }

    fn leaves(&self, placed: &Placed) -> Vec<ExpectedFile> {
        let file = |node: &String| ExpectedFile {
            name: files::gpu_state(node),
            kind: FileKind::GpuState,
            node: Some(node.clone()),
            part: None,
            rank: None,
        };
        placed.nodes.iter().filter(|_| self.sample_s.is_some()).map(file).collect()
    }

    fn estimate_s(&self, instance: &Instance, _: Placement, _: usize) -> f64 {
        LAUNCH_S
            + match &self.tool {
                Tool::DcgmDiag { level } => [10.0, 300.0, 1800.0, 5400.0][(*level as usize - 1).min(3)],
                Tool::NvBandwidth => 120.0,
                Tool::GpuBurn { seconds, .. } => f64::from(*seconds) + 45.0,
                // The host multiplies first.
                Tool::TorchBurn(burn) => f64::from(burn.seconds) + 60.0,
                Tool::Stream => 20.0,
                Tool::StressNg { seconds, .. } => f64::from(*seconds) + 10.0,
                Tool::Fio(fio) => f64::from(fio.seconds) + 30.0,
                Tool::NicLatency(_) => 4.0 * instance.nics.len() as f64,
                Tool::Iperf3 { seconds, .. } => f64::from(*seconds) + 5.0,
                Tool::GpuAllocation { gpus } => 5.0 * gpus.len() as f64,
            }
    }

    fn facts(&self, _: &Context, _: &Case) -> WorkloadFacts {
        WorkloadFacts::NodeTool {
            program: self.tool.kind().to_owned(),
            seconds: self.tool.seconds(),
            level: self.tool.level(),
        }
    }
}

/// Of one device and size, with what it takes to connect.
const LINK_LIMIT_S: u32 = 30;

fn between_nics(tool: &NodeTool, messages: &NicLatency, site: &JobPlan<'_>) -> Result<PlannedStep, String> {
    let mut words = vec![messages.base_port.to_string(), messages.iterations.to_string()];
    words.extend([MESSAGE_BYTES.map(|bytes| bytes.to_string()).join(","), LINK_LIMIT_S.to_string()]);
    words.extend(site.inventory.instance.nics.iter().cloned());
    between(tool, "nic", site, words)
}

/// One script on both nodes, or on the one; the first node sends.
fn between(
    tool: &NodeTool,
    what: &str,
    site: &JobPlan<'_>,
    words: Vec<String>,
) -> Result<PlannedStep, String> {
    let (client, server) = match site.placed.nodes.as_slice() {
        [node] => (node, node),
        [client, server] => (client, server),
        _ => return Err(format!("`{}` needs one node or two", tool.tool.kind())),
    };
    let mut argv = owned(&["bash", files::LINKS_SCRIPT, what, &tool.program, server, client]);
    argv.extend(words);
    let run = Run { argv, tasks_per_node: 1, mpi: None, container: None, profile: None };
    Ok(PlannedStep {
        step: Step::Run(run),
        tasks_per_node: 1,
        ranks: site.placed.nodes.len() as u32,
        helpers: vec![files::LINKS_SCRIPT],
        follows_topology: false,
    })
}

/// Of one step, which may have to wait for another to be cleaned up.
const STEP_LIMIT_S: u32 = 60;

/// A script that asks Slurm for GPUs as its job does, but for fewer.
fn steps_with_gpus(tool: &NodeTool, gpus: &[u32], site: &JobPlan<'_>) -> Result<PlannedStep, String> {
    let of_node = site.inventory.instance.gpus;
    if let Some(too_many) = gpus.iter().find(|asked| **asked > of_node) {
        return Err(format!("`gpus` has {too_many}, and a node has {of_node}"));
    }
    let request = site.inventory.reach.slurm().map(SlurmReach::gpu_request);
    // It is skipped where there is none.
    let Some((option, _)) = request.and_then(|request| request.option(1)) else {
        return Err("jobs ask for no GPUs here".to_owned());
    };
    let mut argv = owned(&["bash", files::GPU_ALLOCATION_SCRIPT, &tool.program, option]);
    argv.push(STEP_LIMIT_S.to_string());
    argv.extend(gpus.iter().map(u32::to_string));
    let run = Run { argv, tasks_per_node: 1, mpi: None, container: None, profile: None };
    let helpers = vec![files::GPU_ALLOCATION_SCRIPT];
    Ok(PlannedStep { step: Step::Run(run), tasks_per_node: 1, ranks: 1, helpers, follows_topology: true })
}

fn arguments(tool: &Tool, site: &JobPlan<'_>) -> Result<Vec<String>, String> {
    Ok(match tool {
        Tool::DcgmDiag { level } => owned(&["diag", "-j", "-r", &level.to_string()]),
        Tool::NvBandwidth => owned(&["-j", "-t"]).into_iter().chain(owned(&COPIES)).collect(),
        Tool::GpuBurn { tensor_cores: true, .. } => owned(&["-tc"]),
        Tool::GpuBurn { .. }
        | Tool::Stream
        | Tool::NicLatency(_)
        | Tool::Iperf3 { .. }
        | Tool::GpuAllocation { .. } => Vec::new(),
        Tool::TorchBurn(burn) => owned(&[
            files::TORCH_BURN,
            burn.dtype,
            &format!("--device={}", burn.device),
            &format!("--gpus={}", site.inventory.instance.gpus),
            &format!("--size={}", burn.size),
        ]),
        // 0: a worker for each processor. They share the memory that is asked for.
        Tool::StressNg { seconds, memory } => {
            let mut words =
                owned(&["--cpu", "0", "--vm", "0", "--vm-bytes", &format!("{memory}%"), "--verify"]);
            words.extend(owned(&["--metrics-brief", "--timeout", &format!("{seconds}s")]));
            words
        }
        Tool::Fio(fio) => {
            let node = site.placed.nodes.first().map_or("", String::as_str);
            fio_arguments(fio, &directory(fio, site)?, site.run_id, node)
        }
    })
}

/// A run has its folder in `paths.shared`, so that what a killed fio leaves there goes with it.
fn directory(fio: &Fio, site: &JobPlan<'_>) -> Result<String, String> {
    let folder = match &fio.directory {
        FioDirectory::Path(path) => return Ok(path.clone()),
        FioDirectory::Shared => {
            format!("{}/{}", site.inventory.paths.shared.trim_end_matches('/'), site.run_id)
        }
    };
    match folder.contains(':') {
        true => {
            Err(format!("fio takes `:` for the end of a folder's name: change `paths.shared`: `{folder}`"))
        }
        false => Ok(folder),
    }
}

fn owned(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|argument| (*argument).to_owned()).collect()
}

/// Its files have the names of run and node: on a file system that nodes share they are no other's, and they are removed at
/// the end.
fn fio_arguments(fio: &Fio, directory: &str, run_id: &str, node: &str) -> Vec<String> {
    let seconds = fio.seconds;
    vec![
        "--name=harness".to_owned(),
        format!("--filename_format=harness-{run_id}-{node}.$jobnum"),
        format!("--directory={directory}"),
        format!("--rw={}", fio.access),
        format!("--bs={}", fio.block),
        format!("--size={}", fio.size),
        "--time_based".to_owned(),
        format!("--runtime={seconds}"),
        "--ioengine=libaio".to_owned(),
        "--direct=1".to_owned(),
        // Room that is not written to is not taken from others.
        "--fallocate=none".to_owned(),
        format!("--iodepth={}", fio.depth),
        format!("--numjobs={}", fio.jobs),
        "--group_reporting".to_owned(),
        "--unlink=1".to_owned(),
        "--output-format=json".to_owned(),
    ]
}
