//! A run whose process was ended, as its folder records it: its plan, its inventory, and what had happened in it.

use super::{load, planning};
use cluster::run::History;
use config::inventory::Inventory;
use model::artefact::Plan;
use model::exit_code;
use serde_json::Value;
use sim::journal::Entry;
use std::time::Duration;
use store::{self, Home, Store, is_inside};

/// What a process that was ended had done of a run.
pub(crate) struct PastEvents {
    pub history: History,
    /// What the simulated cluster was asked.
    pub entries: Vec<Entry>,
}

impl PastEvents {
    pub(crate) fn read(store: &Store) -> Result<PastEvents, String> {
        let lines = |name: &str| store.lines::<Value>(name).map_err(|error| error.to_string());
        let history = History::read(&lines("events.jsonl")?).map_err(|why| format!("events.jsonl: {why}"))?;
        let journal = |name: &str| store.lines::<Entry>(name).map_err(|error| error.to_string());
        // Its name in runs that were begun by an older harness.
        let mut entries = journal("pretend.jsonl")?;
        entries.extend(journal("simulated.jsonl")?);
        Ok(PastEvents { history, entries })
    }

    /// How long the run had gone on, as far as it is recorded.
    pub(super) fn elapsed(&self) -> Duration {
        let by_events = match (self.history.began, self.history.last) {
            (Some(began), Some(last)) => Duration::try_from_secs_f64(last - began).unwrap_or_default(),
            _ => Duration::ZERO,
        };
        let by_journal = self.entries.last().map_or(0, Entry::at_us);
        by_events.max(Duration::from_micros(by_journal))
    }
}

/// What there is of a run that was ended before its end. `inventory` is where it is, should it lie outside of the
/// project.
pub(crate) fn read_ended_run(
    home: &Home,
    store: &Store,
    inventory: &str,
) -> Result<(Plan, Inventory, PastEvents), String> {
    let file = |name: &str| store.folder().join(name);
    if file("summary.json").exists() {
        let id = store.id();
        let summary = store::read_json::<Value>(&file("summary.json")).unwrap_or_default();
        return Err(match summary["exit_code"].as_i64() == Some(i64::from(exit_code::PASSED)) {
            true => format!("this run is complete and passed; `harness runs show --run {id}` shows it"),
            false => format!(
                "this run is complete; `harness rerun --run {id}` repeats what failed or was inconclusive"
            ),
        });
    }
    let plan: Plan = store::read_json(&file("plan.json")).map_err(|error| error.to_string())?;
    if let (Some(from), Some(parent)) = (&plan.replayed_from, &plan.parent) {
        return Err(format!(
            "a replay launches nothing, repeat it: `harness replay --run {parent} --from {from}`"
        ));
    }
    planning::load_recipes_of(&plan)?;
    let inventory = planned_inventory(home, &plan, inventory)?;
    let past = PastEvents::read(store)?;
    Ok((plan, inventory, past))
}

/// The inventory that the plan was made for, unchanged: nodes are reached as they were.
/// `named` is where it is, should it lie outside of the project.
pub(crate) fn planned_inventory(home: &Home, plan: &Plan, named: &str) -> Result<Inventory, String> {
    let (inventory, changed) = current_inventory(home, plan, named)?;
    match changed {
        Some(file) => Err(format!("changed since the run was planned, restore it: {file}")),
        None => Ok(inventory),
    }
}

/// The same as it is now, and the first file that has changed since.
pub(crate) fn current_inventory(
    home: &Home,
    plan: &Plan,
    named: &str,
) -> Result<(Inventory, Option<String>), String> {
    let of_inventory = |file: &str| file.rsplit('/').next() == Some(&format!("{}.toml", plan.inventory));
    let planned = plan.sources.iter().find(|source| {
        of_inventory(&source.file)
            && !source.file.starts_with("suites/")
            && !source.file.starts_with("baselines/")
    });
    let inside = planned.filter(|source| is_inside(&source.file));
    let found = inside.and_then(|source| load::argument(home, &source.file));
    // One from outside the library is known by its bare name alone: it is given again.
    let name = found.unwrap_or_else(|| named.to_owned());
    let loaded = load::without_suite(home, &name).map_err(|diagnostics| diagnostics.join("; "))?;
    if loaded.inventory.name != plan.inventory {
        return Err(format!(
            "the run was planned for another inventory, give it by --inventory: {}",
            plan.inventory
        ));
    }
    let mut sources = loaded.sources.iter().filter(|source| !source.file.starts_with("baselines/"));
    let has_changed = |file: &str, sha256: &str| {
        plan.sources
            .iter()
            .find(|planned| planned.file == file)
            .is_none_or(|planned| planned.sha256 != sha256)
    };
    let changed = sources.find(|source| has_changed(&source.file, &source.sha256));
    Ok((loaded.inventory, changed.map(|source| source.file.clone())))
}
