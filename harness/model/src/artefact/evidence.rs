//! By which evidence of its calls a job is recorded, where its suite names several in order of preference.

use super::PlannedCase;
use base::nodeset;
use base::text::show;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What records the calls of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EvidenceSource {
    /// Reports of Nsight Systems.
    Nsys,
    /// Records of NCCL's Inspector.
    Inspector,
    /// NCCL's own log.
    Log,
}

impl EvidenceSource {
    /// All of them, by the names that suites use.
    pub const ALL: [(&str, EvidenceSource); 3] = [
        ("nsys", EvidenceSource::Nsys),
        ("inspector", EvidenceSource::Inspector),
        ("log", EvidenceSource::Log),
    ];

    /// As suites have it.
    pub fn name(self) -> &'static str {
        EvidenceSource::ALL.iter().find(|(_, source)| *source == self).map_or("", |(name, _)| *name)
    }
}

/// The evidence of a job: one source for all of its ranks, so that they can be compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedEvidence {
    /// The first of the suite's list that all nodes of the job have; nothing where there is none.
    pub source: Option<EvidenceSource>,
    /// Why it is this one: what the sources before it lack, and on which nodes.
    pub why: String,
    /// Recipes of the case that have nothing to read of this job.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
}

impl PlannedEvidence {
    /// The name of its source, for people.
    pub fn name(&self) -> &'static str {
        self.source.map_or("none", EvidenceSource::name)
    }
}

impl PlannedCase {
    /// Which evidence its jobs leave, on which nodes and why: a line for each.
    pub fn evidence_lines(&self) -> Vec<String> {
        let mut by_reason: BTreeMap<(&str, &str), BTreeSet<&String>> = BTreeMap::new();
        for job in &self.jobs {
            if let Some(evidence) = &job.evidence {
                by_reason.entry((evidence.name(), evidence.why.as_str())).or_default().extend(&job.nodes);
            }
        }
        let line = |((source, why), nodes): ((&str, &str), BTreeSet<&String>)| {
            let mut nodes: Vec<String> = nodes.into_iter().cloned().collect();
            nodeset::sort(&mut nodes);
            show(&format!("evidence: {source} on {}: {why}", nodeset::fold(&nodes)))
        };
        by_reason.into_iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_written_as_suites_name_it() {
        for (name, source) in EvidenceSource::ALL {
            assert_eq!(serde_json::to_string(&source).expect("JSON"), format!("{name:?}"));
            assert_eq!(source.name(), name);
        }
    }
}
