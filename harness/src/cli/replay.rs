//! `--run ID --from STAGE`: goes through a stored run again, from a later stage on.

use super::reached::Reached;
use super::run_suites::{close, machinery, told};
use super::{RunArgs, load, stored, usage};
use crate::own_recipes;
use crate::replay::{self, From};
use crate::tasks::Cluster;
use cluster::reach::process::ProcessReach;
use model::artefact::{Launcher, Plan, Source};
use store::{self, Home, Store, is_foreign};

pub(super) fn replay(home: &Home, id: &str, from: From, args: &RunArgs) -> i32 {
    if args.fetch && from != From::Collect {
        return usage(
            "--fetch: files are fetched by `--from collect`, the later stages read what is at home",
        );
    }
    let parent = match stored::open(home, id) {
        Ok(parent) => parent,
        Err(why) => return usage(&format!("--run: {why}")),
    };
    if args.fetch && parent.plan.simulated {
        return usage(
            "--fetch: the nodes of a simulated run went with its process; what came home is accounted for without --fetch, \
             and a run that did not come to its end goes on with --resume",
        );
    }
    if args.fetch && is_foreign(parent.folder()) {
        return usage(&format!("--fetch: {}", stored::foreign(id)));
    }
    if let Err(why) = own_recipes(&parent.plan) {
        return usage(&why);
    }
    let run_id = store::new_run_id(&parent.plan.suites.join("+"));
    let mut child = replay::child(&parent.plan, run_id, from);
    if let Err(why) = look_up(home, &mut child, from, args) {
        return usage(&why);
    }
    let ready = match replay::ready(&parent, child, from) {
        Ok(ready) => ready,
        Err(error) => return usage(&error.to_string()),
    };
    let plan = ready.plan().clone();
    let beyond = match args.fetch.then(|| reached(home, &plan, args)).transpose() {
        Ok(beyond) => beyond,
        Err(why) => return usage(&format!("--fetch: {why}")),
    };
    let on = match analyze_on(home, from, args) {
        Ok(on) => on,
        Err(why) => return usage(&why),
    };
    let done = Store::create(home, &plan.run_id).map_err(|error| error.to_string()).and_then(|store| {
        store.comes_from(&parent).map_err(|error| error.to_string())?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let finished = runtime.block_on(async {
            let beyond_home = beyond.as_ref().map(Reached::reach);
            let finished = ready.replay(beyond_home, on.as_ref(), &store).await;
            if let Some(beyond) = &beyond {
                beyond.end().await;
            }
            finished
        });
        Ok((store, finished.map_err(|error| error.to_string())?))
    });
    match done {
        Ok((store, finished)) => close(&plan, &finished, &store, args),
        Err(why) => machinery(&why),
    }
}

/// Those of the run, as they were then: files of today are not looked at.
pub(super) fn own_recipes(plan: &Plan) -> Result<(), String> {
    own_recipes::from_plan(&plan.recipes).map_err(|diagnostics| told(&diagnostics).join("; "))
}

/// The cluster whose nodes read the reports, where a person wants it so: any that sees the run's folder.
fn analyze_on(home: &Home, from: From, args: &RunArgs) -> Result<Option<Cluster>, String> {
    let Some(place) = &args.analyze_on else { return Ok(None) };
    if from > From::Analyze {
        return Err(format!(
            "--analyze-on {place}: reports are read by `--from analyze`, not by later stages"
        ));
    }
    let loaded =
        load::load(home, &[], &args.inventory, None).map_err(|diagnostics| diagnostics.join("; "))?;
    Cluster::of(&loaded.inventory, None).map(Some)
}

/// How the run reached its nodes, so that they are asked in the same way: where ssh is on the way, the inventory says more
/// of it than the plan.
fn reached(home: &Home, plan: &Plan, args: &RunArgs) -> Result<Reached, String> {
    match plan.launcher {
        Launcher::Local => Ok(Reached::Processes(ProcessReach)),
        Launcher::Slurm | Launcher::Ssh => {
            let inventory = super::resume::inventory(home, plan, &args.inventory)?;
            Reached::of(&inventory, plan.seed, args.ssh_fanout as usize)
        }
    }
}

/// The baselines as they are now: where the numbers are judged anew, and where a person names a folder of them.
/// `--from collect` and `--from analyze` otherwise repeat the run's own judgement.
fn look_up(home: &Home, plan: &mut Plan, from: From, args: &RunArgs) -> Result<(), String> {
    if from == From::Report {
        return match &args.baselines {
            Some(_) => {
                Err("--baselines: verdicts are made by `--from judge`, reports only show them".to_owned())
            }
            None => Ok(()),
        };
    }
    if from != From::Judge && args.baselines.is_none() {
        return Ok(());
    }
    let found = load::baselines(home, args.baselines.as_deref(), &plan.instance.name);
    let Some((baselines, source)) = found.map_err(|diagnostics| diagnostics.join("; "))? else {
        let name = &plan.instance.name;
        eprintln!("no `baselines/{name}.toml` here: judged by the numbers that the run's plan holds");
        return Ok(());
    };
    if baselines.simulated && !plan.simulated {
        return Err(format!("{}: baselines of a simulated instance cannot judge a real run", baselines.file));
    }
    let changed = plan::rebaseline(plan, &baselines);
    if let Some(first) = changed.first() {
        let n = changed.len();
        eprintln!("baselines that are others now than when the run was planned: {n}, first `{first}`");
    }
    note(plan, source);
    Ok(())
}

fn note(plan: &mut Plan, source: Source) {
    let name = |file: &str| file.rsplit('/').next().unwrap_or_default().to_owned();
    // A suite or inventory of that name stands before the baselines.
    let was = plan.sources.iter_mut().rfind(|was| {
        name(&was.file) == name(&source.file)
            && !was.file.starts_with("suites/")
            && !was.file.starts_with("inventory/")
    });
    match was {
        Some(was) => *was = source,
        None => plan.sources.push(source),
    }
}
