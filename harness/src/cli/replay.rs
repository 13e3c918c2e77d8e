//! `harness replay`: goes through a stored run again, from a later stage on.

use super::run_suites::RunArgs;
use super::{home, usage};
use crate::error::Error;
use crate::replay::{self, From};
use crate::session::execution::new_runtime;
use crate::session::planning::load_recipes_of;
use crate::session::reached::Reached;
use crate::session::reports::{check_places, close_alone};
use crate::session::{RunOptions, load, report_error, stored};
use crate::tasks::Cluster;
use clap::Args;
use model::artefact::{Plan, Source};
use recipes::catalogue::Catalogue;
use store::{self, Home, Store, is_foreign};

/// `harness replay`
#[derive(Debug, Args)]
#[command(about = "Judge a stored run again from a later stage on, in a run of its own; needs no cluster.")]
pub(super) struct ReplayArgs {
    /// The run: its id, the beginning of it, `latest`, its folder or its bundle
    #[arg(long, value_name = "ID|PATH", default_value = "latest")]
    run: String,
    /// The first stage that is repeated
    #[arg(long, value_name = "STAGE")]
    from: From,
    /// With --from collect: ask the nodes for what is missing
    #[arg(long)]
    fetch: bool,
    #[command(flatten)]
    options: RunArgs,
}

pub(super) fn run(args: ReplayArgs) -> Result<i32, Error> {
    let (id, from, fetch) = (args.run, args.from, args.fetch);
    Ok(replay(&home()?, &id, from, fetch, &args.options.into_options()))
}

fn replay(home: &Home, id: &str, from: From, fetch: bool, options: &RunOptions) -> i32 {
    if fetch && from != From::Collect {
        return usage("--fetch: only `--from collect` fetches files, later stages read what was collected");
    }
    let parent = match stored::open(home, id) {
        Ok(parent) => parent,
        Err(why) => return usage(&format!("--run: {why}")),
    };
    if fetch && parent.plan.simulated {
        return usage(
            "--fetch: the nodes of a simulated run ended with its process; what was collected is read without --fetch, \
             and a run that was interrupted goes on with `harness resume`",
        );
    }
    if fetch && is_foreign(parent.folder()) {
        return usage(&format!("--fetch: {}", stored::foreign(id)));
    }
    let catalogue = match load_recipes_of(&parent.plan) {
        Ok(catalogue) => catalogue,
        Err(why) => return usage(&why),
    };
    let run_id = store::new_run_id(&parent.plan.suites.join("+"));
    let mut child = replay::child(&parent.plan, run_id, from);
    if let Err(why) = look_up(home, &mut child, from, options, &catalogue) {
        return usage(&why);
    }
    let ready = replay::ready(&parent, child, from).and_then(|ready| {
        ready.check(&catalogue)?;
        Ok(ready)
    });
    let ready = match ready {
        Ok(ready) => ready,
        Err(error) if error.is_foreign() => return report_error(&error.to_string()),
        Err(error) => return usage(&error.to_string()),
    };
    if let Err(why) = check_places(options) {
        return usage(&why);
    }
    let plan = ready.plan().clone();
    let beyond = match fetch
        .then(|| Reached::for_run(home, &plan, &options.inventory, options.ssh_fanout))
        .transpose()
    {
        Ok(beyond) => beyond,
        Err(why) => return usage(&format!("--fetch: {why}")),
    };
    let on = match analyze_on(home, from, options) {
        Ok(on) => on,
        Err(why) => return usage(&why),
    };
    let done = Store::create(home, &plan.run_id).map_err(|error| error.to_string()).and_then(|store| {
        store.comes_from(&parent).map_err(|error| error.to_string())?;
        let finished = new_runtime(false)?.block_on(async {
            let beyond_home = beyond.as_ref().map(Reached::reach);
            let finished = ready.replay(beyond_home, on.as_ref(), &catalogue, &store).await;
            if let Some(beyond) = &beyond {
                beyond.end().await;
            }
            finished
        });
        Ok((store, finished.map_err(|error| error.to_string())?))
    });
    match done {
        Ok((store, finished)) => close_alone(&plan, &finished, &store, options),
        Err(why) => report_error(&why),
    }
}

/// The cluster whose nodes read the reports, where a person wants it so: any that sees the run's folder.
fn analyze_on(home: &Home, from: From, options: &RunOptions) -> Result<Option<Cluster>, String> {
    let Some(place) = &options.analyze_on else { return Ok(None) };
    if from > From::Analyze {
        return Err(format!(
            "--analyze-on {place}: reports are read by `--from analyze`, not by later stages"
        ));
    }
    let loaded =
        load::without_suite(home, &options.inventory).map_err(|diagnostics| diagnostics.join("; "))?;
    Cluster::from_inventory(&loaded.inventory, place, None).map(Some)
}

/// The baselines as they are now: where the numbers are re-judged, and where a person names a folder of them.
/// `--from collect` and `--from analyze` otherwise repeat the run's own judgement.
fn look_up(
    home: &Home,
    plan: &mut Plan,
    from: From,
    options: &RunOptions,
    catalogue: &Catalogue,
) -> Result<(), String> {
    if from == From::Report {
        return match &options.baselines {
            Some(_) => {
                Err("--baselines: verdicts are made by `--from judge`, reports only show them".to_owned())
            }
            None => Ok(()),
        };
    }
    if from != From::Judge && options.baselines.is_none() {
        return Ok(());
    }
    let found = load::baselines(home, options.baselines.as_deref(), &plan.instance.name, catalogue);
    let found = found.map_err(|diagnostics| diagnostics.join("; "))?;
    // Those that this program carries may be other ones than the run was judged by: they count only where it used them.
    let of_this_run = |source: &Source| {
        !source.file.starts_with("built-in:") || plan.sources.iter().any(|one| one.file == source.file)
    };
    let Some((baselines, source)) = found.filter(|(_, source)| of_this_run(source)) else {
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
        eprintln!("baselines changed since the run was planned: {n}, first `{first}`");
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
