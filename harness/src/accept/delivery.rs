//! The folder of a delivery: its runs, one after the other under names that follow from their order, so that a resumed
//! delivery finds what was done and makes what was not. What the runs are is decided in `stages`.

use crate::report::{estimate_s, node_hours};
use crate::session::past_events::PastEvents;
use crate::session::{RunOptions, execution, planning, run_cluster};
use base::nodeset;
use cluster::interrupt;
use config::inventory::Inventory;
use model::artefact::acceptance::RunOfStage;
use model::artefact::{CaseVerdict, Format, NotInstalled, Plan, PlannedCase, Summary};
use model::exit_code;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use store::{self, Home, Store, Stored};
use verdict::accept::stages::Stage;
use verdict::history::hardware::Hardware;

pub(crate) const RECORD: &str = "delivery.json";

/// `delivery.json`: what was asked for. What came of it is in the runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub format: Format<1>,
    pub delivery: String,
    pub asked: DeliveryRequest,
}

/// The run that the partners passed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct VouchingRun {
    pub run: String,
    /// What its probe read of them.
    pub hardware: BTreeMap<String, Hardware>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct DeliveryRequest {
    pub suite: String,
    pub inventory: String,
    pub nodes: Vec<String>,
    pub partners: Vec<String>,
    /// Why the partners are taken for good.
    pub vouched: String,
    /// The run that vouches for them, where no person does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vouching: Option<VouchingRun>,
    pub budget: Option<f64>,
    pub seed: u64,
    pub sim_faults: Vec<String>,
    pub allow_busy: bool,
    pub sanitise: bool,
    /// `--strict`: a node on which a case was skipped is not decided.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
    /// `--soak`: seconds of load on each node instead of those of the suite; 0 leaves the stage out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soak_s: Option<u32>,
}

pub(crate) enum Stopped {
    Interrupted(i32),
    /// The next run would need so many node-hours.
    Budget(f64),
    Machinery(String),
}

/// A run of the delivery that is over.
pub(crate) struct Made {
    pub stage: Stage,
    pub stored: Stored,
    pub verdicts: Vec<CaseVerdict>,
    pub summary: Summary,
    pub of_stage: RunOfStage,
}

impl Made {
    /// The cases that were skipped on nodes without their program.
    pub(crate) fn not_installed(&self) -> impl Iterator<Item = (&PlannedCase, &NotInstalled)> {
        self.stored.plan.cases.iter().filter_map(|case| Some((case, case.not_installed.as_ref()?)))
    }
}

pub(crate) struct Delivery {
    pub folder: PathBuf,
    /// Runs lie below the delivery's own folder.
    home: Home,
    pub record: Record,
    pub inventory: Inventory,
    pub options: RunOptions,
    pub made: Vec<Made>,
    /// Runs that were interrupted, and were made again.
    pub lost: Vec<(Stage, RunOfStage)>,
}

impl Delivery {
    pub(crate) fn new(folder: &Path, record: Record, inventory: Inventory, ssh_fanout: u32) -> Delivery {
        let allow_busy = record.asked.allow_busy;
        Delivery {
            folder: folder.to_owned(),
            home: Home::bare(folder),
            record,
            inventory,
            options: RunOptions { allow_busy, ..RunOptions::quiet(ssh_fanout) },
            made: Vec::new(),
            lost: Vec::new(),
        }
    }

    pub(crate) fn write_record(&self) -> Result<(), Stopped> {
        self.write_json(RECORD, &self.record)
    }

