//! A capture of EFA counters: what the sampler `counters.sh` wrote on one node, as it stands and unjudged.
//! What the numbers mean, and whether they may be believed, is `recipes::recipe::efa_traffic`'s business.
//!
//! The text has a head (`harness-counters 1`, `node`, `root`, `interval_s`, `columns`, `begin`), one `device` line
//! per device, then readings (`before`, `during` or `after`, uptime, device, one value per column, `-` where there
//! was none) with notes between them (`missing`, `bad`, `unreadable`, `not-quiet`), and `end` as its last line.

mod escapes;
#[cfg(test)]
mod message_tests;
mod public_forms;
mod read;
mod render;
mod step;
#[cfg(test)]
mod tests;

pub use public_forms::{MOST_BYTES, Totals, read_totals};
pub use read::{read, read_stream};
pub use render::render;
pub use step::Step;

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// The line that a job's script writes then; the exit status stands behind it.
pub const SAMPLER_ENDED: &str = "harness: the sampler ended before the workload, exit status";

/// One node's counters over one workload. Times are whole numbers, so that reading and writing lose nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// How the capture is called in findings.
    pub file: String,
    /// Name of the node, as `counters.sh` was given or found it.
    pub node: String,
    /// The folder of the devices.
    pub root: String,
    /// What the sampler kept to, which may be more than it was asked for.
    pub interval_cs: u64,
    /// Names of the counters, such as `tx_bytes`, in the order of `Reading::values`.
    pub columns: Vec<String>,
    /// When the sampler started, before its first reading.
    pub begin: Clock,
    /// Every device that the folder listed, in the order of its readings.
    pub devices: Vec<Device>,
    /// Folders that could not be read: of their devices nothing is known.
    pub unreadable: Vec<String>,
    /// Counters that gave nothing at least once.
    pub missing: Vec<MissingCounter>,
    /// Counters that held no number at least once.
    pub bad: Vec<BadReading>,
    /// Phases in which two equal readings were not seen.
    pub not_quiet: Vec<Phase>,
    /// In the order of the file: one per device and sweep.
    pub readings: Vec<Reading>,
    /// Nothing where the sampler was killed.
    pub end: Option<End>,
}

/// Both clocks of a node at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// Microseconds since 1970, as good as the node's shell knew it.
    pub wall_us: u64,
    /// Hundredths of a second since the node's start, which no adjustment of the wall clock moves.
    pub uptime_cs: u64,
}

impl Clock {
    /// Nothing where no number of nanoseconds holds it.
    pub fn utc_ns(&self) -> Option<i64> {
        i64::try_from(self.wall_us.checked_mul(1000)?).ok()
    }
}

/// A NIC whose counters were sampled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Name of its folder in `root`, such as `rdmap113s0`.
    pub name: String,
    /// For how long the driver answers from its cache; nothing where it does not say.
    pub lifespan_ms: Option<u64>,
}

/// A counter whose file was missing or empty at least once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingCounter {
    /// As in `Device::name`.
    pub device: String,
    /// As in `Capture::columns`.
    pub counter: String,
}

/// A counter whose file held no whole number of 64 bits at least once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadReading {
    /// As in `Device::name`.
    pub device: String,
    /// As in `Capture::columns`.
    pub counter: String,
    /// What stood there instead of a number, shortened.
    pub text: String,
}

/// When a reading was taken, relative to the workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Before the workload, until two readings are equal.
    Before,
    /// While the workload runs, once per interval.
    During,
    /// After the workload, until two readings are equal.
    After,
}

/// One device's counters at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The first word of its line.
    pub phase: Phase,
    /// Hundredths of a second since the node's start, read just before the counters.
    pub uptime_cs: u64,
    /// Index into `Capture::devices`.
    pub device: usize,
    /// One per column; nothing where the counter gave no number.
    pub values: Vec<Option<u64>>,
}

/// The last line of a capture, which shows that it is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// When the sampler ended.
    pub clock: Clock,
    /// Processor time that the sampler itself took.
    pub cost_ms: u64,
    /// As in the line: `reason=stop`.
    pub reason: Reason,
}

/// Why the sampler ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The workload was over.
    Stop,
    /// The time limit passed first.
    Limit,
    /// Somebody asked it to go.
    Signal,
    /// The node has no readable `/proc/uptime`.
    NoUptime,
}

/// With what every capture begins.
pub const MAGIC: &[u8] = b"harness-counters ";

/// Whether a file is called as the sampler's captures are: `counters.NODE.txt`.
pub fn is_called_so(file: &str) -> bool {
    file.strip_prefix("counters.")
        .and_then(|rest| rest.strip_suffix(".txt"))
        .is_some_and(|node| !node.is_empty())
}

/// The capture that a file holds, called by the file's name; else why there is none.
pub fn read_file(path: &Path) -> Result<Capture, String> {
    let from = File::open(path).map_err(|error| error.to_string())?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    read_stream(BufReader::new(from), &name).map_err(|error| error.to_string())
}

impl Phase {
    const ALL: [Phase; 3] = [Phase::Before, Phase::During, Phase::After];

    /// The first word of a reading: `before`, `during` or `after`.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Before => "before",
            Phase::During => "during",
            Phase::After => "after",
        }
    }
}

impl Reason {
    const ALL: [Reason; 4] = [Reason::Stop, Reason::Limit, Reason::Signal, Reason::NoUptime];

    /// As in the last line of a capture, such as `no-uptime`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Reason::Stop => "stop",
            Reason::Limit => "limit",
            Reason::Signal => "signal",
            Reason::NoUptime => "no-uptime",
        }
    }
}

/// Why a text is no capture, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {why}")]
pub struct NotUnderstood {
    /// As in `Capture::file`.
    pub file: String,
    /// One-based.
    pub line: u64,
    /// For people, such as `reading has 3 values, expected 22`.
    pub why: String,
}
