//! The runs of a bisection: each planned, launched and stored as any run is; and found again by a resumed one.

use super::bisection::{Bisection, Done, Stopped};
use super::measured;
use crate::session::past_events::{PastEvents, read_ended_run};
use crate::session::planning::{self, make_plan_as};
use crate::session::{ReportedFacts, RunOptions, execution, stored};
use base::nodeset;
use config::inventory::{Inventory, Stack};
use model::artefact::{Format, Plan, Summary};
use model::exit_code;
use std::path::{Path, PathBuf};
use store::{Home, Store, StoreError, Stored};
use verdict::bisect::record::{BisectionRecord, RECORD, RunStack};

const CHANGED: &str = "the suite, the inventory or baselines were changed since the first run; restore them, or start a new bisection";
/// A record that claims more than this was edited.
const MOST: usize = 2000;

impl Bisection {
    /// The plan of a run with that stack.
    pub(super) fn plan(&self, stack: &Stack, number: usize) -> Result<(Plan, Inventory), Vec<String>> {
        let scope = &self.scope;
        let options = RunOptions {
            suites: vec![scope.suite.clone()],
            inventory: scope.inventory.clone(),
            nodes: Some(nodeset::fold(&scope.nodes)),
            stack: stack.clone(),
            // Repeats are draws of their own.
            seed: scope.seed.wrapping_add(7919 * number as u64),
            reservation: scope.reservation.clone(),
            on_failure: Some("nothing".to_owned()),
            reported: ReportedFacts { gpus: self.gpus, ..ReportedFacts::default() },
            ..RunOptions::quiet(self.ssh_fanout)
        };
        let suite = Path::new(&scope.suite).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let id = store::new_run_id(&format!("bisect-{suite}"));
        let (mut plan, inventory) = make_plan_as(&self.home, &options, &self.catalogue, Some(&id))?;
        plan.cases.retain(|case| case.name == scope.case);
        plan.parent = self.done.last().map(|done| done.id.clone());
        let plan = plan::share(plan, &inventory);
        Ok((plan, inventory))
    }

    /// One run of a stack.
    pub(super) fn run(&mut self, pair: usize, stack: RunStack) -> Result<(), Stopped> {
        let number = self.done.len() + 1;
        let settings = self.settings(stack);
        let (plan, inventory) =
            self.plan(&settings, number).map_err(|why| Stopped::Machinery(why.join("; ")))?;
        if plan.sources != self.sources {
            return Err(Stopped::Machinery(CHANGED.to_owned()));
        }
        let needed = plan.node_seconds() / 3600.0;
        if self.scope.budget.is_some_and(|budget| self.node_hours() + needed > budget) {
            return Err(Stopped::Budget(needed));
        }
        let secrets = planning::resolve_secrets(&plan).map_err(|why| Stopped::Machinery(why.join("; ")))?;
        planning::check_holds_no_secret(&plan, &secrets).map_err(Stopped::Machinery)?;
        let store = Store::create(&self.home, &plan.run_id).map_err(machinery)?;
        let store = store.hiding(secrets).simulated(plan.simulated);
        let record = BisectionRecord {
            format: Format,
            first: self.done.first().map_or(&plan.run_id, |done| &done.id).clone(),
            number,
            pair,
            stack,
            scope: self.scope.clone(),
            outcome: None,
        };
        store.write_json(&store.folder().join(RECORD), &record).map_err(machinery)?;
        store.write_json(&store.folder().join("plan.json"), &plan).map_err(machinery)?;
        if self.held.is_none() {
            self.held = Some(store.clone());
        }
        self.execute(&plan, &inventory, &store, None)?;
        self.read(&store.folder(), &record)
    }

    /// Keeps other processes from going on with the bisection; an error where one does, or files were changed since.
    pub(super) fn hold(&mut self, records: &[(PathBuf, BisectionRecord)]) -> Result<(), String> {
        let Some((folder, _)) = records.first() else { return Ok(()) };
        let stored = Stored::open(folder).map_err(|error| error.to_string())?;
        if stored.plan.sources != self.sources {
            return Err(CHANGED.to_owned());
        }
        self.held = Some(self.open(&stored.plan.run_id).map_err(|error| error.to_string())?);
        Ok(())
    }

    /// The first run is held already.
    fn open(&self, id: &str) -> Result<Store, StoreError> {
        match &self.held {
            Some(held) if held.id() == id => Ok(held.clone()),
            _ => Store::open(&self.home, id),
        }
    }

    fn execute(
        &self,
        plan: &Plan,
        inventory: &Inventory,
        store: &Store,
        past: Option<&PastEvents>,
    ) -> Result<(), Stopped> {
        let options = RunOptions::quiet(self.ssh_fanout);
        let finished = execution::execute_and_write(plan, inventory, store, &options, past);
        finished.map(drop).map_err(Stopped::Machinery)
    }

