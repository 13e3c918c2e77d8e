//! The rounds of an isolation: each planned, run, stored and answered as any run is; and resumed from what is stored.

use crate::report::{self, Report};
use crate::session::RunOptions;
use crate::session::output::Output;
use crate::session::past_events::{PastEvents, read_ended_run};
use crate::session::{execution, planning, stored};
use base::nodeset;
use base::text::count;
use cluster::interrupt;
use config::baseline::Baselines;
use config::inventory::Inventory;
use model::artefact::{Format, Plan, PlannedBaseline, Source, Summary};
use plan::{self, Request};
use recipes::catalogue::Catalogue;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use store::{self, Home, Store, Stored};
use verdict::isolate::evidence::{self, EvidenceLine};
use verdict::isolate::outcome::IsolationOutcome;
use verdict::isolate::round::{CaseRows, IsolationScope, Probes, RECORD, Record, Tried, answers};
use verdict::isolate::{self, Answer, Conclusion, Fleet, Next, Trial};

/// What the runs on whole nodes were done with.
pub(crate) type Versions = BTreeMap<String, BTreeSet<String>>;

pub(crate) enum Stopped {
    Interrupted(i32),
    /// The next round would need this many node-hours.
    Budget(f64),
    Machinery(String),
    /// The first round failed everywhere alike: its launcher, image or tool is broken. The message for it.
    Broken(String),
}

pub(crate) struct Isolation {
    home: Home,
    pub inventory: Inventory,
    probes: Probes,
    pub fleet: Fleet,
    pub asked: IsolationScope,
    sources: Vec<Source>,
    options: RunOptions,
    /// The id of each round's run.
    pub ids: Vec<String>,
    answers: Vec<Answer>,
    pub node_seconds: f64,
    /// The culprits by the evidence at hand.
    pub known: Vec<EvidenceLine>,
    /// Nodes that it names for one job alone that came to its time limit.
    pub hung_once: BTreeSet<String>,
    pub output: Output,
    /// What runs on whole nodes are compared with where no culprit is named.
    pub baselines: Option<Baselines>,
    /// The software that the runs were done with.
    pub versions: Versions,
    /// Whether anything of it was not measured on real hardware, whatever the inventory says.
    pub simulated: bool,
}

impl Isolation {
    pub(crate) fn new(
        home: &Home,
        inventory: Inventory,
        probes: Probes,
        fleet: Fleet,
        asked: IsolationScope,
        sources: Vec<Source>,
        ssh_fanout: u32,
    ) -> Isolation {
        let simulated = inventory.is_simulated();
        Isolation {
            home: home.clone(),
            inventory,
            probes,
            fleet,
            asked,
            sources,
            options: RunOptions::quiet(ssh_fanout),
            ids: Vec::new(),
            answers: Vec::new(),
            node_seconds: 0.0,
            known: Vec::new(),
            hung_once: BTreeSet::new(),
            output: Output::Stdout,
            baselines: None,
            versions: Versions::new(),
            simulated,
        }
    }

    /// Nodes that the probe left out are known culprits, but for those that lack what all nodes share.
    pub(crate) fn name_left_out(&mut self) {
        self.known.extend(evidence::from_culprits(&[], &self.asked.left_out).lines);
    }

    pub(crate) fn first(&self) -> &str {
        self.ids.first().map_or("latest", String::as_str)
    }

    pub(crate) fn runs(&self) -> usize {
        self.answers.len()
    }

    pub(crate) fn answers(&self) -> &[Answer] {
        &self.answers
    }

    pub(crate) fn node_hours(&self) -> f64 {
        self.node_seconds / 3600.0
    }

