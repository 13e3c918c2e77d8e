//! From a key to a value with its interval, or to the reason why there is none.

use crate::figures::{Row, published};
use crate::fit::Fit;
use crate::limit::{Bound, Hardware, Point};
use base::size;
use base::text::count;
use metric::op::Op;
use std::fmt;
use std::sync::OnceLock;

/// Of a normal distribution, 95 % lie within so many standard deviations. No interval is narrower.
const NARROWEST: f64 = 1.96;
const COVERAGE: f64 = 0.95;
/// Node counts up to so many times the largest published one: that far the errors were tested.
const BEYOND: u32 = 2;

/// The conditions of a measurement.
#[derive(Debug, Clone, Copy)]
pub struct Key<'a> {
    /// Of the instance as it is used here: without some of its NICs it is another.
    pub hardware: &'a Hardware,
    /// Of nccl-tests.
    pub op: Op,
    /// As nccl-tests prints it.
    pub size_bytes: u64,
    /// How many take part.
    pub nodes: u32,
    /// Of all nodes.
    pub ranks: u32,
    /// An algorithm, protocol or type that was chosen, as `algorithm tree`; nothing where NCCL chooses.
    pub chosen: Option<&'a str>,
}

/// A predicted busbw, in GB/s.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// The most likely one.
    pub value: f64,
    /// 95 % lie above the one and below the other.
    pub lower: f64,
    /// The upper end of the interval.
    pub upper: f64,
    /// How far the key is from published ones.
    pub reach: Reach,
    /// How many of the operation it was fitted on.
    pub figures: usize,
    /// And how many of these are of the instance.
    pub of_instance: usize,
}

impl Prediction {
    /// Half of the interval, in GB/s.
    pub fn half_width(&self) -> f64 {
        (self.upper - self.lower) / 2.0
    }
}

/// Where published figures of the instance and operation lie, seen from a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// Some are of this very key.
    Published,
    /// Some are of this node count, at other sizes.
    OtherSizes,
    /// They are of fewer and of more nodes: the nearest of each.
    Between(u32, u32),
    /// They are all of fewer nodes: the most.
    Above(u32),
    /// They are all of more nodes: the fewest.
    Below(u32),
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reach::Published => f.write_str("figures of this key"),
            Reach::OtherSizes => f.write_str("figures of other sizes"),
            Reach::Between(few, many) => write!(f, "figures of {few} and {many} nodes"),
            Reach::Above(nodes) | Reach::Below(nodes) => write!(f, "figures of {nodes} nodes"),
        }
    }
}

/// Why there is no prediction.
#[derive(Debug, Clone, PartialEq)]
pub enum NoPrediction {
    /// There are no, or too few, published figures of the instance.
    Instance(String),
    /// Its links are not those that the figures were measured on.
    Links(String),
    /// No figures of the operation are published for the instance.
    Op(String, Op),
    /// Other than one rank on each GPU.
    Ranks(u32, u32),
    /// No figure is bound by the link that bounds this key.
    Bound(String, Op, u32),
    /// More nodes than were tested; the most that are predicted.
    Nodes(u32, u32),
    /// Outside the published sizes: the smallest and the largest.
    Size(u64, u64, u64),
    /// Less for each node than in any figure, and the least in one.
    Share(u64, u64),
    /// The figures are of what NCCL chooses itself.
    Chosen(String),
}

