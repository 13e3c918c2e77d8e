//! Baselines: what was measured before on an instance type, under which key, and how far a new number may lie from
//! it. `read.rs` reads them, `render.rs` writes them; `judge` compares numbers with them.

pub(crate) mod form;
mod help;
pub mod lint;
pub mod pack;
pub mod propose;
mod read;
mod render;
pub mod review;

pub use read::BETTERS;

use crate::bounds;
use crate::diagnostic::Diagnostics;
use base::size;
use metric::op::Op;
use metric::unit::{Better, Unit};
use model::artefact::PackHelp;
use recipes::catalogue::Catalogue;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// All baselines of one instance type, by its own name.
#[derive(Debug, Clone, PartialEq)]
pub struct Baselines {
    /// As the file has it: `p5`, `sim-p5`.
    pub instance: String,
    /// Measured on the simulated cluster: good for its `sim-` instance alone.
    pub simulated: bool,
    /// Whether a size that was not measured may be judged by those around it.
    pub between_sizes: bool,
    /// The `[[baseline]]` tables, at most one for each metric and key.
    pub entries: Vec<Baseline>,
    /// As messages show it: `baselines/p5.toml`.
    pub file: String,
}

/// One `[[baseline]]`: a metric under one key, with its samples and bounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Baseline {
    /// As recipes name it: `nccl.busbw`.
    pub metric: String,
    /// The conditions of the measurement.
    pub key: BaselineKey,
    /// The metric's own: of samples, bounds and floor.
    pub unit: Unit,
    /// The metric's own direction; a file that contradicts it is refused.
    pub better: Better,
    /// Decides what a number outside the bounds means.
    pub state: State,
    /// One for each run, its median, or the published figures; at least one.
    pub samples: Vec<f64>,
    /// The bounds in force. They stand in the file, so that a change of them shows in a diff.
    pub lower: Option<f64>,
    /// None where no number is too high.
    pub upper: Option<f64>,
    /// Published: a sound system of that kind is not below it, whatever its software. Only of a provisional one.
    pub floor: Option<f64>,
    /// By which rule, and from which figures.
    pub floor_source: Option<String>,
    /// What the bounds were made of; nothing where they were set by hand.
    pub spread: Option<BaselineSpread>,
    /// What another site's pack lent to the bounds.
    pub pack: Option<PackHelp>,
    /// 5, 25, 75 and 95 % of all single numbers lie below these.
    pub quantiles: Option<[f64; 4]>,
    /// The software that it was measured on: each part, with every version that is comparable. All of it must be
    /// the same for a number to be compared with it.
    pub fingerprint: BTreeMap<String, Vec<String>>,
    /// The runs that the samples are of, one each.
    pub runs: Vec<String>,
    /// Where the samples are from: the inventory of the runs, or a publication.
    pub source: String,
    /// Who accepted it in `harness baseline review`.
    pub accepted_by: Option<String>,
    /// Of a pending one that is not to be accepted.
    pub rejected_by: Option<String>,
    /// The reviewer's, for accepting or rejecting it.
    pub reason: Option<String>,
    /// `2026-11-21`: day of the newest run, or of the review.
    pub date: Option<String>,
    /// As its file says.
    pub simulated: bool,
    /// Of its table in the file, from 1; 0 where it was proposed and not read.
    pub line: usize,
}

/// How much a single number of the key varies, and what the bounds made of it are good for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BaselineSpread {
    /// As a fraction of the median.
    pub relative: f64,
    /// Degrees of freedom of `relative`.
    pub freedom: f64,
    /// The bounds stand for so many numbers judged at once; a plan that judges more widens them.
    pub judged: u32,
}

