//! Whether the command line of a job reads the state of GPUs, and how often.

use job::script::files;

/// Seconds between two readings, where a command line asks for any.
pub(crate) fn interval_s(argv: &[String]) -> Option<f64> {
    match argv {
        [_, script, interval, ..] if script == files::GPU_STATE_SCRIPT => interval.parse().ok(),
        _ => None,
    }
}
