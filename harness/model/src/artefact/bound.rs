//! What a number is compared with, as it stood when the plan was made. `judge` interprets it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The bounds of an assertion, in its unit where nothing else is said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedBound {
    /// Stated in the suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// Stated in the suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// Stated in the suite; excludes `at_least` and `at_most`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equals: Option<f64>,
    /// A fraction: how far from its peers a part may lie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_peers: Option<f64>,
    /// `None` where the assertion does not ask for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<PlannedBaseline>,
    /// What the hardware makes impossible: a number above it is no measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<f64>,
    /// How much one run differs from the next where all is well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<PlannedSpread>,
    /// Out of bounds is reported, and never fails.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warn: bool,
}

/// How much a number varies, as the suite declares it, and what that allows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedSpread {
    /// One standard deviation, as a fraction.
    pub relative: f64,
    /// So many numbers are judged with a declared spread at once.
    pub judged: u32,
    /// What the bounds are moved apart by, where the metric compares numbers of one run with each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allows: Option<f64>,
}

/// The baseline as it stood when the plan was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum PlannedBaseline {
    /// There is none for this key.
    None {
        /// What was looked for: `sim-p5 nccl.busbw sendrecv, 1GiB, 32 nodes, ...`.
        key: String,
    },
    /// Published, interpolated or not yet reviewed: it can pass a number, never fail it.
    Provisional(BaselineNumbers),
    /// Reviewed: outside its bounds a number fails.
    Accepted(BaselineNumbers),
    /// Too old: numbers are inconclusive.
    Expired(BaselineNumbers),
}

/// What another site's pack lent to the bounds of a baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PackHelp {
    /// The beginning of the key that signed the pack.
    pub signer: String,
    /// With it the middle is known as well as by so many runs of this site.
    pub worth: f64,
}

/// What the entry of a baseline file says for one key.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BaselineNumbers {
    /// Instance, metric, operation, size, nodes and placement in one line.
    pub key: String,
    /// Samples that made it; the fewer of two where it is interpolated.
    pub n: u32,
    /// Of the samples, in the metric's unit.
    pub median: f64,
    /// `None` where low values are not bound.
    pub lower: Option<f64>,
    /// `None` where high values are not bound.
    pub upper: Option<f64>,
    /// Where the numbers are from, as in the baseline file.
    pub source: String,
    /// The file that holds it, as messages show it; unknown in plans of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// How much one number of the key varies, as a fraction of the median; nothing where the bounds were set by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
    /// Published: a sound system of that kind is not below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<f64>,
    /// Half of the 95 % interval around the median, where the numbers are no measurement but a prediction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<f64>,
    /// So many numbers are judged at once, and the bounds were widened for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub widened_for: Option<u32>,
    /// What another site's pack lent to the bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pack: Option<PackHelp>,
    /// The sizes between which the numbers were drawn, where none was measured at this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<String>,
    /// What the software must be for a number to be comparable: each part, with every version that will do.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fingerprint: BTreeMap<String, Vec<String>>,
}
