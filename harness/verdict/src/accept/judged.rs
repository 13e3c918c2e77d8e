//! What the numbers of each node were compared with: an accepted baseline, peers, a published figure or a stated limit.

use super::limits::OfRun;
use base::nodeset;
use model::artefact::acceptance::NodesJudged;
use model::artefact::{JudgedBy, PlannedCase, Status, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// The counts of each new node.
#[derive(Debug, Default)]
pub struct Judged {
    of: BTreeMap<String, NodesJudged>,
}

impl Judged {
    /// Nothing yet, of these nodes.
    pub fn new(nodes: &[String]) -> Judged {
        Judged { of: nodes.iter().map(|node| (node.clone(), NodesJudged::default())).collect() }
    }

    /// All numbers of one more run.
    pub fn add(&mut self, run: &OfRun) {
        for found in run.verdicts {
            let is_it = |case: &&PlannedCase| case.suite == found.suite && case.name == found.case;
            let Some(case) = run.plan.cases.iter().find(is_it) else { continue };
            let jobs: BTreeMap<&str, &[String]> =
                case.jobs.iter().map(|job| (job.name.as_str(), job.nodes.as_slice())).collect();
            for (assertion, verdict) in case.assertions.iter().zip(&found.verdicts) {
                let of_jobs = assertion.jobs.iter().filter_map(|job| jobs.get(job.as_str()));
                let mut concerned: BTreeSet<&str> =
                    of_jobs.flat_map(|nodes| nodes.iter().map(String::as_str)).collect();
                if let Some(own) = &assertion.node {
                    concerned.retain(|node| node == own);
                }
                for node in concerned {
                    if let Some(counts) = self.of.get_mut(node) {
                        count(counts, verdict);
                    }
                }
            }
        }
    }

    /// Nodes that are alike in that stand in one row.
    pub fn rows(&self) -> Vec<NodesJudged> {
        let mut alike: BTreeMap<NodesJudged, Vec<String>> = BTreeMap::new();
        for (node, counts) in &self.of {
            alike.entry(counts.clone()).or_default().push(node.clone());
        }
        let rows = alike.into_iter().map(|(counts, mut nodes)| {
            nodeset::sort(&mut nodes);
            NodesJudged { nodes: nodeset::fold(&nodes), ..counts }
        });
        let mut rows: Vec<NodesJudged> = rows.collect();
        rows.sort_by(|a, b| nodeset::compare(&a.nodes, &b.nodes));
        rows
    }
}

fn count(counts: &mut NodesJudged, verdict: &Verdict) {
    if verdict.status == Status::Unjudged {
        counts.unjudged += 1;
        return;
    }
    match verdict.judged_by {
        Some(JudgedBy::AcceptedBaseline) => counts.accepted_baseline += 1,
        Some(JudgedBy::Peers { of }) => {
            counts.peers += 1;
            counts.most_peers = counts.most_peers.max(of as usize);
        }
        Some(JudgedBy::Published) => counts.published += 1,
        Some(JudgedBy::Floor) => counts.floor += 1,
        Some(JudgedBy::Limit) => counts.limit += 1,
        None => {}
    }
}
