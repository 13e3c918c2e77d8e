//! From what a case wants watched to the exact arguments of `nsys`, in the spelling of the release that the nodes have.

use super::{NsysVersion, Profile, Window, switches};
use serde::{Deserialize, Serialize};

/// The arguments of one job's profiler: for every profiled rank, and the further ones for one rank of each node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arguments {
    /// Of each profiled rank, such as `--trace=cuda,nvtx`.
    pub every: Vec<String>,
    /// Of one rank of each node besides, such as `--enable=efa_metrics`.
    pub once_per_node: Vec<String>,
}

/// The releases from which the EFA sampler is there under its two spellings.
const EFA_OLD: NsysVersion = NsysVersion::new(2024, 2);
const EFA: NsysVersion = NsysVersion::new(2024, 4);
/// From here on the GPUs to sample are named by the plural of the switch.
const GPU_METRICS_PLURAL: NsysVersion = NsysVersion::new(2024, 4);
/// Schemas before this release cannot be cut down to tables.
const TABLES: NsysVersion = NsysVersion::new(2023, 4);
const PARQUET: NsysVersion = NsysVersion::new(2024, 1);

/// An error names what this release of nsys does not have.
pub fn arguments(profile: &Profile, version: NsysVersion) -> Result<Arguments, String> {
    let mut every = vec![
        format!(
            "--trace={}",
            if profile.trace.is_empty() { "none".to_owned() } else { profile.trace.join(",") }
        ),
        // Sampling the CPU costs time on the very cores that drive the NICs, and needs rights that users lack.
        "--sample=none".to_owned(),
        // Names cannot collide; a report that is there already is somebody's.
        "--force-overwrite=false".to_owned(),
    ];
    every.extend(window(&profile.window));
    if let Some(file) = &profile.python_functions {
        every.push(format!("--python-functions-trace={file}"));
    }
    every.extend(profile.extra.iter().cloned());
    let mut once_per_node = Vec::new();
    if profile.efa {
        once_per_node.push(efa(version)?);
    }
    if profile.gpu_metrics {
        // All of the node's GPUs: a local rank is no GPU number where the visible devices are renumbered.
        let plural = if version >= GPU_METRICS_PLURAL { "s" } else { "" };
        once_per_node.push(format!("--gpu-metrics-device{plural}=all"));
    }
    for switch in every.iter().chain(&once_per_node) {
        switches::check(switch, version)?;
    }
    every.extend(profile.unchecked.iter().cloned());
    Ok(Arguments { every, once_per_node })
}

fn window(window: &Window) -> Vec<String> {
    let arguments: &[&str] = match window {
        // A watcher starts and stops the collection; the plan has replaced the steps by every other method.
        Window::Whole | Window::Steps(_) => &[],
        Window::Seconds { delay_s, duration_s } => {
            let mut arguments = Vec::new();
            if *delay_s > 0 {
                arguments.push(format!("--delay={delay_s}"));
            }
            if let Some(duration_s) = duration_s {
                // Without this nsys ends the workload together with the collection.
                arguments.extend([format!("--duration={duration_s}"), "--kill=none".to_owned()]);
            }
            return arguments;
        }
        Window::CudaProfilerApi => &["--capture-range=cudaProfilerApi", "--capture-range-end=stop"],
        Window::NvtxRange(range) => {
            return [
                "--capture-range=nvtx",
                &format!("--nvtx-capture={range}"),
                "--capture-range-end=stop",
                // Workloads push plain strings; without this nsys looks at registered ones alone.
                "--env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0",
            ]
            .map(str::to_owned)
            .to_vec();
        }
    };
    arguments.iter().map(|argument| (*argument).to_owned()).collect()
}

fn efa(version: NsysVersion) -> Result<String, String> {
    if version >= EFA {
        Ok("--enable=efa_metrics".to_owned())
    } else if version >= EFA_OLD {
        Ok("--enable=nic_sampler,-mode:counters,-struct:true,-efa:true".to_owned())
    } else {
        Err(format!(
            "EFA sampling needs nsys {EFA_OLD} or newer, the nodes have {version}; update nsys, or set `efa = false`"
        ))
    }
}

/// The leanest forms of export that a release may have, by comma: the first that nsys takes is the one. Since when it
/// knows Arrow is not published; SQLite every release knows.
pub fn export_form(version: NsysVersion) -> &'static str {
    if version >= PARQUET { "parquetdir" } else { "arrow,sqlite" }
}

/// Whether a release can export chosen tables alone.
pub fn exports_tables(version: NsysVersion) -> bool {
    version >= TABLES
}

/// Refuses what cannot be a further switch, whatever the release.
pub fn check_extra(switch: &str) -> Result<(), String> {
    switches::check_extra(switch)
}
