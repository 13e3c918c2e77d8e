//! The profiler of a job: around which ranks it goes, in which words, and which reports it must leave. What the words
//! are in a release of nsys is defined in `job::profile`.

use super::{Context, workload};
use ::nsys::tables::{SESSION_START, SYSTEM_ENV, TableSpec};
use config::suite::Case;
use job::profile::{NsysVersion, Profile, Ranks, Window, nsys};
use job::script::{self, Step};
use job::window::{self, Facts, PlannedWindow, Trigger, Watch, Way};
use model::artefact::{PlannedProfile, ProfiledRank};
use std::collections::BTreeSet;

/// Puts the profiler around the ranks of `step`, where the case wants one.
pub(crate) fn around(
    context: &Context,
    case: &Case,
    job: &str,
    nodes: &[String],
    step: &mut Step,
) -> Result<Option<PlannedProfile>, String> {
    let inventory = context.inventory;
    let Some(profile) = &case.profile else { return Ok(None) };
    let Step::Run(run) = step else { return Ok(None) };
    // A case is skipped where the inventory does not say which nsys there is.
    let Some(version) = inventory.nsys_version else { return Ok(None) };
    let per_node = run.tasks_per_node;
    let tasks = per_node * nodes.len() as u32;
    let ranks = profiled(profile, tasks, per_node, nodes)?;
    let (export, tables) = export(context, case, version);
    let windowed = windowed(profile, &ranks, workload::planner(&case.workload).nsys_callback(), run)?;
    let words = nsys::arguments(&windowed.profile, version)?;
    let profile = &windowed.profile;
    run.profile = Some(script::Profile {
        nsys: inventory.paths.nsys.clone().unwrap_or_else(|| "find".to_owned()),
        version,
        tasks,
        ranks: profile.ranks.clone(),
        node_ranks: node_ranks(profile, &words, tasks, per_node),
        name: format!("{}.{job}", case.name),
        export: export.to_owned(),
        tables,
        words,
        window: windowed.trigger.map(Box::new),
    });
    let delay_s = match profile.window {
        Window::Seconds { delay_s, .. } => delay_s,
        _ => 0,
    };
    Ok(Some(PlannedProfile { version, ranks, delay_s, keep: profile.keep, window: windowed.planned }))
}

/// A profile whose window is passed to nsys, or handled without it.
struct Windowed {
    profile: Profile,
    trigger: Option<Trigger>,
    planned: Option<PlannedWindow>,
}

/// Chooses the way in which a window of steps is opened, and puts the program's own options behind its words.
fn windowed(
    profile: &Profile,
    ranks: &[ProfiledRank],
    callback: Option<u32>,
    run: &mut script::Run,
) -> Result<Windowed, String> {
    let mut profile = profile.clone();
    let Window::Steps(asked) = &profile.window else {
        return Ok(Windowed { profile, trigger: None, planned: None });
    };
    let processes = window::processes(&run.argv);
    let lowest: Vec<u32> = ranks.iter().map(|profiled| profiled.rank * processes).collect();
    let (own, line) = (window::own(&run.argv, asked.steps, callback), window::line(&run.argv));
    let facts = Facts { argv: &run.argv, own, line, lowest: &lowest };
    let chosen = window::choose(asked, &facts)?;
    let steps = asked.steps;
    let trigger = match chosen.way {
        Way::Hook => Some(Trigger::Hook(steps)),
        Way::Watch => {
            let (line, counts_from) = match (&asked.line, facts.line) {
                (Some(line), _) => (line.clone(), asked.counts_from),
                (None, Some((line, counts_from))) => (line.to_owned(), counts_from),
                (None, None) => return Err("the log format of its steps is unknown".to_owned()),
            };
            Some(Trigger::Watch(Watch { steps, counts_from, line }))
        }
        Way::Options | Way::Delay => None,
    };
    let window = match chosen.way {
        Way::Options | Way::Hook => Window::CudaProfilerApi,
        Way::Watch => Window::Whole,
        Way::Delay => {
            Window::Seconds { delay_s: asked.delay_s.unwrap_or_default(), duration_s: asked.duration_s }
        }
    };
    let ends_after = window::last_step(&run.argv).map(|(last, _)| last);
    run.argv.extend(chosen.arguments);
    profile.window = window;
    let planned = PlannedWindow { steps, way: chosen.way, why: chosen.why, ends_after };
    Ok(Windowed { profile, trigger, planned: Some(planned) })
}

fn profiled(
    profile: &Profile,
    tasks: u32,
    per_node: u32,
    nodes: &[String],
) -> Result<Vec<ProfiledRank>, String> {
    let ranks = profile.ranks.in_job(tasks, per_node);
    if let Ranks::List(list) = &profile.ranks
        && ranks.len() < list.len()
    {
        let last = list.last().copied().unwrap_or_default();
        return Err(format!(
            "cannot profile rank {last}: the job on {} nodes has {tasks} ranks",
            nodes.len()
        ));
    }
    let of_node = |rank: u32| nodes.get((rank / per_node.max(1)) as usize).cloned().unwrap_or_default();
    Ok(ranks.into_iter().map(|rank| ProfiledRank { rank, node: of_node(rank) }).collect())
}

/// No rank where there is nothing to sample for the node as a whole.
fn node_ranks(profile: &Profile, words: &nsys::Arguments, tasks: u32, per_node: u32) -> Ranks {
    if words.once_per_node.is_empty() {
        return Ranks::None;
    }
    profile.ranks.lowest_of_each_node(tasks, per_node)
}

/// The tables with time and host of each report, so that a person can compare several.
const ALWAYS: [&TableSpec; 2] = [&SESSION_START, &SYSTEM_ENV];

/// The form of the export and the tables that the case's recipes read, with a row or two that each report is known by;
/// all tables where the release cannot choose, no export where no recipe reads one.
fn export(context: &Context, case: &Case, version: NsysVersion) -> (&'static str, Vec<String>) {
    let specs = case.recipes.iter().filter_map(|name| context.catalogue.job_recipe(name));
    let mut tables: BTreeSet<&str> = specs.flat_map(|spec| spec.tables).map(|table| table.name).collect();
    if tables.is_empty() {
        return ("none", Vec::new());
    }
    tables.extend(ALWAYS.map(|table| table.name));
    let chosen = nsys::exports_tables(version);
    let tables = tables.into_iter().filter(|_| chosen).map(str::to_owned).collect();
    (nsys::export_form(version), tables)
}