/// What a baseline is for, beside its metric. A number is comparable only under the same key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BaselineKey {
    /// None where the workload is not nccl-tests.
    pub op: Option<Op>,
    /// Bytes; none where the metric has no size.
    pub size_bytes: Option<u64>,
    /// Nodes of one job.
    pub nodes: Option<u32>,
    /// Ranks of a communicator: all GPUs of the nodes, or fewer.
    pub ranks: Option<u32>,
    /// How jobs lie beside each other: `all` (one alone), `pairs`, `groups`, `each`, `each gpu`. A baseline without one
    /// stands for any.
    pub placement: Option<String>,
    /// Which training, by the name of its case: another model is no comparison.
    pub training: Option<String>,
    /// Of the elements, where it is another than nccl-tests' own `float`.
    pub dtype: Option<String>,
    /// Where the suite forces one.
    pub algorithm: Option<String>,
    /// `NCCL_PROTO`, where the case sets it.
    pub protocol: Option<String>,
    /// `torch` where PyTorch ran the collective: its numbers are not those of nccl-tests. `nccl-tests through NICs` where
    /// GPUs of a node were kept from NVLink.
    pub runner: Option<String>,
    /// The kernel, or the class of kernels.
    pub kernel: Option<String>,
}

/// What a baseline is good for: `state` in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// A number outside its bounds fails.
    Accepted,
    /// A published anchor, or too few samples: good for a warning only.
    Provisional,
    /// No number is compared with it.
    Expired,
}

/// How the name of a file of proposals ends.
pub const PENDING: &str = ".pending.toml";

/// Fewer samples than this do not show the noise of a number.
pub const FEWEST_ACCEPTED: usize = 5;

/// And fewer than this no pack can help.
const FEWEST_WITH_PACK: usize = 3;

/// Whether so many samples show the noise of a number, with what a pack lends.
pub(crate) fn are_enough(samples: usize, pack: Option<&PackHelp>) -> bool {
    let is_helped = || pack.is_some_and(|pack| pack.worth >= FEWEST_ACCEPTED as f64);
    samples >= FEWEST_ACCEPTED || samples >= FEWEST_WITH_PACK && is_helped()
}

impl Baselines {
    /// Reads baselines of the catalogue's metrics, or reports every error in them.
    pub fn read(text: &str, file: &str, catalogue: &Catalogue) -> Result<Baselines, Diagnostics> {
        read::baselines(text, file, catalogue)
    }

    /// No baselines yet, to be filled.
    pub fn none(instance: &str, simulated: bool, file: &str) -> Baselines {
        let (instance, file) = (instance.to_owned(), file.to_owned());
        Baselines { instance, simulated, between_sizes: false, entries: Vec::new(), file }
    }

    /// Whether it is a file of proposals, which judge nothing.
    pub fn is_pending(&self) -> bool {
        self.file.ends_with(PENDING)
    }

    /// The one under exactly this key, placement included.
    pub fn find(&self, metric: &str, key: &BaselineKey) -> Option<&Baseline> {
        self.entries.iter().find(|baseline| baseline.metric == metric && baseline.key == *key)
    }

    /// The one that stands for a key: its own, or the one for any placement. One that can judge nothing does not hide
    /// one that can.
    pub fn find_for(&self, metric: &str, key: &BaselineKey) -> Option<&Baseline> {
        let (own, anywhere) = (self.find(metric, key), self.find(metric, &key.anywhere()));
        match (own, anywhere) {
            (Some(own), Some(other)) if own.lacks_bounds() && !other.lacks_bounds() => Some(other),
            _ => own.or(anywhere),
        }
    }

    /// The TOML of it, in an order that does not hang on the order of the entries.
    pub fn render(&self) -> String {
        render::render(self)
    }
}

impl Baseline {
    /// Whether it has no bounds yet. One that has expired judges nothing by intent.
    pub(crate) fn lacks_bounds(&self) -> bool {
        self.state != State::Expired && self.lower.is_none() && self.upper.is_none()
    }

    /// The middle of the samples.
    pub fn median(&self) -> f64 {
        bounds::median(&self.samples).unwrap_or(f64::NAN)
    }
}

impl BaselineKey {
    /// The same for any placement.
    pub fn anywhere(&self) -> BaselineKey {
        BaselineKey { placement: None, ..self.clone() }
    }
}

impl State {
    /// As in the file: `accepted`.
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
            self.placement.as_ref().map(|placement| format!("placement {placement}")),
            self.training.as_ref().map(|training| format!("training {training}")),
            self.dtype.clone(),
            self.algorithm.clone(),
            self.protocol.clone(),
            self.runner.clone(),
            self.kernel.clone(),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests;