    /// What a stored run measured.
    fn read(&mut self, folder: &Path, record: &BisectionRecord) -> Result<(), Stopped> {
        let stored = Stored::open(folder).map_err(machinery)?;
        let summary: Summary = store::read_json(&folder.join("summary.json")).map_err(machinery)?;
        let case = &self.scope.case;
        let verdict = stored.verdict(case).map_err(machinery)?;
        let jobs = stored.jobs(case).map_err(machinery)?.map(|jobs| jobs.jobs).unwrap_or_default();
        let planned = stored.plan.cases.iter().flat_map(|case| &case.jobs);
        for planned in planned {
            let seconds = jobs.iter().find(|job| job.name == planned.name).and_then(|job| job.seconds);
            self.node_seconds += seconds.unwrap_or_default() * planned.nodes.len() as f64;
        }
        self.simulated |= summary.simulated;
        let wrong = measured::wrong_data(verdict.as_ref());
        let metrics = stored.metrics(case).map_err(machinery)?;
        let numbers = self.compared.numbers(verdict.as_ref(), metrics.as_ref()).filter(|_| wrong.is_none());
        self.done.push(Done {
            id: stored.plan.run_id.clone(),
            pair: record.pair,
            stack: record.stack,
            // By a signal; else it ended by itself, for that reason.
            is_interrupted: matches!(summary.exit_code, exit_code::INTERRUPTED | exit_code::TERMINATED),
            why: wrong.or(summary.interrupted),
            numbers,
            versions: verdict.map(|verdict| verdict.versions).unwrap_or_default(),
        });
        Ok(())
    }

    /// Goes on where a process that was ended had come to; a run in the middle is run to its end.
    pub(super) fn take_up(&mut self, records: &[(PathBuf, BisectionRecord)]) -> Result<(), Stopped> {
        for (folder, record) in records {
            if !folder.join("summary.json").exists() {
                let id = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let store = self.open(id).map_err(machinery)?;
                let (plan, _, past) =
                    read_ended_run(&self.home, &store, &self.scope.inventory).map_err(Stopped::Machinery)?;
                let secrets =
                    planning::resolve_secrets(&plan).map_err(|why| Stopped::Machinery(why.join("; ")))?;
                // Reached as it was, with the stack that it was made for.
                let (_, inventory) = self
                    .plan(&self.settings(record.stack), record.number)
                    .map_err(|why| Stopped::Machinery(why.join("; ")))?;
                self.execute(&plan, &inventory, &store.hiding(secrets), Some(&past))?;
            }
            self.read(folder, record)?;
        }
        Ok(())
    }

    /// With the last run, so that it is known without the terminal.
    pub(super) fn store_outcome(
        &self,
        outcome: verdict::bisect::record::BisectionOutcome,
    ) -> Result<(), String> {
        let Some(last) = self.done.last() else { return Ok(()) };
        let store = self.open(&last.id).map_err(|error| error.to_string())?;
        let path = store.folder().join(RECORD);
        let record: BisectionRecord = store::read_json(&path).map_err(|error| error.to_string())?;
        let record = BisectionRecord { outcome: Some(outcome), ..record };
        store.write_json(&path, &record).map_err(|error| error.to_string())
    }
}

/// The runs of the bisection that a run belongs to, in their order.
pub(super) fn records(home: &Home, word: &str) -> Result<Vec<(PathBuf, BisectionRecord)>, String> {
    let named = stored::open_own(home, word)?;
    let read = |folder: &Path| store::read_json::<BisectionRecord>(&folder.join(RECORD));
    let one = read(named.folder()).map_err(|_| format!("`{word}` is no run of a bisection"))?;
    let mut records = Vec::new();
    for folder in home.runs() {
        if !folder.join(RECORD).exists() || store::is_foreign(&folder) {
            continue;
        }
        let record = read(&folder).map_err(|error| error.to_string())?;
        if record.first == one.first {
            records.push((folder, record));
        }
    }
    records.sort_by_key(|(_, record)| record.number);
    let is_possible = |record: &BisectionRecord| {
        let stacks = record.scope.stacks.len();
        let is_there = match record.stack {
            RunStack::Ordered(number) => number < stacks,
            RunStack::Control | RunStack::Alone => true,
        };
        is_there
            && (2..=MOST).contains(&stacks)
            && record.pair <= MOST
            && record.scope.stacks == one.scope.stacks
            && record.scope.earlier.len() <= MOST
            && record
                .scope
                .earlier
                .iter()
                .all(|run| run.value.is_finite() && (run.stack == 0 || run.stack + 1 == stacks))
    };
    if !records.iter().all(|(_, record)| is_possible(record)) {
        return Err(format!(
            "the records of bisection `{}` contradict each other; start a new one",
            one.first
        ));
    }
    let is_whole = records.iter().enumerate().all(|(at, (_, record))| record.number == at + 1);
    match is_whole && !records.is_empty() {
        true => Ok(records),
        false => Err(format!(
            "a run of bisection `{}` is missing from `runs`, or there twice; start a new bisection",
            one.first
        )),
    }
}

fn machinery(error: impl ToString) -> Stopped {
    Stopped::Machinery(error.to_string())
}
