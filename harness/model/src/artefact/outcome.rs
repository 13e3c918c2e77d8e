//! What the judgement of a case leaves for the judgement of the run: how its jobs went, and what was measured of what.
//! Verdicts themselves are in a file of their own.

use super::{Coverage, Format, Share};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// `cases/<case>/outcomes.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseOutcomes {
    /// Version of this layout.
    pub format: Format<1>,
    /// Without jobs whose end says nothing about nodes, such as interrupted ones.
    pub jobs: Vec<JobOutcome>,
    /// What this case measured; united over all cases for `summary.json`.
    pub coverage: CoverageSets,
}

/// How a job went, for the question which node is in all that went badly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobOutcome {
    /// The case's name.
    pub case: String,
    /// By the case's workload.
    pub kind: WorkKind,
    /// The job's name in the case.
    pub job: String,
    /// Nodes that it ran on.
    pub nodes: Vec<String>,
    /// `None` where it ended well and no number is missing.
    pub bad: Option<Bad>,
    /// Metrics that were judged on this job, and whether any of them failed.
    pub judged: BTreeMap<String, bool>,
    /// The worst number of each metric that failed, beside its limit: `222.4 GB/s, limit 415.2 GB/s (...)`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub worst: BTreeMap<String, String>,
}

/// The kind of a workload: a job that could not have shown a cause does not clear its nodes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkKind {
    /// nccl-tests on each GPU by itself.
    Gpus,
    /// nccl-tests over several ranks.
    Collective,
    /// `nic-pairs`.
    Flows,
    /// A command or a training.
    Command,
}

/// Why a job counts as bad.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bad {
    /// A short code: `hang`, `exit 137`, `not-measured`.
    pub cause: String,
    /// The node that a launcher, probe or sampler named.
    pub node: Option<String>,
    /// What was reported, for the culprit's line.
    pub evidence: String,
}

/// The sets behind the counts of a coverage, so that those of several cases can be united.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct CoverageSets {
    /// By name; measured where a metric of one of its jobs is there.
    pub nodes: Sets<String>,
    /// A node's ranks count as a whole: all of its GPUs took part, or not.
    pub ranks: Sets<String>,
    /// Of the nodes whose counters or flows are read.
    pub nics_of_nodes: NicSets,
    /// Message sizes of nccl-tests, in bytes.
    pub sizes: Sets<u64>,
    /// GPUs of each node, by which `ranks` is multiplied.
    pub gpus: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sets<T: Ord> {
    pub measured: BTreeSet<T>,
    pub expected: BTreeSet<T>,
}

impl<T: Ord> Default for Sets<T> {
    fn default() -> Self {
        Sets { measured: BTreeSet::new(), expected: BTreeSet::new() }
    }
}

impl<T: Ord + Clone> Sets<T> {
    fn unite(&mut self, other: &Sets<T>) {
        self.measured.extend(other.measured.iter().cloned());
        self.expected.extend(other.expected.iter().cloned());
    }

    fn share(&self) -> Share {
        Share {
            measured: self.measured.intersection(&self.expected).count() as u32,
            expected: self.expected.len() as u32,
        }
    }
}

/// The NICs of each node.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct NicSets(BTreeMap<String, Sets<String>>);

impl NicSets {
    pub fn expect(&mut self, node: &str, nics: &[String]) {
        self.0.entry(node.to_owned()).or_default().expected.extend(nics.iter().cloned());
    }

    pub fn measure(&mut self, node: &str, nic: &str) {
        self.0.entry(node.to_owned()).or_default().measured.insert(nic.to_owned());
    }
}

impl CoverageSets {
    /// Adds what another case planned and measured.
    pub fn unite(&mut self, other: &CoverageSets) {
        self.nodes.unite(&other.nodes);
        self.ranks.unite(&other.ranks);
        for (node, nics) in &other.nics_of_nodes.0 {
            self.nics_of_nodes.0.entry(node.clone()).or_default().unite(nics);
        }
        self.sizes.unite(&other.sizes);
        self.gpus = self.gpus.max(other.gpus);
    }

    /// Counts the sets, a node's ranks as all its GPUs.
    pub fn counts(&self) -> Coverage {
        let ranks = self.ranks.share();
        let mut nics = Share::default();
        for share in self.nics_of_nodes.0.values().map(Sets::share) {
            nics.measured += share.measured;
            nics.expected += share.expected;
        }
        Coverage {
            nodes: self.nodes.share(),
            ranks: Share { measured: ranks.measured * self.gpus, expected: ranks.expected * self.gpus },
            nics,
            sizes: self.sizes.share(),
        }
    }
}
