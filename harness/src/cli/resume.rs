//! `harness resume`: goes on with a run whose process was ended, where it was ended. What it had launched is found
//! by what it wrote down, and not launched again.

use super::run_suites::RunArgs;
use super::{clean, home};
use crate::error::Error;
use crate::session::past_events::read_ended_run;
use crate::session::reached::ReachScope;
use crate::session::{RunOptions, after_run, execution, load, planning, report_error, run_cluster, stored};
use clap::Args;
use cluster::interrupt;
use model::exit_code;
use store::{Home, Named, Store, Stored, is_foreign};

/// `harness resume`
#[derive(Debug, Args)]
#[command(about = "Go on with a run whose process was ended, as it was planned.")]
pub(super) struct ResumeArgs {
    /// The run: its id, the beginning of it, `latest`, or its folder
    #[arg(long, value_name = "ID|PATH", default_value = "latest")]
    run: String,
    #[command(flatten)]
    options: RunArgs,
}

pub(super) fn run(args: ResumeArgs) -> Result<i32, Error> {
    Ok(resume(&home()?, &args.run, &args.options.into_options()))
}

fn resume(home: &Home, id: &str, options: &RunOptions) -> i32 {
    let ready = own(home, id).and_then(|store| {
        let (plan, inventory, past) = read_ended_run(home, &store, &options.inventory)?;
        Ok((store, plan, inventory, past))
    });
    let (store, plan, inventory, past) = match ready {
        Ok(ready) => ready,
        Err(why) => {
            eprintln!("error: --run: {why}");
            return exit_code::USAGE;
        }
    };
    let store = match planning::resolve_secrets(&plan) {
        Ok(secrets) => store.hiding(secrets),
        Err(diagnostics) => {
            for diagnostic in &diagnostics {
                eprintln!("error: --run: {diagnostic}");
            }
            return exit_code::USAGE;
        }
    };
    let is_there = run_cluster::check(&store.folder(), &inventory).and_then(|()| {
        let stored = Stored::open(&store.folder()).map_err(|error| error.to_string())?;
        run_cluster::check_analyses(&stored)
    });
    if let Err(why) = is_there {
        return report_error(&format!("--run: {}: {why}", store.id()));
    }
    interrupt::watch();
    end_analyses(&store);
    let reached = match execution::reached_by(&inventory, &ReachScope::from_plan(&plan, options.ssh_fanout)) {
        Ok(reached) => reached,
        Err(why) => return report_error(&why),
    };
    match execution::execute(&plan, &inventory, reached, &store, options, Some(&past)) {
        Ok(mut finished) => {
            let plan = finished.amended.take().unwrap_or(plan);
            // The files of the run as they lie in the project; where others were is not recorded.
            let path = |file: &str| load::argument(home, file).unwrap_or_else(|| file.to_owned());
            let planned_by = RunOptions {
                suites: plan.isolations.iter().map(|of| path(&of.file)).collect(),
                inventory: path(&inventory.file),
                ..options.clone()
            };
            after_run::close(home, &plan, finished, &store, options, &planned_by)
        }
        Err(why) => report_error(&why),
    }
}

/// Nothing joins what tasks read for the process before: its reports are re-read.
fn end_analyses(store: &Store) {
    let stored = Stored::open(&store.folder()).map_err(|error| error.to_string());
    let messages = match stored.and_then(|stored| clean::analyses(&stored, true)) {
        Ok(None) => return,
        Ok(Some(cleaned)) => {
            let unasked =
                cleaned.unasked.into_iter().map(|(who, why)| format!("{who} could not be asked: {why}"));
            let left = cleaned.left.into_iter().map(|left| format!("could not be ended: {}", left.which));
            unasked.chain(cleaned.unclear).chain(left).collect()
        }
        Err(why) => vec![why],
    };
    for what in messages {
        eprintln!(
            "note: leftovers of an earlier analysis, which `harness clean --run {}` ends: {what}",
            store.id()
        );
    }
}

/// A run goes on in its own place only: what is elsewhere may be a copy, and its jobs another's.
fn own(home: &Home, word: &str) -> Result<Store, String> {
    let found = home.find_run(word)?;
    let id = match &found {
        Named::Folder(folder) if is_foreign(folder) => return Err(stored::foreign(word)),
        Named::Folder(folder) => stored::id_in_place(home, folder)?,
        Named::Archive(_) => {
            return Err(format!("a bundle is a copy, a run goes on in its own folder: `{word}`"));
        }
    };
    let store = Store::open(home, &id).map_err(|error| error.to_string())?;
    let stored = Stored::open(&store.folder()).map_err(|error| error.to_string())?;
    stored::check_id(&stored).map(|()| store)
}
