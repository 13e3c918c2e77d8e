//! Windows of steps: which steps of a training are watched, and how its profiler learns when they begin and end.
//! The profiler itself is called by `script`; package `recipes` reads their steps from the reports.

mod choice;
mod known;
pub mod mark;
mod program;
mod steps;
mod trigger;

pub use choice::{Chosen, Facts, choose};
pub use known::{line, own, profiled_steps};
pub use program::{Own, Reaches, calls_on_rank_zero, last_step, own_start, processes};
pub use steps::Steps;
pub use trigger::{Trigger, Watch};

use serde::{Deserialize, Serialize};

/// The hook: a python module that counts steps of optimizers.
pub const HOOK_PY: &str = include_str!("sitecustomize.py");
/// The hook's file: python imports it by this name at start-up.
pub const HOOK_FILE: &str = "sitecustomize.py";

/// A window as its suite asks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct StepWindow {
    /// First and last step, counted from 0.
    pub steps: Steps,
    /// The way that the suite names, instead of the first that its workload allows.
    pub way: Option<Way>,
    /// Options of the program itself that open and close the window.
    pub options: Vec<String>,
    /// How a line of the program's log shows the number of the step that has ended.
    pub line: Option<String>,
    /// The number that the log gives its first step.
    pub counts_from: u32,
    /// For `Way::Delay`, where nothing else is possible: seconds before nsys collects.
    pub delay_s: Option<u64>,
    /// For `Way::Delay`: seconds that nsys collects.
    pub duration_s: Option<u64>,
}

/// The ways of opening a window, in the order in which they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Options of the program itself: it calls the profiler.
    Options,
    /// A python module that counts steps of optimizers and calls the profiler.
    Hook,
    /// A watcher of the log starts and stops nsys.
    Watch,
    /// So many seconds after the start, for so many seconds.
    Delay,
}

impl Way {
    /// In the order in which they are tried.
    pub const ALL: [Way; 4] = [Way::Options, Way::Hook, Way::Watch, Way::Delay];

    /// As `way` in a suite: `hook`.
    pub fn name(self) -> &'static str {
        match self {
            Way::Options => "options",
            Way::Hook => "hook",
            Way::Watch => "watch",
            Way::Delay => "delay",
        }
    }
}

/// What a plan holds of a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedWindow {
    /// First and last step, counted from 0.
    pub steps: Steps,
    /// The method that was chosen.
    pub way: Way,
    /// Why in this way, and why in none that is tried before it.
    pub why: String,
    /// The last step that the command line allows, if it sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_after: Option<u64>,
}
