//! What becomes of each node, stage by stage: rejected by what names it, left open where nothing does, or on to the
//! next. A failure of several nodes together proves nothing against one of them: each unnamed one is retried with
//! another partner, and that is recorded.

use super::attribution::Unattributable;
use super::node_status::{Bad, NodeStatus, Together};
use super::stages::Stage;
use crate::isolate::code::Code;
use crate::isolate::evidence::EvidenceLine;
use metric::Names;
use model::artefact::Status;
use model::artefact::acceptance::{Coded, Rejected, Undecided, Withdrawn};
use recipes::recipe;
use std::collections::{BTreeMap, BTreeSet};

/// The nodes of a delivery, by their status after the stages so far.
#[derive(Debug, Default)]
pub struct Schedule {
    /// Those that have passed all so far.
    pub candidates: Vec<String>,
    /// Those that were good before, less the withdrawn.
    pub partners: Vec<String>,
    /// Candidates that passed with others: as good as partners for those that did not.
    pub proven: Vec<String>,
    /// Candidates with a named fault, in the order of their rejection.
    pub rejected: Vec<Rejected>,
    /// Candidates that left without a decision, with the reason.
    pub undecided: Vec<Undecided>,
    /// Partners that turned out not to be good.
    pub withdrawn: Vec<Withdrawn>,
    /// Who did well together in the runs of this stage.
    pub together: Vec<Together>,
}

/// What a run showed.
#[derive(Default)]
pub struct RunResult {
    /// The run's id; empty where no partner was left and nothing ran.
    pub run: String,
    /// By name, the candidates that took part.
    pub node_statuses: BTreeMap<String, NodeStatus>,
    /// What its measurements name by themselves.
    pub lines: Vec<EvidenceLine>,
    /// Who did well together in it.
    pub together: Vec<Together>,
}

/// A node that did not pass and is not named.
#[derive(Debug, Clone, PartialEq)]
pub struct Open {
    /// The node's name, a candidate.
    pub node: String,
    /// What did not pass for it in that run.
    pub node_status: NodeStatus,
    /// The id of the run in which it did not pass.
    pub run: String,
    /// Who ran with it where it did not pass.
    pub with: BTreeSet<String>,
}

/// Where so many fail and nothing was measured, no node is blamed.
pub(super) const FEWEST_OF_A_FLEET: usize = 3;

impl Open {
    pub(super) fn new(result: &RunResult, node: &str, node_status: &NodeStatus) -> Open {
        let with = node_status.bad.iter().flat_map(|bad| bad.with.iter().cloned()).collect();
        Open { node: node.to_owned(), node_status: node_status.clone(), run: result.run.clone(), with }
    }
}

impl Schedule {
    /// Whether the node is still a candidate.
    pub fn is_in(&self, node: &str) -> bool {
        self.candidates.iter().any(|one| one == node)
    }

    /// Known-good ones to compare with, the partners before others.
    pub fn good(&self) -> Vec<String> {
        self.partners.iter().chain(&self.proven).cloned().collect()
    }

    /// Moves a candidate to `rejected`; `run` is `None` where the probe shows the fault.
    pub fn reject(
        &mut self,
        stage: Stage,
        node: &str,
        lines: &[EvidenceLine],
        node_status: &NodeStatus,
        run: Option<&str>,
    ) {
        self.leave(node);
        self.rejected.push(Rejected {
            node: node.to_owned(),
            stage: stage.name().to_owned(),
            culprits: lines.iter().map(coded).collect(),
            assertions: node_status.names(),
            run: run.map(str::to_owned),
            soaked_s: None,
        });
    }

    /// Moves a candidate to `undecided`.
    pub fn leave_open(&mut self, stage: Stage, node: &str, why: &str) {
        self.leave(node);
        self.undecided.push(Undecided {
            node: node.to_owned(),
            stage: stage.name().to_owned(),
            why: why.to_owned(),
        });
    }

    /// Moves a partner to `withdrawn`; a candidate is not removed.
    pub fn withdraw(&mut self, stage: Stage, node: &str, why: &str) {
        self.partners.retain(|one| one != node);
        self.withdrawn.push(Withdrawn {
            node: node.to_owned(),
            stage: stage.name().to_owned(),
            why: why.to_owned(),
        });
    }

    fn leave(&mut self, node: &str) {
        self.candidates.retain(|one| one != node);
        self.proven.retain(|one| one != node);
    }

