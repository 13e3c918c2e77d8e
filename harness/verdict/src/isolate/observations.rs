//! What a stored run holds that may name a part by itself, beside its own culprits: numbers of its jobs, findings of
//! recipes, counters, and facts of the probe. `evidence` decides what they prove.

use metric::Role;
use metric::finding::Finding;
use model::artefact::{Culprit, JobOutcome, LeftOut, Probe};
use recipes::recipe;

/// What the folder of a stored run holds, as far as it may name a part.
#[derive(Debug, Default)]
pub struct RunObservations {
    /// Those of `summary.json`, without blameless ones.
    pub culprits: Vec<Culprit>,
    /// Nodes that did not take part, with the reason.
    pub left_out: Vec<LeftOut>,
    /// From `outcomes.json` of all cases.
    pub jobs: Vec<JobOutcome>,
    /// Collectives that were measured and too slow.
    pub losses: Vec<Loss>,
    /// Metrics that were out of bounds on a node of their own.
    pub failed: Vec<(String, String)>,
    /// Of all cases, from `verdict.json`.
    pub findings: Vec<Finding>,
    /// Changes of path because nothing came back in time, over all jobs; without those that had none.
    pub timeouts: Vec<Timeouts>,
    /// `probe.json` of the run; `None` where it has none.
    pub probe: Option<Probe>,
    /// NICs of a node, by the instance type.
    pub nics: usize,
    /// GPUs of a node, by the instance type.
    pub gpus: usize,
}

/// A rate of a job that is out of bounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Loss {
    /// The case's name.
    pub case: String,
    /// The nodes of the assertion.
    pub nodes: Vec<String>,
    /// The part that is left of what was expected; nothing where that is not known.
    pub left: Option<f64>,
}

/// Transmission timeouts of one NIC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeouts {
    /// The node's name.
    pub node: String,
    /// The device's name, such as `rdmap79s0`.
    pub nic: String,
    /// Sum of `nic.retrans_timeouts` over all jobs.
    pub events: u64,
}

/// Something odd about a node, which alone proves nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Oddity {
    /// A code that `harness explain` knows.
    pub code: &'static str,
    /// The node's name.
    pub node: String,
    /// A device or `node`.
    pub part: String,
    /// What was seen, for people.
    pub evidence: String,
    /// The role of metrics that show the same thing.
    pub shown_by: Option<Role>,
    /// Whether it is reason enough for all of the node's NICs to be slow.
    pub slows_all_nics: bool,
}

impl Oddity {
    /// Whether it is itself what was out of bounds, on that very node.
    pub(crate) fn was_judged(&self, observed: &RunObservations) -> bool {
        observed.failed.iter().any(|(metric, node)| {
            *node == self.node && self.shown_by.is_some_and(|role| recipe::has_role(metric, role))
        })
    }
}

impl RunObservations {
    /// By node, in the order of how much it says.
    pub(crate) fn oddities(&self) -> Vec<Oddity> {
        let mut odd: Vec<Oddity> = Vec::new();
        for timeouts in &self.timeouts {
            odd.push(Oddity {
                code: "HRN-NIC-RETRANS",
                node: timeouts.node.clone(),
                part: timeouts.nic.clone(),
                evidence: format!("{} retransmission timeouts while its jobs ran", timeouts.events),
                shown_by: Some(Role::Timeouts),
                slows_all_nics: false,
            });
        }
        for finding in &self.findings {
            // Data goes through the host's memory, or by TCP; a provider or NVLS that differs slows no NIC.
            let slows_all_nics = ["nccl-not-gdrdma", "nccl-network-socket"].contains(&finding.code.as_str());
            let is_downgrade =
                slows_all_nics || ["nccl-provider", "nccl-nvls-differs"].contains(&finding.code.as_str());
            if let Some(node) = finding.node.as_ref().filter(|_| is_downgrade) {
                odd.push(Oddity {
                    code: "HRN-NET-DOWNGRADED",
                    node: node.split('.').next().unwrap_or(node).to_owned(),
                    part: "node".to_owned(),
                    evidence: finding.message.clone(),
                    shown_by: Some(Role::Downgrade),
                    slows_all_nics,
                });
            }
        }
        if let Some(probe) = &self.probe {
            odd.extend(oddities_of_probe(probe));
        }
        odd.dedup();
        odd
    }
}

fn oddities_of_probe(probe: &Probe) -> Vec<Oddity> {
    use model::artefact::Value;
    let mut odd = Vec::new();
    let names = |node: &model::artefact::ProbedNode, fact: &str| match node.facts.get(fact) {
        Some(Value::Names(names)) => names.clone(),
        _ => Vec::new(),
    };
    for node in &probe.nodes {
        for down in names(node, "nics_down") {
            let part = down.split([' ', ':']).next().unwrap_or("nic").to_owned();
            let evidence = format!("link not active: {down}");
            odd.push(oddity("HRN-NIC-DOWN", &node.node, &part, evidence));
        }
        if let Some(newest) = names(node, "xid").last() {
            let evidence = format!("driver reported a fault before the run: {newest}");
            odd.push(oddity("HRN-GPU-XID", &node.node, "node", evidence));
        }
    }
    for unlike in config::facts::against_majority(probe).differences {
        let evidence = format!("{} is `{}`, on most nodes `{}`", unlike.fact, unlike.value, unlike.expected);
        odd.push(oddity("HRN-NODE-DIFFERS", &unlike.node, "node", evidence));
    }
    odd
}

fn oddity(code: &'static str, node: &str, part: &str, evidence: String) -> Oddity {
    Oddity {
        code,
        node: node.to_owned(),
        part: part.to_owned(),
        evidence,
        shown_by: None,
        slows_all_nics: false,
    }
}
