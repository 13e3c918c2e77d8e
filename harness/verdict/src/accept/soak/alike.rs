//! What most nodes of a window fail by alike speaks of what they share, and against none of them.

use crate::accept::node_status::{Bad, NodeStatus};
use crate::accept::schedule::{FEWEST_OF_A_FLEET, RunResult};
use model::artefact::Status;
use std::collections::{BTreeMap, BTreeSet};

/// Takes out of a window's result what more than half of its nodes, and three at least, fail by. Nodes that fail by
/// nothing else are given back, each with the reason: they are not decided.
pub fn set_apart(result: &mut RunResult) -> Vec<(String, String)> {
    let all = result.node_statuses.len();
    let mut failed_by: BTreeMap<String, BTreeSet<&String>> = BTreeMap::new();
    for (node, status) in &result.node_statuses {
        for bad in status.bad.iter().filter(|bad| bad.status == Status::Fail) {
            failed_by.entry(bad.metric.clone()).or_default().insert(node);
        }
    }
    let shared: BTreeMap<String, usize> = failed_by
        .into_iter()
        .map(|(metric, nodes)| (metric, nodes.len()))
        .filter(|(_, nodes)| *nodes >= FEWEST_OF_A_FLEET && nodes * 2 > all)
        .collect();
    let is_shared = |bad: &Bad| bad.status == Status::Fail && shared.contains_key(&bad.metric);
    let mut apart = Vec::new();
    for (node, status) in &mut result.node_statuses {
        let Some(first) = status.bad.iter().find(|bad| is_shared(bad)) else { continue };
        let nodes = shared.get(&first.metric).copied().unwrap_or_default();
        let why = format!(
            "{nodes} of {all} nodes fail by `{}` in the same window: not attributable to a node: {}",
            first.metric, first.message
        );
        let own: Vec<Bad> = status.bad.iter().filter(|bad| !is_shared(bad)).cloned().collect();
        let own = NodeStatus { bad: own };
        match own.has_failed() {
            true => *status = own,
            false => apart.push((node.clone(), why)),
        }
    }
    for (node, _) in &apart {
        result.node_statuses.remove(node);
    }
    result.lines.retain(|line| !shared.keys().any(|metric| line.evidence.starts_with(&format!("{metric} "))));
    apart
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accept::schedule::line;

    fn failed(metric: &str) -> Bad {
        Bad {
            name: format!("a::b::{metric}"),
            case: "b".into(),
            status: Status::Fail,
            message: format!("{metric} is too much"),
            metric: metric.into(),
            part: None,
            is_own: true,
            unattributable: None,
            is_near_miss: false,
            with: BTreeSet::new(),
        }
    }

    /// Nodes by what each fails by.
    fn result(nodes: &[&[&str]]) -> RunResult {
        let node = |at: usize| format!("n{at}");
        let of = |(at, metrics): (usize, &&[&str])| {
            (node(at), NodeStatus { bad: metrics.iter().map(|metric| failed(metric)).collect() })
        };
        let lines = nodes.iter().enumerate().flat_map(|(at, metrics)| {
            metrics.iter().map(move |metric| {
                line("HRN-NODE-LEAK", &node(at), "node", &format!("{metric} on {}: 1", node(at)))
            })
        });
        let lines = lines.collect();
        let node_statuses = nodes.iter().enumerate().map(of).collect();
        RunResult { run: "r".into(), node_statuses, lines, ..RunResult::default() }
    }

    #[test]
    fn what_most_nodes_fail_by_names_none_of_them() {
        let mut all = result(&[&["leak"], &["leak"], &["leak"], &[]]);
        let apart = set_apart(&mut all);
        let nodes: Vec<&str> = apart.iter().map(|(node, _)| node.as_str()).collect();
        assert_eq!(nodes, ["n0", "n1", "n2"]);
        assert!(apart[0].1.contains("3 of 4 nodes fail by `leak`"), "{apart:?}");
        assert!(all.lines.is_empty() && all.node_statuses.len() == 1);
    }

    #[test]
    fn what_half_of_them_or_two_fail_by_is_each_nodes_own() {
        for nodes in
            [&[&["leak"][..], &["leak"], &["leak"], &[], &[], &[]][..], &[&["leak"][..], &["leak"]][..]]
        {
            let mut all = result(nodes);
            assert!(set_apart(&mut all).is_empty());
            assert_eq!(all.node_statuses.len(), nodes.len());
        }
    }

    #[test]
    fn a_node_that_fails_by_more_than_the_others_is_named_by_that_alone() {
        let mut all = result(&[&["leak"], &["leak"], &["leak", "heat"], &["leak"]]);
        let apart = set_apart(&mut all);
        assert!(apart.len() == 3 && !apart.iter().any(|(node, _)| node == "n2"), "{apart:?}");
        let left: Vec<&str> = all.node_statuses["n2"].bad.iter().map(|bad| bad.metric.as_str()).collect();
        assert_eq!(left, ["heat"]);
        let lines: Vec<&str> = all.lines.iter().map(|line| line.evidence.as_str()).collect();
        assert_eq!(lines, ["heat on n2: 1"]);
    }
}
