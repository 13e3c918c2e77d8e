//! `harness clean`: ends the leftovers of runs, and verifies that none remain.

use super::{home, in_kubernetes};
use crate::error::Error;
use crate::session::execution::{new_runtime, simulated_cluster};
use crate::session::past_events::{PastEvents, current_inventory, planned_inventory};
use crate::session::reached::{ReachScope, Reached, through_slurm};
use crate::session::{report_error, run_cluster, stored};
use clap::{ArgGroup, Args};
use cluster::clean::{self, Cleaned, Leftover, Recorded};
use cluster::reach::openssh;
use cluster::reach::pods::AnalysisPods;
use model::artefact::{Ended, Launcher, Plan};
use model::exit_code;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::{self, Home, Named, Store, StoreError, Stored, is_foreign};

const ABOUT: &str =
    "End the leftovers of a run in the queue, on its nodes and in its folders, and verify that none remain.";
const CODES: &str = "\
Exit codes: 0 nothing is left; 1 something is, and could not be ended (or was not to be, with --dry-run); \
2 wrong usage; 3 inconclusive: a host or Slurm could not be asked, its inventory has \
changed or is gone before the run had ended, or records are unreadable or contradictory.";

/// Simulated time that has passed since the last record of the cluster: what was ending then has ended.
const MEANWHILE: Duration = Duration::from_secs(60);

/// `harness clean`
#[derive(Debug, Args)]
#[command(about = ABOUT, after_help = CODES, group(ArgGroup::new("which").required(true)))]
pub(super) struct CleanArgs {
    /// The run: its id, the beginning of it, `latest`, or its folder
    #[arg(long, value_name = "ID|PATH", group = "which")]
    run: Option<String>,
    /// Every run in `runs/` that no harness is working on
    #[arg(long, group = "which")]
    all: bool,
    /// In the cluster of --inventory: pods of the harness that no run here knows, and what NVIDIA's older sidecar injector
    /// left; both are only listed
    #[arg(long, group = "which")]
    kubernetes: bool,
    /// With --kubernetes: remove them, but no pod that may be in use
    #[arg(long, requires = "kubernetes", conflicts_with = "dry_run")]
    remove: bool,
    /// Only print what is left
    #[arg(long)]
    dry_run: bool,
    /// The cluster of the run, where its inventory lies outside of the project
    #[arg(long, value_name = "NAME|PATH", env = "HARNESS_INVENTORY", default_value = "default")]
    inventory: String,
    /// Connect to at most this many hosts by ssh at the same time
    #[arg(long, value_name = "N", default_value_t = openssh::FANOUT as u32, value_parser = clap::value_parser!(u32).range(1..=1000))]
    ssh_fanout: u32,
}

pub(super) fn run(args: &CleanArgs) -> Result<i32, Error> {
    if args.kubernetes {
        return in_kubernetes::clean(&args.inventory, args.remove);
    }
    let home = home()?;
    let folders = folders(&home, args).map_err(Error::Usage)?;
    if folders.is_empty() {
        println!("there is no run here: nothing is left");
    }
    let codes: BTreeSet<i32> = folders.iter().map(|folder| one(&home, folder, args)).collect();
    let worst = [exit_code::FAILED, exit_code::INCONCLUSIVE, exit_code::USAGE];
    Ok(worst.into_iter().find(|code| codes.contains(code)).unwrap_or(exit_code::PASSED))
}

fn folders(home: &Home, args: &CleanArgs) -> Result<Vec<PathBuf>, String> {
    let Some(word) = &args.run else {
        return Ok(home.runs().into_iter().filter(|folder| !is_foreign(folder)).collect());
    };
    match home.find_run(word).map_err(|why| format!("--run: {why}"))? {
        Named::Folder(folder) if is_foreign(&folder) => Err(format!("--run: {}", stored::foreign(word))),
        Named::Folder(folder) => {
            stored::id_in_place(home, &folder).map_err(|why| format!("--run: {why}"))?;
            Ok(vec![folder])
        }
        Named::Archive(_) => {
            Err(format!("--run: a bundle is a copy, and has nothing anywhere else: `{word}`"))
        }
    }
}

