//! The stages one after the other: the nodes of each run, and what becomes of those that did not pass. What a run shows
//! of a node is decided in `verdict::accept`, and which node makes a group slow in `verdict::isolate`.

use super::acceptance_session::{AcceptanceSession, Sets};
use super::delivery::{Stopped, machinery};
use super::messages;
use super::placement::members;
use crate::session::gpu_request;
use crate::session::preflight::{self, ProbeScope};
use base::nodeset;
use cluster::probe;
use config::inventory::GresReport;
use config::suite::{Case, Placement, Suite};
use model::artefact::acceptance::StageRecord;
use model::artefact::{Probe, Status};
use verdict::accept::node_status::{NodeStatus, did_well_together, node_statuses};
use verdict::accept::schedule::{Open, RunResult, line};
use verdict::accept::stages::Stage;
use verdict::history::hardware;
use verdict::isolate::code::Code;
use verdict::isolate::evidence::{self, EvidenceLine};

pub(crate) const PROBE: &str = "probe.json";

impl AcceptanceSession {
    /// All stages, or as many as there are nodes and node-hours for.
    pub(crate) fn go(&mut self, report_stage: &mut dyn FnMut(&AcceptanceSession)) -> Result<(), Stopped> {
        for stage in Stage::ALL {
            let entered = self.schedule.candidates.clone();
            if entered.is_empty() || (stage != Stage::Preflight && !self.suites.contains_key(&stage)) {
                continue;
            }
            let done = match stage {
                Stage::Preflight => self.preflight(),
                Stage::Single => self.single(),
                Stage::Soak => self.soak(),
                Stage::Pairs | Stage::Groups | Stage::All => self.together(stage),
            };
            let over = match done {
                Ok(()) => false,
                Err(Stopped::Budget(needed)) => {
                    let asked = self.delivery.record.asked.budget.unwrap_or_default();
                    let why = messages::budget_spent(needed, self.delivery.node_hours(), asked);
                    for node in self.schedule.candidates.clone() {
                        self.schedule.leave_open(stage, &node, &why);
                    }
                    true
                }
                Err(stopped) => return Err(stopped),
            };
            self.record(stage, &entered);
            report_stage(self);
            if over {
                break;
            }
        }
        Ok(())
    }

    fn record(&mut self, stage: Stage, entered: &[String]) {
        let lost = self.delivery.lost.iter().filter(|(of, _)| *of == stage).map(|(_, run)| run.clone());
        let made =
            self.delivery.made.iter().filter(|made| made.stage == stage).map(|made| made.of_stage.clone());
        let mut runs: Vec<_> = lost.chain(made).collect();
        runs.sort_by(|a, b| nodeset::compare(&a.run, &b.run));
        self.stages.push(StageRecord {
            name: stage.name().to_owned(),
            entered: nodeset::fold(entered),
            passed: nodeset::fold(&self.schedule.candidates),
            node_hours: runs.iter().fold(0.0, |sum, run| sum + run.node_hours),
            runs,
        });
    }

    fn preflight(&mut self) -> Result<(), Stopped> {
        let path = self.delivery.folder.join(PROBE);
        let mut made: Probe = match path.exists() {
            true => store::read_json(&path).map_err(machinery)?,
            false => {
                let made = self.ask()?;
                self.delivery.write_json(PROBE, &made)?;
                made
            }
        };
        if let Some(suite) = self.suites.values().next() {
            self.notes.extend(probe::hold_to(&mut made, &suite.probe, &suite.alike));
        }
        let is_new = |node: &str| self.schedule.is_in(node);
        let (note, uncompared) = probe::hold_to_delivery(&mut made, &self.delivery.inventory, &is_new);
        self.notes.extend(note);
        for node in &made.nodes {
            let is_new = self.schedule.is_in(&node.node);
            let unfit = node.unfit.join("; ");
            match (&node.unprobed, node.unfit.is_empty()) {
                (Some(why), true) if is_new => {
                    self.schedule.leave_open(Stage::Preflight, &node.node, &messages::unprobed(why));
                }
                (Some(why), true) => self.schedule.withdraw(Stage::Preflight, &node.node, why),
                (None, true) => {
                    if let Some(why) = node.gpus_unread().filter(|_| is_new) {
                        self.schedule.leave_open(Stage::Preflight, &node.node, &messages::gpus_unread(why));
                    } else if let Some(why) = uncompared.get(&node.node).filter(|_| is_new) {
                        self.schedule.leave_open(Stage::Preflight, &node.node, why);
                    }
                }
                (_, false) if !is_new => self.schedule.withdraw(Stage::Preflight, &node.node, &unfit),
                (_, false) if probe::is_external(node, &made, &self.delivery.inventory) => {
                    self.schedule.leave_open(Stage::Preflight, &node.node, &unfit);
                }
                (_, false) => {
                    let lines = unfit_lines(&node.node, &node.unfit);
                    self.schedule.reject(Stage::Preflight, &node.node, &lines, &NodeStatus::default(), None);
                }
            }
        }
        self.withdraw_other_hardware(&made);
        if let Some(nics) = plan::reported_names(&self.delivery.inventory, &made) {
            self.delivery.inventory.instance.take_device_names(&nics);
        }
        let gres = GresReport::from_probe(&made);
        if let Some(gpus) = gpu_request::settled(&self.delivery.inventory, &gres, false) {
            self.delivery.inventory.settle_gpu_request(gpus);
        }
        self.probe = Some(made);
        Ok(())
    }

