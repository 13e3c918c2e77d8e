//! Programs of a case that some of its nodes do not have: it is skipped there, and never passes.

use base::nodeset;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What is absent, by the probe, and whose jobs are left out for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotInstalled {
    /// By program, or by folder from `/`: the nodes without it.
    pub without: BTreeMap<String, BTreeSet<String>>,
    /// Nodes on which nothing of the case is run: those, and who could run it with those alone.
    pub skipped: BTreeSet<String>,
}

impl NotInstalled {
    /// For people: `dcgmi is not installed on p5-[033-035]`.
    pub fn reason(&self) -> String {
        let all = self.without.iter().map(|(program, nodes)| {
            let nodes = nodeset::fold(&nodes.iter().cloned().collect::<Vec<_>>());
            format!("{} {nodes}", absence(program))
        });
        all.collect::<Vec<_>>().join("; ")
    }
}

/// `fio is not installed on`; `there is no /opt/dlami/nvme on`.
pub fn absence(program: &str) -> String {
    match program.starts_with('/') {
        true => format!("there is no {program} on"),
        false => format!("{program} is not installed on"),
    }
}
