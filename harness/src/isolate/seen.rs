//! What a stored run holds that may name a part by itself, beside its own culprits: what was measured of its jobs, what
//! recipes found odd, what counters counted, what nodes told of themselves. What it proves is decided in `evidence`.

use crate::artefact::{Culprit, JobOutcome, LeftOut, Probe};
use recipes::finding::Finding;

#[derive(Debug, Default)]
pub struct Seen {
    pub culprits: Vec<Culprit>,
    pub left_out: Vec<LeftOut>,
    pub jobs: Vec<JobOutcome>,
    pub losses: Vec<Loss>,
    /// Metrics that were out of bounds on a node of their own.
    pub failed: Vec<(String, String)>,
    pub findings: Vec<Finding>,
    /// Changes of path because nothing came back in time, over all jobs; without those that had none.
    pub timeouts: Vec<Timeouts>,
    pub probe: Option<Probe>,
    /// Of the instance: cards and GPUs of a node.
    pub nics: usize,
    pub gpus: usize,
}

/// A rate of a job that is out of bounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Loss {
    pub case: String,
    pub nodes: Vec<String>,
    /// The part that is left of what was expected; nothing where that is not known.
    pub left: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeouts {
    pub node: String,
    pub nic: String,
    pub events: u64,
}

/// Something odd about a node, which alone proves nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Oddity {
    pub code: &'static str,
    pub node: String,
    pub part: String,
    pub told: String,
    /// Metrics that show the same thing.
    pub shown_by: &'static [&'static str],
}

const BY_LOG: &[&str] = &["nccl_log.not_gdrdma", "nccl_log.provider_efa", "nccl_log.nvls"];
const BY_COUNTERS: &[&str] = &["nic.retrans_timeouts"];

impl Oddity {
    /// Whether it is itself what was out of bounds, on that very node.
    pub fn was_judged(&self, seen: &Seen) -> bool {
        seen.failed
            .iter()
            .any(|(metric, node)| *node == self.node && self.shown_by.contains(&metric.as_str()))
    }
}

impl Seen {
    /// By node, in the order of how much it says.
    pub fn oddities(&self) -> Vec<Oddity> {
        let mut odd: Vec<Oddity> = Vec::new();
        for timeouts in &self.timeouts {
            odd.push(Oddity {
                code: "HRN-NIC-RETRANS",
                node: timeouts.node.clone(),
                part: timeouts.nic.clone(),
                told: format!("{} retransmissions timed out while its jobs ran", timeouts.events),
                shown_by: BY_COUNTERS,
            });
        }
        for finding in &self.findings {
            let is_downgrade =
                ["nccl-not-gdrdma", "nccl-network-socket", "nccl-provider", "nccl-nvls-differs"];
            if let Some(node) =
                finding.node.as_ref().filter(|_| is_downgrade.contains(&finding.code.as_str()))
            {
                odd.push(Oddity {
                    code: "HRN-NET-DOWNGRADED",
                    node: node.split('.').next().unwrap_or(node).to_owned(),
                    part: "node".to_owned(),
                    told: finding.message.clone(),
                    shown_by: BY_LOG,
                });
            }
        }
        if let Some(probe) = &self.probe {
            odd.extend(of_probe(probe));
        }
        odd.dedup();
        odd
    }
}

fn of_probe(probe: &Probe) -> Vec<Oddity> {
    use crate::artefact::Value;
    let mut odd = Vec::new();
    let names = |node: &crate::artefact::ProbedNode, fact: &str| match node.facts.get(fact) {
        Some(Value::Names(names)) => names.clone(),
        _ => Vec::new(),
    };
    for node in &probe.nodes {
        for down in names(node, "nics_down") {
            let part = down.split([' ', ':']).next().unwrap_or("nic").to_owned();
            let told = format!("its link is not active: {down}");
            odd.push(Oddity { code: "HRN-NIC-DOWN", node: node.node.clone(), part, told, shown_by: &[] });
        }
        if let Some(newest) = names(node, "xid").last() {
            odd.push(Oddity {
                code: "HRN-GPU-XID",
                node: node.node.clone(),
                part: "node".to_owned(),
                told: format!("the driver told of a fault before the run: {newest}"),
                shown_by: &[],
            });
        }
    }
    for unlike in crate::probe::against_majority(probe).differences {
        odd.push(Oddity {
            code: "HRN-NODE-DIFFERS",
            node: unlike.node,
            part: "node".to_owned(),
            told: format!(
                "its {} is `{}`, that of most nodes: `{}`",
                unlike.fact, unlike.told, unlike.expected
            ),
            shown_by: &[],
        });
    }
    odd
}
