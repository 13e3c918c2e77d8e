//! What becomes of each node, stage by stage: rejected by what names it, left open where nothing does, or on to the next. A
//! failure in company is no proof against one of it: who is not named meets somebody else once more, and that is written down.

use super::stages::Stage;
use super::standing::Standing;
use crate::isolate::code::Code;
use crate::isolate::evidence::Line;
use model::artefact::Status;
use model::artefact::acceptance::{Coded, Rejected, Undecided, Withdrawn};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub struct Course {
    /// Those that have passed all so far.
    pub candidates: Vec<String>,
    /// Those that were good before, less the withdrawn.
    pub partners: Vec<String>,
    /// Candidates that passed with others: as good as partners to whom did not.
    pub proven: Vec<String>,
    pub rejected: Vec<Rejected>,
    pub undecided: Vec<Undecided>,
    pub withdrawn: Vec<Withdrawn>,
}

/// What a run showed.
pub struct Seen {
    pub run: String,
    pub standings: BTreeMap<String, Standing>,
    /// What its measurements name by themselves.
    pub lines: Vec<Line>,
}

/// A node that did not pass and is not named.
#[derive(Debug, Clone, PartialEq)]
pub struct Open {
    pub node: String,
    pub standing: Standing,
    pub run: String,
    /// Who ran with it where it did not pass.
    pub with: BTreeSet<String>,
}

/// Where so many do badly and nothing was measured, it is nobody's fault.
const FEWEST_OF_A_FLEET: usize = 3;

impl Open {
    fn of(seen: &Seen, node: &str, standing: &Standing) -> Open {
        let with = standing.bad.iter().flat_map(|bad| bad.with.iter().cloned()).collect();
        Open { node: node.to_owned(), standing: standing.clone(), run: seen.run.clone(), with }
    }
}

impl Course {
    pub fn is_in(&self, node: &str) -> bool {
        self.candidates.iter().any(|one| one == node)
    }

    /// Known-good ones to be held against, the partners before others.
    pub fn good(&self) -> Vec<String> {
        self.partners.iter().chain(&self.proven).cloned().collect()
    }

    pub fn reject(
        &mut self,
        stage: Stage,
        node: &str,
        lines: &[Line],
        standing: &Standing,
        run: Option<&str>,
    ) {
        self.leave(node);
        self.rejected.push(Rejected {
            node: node.to_owned(),
            stage: stage.name().to_owned(),
            culprits: lines.iter().map(coded).collect(),
            assertions: standing.names(),
            run: run.map(str::to_owned),
        });
    }

    pub fn leave_open(&mut self, stage: Stage, node: &str, why: &str) {
        self.leave(node);
        self.undecided.push(Undecided {
            node: node.to_owned(),
            stage: stage.name().to_owned(),
            why: why.to_owned(),
        });
    }

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

    /// Whoever is bad by now, candidate or partner.
    pub fn is_bad(&self, node: &str) -> bool {
        self.rejected.iter().any(|one| one.node == node) || self.withdrawn.iter().any(|one| one.node == node)
    }

    /// After a first run of a stage: who passed is proven, who is named leaves; the others are given back.
    pub fn first(&mut self, stage: Stage, seen: &Seen) -> Vec<Open> {
        let in_it: Vec<String> =
            self.candidates.iter().filter(|node| seen.standings.contains_key(*node)).cloned().collect();
        let is_broken = |node: &&String| {
            seen.standings.get(*node).is_some_and(|of| of.any(Status::Error) && !of.has_failed())
        };
        let broken = in_it.iter().filter(is_broken).count();
        let fleet = broken >= FEWEST_OF_A_FLEET && broken * 2 > in_it.len();
        if !fleet {
            self.withdraw_named(stage, seen);
        }
        let mut open = Vec::new();
        for node in &in_it {
            let Some(standing) = seen.standings.get(node) else { continue };
            let lines = named(seen, node);
            if standing.has_passed() {
                if stage != Stage::Single && !self.proven.contains(node) {
                    self.proven.push(node.clone());
                }
            } else if fleet && is_broken(&node) {
                let why =
                    format!("so do {broken} of {}, which is none of theirs: {}", in_it.len(), standing.why());
                self.leave_open(stage, node, &why);
            } else if !lines.is_empty() {
                self.reject(stage, node, &lines, standing, Some(&seen.run));
            } else {
                open.push(Open::of(seen, node, standing));
            }
        }
        open
    }