fn one(home: &Home, folder: &Path, args: &CleanArgs) -> i32 {
    let stored = Stored::open(folder).map_err(|error| error.to_string());
    let stored = match stored.and_then(|stored| stored::check_id(&stored).map(|()| stored)) {
        Ok(stored) => stored,
        Err(why) => return report_error(&why),
    };
    let plan = &stored.plan;
    let id = &plan.run_id;
    // It is held until the end: the run cannot be resumed meanwhile.
    let store = match Store::open(home, id) {
        Ok(store) => store,
        Err(error) => {
            return report_error(&format!("{error}; Ctrl-C there ends the run and all that it started"));
        }
    };
    if let Err(why) = check_cluster(home, &stored, args) {
        return report_error(&format!("{id}: {why}"));
    }
    let of_jobs = match plan.replayed_from {
        Some(_) => Ok(None),
        None => cleaned(home, &stored, &store, args).map(Some),
    };
    let both = of_jobs.and_then(|of_jobs| Ok((of_jobs, analyses(&stored, !args.dry_run)?)));
    let cleaned = match both {
        Ok((None, None)) => {
            println!("{id}: it launched nothing");
            return exit_code::PASSED;
        }
        Ok((of_jobs, of_analyses)) => of_jobs.unwrap_or_default().and(of_analyses.unwrap_or_default()),
        Err(why) => return report_error(&format!("{id}: {why}")),
    };
    let parts = match store.unfinished(!args.dry_run) {
        Ok(parts) => parts,
        Err(error) => return report_error(&error.to_string()),
    };
    print(plan, &cleaned, &parts, args.dry_run);
    let is_left = !cleaned.left.is_empty() || (args.dry_run && !parts.is_empty());
    match (is_left, cleaned.unknown() == 0) {
        (true, _) => exit_code::FAILED,
        (false, false) => exit_code::INCONCLUSIVE,
        (false, true) => exit_code::PASSED,
    }
}

/// What it has in Kubernetes is where kubectl leads to now, as far as the run records it.
fn check_cluster(home: &Home, stored: &Stored, args: &CleanArgs) -> Result<(), String> {
    let plan = &stored.plan;
    if plan.launcher == Launcher::Kubernetes && plan.replayed_from.is_none() {
        let inventory = planned_inventory(home, plan, &args.inventory)?;
        run_cluster::check(stored.folder(), &inventory)?;
        run_cluster::note_unrecorded(stored.folder(), &inventory);
    }
    run_cluster::check_analyses(stored)
}

/// The ids that the run wrote down as it went on, and those that it wrote down of cases that had ended.
fn recorded(stored: &Stored, store: &Store) -> Recorded {
    let mut recorded = Recorded::default();
    recorded.add(PastEvents::read(store).map(|past| past.history.launched()));
    for case in &stored.plan.cases {
        let jobs = stored.jobs(&case.name).map_err(|error| error.to_string());
        let handles = |jobs: model::artefact::CaseJobs| {
            let named = jobs.jobs.into_iter().filter_map(|job| {
                let name = format!("{}/{}", case.name, job.name);
                Some((name, job.handle?))
            });
            named.collect()
        };
        recorded.add(jobs.map(|jobs| jobs.map(handles).unwrap_or_default()));
    }
    recorded
}

fn cleaned(home: &Home, stored: &Stored, store: &Store, args: &CleanArgs) -> Result<Cleaned, String> {
    let plan = &stored.plan;
    let recorded = recorded(stored, store);
    let ends = !args.dry_run;
    new_runtime(plan.simulated)?.block_on(async {
        if plan.simulated {
            let inventory = planned_inventory(home, plan, &args.inventory)?;
            let past = PastEvents::read(store)?;
            let reach = simulated_cluster(plan, &inventory, store, Some(&past)).await?;
            tokio::time::sleep(MEANWHILE).await;
            return Ok(clean::clean(plan, &recorded, &through_slurm(&inventory, &reach), ends).await);
        }
        let (reached, unclear) = match plan.launcher {
            Launcher::Slurm => reach_slurm(home, stored, args)?,
            Launcher::Ssh | Launcher::Kubernetes | Launcher::Local => {
                (Reached::for_run(home, plan, &args.inventory, args.ssh_fanout)?, None)
            }
        };
        let reached = reached.looking(ends);
        reached.begin().await;
        let redactor = store::redactor();
        let reach = reached.clean(&redactor);
        let mut cleaned = match reached.pods() {
            Some(pods) => clean::pods::clean(plan, &recorded, pods, &reach, ends).await,
            None => clean::clean(plan, &recorded, &reach, ends).await,
        };
        reached.disconnect().await;
        cleaned.unclear.extend(unclear);
        Ok(cleaned)
    })
}

/// The Slurm that the run's inventory names now, else this machine's. Only what is the run's is ended there, so that
/// another one than the run's loses nothing; but where a job was not seen to end, it may be in the other one.
fn reach_slurm(home: &Home, stored: &Stored, args: &CleanArgs) -> Result<(Reached, Option<String>), String> {
    let plan = &stored.plan;
    let (reached, unclear) = match current_inventory(home, plan, &args.inventory) {
        Ok((inventory, changed)) => {
            let unclear = changed.map(|file| format!("{file} has changed since the run was planned"));
            (Reached::new(&inventory, &ReachScope::from_plan(plan, args.ssh_fanout))?, unclear)
        }
        Err(why) => (Reached::slurm(None), Some(format!("this machine's Slurm was asked: {why}"))),
    };
    let has_ended = has_ended(stored).map_err(|error| error.to_string())?;
    let unclear = unclear.filter(|_| !has_ended);
    Ok((reached, unclear.map(|unclear| format!("its jobs may be in the queue of another Slurm: {unclear}"))))
}

