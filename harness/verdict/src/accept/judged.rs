//! What the numbers of each node were compared with: an accepted baseline, peers, a published figure or a stated limit.

use super::limits::OfRun;
use base::nodeset;
use model::artefact::acceptance::NodesJudged;
use model::artefact::{JudgedBy, PlannedCase, Status, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// Nodes that are alike in that stand in one row.
pub fn judged_by(nodes: &[String], runs: &[OfRun]) -> Vec<NodesJudged> {
    let mut of: BTreeMap<&str, NodesJudged> =
        nodes.iter().map(|node| (node.as_str(), NodesJudged::default())).collect();
    for run in runs {
        for found in run.verdicts {
            let is_it = |case: &&PlannedCase| case.suite == found.suite && case.name == found.case;
            let Some(case) = run.plan.cases.iter().find(is_it) else { continue };
            for (assertion, verdict) in case.assertions.iter().zip(&found.verdicts) {
                let of_jobs = case.jobs.iter().filter(|job| assertion.jobs.contains(&job.name));
                let mut concerned: BTreeSet<&str> =
                    of_jobs.flat_map(|job| job.nodes.iter().map(String::as_str)).collect();
                if let Some(own) = &assertion.node {
                    concerned.retain(|node| node == own);
                }
                for node in concerned {
                    of.entry(node).and_modify(|counts| count(counts, verdict));
                }
            }
        }
    }
    let mut alike: BTreeMap<NodesJudged, Vec<String>> = BTreeMap::new();
    for (node, counts) in of {
        alike.entry(counts).or_default().push(node.to_owned());
    }
    let rows = alike.into_iter().map(|(counts, mut nodes)| {
        nodeset::sort(&mut nodes);
        NodesJudged { nodes: nodeset::fold(&nodes), ..counts }
    });
    let mut rows: Vec<NodesJudged> = rows.collect();
    rows.sort_by(|a, b| nodeset::compare(&a.nodes, &b.nodes));
    rows
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