    fn withdraw_named(&mut self, stage: Stage, seen: &Seen) {
        for line in &seen.lines {
            if self.partners.contains(&line.node) {
                self.withdraw(stage, &line.node, &line.to_string());
            }
        }
    }

    /// Of a run on one node what is bad is its own, measured or not; nothing else could have made it.
    /// `alone` says whether each GPU was tried by itself as well.
    pub fn settle_single(&mut self, open: Vec<Open>, alone: bool) -> Vec<Open> {
        let mut again = Vec::new();
        for one in open {
            if one.standing.has_failed() {
                let line = inside(&one.node, &one.standing, alone);
                self.reject(Stage::Single, &one.node, &[line], &one.standing, Some(&one.run));
            } else if one.standing.any(Status::Error) {
                again.push(one);
            } else {
                self.leave_open(Stage::Single, &one.node, &one.standing.why());
            }
        }
        again
    }

    /// Those that meet somebody else once more: who failed, who could not run, and who had a bad one beside it. The others
    /// would be told no more.
    pub fn once_more(&mut self, stage: Stage, open: Vec<Open>) -> Vec<Open> {
        let (again, rest): (Vec<Open>, Vec<Open>) = open.into_iter().partition(|one| {
            one.standing.has_failed()
                || one.standing.any(Status::Error)
                || one.with.iter().any(|other| self.is_bad(other))
        });
        for one in rest {
            self.leave_open(stage, &one.node, &one.standing.why());
        }
        again
    }

    /// After a search for who makes others slow: who ran with somebody that it named, or that could not run, is tried with
    /// others. The rest stays open.
    pub fn unless_explained(&mut self, stage: Stage, open: Vec<Open>, between: Option<&str>) -> Vec<Open> {
        let (again, rest): (Vec<Open>, Vec<Open>) = open
            .into_iter()
            .partition(|one| !one.standing.has_failed() || one.with.iter().any(|other| self.is_bad(other)));
        for one in rest {
            let found = between.map_or_else(
                || "a search names nobody".to_owned(),
                |line| format!("no node is named, but {line}"),
            );
            self.leave_open(stage, &one.node, &format!("{found}: {}", one.standing.why()));
        }
        again
    }

    /// After the second run of a stage, each with others than before.
    pub fn second(&mut self, stage: Stage, open: Vec<Open>, seen: &Seen) {
        self.withdraw_named(stage, seen);
        self.settle_named(stage, &open, seen);
        self.withdraw_by_company(stage, &open, seen);
        // Who fails again may be what made others fail before.
        let has_passed = |one: &&Open| seen.standings.get(&one.node).is_some_and(Standing::has_passed);
        let (passed, not): (Vec<&Open>, Vec<&Open>) = open.iter().partition(has_passed);
        for one in not.into_iter().chain(passed) {
            if self.rejected.iter().any(|gone| gone.node == one.node) {
                continue;
            }
            let Some(standing) = seen.standings.get(&one.node) else {
                self.leave_open(
                    stage,
                    &one.node,
                    &format!("nobody was left to try it with again: {}", one.standing.why()),
                );
                continue;
            };
            let then = Open::of(seen, &one.node, standing);
            let was_explained = one.with.iter().any(|other| self.is_bad(other));
            let is_explained = then.with.iter().any(|other| self.is_bad(other));
            let company =
                |with: &BTreeSet<String>| with.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
            if standing.has_passed() && (was_explained || !one.standing.has_failed()) {
                if stage != Stage::Single {
                    self.proven.push(one.node.clone());
                }
            } else if standing.has_passed() {
                let why = format!(
                    "it passed with others, and not with {}, of whom nobody is shown to be bad: {}",
                    company(&one.with),
                    one.standing.why()
                );
                self.leave_open(stage, &one.node, &why);
            } else if stage == Stage::Pairs
                && standing.has_failed()
                && one.standing.has_failed()
                && !was_explained
                && !is_explained
            {
                let evidence = format!(
                    "with {} and with {}: {}",
                    company(&one.with),
                    company(&then.with),
                    standing.why()
                );
                let line = line("HRN-NODE-UNCLEAR", &one.node, "node", &evidence);
                self.reject(stage, &one.node, &[line], standing, Some(&seen.run));
            } else {
                self.leave_open(
                    stage,
                    &one.node,
                    &format!("tried twice, and nobody is named: {}", standing.why()),
                );
            }
        }
    }

