//! Parts that most nodes of a case have bad alike: their limit, the profile or the program is at fault, and no node is.

use super::CaseData;
use super::culprit::are_most;
use crate::isolate::siblings::Part;
use metric::Names;
use model::artefact::Culprit;
use recipes::recipe;
use std::collections::{BTreeMap, BTreeSet};

/// The parts that stand out, each with its metric, and a line for each metric that most nodes fail alike. Each part comes with its metric.
pub(super) fn split<'a>(
    data: &CaseData,
    named: Vec<(&'a str, Part)>,
) -> (Vec<(&'a str, Part)>, Vec<Culprit>) {
    let mut groups: BTreeMap<(&str, Option<String>), Vec<Part>> = BTreeMap::new();
    for (metric, part) in named {
        let names = recipe::built_in(metric).map(|metric| metric.names);
        // A device that is not there is alike only where the same one is not there on the others.
        let device = matches!(names, Some(Names::Unlisted | Names::Unmoved)).then(|| part.part.clone());
        groups.entry((metric, device)).or_default().push(part);
    }
    let (mut parts, mut alike) = (Vec::new(), Vec::new());
    for ((metric, device), group) in groups {
        let bad: BTreeSet<&str> = group.iter().map(|part| part.node.as_str()).collect();
        let all = nodes_with(data, metric);
        if !are_most(bad.len(), all.len()) {
            parts.extend(group.into_iter().map(|part| (metric, part)));
            continue;
        }
        let (bad, all, case) = (bad.len(), all.len(), &data.case.name);
        let first = group.first().map(|part| part.evidence.as_str()).unwrap_or_default();
        let evidence = match device {
            Some(device) => format!(
                "{bad} of {all} nodes fail `{metric}` alike for {device} in `{case}`: check the profile of {}; {first}",
                data.instance.name
            ),
            None => {
                format!("{bad} of {all} nodes fail `{metric}` alike in `{case}`: check its limit; {first}")
            }
        };
        alike.push(Culprit::Fleet { evidence });
    }
    (parts, alike)
}

/// The nodes of which the case asserts this metric.
fn nodes_with<'a>(data: &'a CaseData, metric: &str) -> BTreeSet<&'a str> {
    let asserted = data.case.assertions.iter().filter(|assertion| assertion.metric == metric);
    asserted.filter_map(|assertion| assertion.node.as_deref()).collect()
}
