//! The wall clock of a node, against the time that all nodes live in: a little off and a little fast or slow, as clocks
//! are that a daemon keeps, and more where a fault says so. Who stamps what with it is decided in `counters` and `nsys`.

use super::active_faults::ActiveFaults;
use super::cluster::Cluster;
use super::noise;

/// One node's clock during one job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct HostClock {
    ahead_ns: f64,
    /// Nanoseconds gained with each.
    drift: f64,
    /// The job's start: there a clock is off by what it is said to be.
    since_ns: i64,
}

/// A healthy clock is off by less than this, in milliseconds, and drifts by less, in parts per million.
const OFF_MS: f64 = 2.0;
const DRIFT_PPM: f64 = 3.0;

impl HostClock {
    pub(crate) fn new(
        cluster: &Cluster,
        active_faults: &ActiveFaults,
        (node, name): (usize, &str),
        since_ns: i64,
    ) -> HostClock {
        let mut noise = noise::stream(cluster.seed, &["clock", name]);
        let (ms, ppm) = active_faults.clock(node);
        let ahead_ms = noise.between(-OFF_MS, OFF_MS) + ms;
        let drift_ppm = noise.between(-DRIFT_PPM, DRIFT_PPM) + ppm;
        HostClock { ahead_ns: ahead_ms * 1e6, drift: drift_ppm * 1e-6, since_ns }
    }

    /// What it shows at a true moment, both in nanoseconds since 1970.
    pub(crate) fn shows(&self, true_ns: i64) -> i64 {
        let gained = (true_ns - self.since_ns) as f64 * self.drift;
        true_ns + (self.ahead_ns + gained).round() as i64
    }
}
