//! The one shape of every number: a name, dimensions, a value and a unit; and the table that holds them.
//! How the table lies on disk: `recipes::parquet`; what a number is compared with, in the harness.

use crate::unit::{Better, Unit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What a number was measured on or for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dim {
    /// The case of the suite.
    Case,
    /// The job within the case: one launch on one set of nodes.
    Job,
    /// A collective by its name in nccl-tests, such as `all_reduce`.
    Op,
    /// Message size in bytes, as nccl-tests prints it.
    SizeBytes,
    /// `out` or `in` of place.
    Place,
    /// The node's name in the inventory.
    Node,
    /// The device's name, such as `rdmap113s0`.
    Nic,
    /// The node at the other end of a flow.
    Peer,
    /// `tx` (data leaves the node) or `rx` (data arrives).
    Direction,
    /// Index of the GPU on its node.
    Gpu,
    /// Round of the job in its case, counted from 1; jobs of a round run side by side.
    Round,
    /// A kernel, by its short name.
    Kernel,
    /// A class of kernels.
    Class,
    /// The rank of the job whose report it was.
    Rank,
    /// A step of a run that repeats itself.
    Step,
}

impl Dim {
    /// Every dimension once, in the order of `Dims`.
    pub const ALL: [Dim; 15] = [
        Dim::Case,
        Dim::Job,
        Dim::Op,
        Dim::SizeBytes,
        Dim::Place,
        Dim::Node,
        Dim::Nic,
        Dim::Peer,
        Dim::Direction,
        Dim::Gpu,
        Dim::Round,
        Dim::Kernel,
        Dim::Class,
        Dim::Rank,
        Dim::Step,
    ];

    /// As in files and on the command line: `size_bytes`.
    pub fn name(self) -> &'static str {
        match self {
            Dim::Case => "case",
            Dim::Job => "job",
            Dim::Op => "op",
            Dim::SizeBytes => "size_bytes",
            Dim::Place => "place",
            Dim::Node => "node",
            Dim::Nic => "nic",
            Dim::Peer => "peer",
            Dim::Direction => "direction",
            Dim::Gpu => "gpu",
            Dim::Round => "round",
            Dim::Kernel => "kernel",
            Dim::Class => "class",
            Dim::Rank => "rank",
            Dim::Step => "step",
        }
    }

    /// Dimensions whose values are whole numbers; the others are words.
    pub fn is_number(self) -> bool {
        matches!(self, Dim::SizeBytes | Dim::Gpu | Dim::Round | Dim::Rank | Dim::Step)
    }
}

/// The value of one dimension.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum DimValue {
    /// A size, index, rank or step.
    Number(u64),
    /// A name, such as that of a node or an operation.
    Word(Arc<str>),
}

impl From<u64> for DimValue {
    fn from(value: u64) -> Self {
        DimValue::Number(value)
    }
}

impl From<u32> for DimValue {
    fn from(value: u32) -> Self {
        DimValue::Number(u64::from(value))
    }
}

impl From<&str> for DimValue {
    fn from(value: &str) -> Self {
        DimValue::Word(Arc::from(value))
    }
}

impl From<Arc<str>> for DimValue {
    fn from(value: Arc<str>) -> Self {
        DimValue::Word(value)
    }
}

impl fmt::Display for DimValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DimValue::Number(number) => write!(f, "{number}"),
            DimValue::Word(word) => f.write_str(word),
        }
    }
}

/// The dimensions of one number, sorted; each at most once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "BTreeMap<Dim, DimValue>", into = "BTreeMap<Dim, DimValue>")]
pub struct Dims(Vec<(Dim, DimValue)>);

impl Dims {
    /// Without any dimension.
    pub fn new() -> Self {
        Dims::default()
    }

    /// The same with this dimension set.
    pub fn with(mut self, dim: Dim, value: impl Into<DimValue>) -> Self {
        self.set(dim, value);
        self
    }