    /// Rounds until there is nothing more to try.
    pub(crate) fn go(&mut self) -> Result<Conclusion, Stopped> {
        loop {
            let trials = match isolate::next(&self.fleet, &self.answers, self.ids.len()) {
                Next::Done(conclusion) => return Ok(conclusion),
                Next::Round(trials) => trials,
            };
            let (plan, tried) =
                self.plan(&trials).map_err(|diagnostics| Stopped::Machinery(diagnostics.join("; ")))?;
            let needed = plan.node_seconds() / 3600.0;
            if self.asked.budget.is_some_and(|budget| self.node_hours() + needed > budget) {
                return Err(Stopped::Budget(needed));
            }
            let store = Store::create(&self.home, &plan.run_id).map_err(machinery)?;
            let secrets =
                planning::resolve_secrets(&plan).map_err(|why| Stopped::Machinery(why.join("; ")))?;
            let store = store.hiding(secrets).simulated(plan.simulated);
            let record = Record {
                format: Format,
                first: self.ids.first().unwrap_or(&plan.run_id).clone(),
                round: self.ids.len() + 1,
                asked: self.asked.clone(),
                fleet: self.fleet.clone(),
                tried,
                outcome: None,
            };
            store.write_json(&store.folder().join(RECORD), &record).map_err(machinery)?;
            store.write_json(&store.folder().join("plan.json"), &plan).map_err(machinery)?;
            self.execute(&plan, &store, None)?;
            self.take(&store.folder(), &record)?;
            self.print_round(&plan, &trials);
            if let Some(code) = interrupt::asked() {
                return Err(Stopped::Interrupted(code));
            }
        }
    }

    fn plan(&self, trials: &[Trial]) -> Result<(Plan, Vec<Tried>), Vec<String>> {
        self.plan_with(&self.probes, trials, None)
    }

    /// The baseline that the rate of such a run would be compared with.
    pub(crate) fn baseline_of(
        &self,
        trial: &Trial,
        baselines: Option<&Baselines>,
    ) -> Result<Option<PlannedBaseline>, Vec<String>> {
        let trials = std::slice::from_ref(trial);
        let (plan, _) = self.plan_with(&self.probes.judged(), trials, baselines)?;
        let mut asserted = plan.cases.into_iter().flat_map(|case| case.assertions);
        Ok(asserted.find_map(|assertion| assertion.bound.baseline))
    }

    fn plan_with(
        &self,
        probes: &Probes,
        trials: &[Trial],
        baselines: Option<&Baselines>,
    ) -> Result<(Plan, Vec<Tried>), Vec<String>> {
        let (suite, sets, tried) = probes.round(&self.asked.nodes, trials);
        let used: BTreeSet<usize> = trials.iter().flat_map(|trial| trial.nodes.iter().copied()).collect();
        let request = Request {
            run_id: store::new_run_id(&format!("isolate-{}", suite.name)),
            // Repeats are draws of their own.
            seed: self.asked.seed.wrapping_add(7919 * self.ids.len() as u64),
            nodes: used.iter().filter_map(|node| self.asked.nodes.get(*node)).cloned().collect(),
            settings: BTreeMap::new(),
            reservation: self.asked.reservation.clone(),
            sim_faults: self.asked.sim_faults.clone(),
            limit_s: None,
            max_fail: None,
            sources: self.sources.clone(),
            catalogue: Catalogue::built_in(),
            sets,
            evidence: None,
            programs: BTreeMap::new(),
        };
        let mut plan = plan::plan(&[suite], &self.inventory, baselines, request)?;
        plan.parent = self.ids.last().or(self.asked.brought_about_by.as_ref()).cloned();
        Ok((plan, tried))
    }

    /// The plan of the first round, if there is one, and the node-seconds that a run takes on each of its nodes, where
    /// all is well.
    pub(crate) fn first_round(&self) -> Result<Option<(Plan, f64)>, Vec<String>> {
        let Next::Round(trials) = isolate::next(&self.fleet, &[], 0) else { return Ok(None) };
        let (plan, _) = self.plan(&trials)?;
        let nodes: usize = trials.iter().map(|trial| trial.nodes.len()).sum();
        let each_s = plan.node_seconds() / nodes.max(1) as f64;
        Ok(Some((plan, each_s)))
    }

    fn execute(&self, plan: &Plan, store: &Store, past: Option<&PastEvents>) -> Result<(), Stopped> {
        let finished = execution::execute_and_write(plan, &self.inventory, store, &self.options, past)
            .map_err(Stopped::Machinery)?;
        // Later rounds have shown already that runs come to an end here.
        let report = Report::new(plan, &finished.cases, &finished.summary);
        match report::broken(&report, None).filter(|_| self.ids.is_empty()) {
            Some(text) => Err(Stopped::Broken(text)),
            None => Ok(()),
        }
    }

