//! The coded culprits that a stored run names by itself, so that nothing has to be run to find them. A node that was
//! only left over by elimination is no evidence, and an oddity of a node is evidence only where the runs blame that
//! node already. The search ends where the culprits explain all that was lost, so that none hides a second fault.

use super::code::Code;
use super::observations::{Oddity, RunObservations};
use super::siblings::{self, Devices, Part};
use metric::Role;
use model::artefact::{Culprit, JobOutcome, LeftOut, WorkKind};
use recipes::recipe;
use std::collections::BTreeSet;

/// One line about a culprit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidenceLine {
    /// A code that `harness explain` knows.
    pub code: &'static str,
    /// A node, or two groups with a hyphen between them.
    pub node: String,
    /// Such as `rdmap79s0`, `gpu3`, `nvlink`, `fabric`, `link` or `node`.
    pub part: String,
    /// What was measured or reported, for people.
    pub evidence: String,
}

impl std::fmt::Display for EvidenceLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let severity = Code::find(self.code).map_or("watch", |code| code.severity.name());
        write!(f, "{} {severity} {} {}: {}", self.code, self.node, self.part, self.evidence)
    }
}

/// The culprits, and whether they explain everything that went badly.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// One for each named part.
    pub lines: Vec<EvidenceLine>,
    /// Whether nothing that went badly is left unexplained, so that no round has to run.
    pub explains_all: bool,
    /// Oddities of nodes that no run blames: reported only.
    pub hints: Vec<String>,
}

/// By the culprits and left-out nodes of a run alone.
pub fn from_culprits(culprits: &[Culprit], left_out: &[LeftOut]) -> Evidence {
    let found = findings(culprits, left_out, Devices::default());
    let explains_all = found.eliminated.is_empty() && found.suspected.is_empty() && !found.lines.is_empty();
    Evidence { lines: found.lines, explains_all, hints: Vec::new() }
}

/// The culprits of a run's own verdicts, before anything else is read.
struct VerdictFindings {
    lines: Vec<EvidenceLine>,
    /// Nodes that are slow for an unknown cause.
    eliminated: Vec<String>,
    /// Several of which one must be it, and what it is about.
    suspected: Vec<(Vec<String>, String)>,
}

fn findings(culprits: &[Culprit], left_out: &[LeftOut], devices: Devices) -> VerdictFindings {
    let mut found = VerdictFindings { lines: Vec::new(), eliminated: Vec::new(), suspected: Vec::new() };
    // A quarantined node is among the culprits already; a folder that all nodes lack is no node's fault.
    for left in left_out.iter().filter(|left| left.after.is_none() && !left.by_folder) {
        found.lines.push(EvidenceLine {
            code: "HRN-NODE-UNFIT",
            node: left.node.clone(),
            part: "node".to_owned(),
            evidence: left.why.clone(),
        });
    }
    for culprit in culprits {
        let (node, part, evidence, code) = match culprit {
            Culprit::Culprit { node, part, evidence, code } => (node, part, evidence, code),
            Culprit::Suspects { nodes, evidence } => {
                found.suspected.push((nodes.clone(), evidence.clone()));
                continue;
            }
            Culprit::Fleet { evidence } => {
                found.suspected.push((Vec::new(), evidence.clone()));
                continue;
            }
        };
        // Runs of earlier versions hold no code.
        let known = code.as_ref().and_then(|code| Code::find(code));
        // Its part is what is to be found out.
        let known = known.filter(|code| code.name != "HRN-NODE-UNCLEAR");
        match known.or_else(|| Code::from_evidence(part, evidence)) {
            Some(code) => {
                let known = found.lines.iter().any(|line| line.node == *node);
                let is_of_all = code.name == "HRN-NODE-SLOW";
                if is_of_all || !(known && part == "node") {
                    let (node, part, evidence) = (node.clone(), part.clone(), evidence.clone());
                    found.lines.push(EvidenceLine { code: code.name, node, part, evidence });
                }
            }
            None => found.eliminated.push(node.clone()),
        }
    }
    // So do those of parts that have one cause, each by itself.
    let parts = found.lines.drain(..).map(|EvidenceLine { code, node, part, evidence }| Part {
        node,
        part,
        code: Some(code),
        evidence,
        rate: None,
    });
    found.lines = siblings::unite(parts.collect(), devices)
        .into_iter()
        .filter_map(|Part { node, part, code, evidence, .. }| {
            Some(EvidenceLine { code: code?, node, part, evidence })
        })
        .collect();
    found
}