    pub(crate) fn write_json<T: Serialize>(&self, name: &str, value: &T) -> Result<(), Stopped> {
        let mut text = serde_json::to_vec_pretty(value).map_err(machinery)?;
        text.push(b'\n');
        self.write(name, &text)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Stopped> {
        let clean = store::redactor().bytes(bytes).bytes;
        store::write_private_by(&self.folder.join(name), &mut |file| file.write_all(&clean))
            .map_err(machinery)
    }

    /// Of all runs.
    pub(crate) fn not_installed(&self) -> impl Iterator<Item = (&PlannedCase, &NotInstalled)> {
        self.made.iter().flat_map(Made::not_installed)
    }

    pub(crate) fn node_hours(&self) -> f64 {
        let made = self.made.iter().map(|made| made.of_stage.node_hours);
        made.chain(self.lost.iter().map(|(_, run)| run.node_hours)).fold(0.0, |sum, hours| sum + hours)
    }

    /// The seed of the next run: repeats are draws of their own.
    pub(crate) fn seed(&self) -> u64 {
        self.record.asked.seed.wrapping_add(7919 * self.made.len() as u64)
    }

    /// What the next run is called, and when it was interrupted before, what it is called then.
    pub(crate) fn next_id(&self, stage: Stage, attempt: usize) -> String {
        let base = format!("{}-{:02}-{}", self.record.delivery, self.made.len() + 1, stage.slug());
        if attempt == 1 { base } else { format!("{base}-{attempt}") }
    }

    /// The next run: as it is stored where it was made before, gone on with where it was ended, made now where it was
    /// not. False where it was interrupted, and is to be made again under another name.
    pub(crate) fn make(&mut self, stage: Stage, about: &str, plan: Plan) -> Result<bool, Stopped> {
        let plan = plan::share(plan, &self.inventory);
        self.once(&plan)?;
        let made = self.read(stage, about, &plan.run_id)?;
        // A run that stopped by itself, as where all jobs fail with the same cause, is over: another one comes to the same.
        let code = made.summary.exit_code;
        if !matches!(code, exit_code::INTERRUPTED | exit_code::TERMINATED) {
            self.made.push(made);
            return Ok(true);
        }
        self.lost.push((stage, RunOfStage { about: format!("{about}, interrupted"), ..made.of_stage }));
        match interrupt::asked() {
            Some(code) => Err(Stopped::Interrupted(code)),
            None => Ok(false),
        }
    }

    fn once(&self, plan: &Plan) -> Result<(), Stopped> {
        let folder = self.folder.join("runs").join(&plan.run_id);
        if folder.join("summary.json").exists() {
            return self.same(&folder, plan).map(|_| ());
        }
        let secrets = planning::resolve_secrets(plan).map_err(|why| Stopped::Machinery(why.join("; ")))?;
        if folder.join("plan.json").exists() {
            // The stored plan names the scripts that jobs on the nodes were started by.
            let plan = &self.same(&folder, plan)?.plan;
            let store = Store::open(&self.home, &plan.run_id).map_err(machinery)?.hiding(secrets);
            let past = PastEvents::read(&store).map_err(Stopped::Machinery)?;
            return self.execute(plan, &store, Some(&past));
        }
        let needed = plan.cases.iter().map(node_hours).sum::<f64>();
        if self.record.asked.budget.is_some_and(|budget| self.node_hours() + needed > budget) {
            return Err(Stopped::Budget(needed));
        }
        // A process that was ended as soon as it had made the folder left it empty.
        if folder.is_dir() {
            fs::remove_dir(&folder)
                .map_err(|error| Stopped::Machinery(format!("{}: {error}", folder.display())))?;
        }
        let store = Store::create(&self.home, &plan.run_id).map_err(machinery)?;
        let store = store.hiding(secrets).simulated(plan.simulated);
        store.write_json(&store.folder().join("plan.json"), plan).map_err(machinery)?;
        self.execute(plan, &store, None)
    }

    /// What is stored is what would be made now; else files were changed meanwhile, and nothing of it would fit together.
    fn same(&self, folder: &Path, plan: &Plan) -> Result<Stored, Stopped> {
        // Nodes of two clusters may have the same names.
        run_cluster::check_nodes(folder, &self.inventory).map_err(Stopped::Machinery)?;
        let stored = Stored::open(folder).map_err(machinery)?;
        let jobs = |plan: &Plan| -> Vec<(String, String, Vec<String>)> {
            let of = |case: &model::artefact::PlannedCase| {
                let jobs =
                    case.jobs.iter().map(|job| (case.name.clone(), job.name.clone(), job.nodes.clone()));
                jobs.collect::<Vec<_>>()
            };
            plan.cases.iter().flat_map(of).collect()
        };
        match stored.plan.sources == plan.sources && jobs(&stored.plan) == jobs(plan) {
            true => Ok(stored),
            false => Err(Stopped::Machinery(changed_since(&plan.run_id))),
        }
    }

    fn execute(&self, plan: &Plan, store: &Store, past: Option<&PastEvents>) -> Result<(), Stopped> {
        let finished = execution::execute_and_write(plan, &self.inventory, store, &self.options, past);
        finished.map(drop).map_err(Stopped::Machinery)
    }

    fn read(&self, stage: Stage, about: &str, id: &str) -> Result<Made, Stopped> {
        let stored = Stored::open(&self.folder.join("runs").join(id)).map_err(machinery)?;
        let summary: Summary = store::read_json(&stored.folder().join("summary.json")).map_err(machinery)?;
        let mut verdicts = Vec::new();
        let mut node_seconds = 0.0;
        for case in &stored.plan.cases {
            verdicts.extend(stored.verdict(&case.name).map_err(machinery)?);
            let jobs = stored.jobs(&case.name).map_err(machinery)?.map(|jobs| jobs.jobs).unwrap_or_default();
            for job in &jobs {
                let planned = case.jobs.iter().find(|planned| planned.name == job.name);
                let nodes = planned.map_or(0, |planned| planned.nodes.len());
                node_seconds += job.seconds.unwrap_or_default() * nodes as f64;
            }
        }
        let plan = &stored.plan;
        let of_stage = RunOfStage {
            run: id.to_owned(),
            about: about.to_owned(),
            nodes: nodeset::fold(&plan.nodes),
            jobs: plan.cases.iter().map(|case| case.jobs.len()).sum(),
            node_hours: rounded(node_seconds / 3600.0),
            planned_node_hours: rounded(plan.cases.iter().map(node_hours).sum()),
            planned_s: plan.cases.iter().map(estimate_s).sum(),
            seconds: summary.seconds,
        };
        Ok(Made { stage, stored, verdicts, summary, of_stage })
    }
}

/// To a ten-thousandth: seconds of a node.
fn rounded(hours: f64) -> f64 {
    (hours * 1e4).round() / 1e4
}

pub(crate) fn machinery(error: impl ToString) -> Stopped {
    Stopped::Machinery(error.to_string())
}

pub(crate) fn changed_since(run: &str) -> String {
    format!(
        "run {run}: suite, inventory or baselines were changed since; restore them, or start a new delivery"
    )
}

/// What was asked for in a delivery's folder.
pub(crate) fn read_record(folder: &Path) -> Result<Record, String> {
    store::read_json(&folder.join(RECORD)).map_err(|error| format!("no folder of a delivery: {error}"))
}