/// Whether the run ended, and each of its jobs was seen to end.
fn has_ended(stored: &Stored) -> Result<bool, StoreError> {
    if stored.summary()?.is_none() {
        return Ok(false);
    }
    for case in stored.plan.cases.iter().filter(|case| case.skip.is_none()) {
        let jobs = stored.jobs(&case.name)?;
        if !jobs.is_some_and(|jobs| jobs.jobs.iter().all(|job| was_seen_to_end(&job.end))) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Every other end is one that the harness gave a job: what became of the job in the queue is not known by it.
fn was_seen_to_end(end: &Ended) -> bool {
    use Ended::{BootFail, Exited, Killed, LeftOut, NodeFail, NotRun, OutOfMemory, Preempted, TimeLimit};
    matches!(
        end,
        Exited { .. }
            | Killed { .. }
            | TimeLimit { .. }
            | NodeFail
            | BootFail
            | OutOfMemory
            | Preempted
            | LeftOut { .. }
            | NotRun { .. }
    )
}

/// What tasks that read its reports left: real ones, of whatever kind the run's own nodes are. Nothing where none did.
pub(super) fn analyses(stored: &Stored, ends: bool) -> Result<Option<Cleaned>, String> {
    let Some(analyses) = stored.analyses().map_err(|error| error.to_string())? else { return Ok(None) };
    let (run, shared) = (&stored.plan.run_id, &analyses.shared);
    let reached = Reached::slurm(analyses.slurm.as_deref());
    let runtime = new_runtime(false)?;
    Ok(Some(match &analyses.kubernetes {
        None => runtime.block_on(clean::analyses::clean(run, shared, reached.reach(), ends)),
        Some(place) => {
            let pods = AnalysisPods::new(place.context.as_deref(), &place.namespace, run, "");
            runtime.block_on(clean::analyses::clean_pods(run, shared, &pods, reached.reach(), ends))
        }
    }))
}

fn print(plan: &Plan, cleaned: &Cleaned, parts: &[PathBuf], dry_run: bool) {
    let launcher = plan.launcher;
    let simulated = if plan.simulated { ", SIMULATED" } else { "" };
    let id = &plan.run_id;
    match plan.replayed_from {
        Some(_) => println!("{id}: it launched nothing but tasks that read reports{simulated}"),
        None => println!("{id}: launched by {launcher}, on nodes: {}{simulated}", plan.nodes.len()),
    }
    let now = |left: &Leftover| match (dry_run, cleaned.left.contains(left)) {
        (true, _) => "is there",
        (false, true) => "could not be ended",
        (false, false) => "ended",
    };
    let later = cleaned.left.difference(&cleaned.found);
    let mut rows: Vec<[String; 5]> = cleaned
        .found
        .iter()
        .chain(later)
        .map(|left| {
            [
                left.at.clone(),
                left.what.name().to_owned(),
                left.which.clone(),
                left.job.clone(),
                now(left).to_owned(),
            ]
        })
        .collect();
    let gone = if dry_run { "is there" } else { "removed" };
    rows.extend(parts.iter().map(|part| {
        let which = part.display().to_string();
        ["run's folder".to_owned(), "unfinished file".to_owned(), which, String::new(), gone.to_owned()]
    }));
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or_default();
    let widths = [0, 1, 2, 3].map(width);
    for row in &rows {
        let cells = row.iter().zip(widths.iter().chain([&0])).map(|(cell, &width)| format!("{cell:width$}"));
        println!("  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    for (who, why) in &cleaned.unasked {
        println!("  {who} could not be asked: {why}");
    }
    cleaned.not_ours.iter().for_each(|line| println!("  left alone: {line}"));
    cleaned.unclear.iter().for_each(|line| println!("  not known: {line}"));
    match (cleaned.left.len() + if dry_run { parts.len() } else { 0 }, cleaned.unknown()) {
        (0, 0) => println!("nothing is left: {} found, all ended", rows.len()),
        (0, n) => println!("inconclusive: {n} reasons above"),
        (n, _) => println!("left: {n}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_was_given_up_may_still_be_in_the_queue() {
        let why = || "squeue did not answer".to_owned();
        assert!(
            was_seen_to_end(&Ended::Exited { code: 1 }) && was_seen_to_end(&Ended::TimeLimit { limit_s: 9 })
        );
        for end in [
            Ended::Lost { why: why() },
            Ended::Interrupted { why: why() },
            Ended::LaunchFailed { why: why() },
            Ended::HostUnreachable { why: why() },
            Ended::QueueStuck { reason: why() },
        ] {
            assert!(!was_seen_to_end(&end), "{end:?}");
        }
    }
}