    /// Sets the dimension, in place of an earlier value.
    pub fn set(&mut self, dim: Dim, value: impl Into<DimValue>) {
        let value = value.into();
        match self.0.binary_search_by_key(&dim, |(d, _)| *d) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => self.0.insert(at, (dim, value)),
        }
    }

    /// `None` where the number does not have this dimension.
    pub fn get(&self, dim: Dim) -> Option<&DimValue> {
        let at = self.0.binary_search_by_key(&dim, |(d, _)| *d).ok()?;
        Some(&self.0[at].1)
    }

    /// `None` also where the value is a number.
    pub fn word(&self, dim: Dim) -> Option<&str> {
        match self.get(dim)? {
            DimValue::Word(word) => Some(word),
            DimValue::Number(_) => None,
        }
    }

    /// `None` also where the value is a word.
    pub fn number(&self, dim: Dim) -> Option<u64> {
        match self.get(dim)? {
            DimValue::Number(number) => Some(*number),
            DimValue::Word(_) => None,
        }
    }

    /// In the order of `Dim::ALL`.
    pub fn iter(&self) -> impl Iterator<Item = (Dim, &DimValue)> {
        self.0.iter().map(|(dim, value)| (*dim, value))
    }

    /// Whether every dimension that `wanted` fixes has that value here.
    pub(crate) fn covers(&self, wanted: &Dims) -> bool {
        wanted.iter().all(|(dim, value)| self.get(dim) == Some(value))
    }
}

impl From<BTreeMap<Dim, DimValue>> for Dims {
    fn from(map: BTreeMap<Dim, DimValue>) -> Self {
        Dims(map.into_iter().collect())
    }
}

impl From<Dims> for BTreeMap<Dim, DimValue> {
    fn from(dims: Dims) -> Self {
        dims.0.into_iter().collect()
    }
}

/// One measured or counted value, a row of `metrics.parquet`.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// As its recipe declares it, such as `nccl.busbw`.
    pub name: Arc<str>,
    /// What it was measured on or for.
    pub dims: Dims,
    /// In `unit`; NaN where it was not measured.
    pub value: f64,
    /// As its recipe declares it.
    pub unit: Unit,
    /// Which direction is an improvement, as its recipe declares it.
    pub better: Better,
}

/// A question to the table: a metric's name and the dimensions that are fixed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Query {
    /// The metric's name, matched exactly.
    pub metric: String,
    /// Only rows with these values match; other dimensions may have any.
    pub dims: Dims,
}

/// The metrics of one case, sorted by name and dimensions so that the same numbers are the same bytes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metrics {
    rows: Vec<Metric>,
    /// The rows of each (name, node), the two keys that nearly every question fixes.
    by_name_and_node: Index,
    /// The same by job: what is measured of a whole job has no node.
    by_name_and_job: Index,
}

type Index = BTreeMap<(Arc<str>, Option<DimValue>), Vec<u32>>;

impl Metrics {
    /// Sorts the rows and indexes them.
    pub fn from_rows(mut rows: Vec<Metric>) -> Self {
        rows.sort_by(|a, b| {
            (&a.name, &a.dims).cmp(&(&b.name, &b.dims)).then_with(|| a.value.total_cmp(&b.value))
        });
        let (mut by_name_and_node, mut by_name_and_job) = (Index::new(), Index::new());
        for (at, row) in rows.iter().enumerate() {
            for (dim, index) in [(Dim::Node, &mut by_name_and_node), (Dim::Job, &mut by_name_and_job)] {
                let key = (row.name.clone(), row.dims.get(dim).cloned());
                index.entry(key).or_default().push(at as u32);
            }
        }
        Metrics { rows, by_name_and_node, by_name_and_job }
    }

    /// Sorted by name, dimensions and value.
    pub fn rows(&self) -> &[Metric] {
        &self.rows
    }