    /// Those that did well with another in this stage. Partners of earlier deliveries may have changed since.
    pub fn witnesses(&self) -> Vec<String> {
        let is_seen =
            |partner: &&String| self.together.iter().any(|together| together.nodes.contains(*partner));
        self.partners.iter().filter(is_seen).chain(&self.proven).cloned().collect()
    }

    /// Whoever is bad by now, candidate or partner.
    pub fn is_bad(&self, node: &str) -> bool {
        self.rejected.iter().any(|one| one.node == node) || self.withdrawn.iter().any(|one| one.node == node)
    }

    /// After a first run of a stage: who passed is proven, who is named leaves; the others are given back.
    pub fn first(&mut self, stage: Stage, result: &RunResult) -> Vec<Open> {
        self.together.clone_from(&result.together);
        let in_it: Vec<String> =
            self.candidates.iter().filter(|node| result.node_statuses.contains_key(*node)).cloned().collect();
        let is_broken = |node: &&String| {
            result.node_statuses.get(*node).is_some_and(|of| of.any(Status::Error) && !of.has_failed())
        };
        let broken = in_it.iter().filter(is_broken).count();
        let fleet = broken >= FEWEST_OF_A_FLEET && broken * 2 > in_it.len();
        if !fleet {
            self.withdraw_named(stage, result);
        }
        let mut open = Vec::new();
        for node in &in_it {
            let Some(node_status) = result.node_statuses.get(node) else { continue };
            let lines = named(result, node);
            if node_status.has_passed() {
                if !stage.is_alone() && !self.proven.contains(node) {
                    self.proven.push(node.clone());
                }
            } else if fleet && is_broken(&node) {
                let why = format!(
                    "{broken} of {} nodes fail in the same way, treated as an infrastructure failure: {}",
                    in_it.len(),
                    node_status.why()
                );
                self.leave_open(stage, node, &why);
            } else if !lines.is_empty() {
                self.reject(stage, node, &lines, node_status, Some(&result.run));
            } else {
                open.push(Open::new(result, node, node_status));
            }
        }
        open
    }

    pub(super) fn withdraw_named(&mut self, stage: Stage, result: &RunResult) {
        for line in &result.lines {
            if self.partners.contains(&line.node) {
                self.withdraw(stage, &line.node, &line.to_string());
            }
        }
    }

    /// Of a run on one node a failure that speaks against a node speaks against this one. One that names no node, or none of
    /// so many that fail alike, leaves it open.
    /// `alone` says whether each GPU was tried by itself as well.
    pub fn settle_alone(&mut self, stage: Stage, open: Vec<Open>, alone: bool) -> Vec<Open> {
        let mut again = Vec::new();
        for one in open {
            if one.node_status.has_failed() {
                let line = inside(&one.node, &one.node_status, alone);
                self.reject(stage, &one.node, &[line], &one.node_status, Some(&one.run));
            } else if one.node_status.any(Status::Error) && !one.node_status.is_red() {
                again.push(one);
            } else {
                self.leave_open(stage, &one.node, &one.node_status.why());
            }
        }
        again
    }

    /// Those that are retried with another partner: nodes that failed, that could not run, or that had a bad partner. A
    /// retry would show nothing new for the others.
    pub fn retry(&mut self, stage: Stage, open: Vec<Open>) -> Vec<Open> {
        let (again, rest): (Vec<Open>, Vec<Open>) = open.into_iter().partition(|one| {
            one.node_status.has_failed()
                || one.node_status.any(Status::Error)
                || one.with.iter().any(|other| self.is_bad(other))
        });
        for one in rest {
            self.leave_open(stage, &one.node, &one.node_status.why());
        }
        again
    }

    /// After an isolation: nodes that ran with a culprit that it named, or that could not run, are retried with others.
    /// The rest stays open.
    pub fn unless_explained(&mut self, stage: Stage, open: Vec<Open>, between: Option<&str>) -> Vec<Open> {
        let (again, rest): (Vec<Open>, Vec<Open>) = open.into_iter().partition(|one| {
            !one.node_status.has_failed() || one.with.iter().any(|other| self.is_bad(other))
        });
        for one in rest {
            let found = between.map_or_else(
                || "isolation found no culprit".to_owned(),
                |line| format!("no node is named, but {line}"),
            );
            self.leave_open(stage, &one.node, &format!("{found}: {}", one.node_status.why()));
        }
        again
    }

