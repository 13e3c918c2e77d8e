//! What the judgement of a case leaves for the judgement of the run: how its jobs went, and what was measured of what.
//! Verdicts themselves are in a file of their own.

use super::{Coverage, Share};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// `cases/<case>/outcomes.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseOutcomes {
    pub format: u32,
    pub jobs: Vec<JobOutcome>,
    pub coverage: CoverageSets,
}

/// How a job went, for the question which node is in all that went badly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobOutcome {
    pub case: String,
    pub kind: WorkKind,
    pub job: String,
    pub nodes: Vec<String>,
    pub bad: Option<Bad>,
    /// Metrics that were judged on this job, and whether any of them failed.
    pub judged: BTreeMap<String, bool>,
}

/// The kind of a workload: a job that could not have shown a cause does not clear its nodes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkKind {
    Gpus,
    Collective,
    Flows,
    Command,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bad {
    pub cause: String,
    /// The node that a launcher, probe or sampler named.
    pub node: Option<String>,
    pub evidence: String,
}

/// The sets behind the counts of a coverage, so that those of several cases can be united.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct CoverageSets {
    pub nodes: Sets<String>,
    /// A node's ranks count as a whole: all of its GPUs took part, or not.
    pub ranks: Sets<String>,
    pub nics_of_nodes: NicSets,
    pub sizes: Sets<u64>,
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
    pub fn unite(&mut self, other: &CoverageSets) {
        self.nodes.unite(&other.nodes);
        self.ranks.unite(&other.ranks);
        for (node, nics) in &other.nics_of_nodes.0 {
            self.nics_of_nodes.0.entry(node.clone()).or_default().unite(nics);
        }
        self.sizes.unite(&other.sizes);
        self.gpus = self.gpus.max(other.gpus);
    }

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
