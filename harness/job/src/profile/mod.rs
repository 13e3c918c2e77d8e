//! The profiler around a workload: which ranks it watches, how it is called, which files it will leave, and what it
//! reports about itself. What the reports hold is read by package `recipes`; `launch` starts the ranks.

pub mod account;
pub mod nsys;
pub mod nsys_output;
mod ranks;
mod switches;
mod version;

pub use ranks::Ranks;
pub use version::NsysVersion;

use crate::window::StepWindow;
use serde::{Deserialize, Serialize};

/// What a case profiles, as its suite requests it.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Ranks that run under nsys.
    pub ranks: Ranks,
    /// What nsys traces: `cuda`, `nvtx`, `osrt`, ...
    pub trace: Vec<String>,
    /// When nsys collects.
    pub window: Window,
    /// The EFA counters, sampled by nsys once on each node.
    pub efa: bool,
    /// The GPUs' own counters, sampled once on each node for all its GPUs.
    pub gpu_metrics: bool,
    /// A file that names the python functions to trace.
    pub python_functions: Option<String>,
    /// Further switches, checked against the version.
    pub extra: Vec<String>,
    /// Further switches that this harness does not know.
    pub unchecked: Vec<String>,
    /// Which `.nsys-rep` files are fetched from the nodes.
    pub keep: Keep,
    /// Whether each job is rerun without the profiler, and what the profiler may cost of rates and times: a fraction.
    pub unprofiled_control_run: Option<f64>,
}

/// Which part of the workload's time is watched.
#[derive(Debug, Clone, PartialEq)]
pub enum Window {
    /// All of it.
    Whole,
    /// By time, as `--delay` and `--duration` of nsys.
    Seconds {
        /// Seconds before nsys begins to collect.
        delay_s: u64,
        /// Seconds that nsys collects; None until the end.
        duration_s: Option<u64>,
    },
    /// From `cudaProfilerStart` to `cudaProfilerStop`, called by the workload.
    CudaProfilerApi,
    /// While the named range is open, `NAME` or `NAME@DOMAIN`.
    NvtxRange(String),
    /// Steps of a training, captured by a method that the plan chooses.
    Steps(StepWindow),
}

/// Which reports are brought home whole; what the recipes read of them always is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// All of them.
    Always,
    /// Where the case did not pass.
    OnFailure,
    /// So many of each job, the lowest ranks first.
    First(u32),
}