impl fmt::Display for NoPrediction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoPrediction::Instance(name) => {
                let known: Vec<&str> = published().hardware.iter().map(|one| one.instance.as_str()).collect();
                write!(f, "too few published figures of {name}; there are enough of {}", known.join(", "))
            }
            NoPrediction::Links(name) => {
                write!(f, "NVLink or NICs of {name} differ from those that the published figures are of")
            }
            NoPrediction::Op(name, op) => {
                let ops: Vec<&str> = predicted_ops(name).map(Op::name).collect();
                write!(f, "no published figure of {name} {op}; there are some of {}", ops.join(", "))
            }
            NoPrediction::Ranks(ranks, nodes) => {
                write!(f, "{ranks} ranks on {nodes} nodes; published figures are of one rank on each GPU")
            }
            NoPrediction::Bound(name, op, nodes) => {
                let nodes = count(*nodes, "node");
                write!(f, "no published figure is like {name} {op} on {nodes}: another link limits it")
            }
            NoPrediction::Nodes(nodes, most) => {
                write!(f, "{nodes} nodes; predictions were tested on up to {most}")
            }
            NoPrediction::Size(size, least, most) => {
                let (size, least, most) = (size::show(*size), size::show(*least), size::show(*most));
                write!(f, "{size}; published figures are of {least} to {most}")
            }
            NoPrediction::Share(share, least) => {
                let (share, least) = (share >> 20, least >> 20);
                write!(f, "{share} MiB for each node; the least in a published figure is {least} MiB")
            }
            NoPrediction::Chosen(what) => {
                write!(f, "{what}; published figures are of what NCCL chooses itself")
            }
        }
    }
}

/// The operations with published figures of an instance.
pub fn predicted_ops(instance: &str) -> impl Iterator<Item = Op> {
    let has = move |op: &Op| {
        published().rows.iter().any(|row| row.figure.instance == instance && row.figure.op == *op)
    };
    Op::ALL.into_iter().filter(has)
}

/// The busbw of a key by all published figures of its operation.
pub fn predict(key: &Key) -> Result<Prediction, NoPrediction> {
    let name = &key.hardware.instance;
    let known = published().hardware_of(name).ok_or_else(|| NoPrediction::Instance(name.clone()))?;
    if known != key.hardware {
        return Err(NoPrediction::Links(name.clone()));
    }
    if let Some(chosen) = key.chosen {
        return Err(NoPrediction::Chosen(chosen.to_owned()));
    }
    let rows: Vec<&'static Row> = published().rows.iter().filter(|row| row.figure.op == key.op).collect();
    let own: Vec<&Row> = rows.iter().copied().filter(|row| row.figure.instance == *name).collect();
    if own.is_empty() {
        return Err(NoPrediction::Op(name.clone(), key.op));
    }
    if key.nodes == 0 || key.nodes.checked_mul(known.gpus) != Some(key.ranks) {
        return Err(NoPrediction::Ranks(key.ranks, key.nodes));
    }
    within(&rows, key)?;
    let out_of_reach = || NoPrediction::Bound(name.clone(), key.op, key.nodes);
    let point = Point::new(known, key.op, key.size_bytes, key.nodes).ok_or_else(out_of_reach)?;
    // NVLink of another rate, or a tree's wire: what is used of it is not known from the rest.
    if !rows.iter().any(|row| row.point.bound == point.bound && same_link(&row.point, &point)) {
        return Err(out_of_reach());
    }
    let model = model(key.op).ok_or_else(out_of_reach)?;
    let interval = model.at(&point);
    Ok(Prediction {
        value: interval.value,
        lower: interval.lower,
        upper: interval.upper,
        reach: reach(&own, key),
        figures: rows.len(),
        of_instance: own.len(),
    })
}

fn same_link(a: &Point, b: &Point) -> bool {
    a.bound != Bound::NvLink || a.limit == b.limit
}

/// Whether a key lies in the range of nodes and sizes that figures cover.
fn within(rows: &[&Row], key: &Key) -> Result<(), NoPrediction> {
    let figures = || rows.iter().map(|row| &row.figure);
    let most = figures().map(|one| one.nodes).max().unwrap_or(0) * BEYOND;
    if key.nodes > most {
        return Err(NoPrediction::Nodes(key.nodes, most));
    }
    let sizes = figures().map(|one| one.size_bytes);
    let (least, largest) = (sizes.clone().min().unwrap_or(0), sizes.max().unwrap_or(0));
    if key.size_bytes < least || key.size_bytes > largest {
        return Err(NoPrediction::Size(key.size_bytes, least, largest));
    }
    let share = |size: u64, nodes: u32| size / u64::from(nodes.max(1));
    let (own, least) = (
        share(key.size_bytes, key.nodes),
        figures().map(|one| share(one.size_bytes, one.nodes)).min().unwrap_or(0),
    );
    if own < least { Err(NoPrediction::Share(own, least)) } else { Ok(()) }
}

