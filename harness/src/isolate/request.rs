//! What an isolation is asked for, and what comes of it.

use recipes::catalogue::Catalogue;
use serde_json::{Value, json};
use verdict::isolate::evidence::EvidenceLine;
use verdict::isolate::outcome;

/// An isolation of a suite, or the one to go on with.
#[derive(Clone, Default)]
pub(crate) struct IsolationRequest {
    /// By name or path, as is `inventory`; absent where `resume` is given.
    pub suite: Option<String>,
    pub inventory: String,
    /// Whether a person typed it: a default of the settings or of the shell gives way to that of the run that is named.
    pub is_inventory_typed: bool,
    pub nodes: Option<String>,
    pub exclude_nodes: Option<String>,
    /// Node-hours.
    pub budget: Option<f64>,
    pub case: Option<String>,
    /// The run whose evidence is looked at first; else the newest of that suite and inventory.
    pub run: Option<String>,
    pub no_evidence: bool,
    /// As in a run: nodes are probed first, simulated ones where `probe` asks for it.
    pub no_probe: bool,
    pub probe: bool,
    pub allow_busy: bool,
    pub reservation: Option<String>,
    pub drain: Option<DrainRequest>,
    /// Only print what it would cost.
    pub dry_run: bool,
    /// Any run of the isolation to go on with.
    pub resume: Option<String>,
    pub seed: u64,
    pub sim_faults: Vec<String>,
    pub ssh_fanout: u32,
    /// The run that brought it about.
    pub caused_by: Option<String>,
    /// The recipes that the suite is read with.
    pub catalogue: Catalogue,
}

/// That culprits are to be drained, and whether the user is asked first.
#[derive(Debug, Clone)]
pub(crate) struct DrainRequest {
    pub at_most: Option<u32>,
    /// Drain without asking.
    pub yes: bool,
    /// The command that makes the same request without asking.
    pub command: String,
}

#[derive(Debug, Default)]
pub(crate) struct IsolationOutcome {
    pub code: i32,
    pub culprits: Vec<EvidenceLine>,
    /// What `isolation.json` holds of it; `None` where it was interrupted or its machinery failed.
    pub concluded: Option<outcome::IsolationOutcome>,
    /// The ids of its rounds.
    pub rounds: Vec<String>,
    pub node_hours: f64,
    pub simulated: bool,
}

impl IsolationOutcome {
    /// Of culprits that are known without a round.
    pub(crate) fn without_rounds(
        code: i32,
        culprits: Vec<EvidenceLine>,
        simulated: bool,
    ) -> IsolationOutcome {
        let concluded = Some(outcome::IsolationOutcome::from_lines(&culprits));
        IsolationOutcome { code, culprits, concluded, simulated, ..IsolationOutcome::default() }
    }

    /// For programs: `culprits` and `good` are those of `outcome` in `isolation.json`.
    pub(crate) fn json(&self) -> Option<Value> {
        self.concluded.as_ref().map(|outcome::IsolationOutcome { culprits, good }| {
            json!({
                "simulated": self.simulated,
                "culprits": culprits,
                "good": good,
                "rounds": self.rounds,
                "node_hours": self.node_hours,
                "exit_code": self.code,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::exit_code;

    #[test]
    fn what_an_isolation_found_is_one_object_and_one_that_was_interrupted_has_none() {
        let line = EvidenceLine {
            code: "HRN-NIC-DEAD",
            node: "p5-003".to_owned(),
            part: "rdmap79s0".to_owned(),
            evidence: "moved no byte".to_owned(),
        };
        let found = IsolationOutcome::without_rounds(exit_code::FAILED, vec![line], true);
        let culprit = json!({
            "kind": "culprit", "node": "p5-003", "part": "rdmap79s0", "evidence": "moved no byte", "code": "HRN-NIC-DEAD",
        });
        let expected = json!({
            "simulated": true, "culprits": [culprit], "good": [], "rounds": [], "node_hours": 0.0, "exit_code": 1,
        });
        assert_eq!(found.json(), Some(expected));
        let interrupted = IsolationOutcome { code: exit_code::INTERRUPTED, ..IsolationOutcome::default() };
        assert_eq!(interrupted.json(), None);
    }
}
