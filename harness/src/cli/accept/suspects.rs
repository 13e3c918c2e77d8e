//! A group that is slow, and nobody in it named: the strategy of `harness isolate` on its nodes and good ones, each round a
//! run of the delivery.

use super::super::isolate::{fleet, told};
use super::delivery::{Stopped, machinery};
use super::stages::Accepting;
use base::nodeset;
use model::artefact::acceptance::RunOfStage;
use std::collections::{BTreeMap, BTreeSet};
use verdict::accept::course::Open;
use verdict::accept::stages::Stage;
use verdict::accept::standing::Standing;
use verdict::isolate::evidence::Line;
use verdict::isolate::round::{OfCase, Tried, answers};
use verdict::isolate::{self, Answer, Conclusion, Next};

/// Fewer cannot be told apart.
const FEWEST: usize = 4;
/// Good nodes for each that is asked about, and so many at least.
const BESIDE: usize = 2;
const FEWEST_BESIDE: usize = 8;

impl Accepting {
    /// Who is named leaves, whether it is new or a partner.
    pub(super) fn who_is_it(&mut self, stage: Stage, open: &[Open]) -> Result<(), Stopped> {
        self.between = None;
        let asked: BTreeSet<&String> =
            open.iter().flat_map(|one| one.with.iter().chain([&one.node])).collect();
        let is_left = |node: &&String| self.course.is_in(node) || self.course.partners.contains(node);
        let mut nodes: Vec<String> = asked.into_iter().filter(is_left).cloned().collect();
        let beside = (nodes.len() * BESIDE).max(FEWEST_BESIDE);
        let others: Vec<String> =
            self.course.good().into_iter().filter(|good| !nodes.contains(good)).take(beside).collect();
        nodes.extend(others);
        nodeset::sort(&mut nodes);
        let Some(probes) = self.probes.clone().filter(|_| nodes.len() >= FEWEST) else {
            self.notes.push(format!(
                "who makes a group slow: too few nodes to tell, or no case to tell by: {}",
                nodeset::fold(&nodes)
            ));
            return Ok(());
        };
        let (of_nodes, groups) = fleet::of(&self.delivery.inventory, &nodes);
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
            self.make(stage, &format!("who makes it slow, round {rounds}"), &suite, &of_round, &sets)?;
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
                cases.insert(case.name.clone(), OfCase { metrics, jobs });
            }
        }
        let instance = &self.delivery.inventory.instance;
        Ok(answers(tried, instance.gpus as usize, &instance.nics, &cases))
    }

    fn take(&mut self, stage: Stage, nodes: &[String], groups: &[String], conclusion: &Conclusion) {
        let nics = self.delivery.inventory.instance.nics.clone();
        let run = self.delivery.made.last().map(|made| made.of_stage.clone());
        let mut lines: BTreeMap<String, Vec<Line>> = BTreeMap::new();
        for named in &conclusion.named {
            let line = told::line_of(nodes, groups, &nics, named);
            lines.entry(line.node.clone()).or_default().push(line);
        }
        for (node, lines) in &lines {
            if self.course.is_in(node) {
                let run = run.as_ref().map(|run: &RunOfStage| run.run.as_str());
                self.course.reject(stage, node, lines, &Standing::default(), run);
            } else if self.course.partners.contains(node) {
                let why = lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                self.course.withdraw(stage, node, &why);
            } else {
                let told: Vec<String> = lines.iter().map(ToString::to_string).collect();
                self.between = Some(told.join("; "));
            }
        }
    }
}