    /// The rows of these jobs, or of none, that answer `query`, in the order of the table.
    pub fn select_of_jobs<'a>(&'a self, query: &Query, jobs: &[String]) -> Vec<&'a Metric> {
        if query.dims.get(Dim::Node).is_some() {
            let is_theirs =
                |row: &&Metric| row.dims.word(Dim::Job).is_none_or(|job| jobs.iter().any(|name| name == job));
            return self.select(query).into_iter().filter(is_theirs).collect();
        }
        let name: Arc<str> = Arc::from(query.metric.as_str());
        let names = jobs.iter().map(|job| Some(DimValue::from(job.as_str()))).chain([None]);
        let of_job = |job| self.by_name_and_job.get(&(Arc::clone(&name), job)).into_iter().flatten();
        let mut places: Vec<u32> = names.flat_map(of_job).copied().collect();
        places.sort_unstable();
        places.dedup();
        let rows = places.iter().filter_map(|at| self.rows.get(*at as usize));
        rows.filter(|row| row.dims.covers(&query.dims)).collect()
    }

    /// The rows that answer `query`, in the order of the table.
    pub fn select<'a>(&'a self, query: &Query) -> Vec<&'a Metric> {
        let name: Arc<str> = Arc::from(query.metric.as_str());
        let rows_of = |at: &u32| self.rows.get(*at as usize);
        let indexed = match (query.dims.get(Dim::Node), query.dims.get(Dim::Job)) {
            (Some(node), _) => self.by_name_and_node.get(&(name, Some(node.clone()))),
            (None, Some(job)) => self.by_name_and_job.get(&(name, Some(job.clone()))),
            (None, None) => {
                let first = self.rows.partition_point(|row| row.name < name);
                return self.rows[first..]
                    .iter()
                    .take_while(|row| row.name == name)
                    .filter(|row| row.dims.covers(&query.dims))
                    .collect();
            }
        };
        let rows = indexed.into_iter().flatten().filter_map(rows_of);
        rows.filter(|row| row.dims.covers(&query.dims)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, node: &str, size: u64, value: f64) -> Metric {
        Metric {
            name: Arc::from(name),
            dims: Dims::new().with(Dim::Node, node).with(Dim::SizeBytes, size),
            value,
            unit: Unit::Count,
            better: Better::Lower,
        }
    }

    #[test]
    fn a_query_finds_the_rows_with_all_its_dimensions_and_no_other() {
        let metrics = Metrics::from_rows(vec![
            row("b", "n2", 8, 4.0),
            row("a", "n1", 8, 1.0),
            row("a", "n2", 8, 2.0),
            row("a", "n2", 16, 3.0),
        ]);
        let ask = |metric: &str, dims: Dims| {
            let query = Query { metric: metric.into(), dims };
            metrics.select(&query).iter().map(|m| m.value).collect::<Vec<_>>()
        };
        assert_eq!(ask("a", Dims::new()), [1.0, 2.0, 3.0]);
        assert_eq!(ask("a", Dims::new().with(Dim::Node, "n2")), [2.0, 3.0]);
        assert_eq!(ask("a", Dims::new().with(Dim::SizeBytes, 8u64)), [1.0, 2.0]);
        assert_eq!(ask("a", Dims::new().with(Dim::Node, "n3")), [] as [f64; 0]);
        assert_eq!(ask("c", Dims::new()), [] as [f64; 0]);
    }

    #[test]
    fn rows_of_a_job_are_those_that_a_filter_would_leave() {
        let of_job = |job: &str, size, value| {
            let mut row = row("a", "n1", size, value);
            row.dims = Dims::new().with(Dim::Job, job).with(Dim::SizeBytes, size);
            row
        };
        let all =
            vec![of_job("j1", 8, 1.0), of_job("j2", 8, 2.0), of_job("j3", 16, 3.0), row("a", "n1", 8, 4.0)];
        let metrics = Metrics::from_rows(all);
        for dims in [Dims::new(), Dims::new().with(Dim::SizeBytes, 8u64), Dims::new().with(Dim::Node, "n1")] {
            let query = Query { metric: "a".into(), dims };
            let jobs = ["j3".to_owned(), "j1".to_owned(), "j1".to_owned()];
            let filtered = metrics
                .select(&query)
                .into_iter()
                .filter(|row| row.dims.word(Dim::Job).is_none_or(|job| jobs.iter().any(|name| name == job)));
            assert_eq!(metrics.select_of_jobs(&query, &jobs), filtered.collect::<Vec<_>>());
        }
    }
}