    /// What a run showed of its partners holds for the hardware that they were then.
    fn withdraw_other_hardware(&mut self, made: &Probe) {
        let Some(vouching) = &self.delivery.record.asked.vouching else { return };
        // What the run itself did not read is reported where it was chosen.
        let was_read = |node: &&String| vouching.hardware.contains_key(*node);
        let partners: Vec<String> = self.schedule.partners.iter().filter(was_read).cloned().collect();
        let found = hardware::unvouched(&partners, &vouching.hardware, &hardware::read_probe(made));
        for node in &found.other {
            self.schedule.withdraw(Stage::Preflight, node, &messages::other_hardware(&vouching.run));
        }
        if !found.unknown.is_empty() {
            self.notes.push(messages::hardware_unread(&found.unknown, &vouching.run));
        }
    }

    fn ask(&self) -> Result<Probe, Stopped> {
        let nodes: Vec<String> =
            self.schedule.candidates.iter().chain(&self.schedule.partners).cloned().collect();
        let (inventory, options) = (&self.delivery.inventory, &self.delivery.options);
        let asked = &self.delivery.record.asked;
        let scope = ProbeScope {
            name: format!("{}.probe", self.delivery.record.delivery),
            nodes: &nodes,
            seed: asked.seed,
            sim_faults: &asked.sim_faults,
        };
        let made = preflight::probe_apart(&scope, inventory, options);
        made.map_err(|stopped| match stopped {
            preflight::Stopped::Interrupted(code) => Stopped::Interrupted(code),
            preflight::Stopped::Machinery(why) | preflight::Stopped::NoAnswer(why) => Stopped::Machinery(why),
        })
    }

    fn single(&mut self) -> Result<(), Stopped> {
        let Some(suite) = self.suites.get(&Stage::Single).cloned() else { return Ok(()) };
        // A bandwidth through NICs says nothing of NVLink: with such a case the number alone does not show which it is.
        let through_nics = |case: &Case| case.workload.collective().is_some_and(|tests| tests.through_nics);
        let alone = suite.cases.iter().any(|case| case.placement == Placement::EachGpu)
            && !suite.cases.iter().any(through_nics);
        let nodes = self.schedule.candidates.clone();
        let result = self.run(Stage::Single, "each node by itself", &suite, &nodes, Sets::new())?;
        let open = self.schedule.first(Stage::Single, &result);
        let open = self.repeat_near_misses(Stage::Single, &suite, &nodes, &Sets::new(), open)?;
        let again = self.schedule.settle_alone(Stage::Single, open, alone);
        if again.is_empty() {
            return Ok(());
        }
        let nodes: Vec<String> = again.iter().map(|one| one.node.clone()).collect();
        let about = "retry of what an infrastructure failure kept from being measured";
        let result = self.run(Stage::Single, about, &suite, &nodes, Sets::new())?;
        self.schedule.second(Stage::Single, again, &result);
        Ok(())
    }

