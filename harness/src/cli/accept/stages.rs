//! The stages one after the other: whom each run takes, and what becomes of who did not pass. What a run says of a node is
//! `accept`'s business, and who makes a group slow is `isolate`'s.

use super::super::{preflight, run_suites};
use super::delivery::{Delivery, Stopped, machinery};
use super::meeting::{Sets, members};
use base::nodeset;
use cluster::probe;
use config::baseline::Baselines;
use config::suite::{Placement, Suite};
use model::artefact::acceptance::StageRecord;
use model::artefact::{Plan, PlannedRecipe, Probe, Source};
use plan::{self, Request};
use std::collections::BTreeMap;
use verdict::accept::course::{Course, Open, Seen, line};
use verdict::accept::placing::Had;
use verdict::accept::stages::Stage;
use verdict::accept::standing::{Standing, standings};
use verdict::isolate::evidence;
use verdict::isolate::round::Probes;

pub(super) const PROBE: &str = "probe.json";

pub(super) struct Accepting {
    pub delivery: Delivery,
    pub suites: BTreeMap<Stage, Suite>,
    /// What a group is looked into by.
    pub probes: Option<Probes>,
    pub baselines: Option<Baselines>,
    pub sources: Vec<Source>,
    pub recipes: Vec<PlannedRecipe>,
    pub course: Course,
    pub stages: Vec<StageRecord>,
    pub probe: Option<Probe>,
    /// What could not be looked at, beside what the suite leaves out.
    pub notes: Vec<String>,
    /// A way between groups of nodes that a search has named.
    pub between: Option<String>,
    pub had: Had,
}

/// A run that was interrupted so often is not begun again.
const MOST_ATTEMPTS: usize = 50;

impl Accepting {
    pub(super) fn new(
        delivery: Delivery,
        suites: BTreeMap<Stage, Suite>,
        probes: Option<Probes>,
        baselines: Option<Baselines>,
        sources: Vec<Source>,
        recipes: Vec<PlannedRecipe>,
    ) -> Accepting {
        let asked = &delivery.record.asked;
        let course =
            Course { candidates: asked.nodes.clone(), partners: asked.partners.clone(), ..Course::default() };
        Accepting {
            delivery,
            suites,
            probes,
            baselines,
            sources,
            recipes,
            course,
            stages: Vec::new(),
            probe: None,
            notes: Vec::new(),
            between: None,
            had: Had::new(),
        }
    }

