//! Baselines: what was measured before on an instance type, under which key, and how far a new number may lie from
//! it. Reading is in `read.rs`, writing in `render.rs`; holding a number against one is `judge`'s business.

mod read;
mod render;

use crate::mistake::Mistakes;
use crate::size;
use recipes::op::Op;
use recipes::unit::{Better, Unit};
use serde::{Deserialize, Serialize};
use std::fmt;

/// All baselines of one instance type, by its own name.
#[derive(Debug, Clone, PartialEq)]
pub struct Baselines {
    pub instance: String,
    /// Measured on the pretend cluster: good for its `sim-` instance alone.
    pub simulated: bool,
    pub entries: Vec<Baseline>,
    pub file: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Baseline {
    pub metric: String,
    pub key: BaselineKey,
    pub unit: Unit,
    pub better: Better,
    pub state: State,
    pub samples: Vec<f64>,
    /// The bounds in force. They stand in the file, so that a change of them shows in a diff.
    pub lower: Option<f64>,
    pub upper: Option<f64>,
    pub source: String,
    pub accepted_by: Option<String>,
    pub reason: Option<String>,
    pub date: Option<String>,
    /// As its file says.
    pub simulated: bool,
    pub line: usize,
}

/// What a baseline is for, beside its metric. A number is comparable only under the same key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BaselineKey {
    pub op: Option<Op>,
    pub size_bytes: Option<u64>,
    pub nodes: Option<u32>,
    /// Ranks of a communicator: all GPUs of the nodes, or fewer.
    pub ranks: Option<u32>,
    /// Which training, by the name of its case: another model is no comparison.
    pub training: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Accepted,
    /// A published anchor, or too few samples: good for a warning only.
    Provisional,
    Expired,
}

/// Fewer samples than this tell nothing of how much a number varies.
pub const FEWEST_ACCEPTED: usize = 5;

impl Baselines {
    /// Reads baselines, or tells everything that is wrong in them.
    pub fn read(text: &str, file: &str) -> Result<Baselines, Mistakes> {
        read::baselines(text, file)
    }

    pub fn find(&self, metric: &str, key: &BaselineKey) -> Option<&Baseline> {
        self.entries.iter().find(|baseline| baseline.metric == metric && baseline.key == *key)
    }

    /// The TOML of it, in an order that does not hang on the order of the entries.
    pub fn render(&self) -> String {
        render::render(self)
    }
}

impl Baseline {
    /// The middle of the samples.
    pub fn median(&self) -> f64 {
        let mut sorted = self.samples.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match (sorted.len() % 2, sorted.get(middle), middle.checked_sub(1).and_then(|low| sorted.get(low))) {
            (0, Some(high), Some(low)) => low + (high - low) / 2.0,
            (_, Some(middle), _) => *middle,
            _ => f64::NAN,
        }
    }
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            State::Accepted => "accepted",
            State::Provisional => "provisional",
            State::Expired => "expired",
        }
    }
}

impl fmt::Display for BaselineKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            self.op.map(|op| op.name().to_owned()),
            self.size_bytes.map(size::show),
            self.nodes.map(|nodes| format!("{nodes} {}", if nodes == 1 { "node" } else { "nodes" })),
            self.ranks.map(|ranks| format!("{ranks} {}", if ranks == 1 { "rank" } else { "ranks" })),
            self.training.as_ref().map(|training| format!("training {training}")),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests;