    /// Who is named in a second run leaves, and so does who filled up a group and did not do well by itself there.
    fn settle_named(&mut self, stage: Stage, open: &[Open], seen: &Seen) {
        for (node, standing) in seen.standings.iter().filter(|(_, standing)| !standing.has_passed()) {
            let lines = named(seen, node);
            let is_tried = open.iter().any(|one| one.node == *node);
            if !self.is_in(node) {
                continue;
            }
            if !lines.is_empty() {
                self.reject(stage, node, &lines, standing, Some(&seen.run));
            } else if !is_tried && standing.bad.iter().any(|bad| bad.is_own) {
                let why = format!("it had passed, and did not when it ran with others: {}", standing.why());
                self.leave_open(stage, node, &why);
            }
        }
    }

    /// A partner with whom two nodes or more failed that passed with others, and nobody passed, is not good itself.
    fn withdraw_by_company(&mut self, stage: Stage, open: &[Open], seen: &Seen) {
        let mut cleared_elsewhere: BTreeMap<&String, usize> = BTreeMap::new();
        for one in open {
            let has_passed = seen.standings.get(&one.node).is_some_and(Standing::has_passed);
            let is_explained = one.with.iter().any(|with| self.is_bad(with));
            if has_passed && one.standing.has_failed() && !is_explained {
                one.with.iter().for_each(|with| *cleared_elsewhere.entry(with).or_default() += 1);
            }
        }
        let suspects: Vec<String> = cleared_elsewhere
            .into_iter()
            .filter(|(with, n)| *n > 1 && self.partners.contains(with))
            .map(|(with, _)| with.clone())
            .collect();
        for node in suspects {
            self.withdraw(stage, &node, "several nodes failed with it that passed with another partner");
        }
    }
}

fn named(seen: &Seen, node: &str) -> Vec<Line> {
    seen.lines.iter().filter(|line| line.node == node).cloned().collect()
}

pub fn line(code: &'static str, node: &str, part: &str, evidence: &str) -> Line {
    Line { code, node: node.to_owned(), part: part.to_owned(), evidence: evidence.to_owned() }
}

fn coded(line: &Line) -> Coded {
    Coded {
        code: line.code.to_owned(),
        severity: Code::find(line.code).map_or("watch", |code| code.severity.name()).to_owned(),
        part: line.part.clone(),
        evidence: line.evidence.clone(),
    }
}

/// Which code a failure by itself has: of a GPU alone, of GPUs together whose each is good alone, or of neither.
fn inside(node: &str, standing: &Standing, alone: bool) -> Line {
    let failed = || standing.bad.iter().filter(|bad| bad.status == Status::Fail);
    let of_gpu = failed().find(|bad| bad.part.as_ref().is_some_and(|part| part.starts_with("gpu")));
    if let Some(bad) = of_gpu {
        let code = if bad.metric == "nccl.wrong" { "HRN-GPU-WRONG" } else { "HRN-GPU-SLOW" };
        return line(code, node, bad.part.as_deref().unwrap_or("gpu"), &bad.message);
    }
    let together = failed().find(|bad| bad.metric.starts_with("nccl.") && bad.part.is_none());
    match together.or_else(|| failed().next()) {
        Some(bad) if bad.metric == "nccl.wrong" => line("HRN-NODE-BROKEN", node, "node", &bad.message),
        Some(bad) if alone && bad.metric.starts_with("nccl.") => {
            line("HRN-NVLINK-SLOW", node, "nvlink", &bad.message)
        }
        Some(bad) => line("HRN-NODE-UNCLEAR", node, bad.part.as_deref().unwrap_or("node"), &bad.message),
        None => line("HRN-NODE-UNCLEAR", node, "node", &standing.why()),
    }
}