    fn together(&mut self, stage: Stage) -> Result<(), Stopped> {
        let Some(suite) = self.suites.get(&stage).cloned() else { return Ok(()) };
        let nodes = self.schedule.candidates.clone();
        let (placed, sets) = self.place(stage, &suite, &nodes);
        self.leave_unplaced(stage, &nodes, &sets);
        if sets.values().all(Vec::is_empty) {
            return Ok(());
        }
        let about = match (stage, self.schedule.partners.is_empty()) {
            (Stage::Pairs, false) => "each node with known-good ones",
            (Stage::Pairs, true) => "new nodes with each other",
            (Stage::Groups, _) => "groups of nodes",
            _ => "all nodes at once",
        };
        let of_sets = members(&sets);
        let result = self.run(stage, about, &placed, &of_sets, sets.clone())?;
        let open = self.schedule.first(stage, &result);
        let open = self.repeat_near_misses(stage, &placed, &of_sets, &sets, open)?;
        let mut again = self.schedule.retry(stage, open);
        let is_unexplained = |one: &Open| {
            one.node_status.has_failed() && !one.with.iter().any(|other| self.schedule.is_bad(other))
        };
        if stage != Stage::Pairs && again.iter().any(is_unexplained) {
            self.isolate_slow_group(stage, &again)?;
            again.retain(|one| self.schedule.is_in(&one.node));
            // A retry with the same nodes would show nothing new.
            again = self.schedule.unless_explained(stage, again, self.between.as_deref());
        }
        if again.is_empty() {
            return Ok(());
        }
        let nodes: Vec<String> = again.iter().map(|one| one.node.clone()).collect();
        let (placed, sets) = self.place(stage, &suite, &nodes);
        let of_sets = members(&sets);
        let about = format!("retry with other nodes: {}", nodeset::fold(&nodes));
        let result = match sets.values().all(Vec::is_empty) {
            true => RunResult::default(),
            false => self.run(stage, &about, &placed, &of_sets, sets)?,
        };
        self.schedule.second(stage, again, &result);
        Ok(())
    }

    fn leave_unplaced(&mut self, stage: Stage, nodes: &[String], sets: &Sets) {
        for node in nodes {
            let lacks = sets.iter().find(|(_, placed)| !placed.iter().any(|job| job.nodes.contains(node)));
            if let Some((case, _)) = lacks {
                let good = self.schedule.good().iter().filter(|good| !nodes.contains(good)).count();
                self.schedule.leave_open(stage, node, &messages::too_few_nodes(case, nodes.len(), good));
            }
        }
    }

    /// A run of the delivery, and what it shows of the nodes that are to be accepted.
    pub(crate) fn run(
        &mut self,
        stage: Stage,
        about: &str,
        suite: &Suite,
        nodes: &[String],
        sets: Sets,
    ) -> Result<RunResult, Stopped> {
        self.make(stage, about, suite, nodes, &sets)?;
        let made = self.delivery.made.last().ok_or_else(|| machinery("no run was made"))?;
        let asked: Vec<String> = nodes.iter().filter(|node| self.schedule.is_in(node)).cloned().collect();
        let mut node_statuses = node_statuses(&asked, &made.stored.plan, &made.verdicts, &self.catalogue);
        if let Some(failure) = &made.summary.common_failure {
            // Why there is no result stands with the first of all nodes' jobs, rather than with each.
            let unmeasured = node_statuses.values_mut().flat_map(|status| &mut status.bad);
            for bad in unmeasured.filter(|bad| bad.status != Status::Fail) {
                bad.message = messages::common_cause(failure);
            }
        }
        let result = RunResult {
            run: made.summary.run_id.clone(),
            node_statuses,
            lines: evidence::from_culprits(&made.summary.culprits, &[]).lines,
            together: did_well_together(&made.stored.plan, &made.verdicts),
        };
        for set in sets.values().flatten().map(|job| &job.nodes) {
            for node in set {
                let others = set.iter().filter(|other| *other != node).cloned();
                self.had.entry(node.clone()).or_default().extend(others);
            }
        }
        Ok(result)
    }
}

/// What the probe refuses a node for, a line for each code.
fn unfit_lines(node: &str, unfit: &[String]) -> Vec<EvidenceLine> {
    let mut by_code: Vec<(&'static str, Vec<&str>)> = Vec::new();
    for why in unfit {
        let code = Code::for_unfit(why).name;
        match by_code.iter_mut().find(|(known, _)| *known == code) {
            Some((_, all)) => all.push(why),
            None => by_code.push((code, vec![why])),
        }
    }
    by_code.into_iter().map(|(code, all)| line(code, node, "node", &all.join("; "))).collect()
}
