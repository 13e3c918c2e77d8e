//! `--run ID --resume`: goes on with a run whose process was ended, where it was ended. What it had launched is found
//! by what it wrote down, and not launched again.

use super::isolate::after;
use super::replay::own_recipes;
use super::run_suites::{self, Past};
use super::{RunArgs, clean, load, stored};
use cluster::interrupt;
use cluster::run::History;
use config::inventory::Inventory;
use model::artefact::Plan;
use model::exit_code;
use serde_json::Value;
use sim::journal::Entry;
use store::{self, Home, Named, Store, Stored, is_foreign, is_inside};

pub(super) fn resume(home: &Home, id: &str, args: &RunArgs) -> i32 {
    let ready = own(home, id).and_then(|store| {
        let (plan, inventory, past) = read(home, &store, args)?;
        Ok((store, plan, inventory, past))
    });
    let (store, plan, inventory, past) = match ready {
        Ok(ready) => ready,
        Err(why) => {
            eprintln!("error: --resume: {why}");
            return exit_code::USAGE;
        }
    };
    let store = match run_suites::secrets(&plan) {
        Ok(secrets) => store.hiding(secrets),
        Err(diagnostics) => {
            for diagnostic in &diagnostics {
                eprintln!("error: --resume: {diagnostic}");
            }
            return exit_code::USAGE;
        }
    };
    interrupt::watch();
    end_analyses(&store);
    let reached = match run_suites::reached_by(&inventory, plan.seed, args) {
        Ok(reached) => reached,
        Err(why) => return run_suites::machinery(&why),
    };
    match run_suites::execute(&plan, &inventory, reached, &store, args, Some(&past)) {
        Ok(mut finished) => {
            let plan = finished.amended.take().unwrap_or(plan);
            // The files of the run as they lie in the project; others are known to whoever began it alone.
            let path = |file: &str| home.path().join(file).display().to_string();
            let like = RunArgs {
                suites: plan.isolations.iter().map(|of| path(&of.file)).collect(),
                inventory: path(&inventory.file),
                ..args.clone()
            };
            after::close(home, &plan, finished, &store, args, &like)
        }
        Err(why) => run_suites::machinery(&why),
    }
}

/// Nobody joins any more what tasks read for the process before: its reports are read again.
fn end_analyses(store: &Store) {
    let stored = Stored::open(&store.folder()).map_err(|error| error.to_string());
    let told = match stored.and_then(|stored| clean::analyses(&stored, true)) {
        Ok(None) => return,
        Ok(Some(cleaned)) => {
            let unasked =
                cleaned.unasked.into_iter().map(|(who, why)| format!("{who} could not be asked: {why}"));
            let left = cleaned.left.into_iter().map(|left| format!("could not be ended: {}", left.which));
            unasked.chain(cleaned.unclear).chain(left).collect()
        }
        Err(why) => vec![why],
    };
    for what in told {
        eprintln!("note: of an analysis before, which `harness clean --run {}` ends: {what}", store.id());
    }
}

/// A run goes on in its own place only: what is elsewhere may be a copy, and its jobs another's.
fn own(home: &Home, word: &str) -> Result<Store, String> {
    let found = home.find_run(word)?;
    let id = match &found {
        Named::Folder(folder) => folder.file_name().and_then(|name| name.to_str()).unwrap_or_default(),
        Named::Archive(_) => {
            return Err(format!("a bundle is a copy, a run goes on in its own folder: `{word}`"));
        }
    };
    let store = Store::open(home, id).map_err(|error| error.to_string())?;
    match is_foreign(&store.folder()) {
        true => Err(stored::foreign(word)),
        false => Ok(store),
    }
}

/// What there is of a run that was ended before its end.
pub(super) fn read(home: &Home, store: &Store, args: &RunArgs) -> Result<(Plan, Inventory, Past), String> {
    let file = |name: &str| store.folder().join(name);
    if file("summary.json").exists() {
        let id = store.id();
        return Err(format!(
            "this run has come to its end; `--rerun {id}` runs again what failed or could not be told"
        ));
    }
    let plan: Plan = store::read_json(&file("plan.json")).map_err(|error| error.to_string())?;
    if let (Some(from), Some(parent)) = (&plan.replayed_from, &plan.parent) {
        return Err(format!("a replay launches nothing, make it again: `--run {parent} --from {from}`"));
    }
    own_recipes(&plan)?;
    let inventory = inventory(home, &plan, &args.inventory)?;
    let past = past(store)?;
    Ok((plan, inventory, past))
}

/// What a run had done, as it wrote it down.
pub(super) fn past(store: &Store) -> Result<Past, String> {
    let lines = |name: &str| store.lines::<Value>(name).map_err(|error| error.to_string());
    let history = History::read(&lines("events.jsonl")?).map_err(|why| format!("events.jsonl: {why}"))?;
    let journal = |name: &str| store.lines::<Entry>(name).map_err(|error| error.to_string());
    // Its name in runs that were begun by an older harness.
    let mut entries = journal("pretend.jsonl")?;
    entries.extend(journal("simulated.jsonl")?);
    Ok(Past { history, entries })
}

/// The inventory that the plan was made for, unchanged: nodes are reached as they were.
/// `named` is where it is, should it lie outside of the project.
pub(super) fn inventory(home: &Home, plan: &Plan, named: &str) -> Result<Inventory, String> {
    let of_inventory = |file: &str| file.rsplit('/').next() == Some(&format!("{}.toml", plan.inventory));
    let planned = plan.sources.iter().find(|source| {
        of_inventory(&source.file)
            && !source.file.starts_with("suites/")
            && !source.file.starts_with("baselines/")
    });
    let inside = planned.filter(|source| is_inside(&source.file));
    let path = inside.map(|source| home.path().join(&source.file)).filter(|path| path.exists());
    // One from outside the project is known by its bare name alone: it is given again.
    let name = path.map_or_else(|| named.to_owned(), |path| path.display().to_string());
    let loaded = load::load(home, &[], &name, None).map_err(|diagnostics| diagnostics.join("; "))?;
    if loaded.inventory.name != plan.inventory {
        return Err(format!(
            "the run was planned for another inventory, give it by --inventory: {}",
            plan.inventory
        ));
    }
    for source in loaded.sources.iter().filter(|source| !source.file.starts_with("baselines/")) {
        let planned = plan.sources.iter().find(|planned| planned.file == source.file);
        if planned.is_none_or(|planned| planned.sha256 != source.sha256) {
            return Err(format!("changed since the run was planned, put it back as it was: {}", source.file));
        }
    }
    Ok(loaded.inventory)
}