/// The same with everything else that the run holds.
pub fn from_observations(observed: &RunObservations) -> Evidence {
    let devices = Devices { nics: observed.nics, gpus: observed.gpus };
    let VerdictFindings { mut lines, eliminated, mut suspected } =
        findings(&observed.culprits, &observed.left_out, devices);
    let cleared = Cleared::by(&observed.jobs);
    let mut hints = Vec::new();
    for odd in observed.oddities() {
        let was_judged = odd.was_judged(observed);
        if was_judged {
            // The suspects are resolved: which of them has it was measured.
            let shows = |metric: &str| odd.shown_by.is_some_and(|role| recipe::has_role(metric, role));
            let is_of = |about: &str| shows(about.split(':').next().unwrap_or_default());
            suspected.retain(|(nodes, about)| !(is_of(about) && nodes.contains(&odd.node)));
        }
        if let Some(line) = lines.iter_mut().find(|line| line.node == odd.node) {
            add(line, &odd);
        } else if was_judged
            || eliminated.contains(&odd.node)
            || cleared.speaks_against(&odd.node, &observed.jobs)
        {
            let Oddity { code, node, part, evidence, .. } = odd;
            lines.push(EvidenceLine { code, node, part, evidence });
        } else {
            hints.push(format!("{} {} {}: {}", odd.code, odd.node, odd.part, odd.evidence));
        }
    }
    let named = |node: &String| lines.iter().any(|line| line.node == *node);
    let explains = |loss: &super::observations::Loss| {
        let guilty: Vec<&EvidenceLine> =
            lines.iter().filter(|line| loss.nodes.contains(&line.node)).collect();
        let others = loss.nodes.iter().filter(|node| !named(node)).all(|node| cleared.has(node));
        let enough = |line: &&EvidenceLine| {
            most_lost(line.code, observed).zip(loss.left).is_some_and(|(most, left)| 1.0 - left <= most)
        };
        !guilty.is_empty() && (others || guilty.iter().any(enough))
    };
    let explains_all = !lines.is_empty()
        && suspected.is_empty()
        && eliminated.iter().all(named)
        && observed.losses.iter().all(explains);
    Evidence { lines, explains_all, hints }
}

/// More evidence on a node that is named: a link that is down is more precise than an unfit node.
fn add(line: &mut EvidenceLine, odd: &Oddity) {
    let is_all = line.evidence.starts_with("NICs whose link is not active") && !line.evidence.contains("; ");
    if odd.code == "HRN-NIC-DOWN" && line.code == "HRN-NODE-UNFIT" && is_all {
        (line.code, line.part, line.evidence) = (odd.code, odd.part.clone(), odd.evidence.clone());
    } else if odd.slows_all_nics && line.code == "HRN-PORT-SLOW" {
        // Why all of its NICs are slow: nothing has to be replaced.
        (line.code, line.part) = (odd.code, odd.part.clone());
        line.evidence = format!("{}; {}", odd.evidence, line.evidence);
    } else if !line.evidence.contains(&odd.evidence) && line.evidence.len() < MOST_EVIDENCE {
        line.evidence = format!("{}; {}", line.evidence, odd.evidence);
    }
}

/// Longer lines are not read.
const MOST_EVIDENCE: usize = 300;

/// The most that a part of such a code can take from a run by itself, where that is known; and some for the noise of
/// runs.
fn most_lost(code: &str, observed: &RunObservations) -> Option<f64> {
    let per_gpu = observed.nics.checked_div(observed.gpus).unwrap_or_default();
    // The other NICs of its GPU carry its share; where there is none, those of another do, beside their own.
    let of_nic = if per_gpu > 1 { 1.0 / per_gpu as f64 } else { 0.5 };
    matches!(code, "HRN-NIC-DEAD" | "HRN-NIC-MISSING").then_some(of_nic + OF_NOISE)
}

const OF_NOISE: f64 = 0.05;

/// Nodes that did well: with others, or by themselves and on the fabric each.
struct Cleared<'a> {
    together: BTreeSet<&'a str>,
    inside: BTreeSet<&'a str>,
    fabric: BTreeSet<&'a str>,
}

impl<'a> Cleared<'a> {
    fn by(jobs: &'a [JobOutcome]) -> Cleared<'a> {
        let mut cleared =
            Cleared { together: BTreeSet::new(), inside: BTreeSet::new(), fabric: BTreeSet::new() };
        for job in jobs.iter().filter(|job| is_good(job)) {
            let set = match (job.kind, job.nodes.len()) {
                (WorkKind::Flows, _) => &mut cleared.fabric,
                (WorkKind::Collective, 1) => &mut cleared.inside,
                (WorkKind::Collective, _) => &mut cleared.together,
                (WorkKind::Gpus | WorkKind::Command, _) => continue,
            };
            set.extend(job.nodes.iter().map(String::as_str));
        }
        cleared
    }

    fn has(&self, node: &str) -> bool {
        self.together.contains(node) || (self.inside.contains(node) && self.fabric.contains(node))
    }

    /// Whether a job went badly that it alone of all its nodes can be blamed for.
    fn speaks_against(&self, node: &str, jobs: &[JobOutcome]) -> bool {
        let only_it = |job: &JobOutcome| {
            job.nodes.iter().any(|of_job| of_job == node)
                && job.nodes.iter().filter(|of_job| *of_job != node).all(|other| self.has(other))
        };
        !self.has(node) && jobs.iter().any(|job| is_bad(job) && only_it(job))
    }
}

fn is_good(job: &JobOutcome) -> bool {
    let rates = || job.judged.iter().filter(|(metric, _)| recipe::has_role(metric, Role::Rate));
    job.bad.is_none() && rates().next().is_some() && rates().all(|(_, failed)| !failed)
}

fn is_bad(job: &JobOutcome) -> bool {
    job.bad.is_some()
        || job.judged.iter().any(|(metric, failed)| *failed && recipe::has_role(metric, Role::Rate))
}

#[cfg(test)]
#[path = "evidence_tests.rs"]
mod tests;
