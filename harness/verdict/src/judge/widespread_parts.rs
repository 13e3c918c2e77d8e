//! Parts that are bad alike: most of a case's, or the same one on most nodes. Their limit, the profile or the program is at
//! fault, and no part is.

use super::CaseData;
use super::culprit::are_most;
use crate::isolate::siblings::Part;
use metric::Names;
use model::artefact::{Culprit, PlannedAssertion};
use recipes::recipe;
use std::collections::{BTreeMap, BTreeSet};

/// The parts that stand out, each with its metric, and a line for each metric that fails alike. Each part comes with its
/// metric.
pub(super) fn split<'a>(
    data: &CaseData,
    named: Vec<(&'a str, Part)>,
) -> (Vec<(&'a str, Part)>, Vec<Culprit>) {
    let mut groups: BTreeMap<&str, Vec<Part>> = BTreeMap::new();
    for (metric, part) in named {
        groups.entry(metric).or_default().push(part);
    }
    let (mut parts, mut alike) = (Vec::new(), Vec::new());
    for (metric, group) in groups {
        let asserted: Vec<&PlannedAssertion> =
            data.case.assertions.iter().filter(|assertion| assertion.metric == metric).collect();
        let nodes =
            asserted.iter().filter_map(|assertion| assertion.node.as_deref()).collect::<BTreeSet<_>>();
        // A device that is not there is alike only where the same one is not there on the others.
        let names = recipe::built_in(metric).map(|metric| metric.names);
        let is_absence = matches!(names, Some(Names::Unlisted | Names::Unmoved));
        let is_of_parts = asserted.iter().any(|assertion| assertion.part.is_some());
        if !is_absence && are_most_parts(&asserted, &group, nodes.len()) {
            alike.push(line(data, metric, None, &group, nodes.len()));
            continue;
        }
        if !(is_absence || is_of_parts) {
            parts.extend(group.into_iter().map(|part| (metric, part)));
            continue;
        }
        let mut devices: BTreeMap<String, Vec<Part>> = BTreeMap::new();
        for part in group {
            devices.entry(part.part.clone()).or_default().push(part);
        }
        for (device, group) in devices {
            match are_most(nodes_of(&group), nodes.len()) {
                true => alike.push(line(data, metric, Some((&device, is_absence)), &group, nodes.len())),
                false => parts.extend(group.into_iter().map(|part| (metric, part))),
            }
        }
    }
    (parts, alike)
}

fn nodes_of(parts: &[Part]) -> usize {
    parts.iter().map(|part| part.node.as_str()).collect::<BTreeSet<_>>().len()
}

/// Whether they are most of the parts that the case asserts, on most of its nodes: one bad GPU on each of two nodes is one
/// of eight.
fn are_most_parts(asserted: &[&PlannedAssertion], bad: &[Part], nodes: usize) -> bool {
    let parts = asserted.iter().filter_map(|one| Some((one.node.as_deref()?, one.part.as_deref()?)));
    let all = parts.collect::<BTreeSet<_>>().len();
    let bad_parts = bad.iter().map(|part| (&part.node, &part.part)).collect::<BTreeSet<_>>().len();
    are_most(nodes_of(bad), nodes) && (all == 0 || are_most(bad_parts, all))
}

/// `device` is the one that they share, and whether it is absent.
fn line(data: &CaseData, metric: &str, device: Option<(&str, bool)>, group: &[Part], all: usize) -> Culprit {
    let (bad, case) = (nodes_of(group), &data.case.name);
    let first = group.first().map(|part| part.evidence.as_str()).unwrap_or_default();
    let evidence = match device {
        Some((device, true)) => format!(
            "{bad} of {all} nodes fail `{metric}` alike for {device} in `{case}`: check the profile of {}; {first}",
            data.instance.name
        ),
        Some((device, false)) => format!(
            "{bad} of {all} nodes fail `{metric}` alike for {device} in `{case}`: check its limit and settings of the \
             nodes; {first}"
        ),
        None => format!("{bad} of {all} nodes fail `{metric}` alike in `{case}`: check its limit; {first}"),
    };
    Culprit::Fleet { evidence }
}