fn reach(own: &[&Row], key: &Key) -> Reach {
    let of_nodes = || own.iter().filter(|row| row.figure.nodes == key.nodes);
    if of_nodes().any(|row| row.figure.size_bytes == key.size_bytes) {
        return Reach::Published;
    }
    if of_nodes().next().is_some() {
        return Reach::OtherSizes;
    }
    let counts = || own.iter().map(|row| row.figure.nodes);
    let few = counts().filter(|nodes| *nodes < key.nodes).max();
    let many = counts().filter(|nodes| *nodes > key.nodes).min();
    match (few, many) {
        (Some(few), Some(many)) => Reach::Between(few, many),
        (Some(few), None) => Reach::Above(few),
        (None, many) => Reach::Below(many.unwrap_or(key.nodes)),
    }
}

/// Made once for each operation of published figures.
fn model(op: Op) -> Option<&'static Model> {
    static MODELS: OnceLock<Vec<(Op, Model)>> = OnceLock::new();
    let models = MODELS.get_or_init(|| {
        let of = |op: Op| {
            let rows: Vec<&Row> = published().rows.iter().filter(|row| row.figure.op == op).collect();
            Some((op, Model::new(&rows)?))
        };
        Op::ALL.into_iter().filter_map(of).collect()
    });
    models.iter().find(|(of, _)| *of == op).map(|(_, model)| model)
}

/// A fit, and how wide its intervals have to be.
#[derive(Debug)]
pub(crate) struct Model {
    fit: Fit,
    widening: f64,
}

/// Of a point, in GB/s.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interval {
    pub(crate) value: f64,
    pub(crate) lower: f64,
    pub(crate) upper: f64,
}

impl Model {
    /// `None` where the figures determine none.
    pub(crate) fn new(rows: &[&Row]) -> Option<Model> {
        Some(Model { fit: Fit::new(rows)?, widening: widening(rows) })
    }

    pub(crate) fn at(&self, point: &Point) -> Interval {
        let (value, sigma) = self.fit.at(point);
        let width = (self.widening * sigma).exp();
        Interval { value, lower: value / width, upper: value * width }
    }
}

/// So many standard deviations hold 95 % of the figures whose node count is left out of the fit.
fn widening(rows: &[&Row]) -> f64 {
    let mut errors = Vec::new();
    for (rest, left_out) in without_each_node_count(rows) {
        let Some(fit) = Fit::new(&rest) else { continue };
        errors.extend(left_out.iter().map(|row| {
            let (value, sigma) = fit.at(&row.point);
            (row.figure.busbw / value).ln().abs() / sigma
        }));
    }
    errors.sort_by(f64::total_cmp);
    let rank = (COVERAGE * (errors.len() + 1) as f64).ceil() as usize;
    let at = rank.saturating_sub(1).min(errors.len().saturating_sub(1));
    errors.get(at).copied().unwrap_or(NARROWEST).max(NARROWEST)
}

/// For each node count: the rows of all others, and its own.
pub(crate) fn without_each_node_count<'a>(rows: &[&'a Row]) -> Vec<(Vec<&'a Row>, Vec<&'a Row>)> {
    let mut counts: Vec<u32> = rows.iter().map(|row| row.figure.nodes).collect();
    counts.sort_unstable();
    counts.dedup();
    let split = |nodes: u32| rows.iter().copied().partition(|row: &&Row| row.figure.nodes != nodes);
    counts.into_iter().map(split).collect()
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