    /// After the second run of a stage, each with others than before.
    pub fn second(&mut self, stage: Stage, open: Vec<Open>, result: &RunResult) {
        self.together.extend(result.together.iter().cloned());
        self.withdraw_named(stage, result);
        self.settle_named(stage, &open, result);
        self.withdraw_by_company(stage, &open, result);
        let has_passed =
            |one: &&Open| result.node_statuses.get(&one.node).is_some_and(NodeStatus::has_passed);
        let (passed, not): (Vec<&Open>, Vec<&Open>) = open.iter().partition(has_passed);
        // Who fails again may be what made others fail before. All are decided by what was known before any of them, so
        // that their order decides nothing.
        let by_company: Vec<(&Open, Open)> =
            not.iter().filter_map(|one| Some((*one, self.failed_with_good(stage, one, result)?))).collect();
        for (one, then) in by_company {
            let (first, second, why) = (company(&one.with), company(&then.with), then.node_status.why());
            let evidence = format!("with {first} and with {second}: {why}");
            let line = line("HRN-NODE-UNCLEAR", &one.node, "node", &evidence);
            self.reject(stage, &one.node, &[line], &then.node_status, Some(&result.run));
        }
        for one in not.into_iter().chain(passed) {
            if self.rejected.iter().any(|gone| gone.node == one.node) {
                continue;
            }
            let Some(node_status) = result.node_statuses.get(&one.node) else {
                self.leave_open(
                    stage,
                    &one.node,
                    &format!("no partner left to retry it with: {}", one.node_status.why()),
                );
                continue;
            };
            let was_explained = one.with.iter().any(|other| self.is_bad(other));
            if node_status.has_passed() && (was_explained || !one.node_status.is_red()) {
                if !stage.is_alone() {
                    self.proven.push(one.node.clone());
                }
            } else if node_status.has_passed() {
                let why = format!(
                    "passed with others, but not with {}, of which none is known to be bad: {}",
                    company(&one.with),
                    one.node_status.why()
                );
                self.leave_open(stage, &one.node, &why);
            } else {
                self.leave_open(
                    stage,
                    &one.node,
                    &format!("tried twice, no culprit found: {}", node_status.why()),
                );
            }
        }
    }

    /// What a node did in its second run, where that proves it bad: it failed with one that it had not met before and
    /// that is good, and did well with no other in that case. Good is who did well with another in this stage: partners of
    /// earlier deliveries may have changed since, all of them alike.
    fn failed_with_good(&self, stage: Stage, one: &Open, result: &RunResult) -> Option<Open> {
        if stage != Stage::Pairs || self.is_bad(&one.node) {
            return None;
        }
        let then = Open::new(result, &one.node, result.node_statuses.get(&one.node)?);
        let mut met = one.with.iter().chain(&then.with);
        if !one.node_status.has_failed() || met.any(|other| self.is_bad(other)) {
            return None;
        }
        let did_well = |node: &String, case: &str| {
            self.together.iter().any(|together| together.case == case && together.nodes.contains(node))
        };
        let is_good = |other: &String, case: &str| {
            self.proven.contains(other) || (self.partners.contains(other) && did_well(other, case))
        };
        let proves = |bad: &Bad| {
            bad.status == Status::Fail
                // This run is of a few nodes: how many fail alike shows in the first.
                && matches!(bad.unattributable, None | Some(Unattributable::Shared { .. }))
                && !did_well(&one.node, &bad.case)
                // A good one beside one that may be bad proves nothing.
                && bad.with.iter().all(|other| is_good(other, &bad.case))
                && bad.with.iter().any(|other| !one.with.contains(other))
        };
        then.node_status.bad.iter().any(proves).then_some(then)
    }

    /// Who is named in a second run leaves, and so does who filled up a group and did not do well by itself there.
    pub(super) fn settle_named(&mut self, stage: Stage, open: &[Open], result: &RunResult) {
        for (node, node_status) in
            result.node_statuses.iter().filter(|(_, node_status)| !node_status.has_passed())
        {
            let lines = named(result, node);
            let is_tried = open.iter().any(|one| one.node == *node);
            if !self.is_in(node) {
                continue;
            }
            if !lines.is_empty() {
                self.reject(stage, node, &lines, node_status, Some(&result.run));
            } else if !is_tried && node_status.bad.iter().any(|bad| bad.is_own) {
                let why = format!("passed before, but not when it ran with others: {}", node_status.why());
                self.leave_open(stage, node, &why);
            }
        }
    }

