//! Whether the command line of a job reads the state of GPUs, how often, and how long its nodes were loaded before it.

use job::script::files;

/// As the first argument of the script says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct GpuStateWanted {
    /// Seconds between two readings.
    pub interval_s: f64,
    /// Seconds of the soak before it; 0 where it is no window of one.
    pub soaked_s: f64,
}

/// Nothing where a command line asks for none.
pub(crate) fn wanted(argv: &[String]) -> Option<GpuStateWanted> {
    match argv {
        [_, script, when, ..] if script == files::GPU_STATE_SCRIPT => {
            let (interval, soaked) = when.split_once('@').unwrap_or((when, "0"));
            Some(GpuStateWanted { interval_s: interval.parse().ok()?, soaked_s: soaked.parse().ok()? })
        }
        _ => None,
    }
}
