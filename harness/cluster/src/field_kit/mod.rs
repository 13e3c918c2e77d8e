//! `harness field-kit`: checks on a real cluster, read-only and in minutes, each thing that the harness assumes of it, and
//! packs what it saw, so that others can learn from it. Assumptions are data: `slurm.rs`, `node.rs` and `tools.rs` list
//! them; how evidence is taken stands in `gather.rs`, what leaves the site in `pack.rs`.

mod evidence;
mod gather;
mod node;
mod pack;
mod render;
mod request;
mod slurm;
#[cfg(test)]
mod tests;
mod tools;

pub use evidence::{Evidence, NodeEvidence, read_sections};
pub use gather::{Gathering, gather};
pub use pack::{Packed, pack};
pub use render::render;
pub use request::NodeRequest;

use config::inventory::Inventory;
use model::artefact::Launcher;
use serde::Serialize;

/// Something that the harness relies on, and how a cluster shows whether it is so.
pub(crate) struct Assumption {
    /// Such as `slurm.gres`.
    pub id: &'static str,
    /// A sentence for people.
    pub assumed: &'static str,
    /// What shows it: a command, or a file.
    pub checked_by: &'static str,
    /// Where it is known from.
    pub source: &'static str,
    /// Other clusters are not checked.
    pub on: On,
    /// Decides from the evidence alone.
    pub check: fn(&Evidence<'_>) -> Outcome,
}

const fn assumption(
    id: &'static str,
    assumed: &'static str,
    checked_by: &'static str,
    source: &'static str,
    on: On,
    check: fn(&Evidence<'_>) -> Outcome,
) -> Assumption {
    Assumption { id, assumed, checked_by, source, on, check }
}

/// Which clusters it concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum On {
    /// All clusters.
    Any,
    /// Nodes are reached through Slurm.
    Slurm,
    /// mpirun starts the ranks.
    Ssh,
    /// Programs run on the host.
    Host,
    /// Programs run in the inventory's container.
    Container,
}

/// Whether an assumption holds on a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "outcome", content = "seen")]
pub enum Outcome {
    /// With what was seen.
    Holds(String),
    /// With what was seen instead.
    Differs(String),
    /// With the reason.
    NotSeen(String),
}

/// A checked assumption, as `findings.json` of the bundle holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Such as `slurm.gres`.
    pub id: &'static str,
    /// A sentence for people.
    pub assumed: &'static str,
    /// A command or a file, such as `sbatch --version`.
    pub checked_by: &'static str,
    /// Where the assumption is known from.
    pub source: &'static str,
    /// Written as its two fields, `outcome` and `seen`.
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl On {
    fn concerns(self, inventory: &Inventory) -> bool {
        match self {
            On::Any => true,
            On::Slurm => inventory.reach.slurm().is_some(),
            On::Ssh => inventory.reach.launcher() == Launcher::Ssh,
            On::Host => inventory.container.is_none(),
            On::Container => inventory.container.is_some(),
        }
    }
}

/// Those of all kinds of clusters.
pub(crate) fn assumptions() -> impl Iterator<Item = &'static Assumption> {
    slurm::ASSUMPTIONS.iter().chain(node::ASSUMPTIONS).chain(tools::ASSUMPTIONS)
}

/// Every assumption that concerns the cluster, checked. Pure: the same evidence gives the same findings.
pub fn check(evidence: &Evidence<'_>) -> Vec<Finding> {
    assumptions()
        .filter(|assumption| assumption.on.concerns(evidence.inventory))
        .map(|assumption| Finding {
            id: assumption.id,
            assumed: assumption.assumed,
            checked_by: assumption.checked_by,
            source: assumption.source,
            outcome: (assumption.check)(evidence),
        })
        .collect()
}

/// How many hold, differ, and were not seen.
pub fn counts(findings: &[Finding]) -> [usize; 3] {
    let mut counts = [0; 3];
    for finding in findings {
        counts[match finding.outcome {
            Outcome::Holds(_) => 0,
            Outcome::Differs(_) => 1,
            Outcome::NotSeen(_) => 2,
        }] += 1;
    }
    counts
}
