//! A slow group without a culprit: the strategy of `harness isolate` on its nodes and known-good ones, each round a run
//! of the delivery.

use super::acceptance_session::AcceptanceSession;
use super::delivery::{Stopped, machinery};
use super::messages::slow_group;
use crate::isolate::{fleet, messages};
use base::nodeset;
use model::artefact::acceptance::RunOfStage;
use std::collections::{BTreeMap, BTreeSet};
use verdict::accept::node_status::NodeStatus;
use verdict::accept::schedule::Open;
use verdict::accept::stages::Stage;
use verdict::isolate::evidence::EvidenceLine;
use verdict::isolate::round::{CaseRows, Tried, answers};
use verdict::isolate::{self, Answer, Conclusion, Next};

/// With fewer nodes nothing would be left to compare with.
const FEWEST: usize = 4;
/// Good nodes for each that is asked about, and so many at least.
const BESIDE: usize = 2;
const FEWEST_BESIDE: usize = 8;

impl AcceptanceSession {
    /// A culprit leaves, whether it is new or a partner.
    pub(crate) fn isolate_slow_group(&mut self, stage: Stage, open: &[Open]) -> Result<(), Stopped> {
        self.between = None;
        let asked: BTreeSet<&String> =
            open.iter().flat_map(|one| one.with.iter().chain([&one.node])).collect();
        let is_left = |node: &&String| self.schedule.is_in(node) || self.schedule.partners.contains(node);
        let mut nodes: Vec<String> = asked.into_iter().filter(is_left).cloned().collect();
        let beside = (nodes.len() * BESIDE).max(FEWEST_BESIDE);
        let others: Vec<String> =
            self.schedule.good().into_iter().filter(|good| !nodes.contains(good)).take(beside).collect();
        nodes.extend(others);
        nodeset::sort(&mut nodes);
        let Some(probes) = self.probes.clone().filter(|_| nodes.len() >= FEWEST) else {
            self.notes.push(slow_group(&nodes));
            return Ok(());
        };
        let (of_nodes, groups) = fleet::number(&self.delivery.inventory, &nodes);
        let mut found: Vec<Answer> = Vec::new();
        let mut rounds = 0;
        let conclusion = loop {
            let trials = match isolate::next(&of_nodes, &found, rounds) {
                Next::Done(conclusion) => break conclusion,
                Next::Round(trials) => trials,
            };
            let (suite, sets, tried) = probes.round(&nodes, &trials);
            let used: BTreeSet<usize> = trials.iter().flat_map(|trial| trial.nodes.iter().copied()).collect();
            let of_round: Vec<String> = used.iter().filter_map(|node| nodes.get(*node)).cloned().collect();
            rounds += 1;
            self.make(
                stage,
                &format!("isolation of the slow node, round {rounds}"),
                &suite,
                &of_round,
                &sets,
            )?;
            found.extend(self.answered(&tried)?);
        };
        self.take(stage, &nodes, &groups, &conclusion);
        Ok(())
    }

    fn answered(&self, tried: &[Tried]) -> Result<Vec<Answer>, Stopped> {
        let made = self.delivery.made.last().ok_or_else(|| machinery("no run was made"))?;
        let mut cases = BTreeMap::new();
        for case in &made.stored.plan.cases {
            let jobs = made.stored.jobs(&case.name).map_err(machinery)?;
            let metrics = made.stored.metrics(&case.name).map_err(machinery)?;
            if let (Some(jobs), Some(metrics)) = (jobs, metrics) {
                cases.insert(case.name.clone(), CaseRows { metrics, jobs });
            }
        }
        let instance = &self.delivery.inventory.instance;
        Ok(answers(tried, instance.gpus as usize, &instance.nics, &cases))
    }

    fn take(&mut self, stage: Stage, nodes: &[String], groups: &[String], conclusion: &Conclusion) {
        let nics = self.delivery.inventory.instance.nics.clone();
        let run = self.delivery.made.last().map(|made| made.of_stage.clone());
        let mut lines: BTreeMap<String, Vec<EvidenceLine>> = BTreeMap::new();
        for named in &conclusion.named {
            let line = messages::line_of(nodes, groups, &nics, named);
            lines.entry(line.node.clone()).or_default().push(line);
        }
        for (node, lines) in &lines {
            if self.schedule.is_in(node) {
                let run = run.as_ref().map(|run: &RunOfStage| run.run.as_str());
                self.schedule.reject(stage, node, lines, &NodeStatus::default(), run);
            } else if self.schedule.partners.contains(node) {
                let why = lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                self.schedule.withdraw(stage, node, &why);
            } else {
                let named: Vec<String> = lines.iter().map(ToString::to_string).collect();
                self.between = Some(named.join("; "));
            }
        }
    }
}
