//! What a stored run names by itself, as coded culprits: then nothing has to be run to know it. A node that was only left
//! over by elimination is no evidence, and what is merely odd about a node is some only where the runs speak against that
//! node already. It ends a search where it explains all that was lost, so that it hides no second fault.

use super::code::Code;
use super::seen::{Oddity, Seen};
use super::siblings::{self, Devices, Part};
use model::artefact::{Culprit, JobOutcome, LeftOut, WorkKind};
use std::collections::BTreeSet;

/// One line about a culprit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub code: &'static str,
    /// A node, or two groups with a hyphen between them.
    pub node: String,
    pub part: String,
    pub evidence: String,
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let severity = Code::find(self.code).map_or("watch", |code| code.severity.name());
        write!(f, "{} {severity} {} {}: {}", self.code, self.node, self.part, self.evidence)
    }
}

/// What is told, and whether that is all that went badly.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    pub lines: Vec<Line>,
    pub explains_all: bool,
    /// What is odd about nodes that nothing else speaks against: told, and not blamed.
    pub hints: Vec<String>,
}

pub fn of_run(culprits: &[Culprit], left_out: &[LeftOut]) -> Evidence {
    let told = told(culprits, left_out, Devices::default());
    let explains_all = told.eliminated.is_empty() && told.suspected.is_empty() && !told.lines.is_empty();
    Evidence { lines: told.lines, explains_all, hints: Vec::new() }
}

/// What the judgement of a run says, before anything else is asked.
struct Told {
    lines: Vec<Line>,
    /// Nodes that are slow, and nobody knows why.
    eliminated: Vec<String>,
    /// Several of which one must be it, and what it is about.
    suspected: Vec<(Vec<String>, String)>,
}

fn told(culprits: &[Culprit], left_out: &[LeftOut], devices: Devices) -> Told {
    let mut told = Told { lines: Vec::new(), eliminated: Vec::new(), suspected: Vec::new() };
    // Who was quarantined is among the culprits; what all nodes see alike is no node's fault.
    for left in left_out.iter().filter(|left| left.after.is_none() && !left.by_folder) {
        told.lines.push(Line {
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
                told.suspected.push((nodes.clone(), evidence.clone()));
                continue;
            }
            Culprit::Fleet { evidence } => {
                told.suspected.push((Vec::new(), evidence.clone()));
                continue;
            }
        };
        // Runs of earlier versions hold no code.
        let known = code.as_ref().and_then(|code| Code::find(code));
        match known.or_else(|| Code::of_culprit(part, evidence)) {
            Some(code) => {
                let known = told.lines.iter().any(|line| line.node == *node);
                let is_of_all = code.name == "HRN-NODE-SLOW";
                if is_of_all || !(known && part == "node") {
                    let (node, part, evidence) = (node.clone(), part.clone(), evidence.clone());
                    told.lines.push(Line { code: code.name, node, part, evidence });
                }
            }
            None => told.eliminated.push(node.clone()),
        }
    }
    // So do those of parts that have one cause, each by itself.
    let parts = told.lines.drain(..).map(|Line { code, node, part, evidence }| Part {
        node,
        part,
        code: Some(code),
        evidence,
        rate: None,
    });
    told.lines = siblings::unite(parts.collect(), devices)
        .into_iter()
        .filter_map(|Part { node, part, code, evidence, .. }| {
            Some(Line { code: code?, node, part, evidence })
        })
        .collect();
    told
}

/// The same with all else that the run holds.
pub fn of_seen(seen: &Seen) -> Evidence {
    let devices = Devices { nics: seen.nics, gpus: seen.gpus };
    let Told { mut lines, eliminated, mut suspected } = told(&seen.culprits, &seen.left_out, devices);
    let cleared = Cleared::by(&seen.jobs);
    let mut hints = Vec::new();
    for odd in seen.oddities() {
        let was_judged = odd.was_judged(seen);
        if was_judged {
            // That one of several must be it is answered: which of them has it was measured.
            let is_of = |about: &str| odd.shown_by.contains(&about.split(':').next().unwrap_or_default());
            suspected.retain(|(nodes, about)| !(is_of(about) && nodes.contains(&odd.node)));
        }
        if let Some(line) = lines.iter_mut().find(|line| line.node == odd.node) {
            add(line, &odd);
        } else if was_judged
            || eliminated.contains(&odd.node)
            || cleared.speaks_against(&odd.node, &seen.jobs)
        {
            let Oddity { code, node, part, told, .. } = odd;
            lines.push(Line { code, node, part, evidence: told });
        } else {
            hints.push(format!("{} {} {}: {}", odd.code, odd.node, odd.part, odd.told));
        }
    }
    let named = |node: &String| lines.iter().any(|line| line.node == *node);
    let explains = |loss: &super::seen::Loss| {
        let guilty: Vec<&Line> = lines.iter().filter(|line| loss.nodes.contains(&line.node)).collect();
        let others = loss.nodes.iter().filter(|node| !named(node)).all(|node| cleared.has(node));
        let enough = |line: &&Line| {
            most_lost(line.code, seen).zip(loss.left).is_some_and(|(most, left)| 1.0 - left <= most)
        };
        !guilty.is_empty() && (others || guilty.iter().any(enough))
    };
    let explains_all = !lines.is_empty()
        && suspected.is_empty()
        && eliminated.iter().all(named)
        && seen.losses.iter().all(explains);
    Evidence { lines, explains_all, hints }
}

/// A second word on a node that is named: a link that is down says more than that the node is unfit.
fn add(line: &mut Line, odd: &Oddity) {
    let is_all = line.evidence.starts_with("NICs whose link is not active") && !line.evidence.contains("; ");
    if odd.code == "HRN-NIC-DOWN" && line.code == "HRN-NODE-UNFIT" && is_all {
        (line.code, line.part, line.evidence) = (odd.code, odd.part.clone(), odd.told.clone());
    } else if odd.slows_all_nics && line.code == "HRN-PORT-SLOW" {
        // Why all of its NICs are slow: nothing has to be replaced.
        (line.code, line.part) = (odd.code, odd.part.clone());
        line.evidence = format!("{}; {}", odd.told, line.evidence);
    } else if !line.evidence.contains(&odd.told) && line.evidence.len() < MOST_TOLD {
        line.evidence = format!("{}; {}", line.evidence, odd.told);
    }
}

/// A line that says everything is read by nobody.
const MOST_TOLD: usize = 300;

/// The most that a part of such a code can take from a run by itself, where that is known; and some for the noise of runs.
fn most_lost(code: &str, seen: &Seen) -> Option<f64> {
    let per_gpu = seen.nics.checked_div(seen.gpus).unwrap_or_default();
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

/// The rates by which it shows whether a node is good.
const RATES: [&str; 3] = ["nccl.busbw", "nccl.algbw", "nic.rate"];

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
    let rates = || job.judged.iter().filter(|(metric, _)| RATES.contains(&metric.as_str()));
    job.bad.is_none() && rates().next().is_some() && rates().all(|(_, failed)| !failed)
}

fn is_bad(job: &JobOutcome) -> bool {
    job.bad.is_some() || job.judged.iter().any(|(metric, failed)| *failed && RATES.contains(&metric.as_str()))
}

#[cfg(test)]
#[path = "evidence_tests.rs"]
mod tests;
