//! What was measured of what was to be measured: nodes, ranks, NICs, sizes. A pass without it says little.

use super::CaseData;
use super::gate::Gate;
use crate::artefact::{Coverage, Share, WorkloadFacts};
use recipes::metric::Dim;
use std::collections::{BTreeMap, BTreeSet};

/// The sets behind the counts, so that those of several cases can be united.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct CoverageSets {
    nodes: Sets<String>,
    /// A node's ranks count as a whole: all of its GPUs took part, or not.
    ranks: Sets<String>,
    nics: Sets<(String, String)>,
    sizes: Sets<u64>,
    gpus: u32,
}

#[derive(Debug, Clone, PartialEq)]
struct Sets<T> {
    measured: BTreeSet<T>,
    expected: BTreeSet<T>,
}

impl<T> Default for Sets<T> {
    fn default() -> Self {
        Sets { measured: BTreeSet::new(), expected: BTreeSet::new() }
    }
}

impl<T: Ord + Clone> Sets<T> {
    fn unite(&mut self, other: Sets<T>) {
        self.measured.extend(other.measured);
        self.expected.extend(other.expected);
    }

    fn share(&self, times: u32) -> Share {
        Share {
            measured: self.measured.intersection(&self.expected).count() as u32 * times,
            expected: self.expected.len() as u32 * times,
        }
    }
}

impl CoverageSets {
    pub fn unite(&mut self, other: CoverageSets) {
        self.nodes.unite(other.nodes);
        self.ranks.unite(other.ranks);
        self.nics.unite(other.nics);
        self.sizes.unite(other.sizes);
        self.gpus = self.gpus.max(other.gpus);
    }

    pub fn counts(&self) -> Coverage {
        Coverage {
            nodes: self.nodes.share(1),
            ranks: self.ranks.share(self.gpus),
            nics: self.nics.share(1),
            sizes: self.sizes.share(1),
        }
    }
}

pub fn of(data: &CaseData, gates: &BTreeMap<&str, Gate>) -> CoverageSets {
    let mut sets = CoverageSets { gpus: data.instance.gpus, ..CoverageSets::default() };
    if data.skipped.is_some() {
        return sets;
    }
    let is_nccl = matches!(data.case.workload, WorkloadFacts::NcclTests { .. });
    let reads_nics = data.case.recipes.iter().any(|name| name == "efa_traffic" || name == "nic_flows");
    for planned in &data.case.jobs {
        for node in &planned.nodes {
            sets.nodes.expected.insert(node.clone());
            if is_nccl {
                sets.ranks.expected.insert(node.clone());
            }
            if reads_nics {
                let nics = data.instance.nics.iter().map(|nic| (node.clone(), nic.clone()));
                sets.nics.expected.extend(nics);
            }
        }
    }
    if let WorkloadFacts::NcclTests { sizes, .. } = &data.case.workload {
        sets.sizes.expected.extend(sizes);
    }
    let nodes_of: BTreeMap<&str, &[String]> =
        data.case.jobs.iter().map(|job| (job.name.as_str(), job.nodes.as_slice())).collect();
    let is_open = |job: &str| matches!(gates.get(job), Some(Gate::Open));
    for row in data.metrics.rows() {
        // The rate of a NIC is made of several jobs and names none; its flows do.
        let job = row.dims.word(Dim::Job);
        if job.is_some_and(|job| !is_open(job)) || !row.value.is_finite() {
            continue;
        }
        let nodes = job.and_then(|job| nodes_of.get(job).copied()).unwrap_or_default();
        sets.nodes.measured.extend(nodes.iter().cloned());
        match &*row.name {
            "nccl.time" => {
                sets.sizes.measured.extend(row.dims.number(Dim::SizeBytes));
                match row.dims.word(Dim::Node) {
                    Some(node) => sets.ranks.measured.extend([node.to_owned()]),
                    None => sets.ranks.measured.extend(nodes.iter().cloned()),
                }
            }
            "nic.tx_bytes" | "nic.rate" => {
                if let (Some(node), Some(nic)) = (row.dims.word(Dim::Node), row.dims.word(Dim::Nic)) {
                    sets.nics.measured.insert((node.to_owned(), nic.to_owned()));
                }
            }
            _ => {}
        }
    }
    sets
}
