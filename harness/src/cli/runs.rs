//! `harness runs`: the stored runs of a project, listed, shown, and removed when they are old.

use super::columns::columns;
use super::{duration, home, prune_clock, retention};
use crate::accept::certificate_files;
use crate::error::Error;
use crate::report::culprit_line::next_command;
use crate::session::stored;
use base::text::{count, show};
use clap::{Args, Subcommand};
use config::toml_reader::quantity;
use model::exit_code;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use store::vetting;
use store::{Home, Named, Stored, is_foreign, runs_in};
use verdict::history::index::RunIndex;
use verdict::history::past::{self, Summarised};

/// `harness runs`
#[derive(Debug, Subcommand)]
#[command(about = "List, show and prune stored runs.")]
pub(super) enum RunsVerb {
    /// List the runs, the newest last
    List(ListArgs),
    /// Show what a run was, what came of it, and where its reports lie
    Show(ShowArgs),
    /// Remove old runs that have ended and are no evidence. What they have shown is lost to `harness history` as well
    Prune(PruneArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// The folder of runs, such as that of a delivery; by default the project's
    #[arg(long, value_name = "DIR")]
    runs: Option<PathBuf>,
    /// How it is printed, for people or for programs
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    format: String,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The run: its id, the beginning of it, `latest`, its folder or its bundle
    #[arg(long, value_name = "ID|PATH", default_value = "latest")]
    run: String,
    /// How it is printed, for people or for programs
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    format: String,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("which").required(true).multiple(true)))]
pub(crate) struct PruneArgs {
    /// Keep this many of the newest runs
    #[arg(long, value_name = "N", group = "which")]
    keep: Option<usize>,
    /// Remove only runs that began longer ago, such as `30d`; refused where that is every run and `--keep` is not given
    #[arg(long, value_name = "DURATION", value_parser = duration::with_unit, group = "which")]
    older_than: Option<u64>,
    /// Remove the oldest only until all runs take at most this, such as `200GiB`
    #[arg(long, value_name = "SIZE", value_parser = quantity::size, group = "which")]
    fit: Option<u64>,
    /// Remove also runs that baselines were made from, that certificates name, and that blame parts of a real cluster that
    /// no run has cleared
    #[arg(long)]
    evidence_too: bool,
    /// Remove only these runs, by their whole ids, even where their files are not what they wrote; may be repeated
    #[arg(long, value_name = "ID", group = "which")]
    run: Vec<String>,
    /// Only print what would be removed
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(verb: &RunsVerb) -> Result<i32, Error> {
    let home = home()?;
    match verb {
        RunsVerb::List(args) => list(&home, args),
        RunsVerb::Show(args) => show_run(&home, args),
        RunsVerb::Prune(args) => prune(&home, args),
    }
}

/// What the list says of a run.
struct Row {
    id: String,
    state: String,
    suites: String,
    nodes: String,
    inventory: String,
}

fn row(folder: &Path, index: &mut RunIndex) -> Row {
    let id = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let unread = |why: String| Row {
        id: id.clone(),
        state: format!("unreadable: {why}"),
        suites: "-".to_owned(),
        nodes: "-".to_owned(),
        inventory: "-".to_owned(),
    };
    let run = match index.run(folder) {
        Ok(run) => run,
        Err(why) => return unread(why),
    };
    let state = match (run.summarised, run.partial.iter().find(|why| why.starts_with("summary.json: "))) {
        (Some(Summarised { exit_code, culprits: 0 }), _) => format!("exit {exit_code}"),
        (Some(Summarised { exit_code, culprits }), _) => {
            format!("exit {exit_code}, {}", count(culprits, "culprit"))
        }
        (None, None) => "not ended".to_owned(),
        (None, Some(why)) => return unread(why.clone()),
    };
    let state = match run.contradiction() {
        Some(why) => format!("{state}, {why}"),
        None => state,
    };
    let plan = run.plan();
    let simulated = if plan.simulated { " (simulated)" } else { "" };
    Row {
        id,
        state,
        suites: plan.suites.join("+"),
        nodes: base::nodeset::fold(&plan.nodes),
        inventory: format!("{}{simulated}", plan.inventory),
    }
}

fn list(home: &Home, args: &ListArgs) -> Result<i32, Error> {
    let runs = args.runs.clone().unwrap_or_else(|| home.path().join("runs"));
    let folders = runs_in(&runs);
    if args.runs.is_some() && folders.is_empty() {
        let runs = show(&runs.display().to_string());
        return Err(Error::Usage(format!("no runs in `{runs}`; give a folder of runs with --runs")));
    }
    let mut index = RunIndex::open(&runs);
    let rows: Vec<Row> = folders.iter().map(|folder| row(folder, &mut index)).collect();
    index.close().iter().for_each(|note| eprintln!("{}", show(note)));
    let text = match args.format.as_str() {
        "json" => rows
            .iter()
            .map(|row| {
                let line = json!({
                    "run": row.id, "state": row.state, "suites": row.suites, "nodes": row.nodes, "inventory": row.inventory,
                });
                line.to_string() + "\n"
            })
            .collect(),
        _ if rows.is_empty() => none_yet(home),
        _ => {
            let head = ["run", "state", "suites", "inventory", "nodes"].map(str::to_owned).to_vec();
            let cells = rows.iter().map(|row| {
                [&row.id, &row.state, &row.suites, &row.inventory, &row.nodes].map(|cell| show(cell)).to_vec()
            });
            columns(&std::iter::once(head).chain(cells).collect::<Vec<_>>())
        }
    };
    print(&text);
    Ok(exit_code::PASSED)
}

/// Where runs come from, and how those of an acceptance, which lie apart, are listed.
fn none_yet(home: &Home) -> String {
    let of_delivery =
        certificate_files::hint_at_runs(&home.path().join("deliveries")).map(|hint| show(&hint));
    format!("no runs here yet; make one with `harness run --suite NAME`{}\n", of_delivery.unwrap_or_default())
}

fn show_run(home: &Home, args: &ShowArgs) -> Result<i32, Error> {
    let run = stored::open(home, &args.run).map_err(|why| Error::Usage(format!("--run: {why}")))?;
    let summary = run.summary().map_err(|error| Error::Usage(error.to_string()))?;
    let state = summary.as_ref().and_then(|_| match past::run(run.folder()) {
        Ok(run) => run.contradiction(),
        Err(why) => Some(format!("not compared with its verdicts: {why}")),
    });
    if args.format == "json" {
        let text = match &summary {
            Some(summary) => {
                let mut shown = json!(summary);
                state.into_iter().for_each(|state| shown["state"] = json!(state));
                serde_json::to_string_pretty(&shown).unwrap_or_default()
            }
            None => json!({ "run_id": run.plan.run_id, "state": "not ended" }).to_string(),
        };
        print(&format!("{text}\n"));
        return Ok(exit_code::PASSED);
    }
    let plan = &run.plan;
    let simulated = if plan.simulated { ", SIMULATED" } else { "" };
    let mut lines = vec![
        format!("run        {}{simulated}", show(&plan.run_id)),
        format!("suites     {}", show(&plan.suites.join(", "))),
        format!("inventory  {} ({})", show(&plan.inventory), show(&plan.instance.name)),
        format!("nodes      {}", show(&base::nodeset::fold(&plan.nodes))),
    ];
    for source in &plan.sources {
        lines.push(format!("made from  {}", show(&source.file)));
    }
    match &summary {
        None => {
            lines.push(format!("state      not ended; `harness resume --run {}` goes on", show(&plan.run_id)))
        }
        Some(summary) => {
            let counts = &summary.counts;
            lines.push(format!("began      {}", show(&summary.started)));
            lines.push(format!(
                "verdicts   {} passed, {} failed, {} inconclusive, {} errors, {} skipped",
                counts.pass + counts.expected_failure,
                counts.fail + counts.unexpected_pass,
                counts.inconclusive,
                counts.error,
                counts.skipped
            ));
            for culprit in &summary.culprits {
                lines.push(show(&culprit.to_string()));
                let next = next_command(culprit, plan, &summary.run_id);
                lines.extend(next.map(|next| format!("  next: {next}")));
            }
            lines.push(format!("exit code  {}", summary.exit_code));
            lines.extend(state.map(|state| format!("state      {}", show(&state))));
        }
    }
    lines.push(format!("folder     {}", home.display_path(run.folder())));
    print(&(lines.join("\n") + "\n"));
    Ok(exit_code::PASSED)
}

fn prune(home: &Home, args: &PruneArgs) -> Result<i32, Error> {
    let folders = home.runs();
    let name = |folder: &Path| folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if let Some(id) = args.run.iter().find(|id| !folders.iter().any(|folder| name(folder) == **id)) {
        return Err(Error::Usage(format!("nothing was removed: --run: no run `{}`", show(id))));
    }
    let ids: Vec<String> = folders.iter().map(|folder| name(folder)).collect();
    let now_s = store::wall_clock_s();
    if args.run.is_empty()
        && let Some(why) = prune_clock::refused(&ids, now_s, args.older_than, args.keep.is_some())
    {
        return Err(Error::Usage(format!("nothing was removed: {why}")));
    }
    let newest = match args.keep {
        Some(0) => Vec::new(),
        _ => newest(home, &ids),
    };
    let old = folders.len().saturating_sub(args.keep.unwrap_or_default());
    let before = args.older_than.map(|seconds| store::run_time(now_s - seconds as f64));
    let reasons = match args.evidence_too {
        true => BTreeMap::new(),
        false => retention::reasons(home).map_err(|why| {
            Error::Usage(format!("nothing was removed: cannot read what runs are evidence for: {why}"))
        })?,
    };
    let mut too_much = args.fit.map(|most| {
        let all: u64 = folders.iter().map(|folder| retention::bytes(folder)).sum();
        all.saturating_sub(most)
    });
    let mut code = exit_code::PASSED;
    if !args.dry_run {
        for error in store::remove_leftovers(home) {
            eprintln!("error: {}", show(&error.to_string()));
            code = exit_code::INCONCLUSIVE;
        }
    }
    let (mut removed, mut is_evidence_kept) = (0u32, false);
    for folder in &folders[..old] {
        let id = name(folder);
        let is_named = args.run.contains(&id);
        if !args.run.is_empty() && !is_named {
            continue;
        }
        // An id begins with the time at which its run began.
        if before.as_deref().is_some_and(|before| id.as_str() >= before) {
            continue;
        }
        if too_much == Some(0) {
            break;
        }
        let bytes = too_much.map_or(0, |_| retention::bytes(folder));
        let why = not_ended(folder);
        let evidence = reasons
            .get(&id)
            .cloned()
            .or_else(|| renamed(folder, &id).filter(|_| !args.evidence_too && !is_foreign(folder)));
        is_evidence_kept |= why.is_none() && evidence.is_some();
        let why = why.or(evidence).or_else(|| changed(folder, &id).filter(|_| !is_named));
        let is_newest = newest.contains(&id) && !is_named;
        let why = why.or_else(|| {
            is_newest.then(|| format!("it is the newest run; `harness runs prune --run {id}` removes it"))
        });
        let done = match (why, args.dry_run) {
            (Some(why), _) => Err(why),
            (None, true) => Ok("would remove"),
            (None, false) => match store::remove_run(home, &id) {
                Ok(()) => Ok("removed"),
                Err(error) if !folder.exists() => {
                    eprintln!("error: {}", show(&error.to_string()));
                    code = exit_code::INCONCLUSIVE;
                    continue;
                }
                Err(error) => Err(error.to_string()),
            },
        };
        match done {
            Ok(what) => {
                println!("{what} {}", show(&id));
                removed += 1;
                too_much = too_much.map(|left| left.saturating_sub(bytes));
            }
            Err(why) => println!("kept {}: {}", show(&id), show(&why)),
        }
    }
    let word = if args.dry_run { "would be removed" } else { "removed" };
    println!("{removed} of {} {word}", count(folders.len(), "run"));
    if let Some(left @ 1..) = too_much {
        let mib = left as f64 / f64::from(1 << 20);
        let next = if is_evidence_kept { "; `--evidence-too` removes evidence as well" } else { "" };
        println!("{mib:.1} MiB more than --fit allows{next}");
    }
    Ok(code)
}

/// The run that was made last, which no clock decides, and the one whose id says that it was.
fn newest(home: &Home, ids: &[String]) -> Vec<String> {
    let latest = match home.find_run("latest") {
        Ok(Named::Folder(folder)) => folder.file_name().map(|name| name.to_string_lossy().into_owned()),
        _ => None,
    };
    latest.into_iter().chain(prune_clock::newest(ids).map(str::to_owned)).collect()
}

/// What a run is evidence for is known by its id; a person who gave its folder another name may have had a reason.
fn renamed(folder: &Path, name: &str) -> Option<String> {
    let own = Stored::open(folder).ok()?.plan.run_id.clone();
    (own != name).then(|| format!("its folder was renamed, it is run {own}"))
}

/// Somebody has changed its files since it ended, or they contradict each other, and may be asked why.
fn changed(folder: &Path, id: &str) -> Option<String> {
    if is_foreign(folder) {
        return None;
    }
    let why = match Stored::open(folder).and_then(|stored| stored.changed()) {
        Ok(Some(file)) => format!("{file} is not what it wrote, by `run.json`"),
        Ok(None) => past::run(folder).ok()?.contradiction()?,
        Err(error) => return Some(error.to_string()),
    };
    Some(format!("{why}; `harness runs prune --run {id}` removes it"))
}

/// Why a run may still have something running on nodes, or is not known to have nothing.
fn not_ended(folder: &Path) -> Option<String> {
    if is_foreign(folder) {
        return None;
    }
    if let Some(why) = vetting::refused(folder) {
        return Some(why);
    }
    match Stored::open(folder).and_then(|stored| stored.summary()) {
        Ok(Some(_)) => None,
        Ok(None) => Some("it has not ended; `harness clean` ends what it has left".to_owned()),
        Err(error) => Some(error.to_string()),
    }
}

fn print(text: &str) {
    crate::standard_output::print(text.as_bytes());
}
