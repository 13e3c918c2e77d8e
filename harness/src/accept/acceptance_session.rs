//! An acceptance as it goes on: the delivery, what its stages are made of, and what became of its nodes so far.

use super::delivery::{Delivery, Made, Stopped};
use crate::session::output::Output;
use config::baseline::Baselines;
use config::suite::Suite;
use model::artefact::acceptance::{SoakRecord, StageRecord};
use model::artefact::{Plan, Probe, Source};
use plan::{self, Placed, Request};
use recipes::catalogue::Catalogue;
use std::collections::BTreeMap;
use verdict::accept::judged::Judged;
use verdict::accept::limits::{Limits, OfRun};
use verdict::accept::pairing::Had;
use verdict::accept::schedule::Schedule;
use verdict::accept::stages::Stage;
use verdict::isolate::round::Probes;

/// Where each case of a stage is placed.
pub(crate) type Sets = BTreeMap<String, Vec<Placed>>;

pub(crate) struct AcceptanceSession {
    pub delivery: Delivery,
    pub suites: BTreeMap<Stage, Suite>,
    /// What a group is looked into by.
    pub probes: Option<Probes>,
    pub baselines: Option<Baselines>,
    pub sources: Vec<Source>,
    pub catalogue: Catalogue,
    pub schedule: Schedule,
    pub stages: Vec<StageRecord>,
    pub soak: Option<SoakRecord>,
    pub tally: Tally,
    pub probe: Option<Probe>,
    /// What could not be looked at, beside what the suite leaves out.
    pub notes: Vec<String>,
    /// A way between groups of nodes that a search has named.
    pub between: Option<String>,
    pub had: Had,
    pub output: Output,
}

/// What the certificate holds of all runs together, so that their numbers need not be kept.
#[derive(Default)]
pub(crate) struct Tally {
    pub limits: Limits,
    pub judged: Judged,
    /// Assertions that passed against provisional baselines only.
    pub provisional: u32,
}

/// A run that was interrupted so often is not begun again.
const MOST_ATTEMPTS: usize = 50;

pub(crate) fn given_up(about: &str) -> String {
    format!("interrupted {MOST_ATTEMPTS} times, and given up: {about}")
}

impl AcceptanceSession {
    pub(crate) fn new(
        delivery: Delivery,
        suites: BTreeMap<Stage, Suite>,
        probes: Option<Probes>,
        baselines: Option<Baselines>,
        sources: Vec<Source>,
        catalogue: Catalogue,
    ) -> AcceptanceSession {
        let asked = &delivery.record.asked;
        let tally = Tally { judged: Judged::new(&asked.nodes), ..Tally::default() };
        let schedule = Schedule {
            candidates: asked.nodes.clone(),
            partners: asked.partners.clone(),
            ..Schedule::default()
        };
        AcceptanceSession {
            delivery,
            suites,
            probes,
            baselines,
            sources,
            catalogue,
            schedule,
            stages: Vec::new(),
            soak: None,
            tally,
            probe: None,
            notes: Vec::new(),
            between: None,
            had: Had::new(),
            output: Output::Stdout,
        }
    }

    /// The next run of the delivery, however often it was interrupted.
    pub(crate) fn make(
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
                self.count_last();
                return Ok(());
            }
        }
        Err(Stopped::Machinery(given_up(about)))
    }

    fn count_last(&mut self) {
        let Some(made) = self.delivery.made.last().filter(|made| self.is_of_suite(made)) else { return };
        let run = OfRun { stage: made.stage.name(), plan: &made.stored.plan, verdicts: &made.verdicts };
        self.tally.limits.add(&run);
        self.tally.judged.add(&run);
        self.tally.provisional += made.summary.counts.provisional;
    }

    /// Rather than one that isolates a slow node.
    fn is_of_suite(&self, made: &Made) -> bool {
        let Some(suite) = self.suites.get(&made.stage) else { return false };
        made.stored.plan.cases.iter().all(|case| suite.cases.iter().any(|own| own.name == case.name))
    }

    pub(crate) fn plan(
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
            catalogue: self.catalogue.clone(),
            sets,
            evidence: self.probe.as_ref().map(|probe| plan::evidence_lacks(probe, &self.delivery.inventory)),
            programs: self.probe.as_ref().map(plan::node_programs).unwrap_or_default(),
        };
        plan::plan(std::slice::from_ref(suite), &self.delivery.inventory, self.baselines.as_ref(), request)
    }
}