    /// The answers of a stored round.
    fn take(&mut self, folder: &Path, record: &Record) -> Result<(), Stopped> {
        let stored = Stored::open(folder).map_err(machinery)?;
        let mut cases = BTreeMap::new();
        for case in &stored.plan.cases {
            let jobs = stored.jobs(&case.name).map_err(machinery)?;
            let metrics = stored.metrics(&case.name).map_err(machinery)?;
            if let Some(verdict) = stored.verdict(&case.name).map_err(machinery)? {
                for (name, versions) in verdict.versions {
                    self.versions.entry(name).or_default().extend(versions);
                }
            }
            let (Some(jobs), Some(metrics)) = (jobs, metrics) else { continue };
            for job in &jobs.jobs {
                let nodes = case
                    .jobs
                    .iter()
                    .find(|planned| planned.name == job.name)
                    .map_or(0, |job| job.nodes.len());
                self.node_seconds += job.seconds.unwrap_or_default() * nodes as f64;
            }
            cases.insert(case.name.clone(), CaseRows { metrics, jobs });
        }
        let summary: Summary = store::read_json(&folder.join("summary.json")).map_err(machinery)?;
        self.simulated |= summary.simulated;
        let nics = &self.inventory.instance.nics;
        self.answers.extend(answers(&record.tried, self.fleet.gpus, nics, &cases));
        self.ids.push(stored.plan.run_id.clone());
        Ok(())
    }

    fn print_round(&self, plan: &Plan, trials: &[Trial]) {
        self.output.print(format_args!(
            "round {}: {} on {} ({}), {:.2} node-hours so far: runs/{}",
            self.ids.len(),
            count(trials.len(), "run"),
            count(plan.nodes.len(), "node"),
            nodeset::fold(&plan.nodes),
            self.node_hours(),
            plan.run_id
        ));
    }

    /// With the last round, for history. Without a round there is nothing to store it with.
    pub(crate) fn store_outcome(&self, outcome: IsolationOutcome) -> Result<(), String> {
        let Some(last) = self.ids.last() else { return Ok(()) };
        let store = Store::open(&self.home, last).map_err(|error| error.to_string())?;
        let path = store.folder().join(RECORD);
        let record: Record = store::read_json(&path).map_err(|error| error.to_string())?;
        if record.outcome.is_some() {
            // A resumed isolation does not know the evidence that it began with.
            return Ok(());
        }
        let record = Record { outcome: Some(outcome), ..record };
        store.write_json(&path, &record).map_err(|error| error.to_string())
    }

    /// Goes on where the rounds of a process that was ended had come to; a round in the middle is run to its end.
    pub(crate) fn take_up(&mut self, records: &[(PathBuf, Record)]) -> Result<(), String> {
        let to_text = |stopped| match stopped {
            Stopped::Machinery(why) | Stopped::Broken(why) => why,
            Stopped::Interrupted(_) | Stopped::Budget(_) => "it was ended again".to_owned(),
        };
        for (folder, record) in records {
            if !folder.join("summary.json").exists() {
                let id = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let store = Store::open(&self.home, id).map_err(|error| error.to_string())?;
                let (plan, _, past) = read_ended_run(&self.home, &store, &self.asked.inventory)?;
                let secrets =
                    planning::resolve_secrets(&plan).map_err(|diagnostics| diagnostics.join("; "))?;
                interrupt::watch();
                self.execute(&plan, &store.hiding(secrets), Some(&past)).map_err(to_text)?;
            }
            self.take(folder, record).map_err(to_text)?;
        }
        Ok(())
    }
}

/// The rounds of the isolation that a run belongs to, in their order.
pub(crate) fn records(home: &Home, word: &str) -> Result<Vec<(PathBuf, Record)>, String> {
    let named = stored::open_own(home, word)?;
    let read = |folder: &Path| store::read_json::<Record>(&folder.join(RECORD));
    let one = read(named.folder()).map_err(|_| format!("`{word}` is no round of an isolation"))?;
    let mut records: Vec<(PathBuf, Record)> = Vec::new();
    for folder in
        home.runs().into_iter().filter(|folder| folder.join(RECORD).exists() && !store::is_foreign(folder))
    {
        let record = read(&folder).map_err(|error| error.to_string())?;
        if record.first == one.first {
            records.push((folder, record));
        }
    }
    records.sort_by_key(|(_, record)| record.round);
    let whole = records.iter().enumerate().all(|(at, (_, record))| record.round == at + 1);
    match whole && !records.is_empty() {
        true => Ok(records),
        false => {
            Err(format!("a round of isolation `{}` is missing from `runs`; start a new isolation", one.first))
        }
    }
}

fn machinery(error: impl ToString) -> Stopped {
    Stopped::Machinery(error.to_string())
}
