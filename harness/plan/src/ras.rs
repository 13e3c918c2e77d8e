//! NCCL's RAS in the plan of a job: whether its nodes are asked for a report if it stalls, and what they leave then.

use job::ras::{self, OWN};
use job::script::Step;
use model::artefact::{ExpectedFile, FileKind};
use std::collections::BTreeMap;

/// NCCL listens without being asked since 2.24; where a person set something of it, that is theirs. On one node a hang has
/// that one culprit.
pub(crate) fn can_ask(variables: &BTreeMap<String, String>, step: &Step, nodes: &[String]) -> bool {
    matches!(step, Step::Run(_)) && nodes.len() > 1 && !OWN.iter().any(|name| variables.contains_key(*name))
}

/// A file of each node: whose address a rank has is known by them.
pub(crate) fn expected(nodes: &[String]) -> Vec<ExpectedFile> {
    let file = |node: &String| ExpectedFile {
        name: ras::file(node),
        kind: FileKind::Ras,
        node: Some(node.clone()),
        part: None,
        rank: None,
    };
    nodes.iter().map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use job::script::Run;

    #[test]
    fn who_set_something_of_it_is_not_asked() {
        let argv = vec!["torchrun".to_owned()];
        let step = Step::Run(Run { argv, tasks_per_node: 1, mpi: None, container: None, profile: None });
        let own = |name: &str| BTreeMap::from([(name.to_owned(), "0".to_owned())]);
        let nodes = ["p5-001".to_owned(), "p5-002".to_owned()];
        assert!(can_ask(&own("NCCL_DEBUG"), &step, &nodes));
        for name in OWN {
            assert!(!can_ask(&own(name), &step, &nodes), "{name}");
        }
        assert!(!can_ask(&own("NCCL_DEBUG"), &Step::CountersEnd, &nodes));
        assert!(!can_ask(&own("NCCL_DEBUG"), &step, &nodes[..1]));
        let files = expected(&nodes);
        assert_eq!((files[0].name.as_str(), files[0].node.as_deref()), ("ras.p5-001.txt", Some("p5-001")));
    }
}