    /// All stages, or as many as there are nodes and node-hours for.
    pub(super) fn go(&mut self, tell: &mut dyn FnMut(&Accepting)) -> Result<(), Stopped> {
        for stage in Stage::ALL {
            let entered = self.course.candidates.clone();
            if entered.is_empty() || (stage != Stage::Preflight && !self.suites.contains_key(&stage)) {
                continue;
            }
            let done = match stage {
                Stage::Preflight => self.preflight(),
                Stage::Single => self.single(),
                Stage::Pairs | Stage::Groups | Stage::All => self.together(stage),
            };
            let over = match done {
                Ok(()) => false,
                Err(Stopped::Budget(needed)) => {
                    let asked = self.delivery.record.asked.budget.unwrap_or_default();
                    let why = format!(
                        "the next run needs about {needed:.2} node-hours, {:.2} are used of the budget: {asked}",
                        self.delivery.node_hours()
                    );
                    for node in self.course.candidates.clone() {
                        self.course.leave_open(stage, &node, &why);
                    }
                    true
                }
                Err(stopped) => return Err(stopped),
            };
            self.record(stage, &entered);
            tell(self);
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
        runs.sort_by(|a, b| a.run.cmp(&b.run));
        self.stages.push(StageRecord {
            name: stage.name().to_owned(),
            entered: nodeset::fold(entered),
            passed: nodeset::fold(&self.course.candidates),
            node_hours: runs.iter().fold(0.0, |sum, run| sum + run.node_hours),
            runs,
        });
    }

    fn preflight(&mut self) -> Result<(), Stopped> {
        let path = self.delivery.folder.join(PROBE);
        let made: Probe = match path.exists() {
            true => store::read_json(&path).map_err(machinery)?,
            false => {
                let made = self.ask()?;
                self.delivery.write_json(PROBE, &made)?;
                made
            }
        };
        for node in &made.nodes {
            let is_new = self.course.is_in(&node.node);
            let unfit = node.unfit.join("; ");
            match (&node.unprobed, node.unfit.is_empty()) {
                (Some(why), true) if is_new => {
                    self.course.leave_open(
                        Stage::Preflight,
                        &node.node,
                        &format!("it could not be asked: {why}"),
                    );
                }
                (Some(why), true) => self.course.withdraw(Stage::Preflight, &node.node, why),
                (None, true) => {
                    if let Some(why) = node.gpus_unread().filter(|_| is_new) {
                        let why = format!("its GPUs could not be read: {why}");
                        self.course.leave_open(Stage::Preflight, &node.node, &why);
                    }
                }
                (_, false) if !is_new => self.course.withdraw(Stage::Preflight, &node.node, &unfit),
                (_, false) if probe::is_by_folder(node, &made, &self.delivery.inventory) => {
                    self.course.leave_open(Stage::Preflight, &node.node, &unfit);
                }
                (_, false) => {
                    let lines = [line("HRN-NODE-UNFIT", &node.node, "node", &unfit)];
                    self.course.reject(Stage::Preflight, &node.node, &lines, &Standing::default(), None);
                }
            }
        }
        self.probe = Some(made);
        Ok(())
    }

    fn ask(&self) -> Result<Probe, Stopped> {
        let suite = self.suites.values().next().ok_or_else(|| machinery("the suite has no case"))?;
        let nodes: Vec<String> =
            self.course.candidates.iter().chain(&self.course.partners).cloned().collect();
        let plan = self.plan(suite, &self.delivery.record.delivery, nodes, Sets::new());
        // Only its nodes are asked, and its faults are those of the cluster.
        let plan = plan.map_err(|diagnostics| Stopped::Machinery(diagnostics.join("; ")))?;
        let (inventory, args) = (&self.delivery.inventory, &self.delivery.args);
        let reached = run_suites::reached_by(inventory, plan.seed, args).map_err(Stopped::Machinery)?;
        let made = preflight::made(&plan, inventory, reached.as_ref(), args);
        made.map_err(|stopped| match stopped {
            preflight::Stopped::Interrupted(code) => Stopped::Interrupted(code),
            preflight::Stopped::Machinery(why) | preflight::Stopped::NoAnswer(why) => Stopped::Machinery(why),
        })
    }

    fn single(&mut self) -> Result<(), Stopped> {
        let Some(suite) = self.suites.get(&Stage::Single).cloned() else { return Ok(()) };
        let alone = suite.cases.iter().any(|case| case.placement == Placement::EachGpu);
        let nodes = self.course.candidates.clone();
        let seen = self.run(Stage::Single, "each node by itself", &suite, &nodes, Sets::new())?;
        let open = self.course.first(Stage::Single, &seen);
        let again = self.course.settle_single(open, alone);
        if again.is_empty() {
            return Ok(());
        }
        let nodes: Vec<String> = again.iter().map(|one| one.node.clone()).collect();
        let about = "again, what the machinery had kept from being measured";
        let seen = self.run(Stage::Single, about, &suite, &nodes, Sets::new())?;
        self.course.second(Stage::Single, again, &seen);
        Ok(())
    }

    fn together(&mut self, stage: Stage) -> Result<(), Stopped> {
        let Some(suite) = self.suites.get(&stage).cloned() else { return Ok(()) };
        let nodes = self.course.candidates.clone();
        let (placed, sets) = self.place(stage, &suite, &nodes);
        self.leave_unplaced(stage, &nodes, &sets);
        if sets.values().all(Vec::is_empty) {
            return Ok(());
        }
        let about = match (stage, self.course.partners.is_empty()) {
            (Stage::Pairs, false) => "each node with known-good ones",
            (Stage::Pairs, true) => "new nodes with each other",
            (Stage::Groups, _) => "groups of nodes",
            _ => "all nodes at once",
        };
        let of_sets = members(&sets);
        let seen = self.run(stage, about, &placed, &of_sets, sets)?;
        let open = self.course.first(stage, &seen);
        let mut again = self.course.once_more(stage, open);
        let is_unexplained =
            |one: &Open| one.standing.has_failed() && !one.with.iter().any(|other| self.course.is_bad(other));
        if stage != Stage::Pairs && again.iter().any(is_unexplained) {
            self.who_is_it(stage, &again)?;
            again.retain(|one| self.course.is_in(&one.node));
            // The same nodes once more would tell no more.
            again = self.course.unless_explained(stage, again, self.between.as_deref());
        }
        if again.is_empty() {
            return Ok(());
        }
        let nodes: Vec<String> = again.iter().map(|one| one.node.clone()).collect();
        let (placed, sets) = self.place(stage, &suite, &nodes);
        let of_sets = members(&sets);
        let about = format!("with others once more: {}", nodeset::fold(&nodes));
        let seen = match sets.values().all(Vec::is_empty) {
            true => Seen { run: String::new(), standings: BTreeMap::new(), lines: Vec::new() },
            false => self.run(stage, &about, &placed, &of_sets, sets)?,
        };
        self.course.second(stage, again, &seen);
        Ok(())
    }

    fn leave_unplaced(&mut self, stage: Stage, nodes: &[String], sets: &Sets) {
        for node in nodes {
            let lacks = sets.iter().find(|(_, placed)| !placed.iter().any(|job| job.nodes.contains(node)));
            if let Some((case, _)) = lacks {
                let why = format!(
                    "too few nodes to run `{case}` with it: {} new ones are left, and {} that are known to be good",
                    nodes.len(),
                    self.course.good().iter().filter(|good| !nodes.contains(good)).count()
                );
                self.course.leave_open(stage, node, &why);
            }
        }
    }

    /// A run of the delivery, and what it shows of the nodes that are to be accepted.
    fn run(
        &mut self,
        stage: Stage,
        about: &str,
        suite: &Suite,
        nodes: &[String],
        sets: Sets,
    ) -> Result<Seen, Stopped> {
        self.make(stage, about, suite, nodes, &sets)?;
        let made = self.delivery.made.last().ok_or_else(|| machinery("no run was made"))?;
        let asked: Vec<String> = nodes.iter().filter(|node| self.course.is_in(node)).cloned().collect();
        let seen = Seen {
            run: made.summary.run_id.clone(),
            standings: standings(&asked, &made.stored.plan, &made.verdicts),
            lines: evidence::of_run(&made.summary.culprits, &[]).lines,
        };
        for set in sets.values().flatten().map(|job| &job.nodes) {
            for node in set {
                let others = set.iter().filter(|other| *other != node).cloned();
                self.had.entry(node.clone()).or_default().extend(others);
            }
        }
        Ok(seen)
    }

    /// The next run of the delivery, however often it was interrupted.
    pub(super) fn make(
        &mut self,
        stage: Stage,
        about: &str,
        suite: &Suite,
        nodes: &[String],
        sets: &Sets,
    ) -> Result<(), Stopped> {
        for attempt in 1..=MOST_ATTEMPTS {
            let id = self.delivery.next_id(stage, attempt);
            let plan = self.plan(suite, &id, nodes.to_vec(), sets.clone());
            let plan = plan.map_err(|diagnostics| Stopped::Machinery(diagnostics.join("; ")))?;
            if self.delivery.make(stage, about, plan)? {
                return Ok(());
            }
        }
        Err(Stopped::Machinery(format!("interrupted {MOST_ATTEMPTS} times, and given up: {about}")))
    }

    pub(super) fn plan(
        &self,
        suite: &Suite,
        id: &str,
        nodes: Vec<String>,
        sets: Sets,
    ) -> Result<Plan, Vec<String>> {
        let asked = &self.delivery.record.asked;
        let request = Request {
            run_id: id.to_owned(),
            seed: self.delivery.seed(),
            nodes,
            settings: BTreeMap::new(),
            reservation: None,
            sim_faults: asked.sim_faults.clone(),
            limit_s: None,
            max_fail: None,
            sources: self.sources.clone(),
            recipes: self.recipes.clone(),
            sets,
        };
        plan::plan(std::slice::from_ref(suite), &self.delivery.inventory, self.baselines.as_ref(), request)
    }
}