    /// A partner with which two or more nodes failed that passed with others, and none passed, is not good itself.
    fn withdraw_by_company(&mut self, stage: Stage, open: &[Open], result: &RunResult) {
        let mut cleared_elsewhere: BTreeMap<&String, usize> = BTreeMap::new();
        for one in open {
            let has_passed = result.node_statuses.get(&one.node).is_some_and(NodeStatus::has_passed);
            let is_explained = one.with.iter().any(|with| self.is_bad(with));
            if has_passed && one.node_status.has_failed() && !is_explained {
                one.with.iter().for_each(|with| *cleared_elsewhere.entry(with).or_default() += 1);
            }
        }
        let suspects: Vec<String> = cleared_elsewhere
            .into_iter()
            .filter(|(with, n)| *n > 1 && self.partners.contains(with))
            .map(|(with, _)| with.clone())
            .collect();
        for node in suspects {
            self.withdraw(stage, &node, "several nodes failed with it, but passed with another partner");
        }
    }
}

fn company(with: &BTreeSet<String>) -> String {
    with.iter().map(String::as_str).collect::<Vec<_>>().join(" ")
}

fn named(result: &RunResult, node: &str) -> Vec<EvidenceLine> {
    result.lines.iter().filter(|line| line.node == node).cloned().collect()
}

/// A culprit's line with these fields.
pub fn line(code: &'static str, node: &str, part: &str, evidence: &str) -> EvidenceLine {
    EvidenceLine { code, node: node.to_owned(), part: part.to_owned(), evidence: evidence.to_owned() }
}

fn coded(line: &EvidenceLine) -> Coded {
    Coded {
        code: line.code.to_owned(),
        severity: Code::find(line.code).map_or("watch", |code| code.severity.name()).to_owned(),
        part: line.part.clone(),
        evidence: line.evidence.clone(),
    }
}

/// What nccl-tests measured: on one GPU it speaks of that GPU, on all of a node of what joins them.
fn is_of_nccl(metric: &str) -> bool {
    recipe::built_in(metric).is_some_and(|metric| metric.names == Names::GpuAlone)
}

/// Wrong results of nccl-tests; a training whose loss is not finite shows no fault of the hardware.
fn is_wrong(metric: &str) -> bool {
    is_of_nccl(metric) && recipe::checks_data(metric)
}

/// Which code a failure by itself has: of a GPU alone, of GPUs together whose each is good alone, or of neither.
fn inside(node: &str, node_status: &NodeStatus, alone: bool) -> EvidenceLine {
    let is_own = |bad: &&Bad| bad.status == Status::Fail && bad.unattributable.is_none();
    let failed = || node_status.bad.iter().filter(is_own);
    let of_gpu = failed().find(|bad| bad.part.as_ref().is_some_and(|part| part.starts_with("gpu")));
    let coded = |bad: &Bad| recipe::built_in(&bad.metric)?.culprit_code(&bad.message);
    if let Some((bad, (part, code))) = failed().find_map(|bad| Some((bad, coded(bad)?))) {
        return line(code, node, bad.part.as_deref().or(part).unwrap_or("node"), &bad.message);
    }
    if let Some(bad) = of_gpu {
        let code = if is_wrong(&bad.metric) { "HRN-GPU-WRONG" } else { "HRN-GPU-SLOW" };
        return line(code, node, bad.part.as_deref().unwrap_or("gpu"), &bad.message);
    }
    let together = failed().find(|bad| is_of_nccl(&bad.metric) && bad.part.is_none());
    match together.or_else(|| failed().next()) {
        Some(bad) if is_wrong(&bad.metric) => line("HRN-NODE-BROKEN", node, "node", &bad.message),
        Some(bad) if alone && is_of_nccl(&bad.metric) => {
            line("HRN-NVLINK-SLOW", node, "nvlink", &bad.message)
        }
        Some(bad) => line("HRN-NODE-UNCLEAR", node, bad.part.as_deref().unwrap_or("node"), &bad.message),
        None => line("HRN-NODE-UNCLEAR", node, "node", &node_status.why()),
    }
}
