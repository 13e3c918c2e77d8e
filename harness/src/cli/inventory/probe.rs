//! `harness inventory probe` and `diff`: what the nodes of an inventory are, asked of the nodes themselves.

use crate::cli::usage;
use crate::session::reached::{ReachScope, Reached, redactor, through_slurm};
use crate::session::{load, no_answer, report_error, run_cluster};
use clap::Args;
use cluster::interrupt;
use cluster::probe::{self as made_of, NotMade, Probing};
use cluster::reach::{Reach, openssh};
use cluster::run::Clock;
use config::facts;
use config::inventory::{Inventory, Kind};
use model::artefact::{Probe, ProbedNode};
use model::exit_code;
use model::fault::NodeFault;
use sim::SimulatedReach;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use store::{self, Home};

/// Which nodes are asked, and how.
#[derive(Debug, Args)]
struct ProbeTarget {
    /// The cluster, by name or path
    #[arg(long, value_name = "NAME|PATH", env = "HARNESS_INVENTORY", default_value = "default")]
    inventory: String,
    /// Ask these nodes only, such as `p5-[001-004]` or `@group`
    #[arg(long, value_name = "RANGE")]
    nodes: Option<String>,
    /// Leave these nodes out
    #[arg(long, value_name = "RANGE")]
    exclude_nodes: Option<String>,
    /// Ask at most this many nodes at the same time
    #[arg(long, value_name = "N", default_value_t = openssh::FANOUT as u32, value_parser = clap::value_parser!(u32).range(1..=1000))]
    ssh_fanout: u32,
    /// Count nodes whose GPUs are in use as fit
    #[arg(long)]
    allow_busy: bool,
    /// Seed of the simulated cluster
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// A fault of the simulated cluster, such as `p5-002:gpu-missing@3`; may be repeated
    #[arg(long = "sim-fault", value_name = "NODE:FAULT")]
    sim_faults: Vec<String>,
    /// How it is printed, for people or for programs
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    format: String,
}

#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    #[command(flatten)]
    target: ProbeTarget,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    target: ProbeTarget,
    /// Compare with the nodes in this file, which `harness inventory probe --format json` wrote
    #[arg(long, value_name = "FILE")]
    golden: Option<PathBuf>,
}

pub(super) fn probe(home: &Home, args: &ProbeArgs) -> i32 {
    probed(home, &args.target, true).map_or_else(|code| code, |made| show_probe(&made, args))
}

fn show_probe(made: &Probe, args: &ProbeArgs) -> i32 {
    match args.target.format == "json" {
        true => print_json(made),
        false => print(&made_of::table(made)),
    }
    let is_any = |of: fn(&ProbedNode) -> bool| made.nodes.iter().any(of);
    let is_open = |node: &ProbedNode| node.unprobed.is_some() || node.gpus_unread().is_some();
    match (is_any(|node| !node.unfit.is_empty()), is_any(is_open)) {
        (true, _) => exit_code::FAILED,
        (false, true) => exit_code::INCONCLUSIVE,
        (false, false) => exit_code::PASSED,
    }
}

pub(super) fn diff(home: &Home, args: &DiffArgs) -> i32 {
    // A golden file that cannot be used is reported before any node is asked.
    let golden = match args.golden.as_deref().map(read_golden).transpose() {
        Ok(golden) => golden,
        Err(why) => return usage(&format!("--golden: {why}")),
    };
    let made = match probed(home, &args.target, false) {
        Ok(made) => made,
        Err(code) => return code,
    };
    let compared = match &golden {
        None => facts::against_majority(&made),
        Some((golden, name)) => match facts::against_golden(&made, golden, name) {
            Ok(compared) => compared,
            Err(why) => return usage(&format!("--golden: {name}: {why}")),
        },
    };
    match args.target.format == "json" {
        true => print_json(&compared),
        false => print(&made_of::differences(&compared)),
    }
    // A node is never unlike itself.
    let least = if golden.is_some() { 1 } else { 2 };
    match (compared.differences.is_empty() && compared.ties.is_empty(), compared.unprobed.is_empty()) {
        (false, _) => exit_code::FAILED,
        (true, true) if compared.compared >= least => exit_code::PASSED,
        (true, is_whole) => {
            if is_whole && golden.is_none() {
                eprintln!("error: fewer than two nodes have no majority; compare them with `--golden FILE`");
            }
            exit_code::INCONCLUSIVE
        }
    }
}

fn read_golden(path: &Path) -> Result<(Probe, String), String> {
    let read = store::read_json(path).map_err(|error| {
        format!("{error}; expected a file with the output of `harness inventory probe --format json`")
    })?;
    Ok((read, path.display().to_string()))
}

/// The probe, or the exit code of what went wrong before there was one. Nodes beyond the inventory are named where that
/// is asked.
fn probed(home: &Home, args: &ProbeTarget, names_beyond: bool) -> Result<Probe, i32> {
    let loaded = load::without_suite(home, &args.inventory).map_err(|diagnostics| {
        diagnostics.iter().for_each(|diagnostic| eprintln!("error: {diagnostic}"));
        exit_code::USAGE
    })?;
    let inventory = loaded.inventory;
    let nodes = inventory.select(args.nodes.as_deref(), args.exclude_nodes.as_deref());
    let nodes = nodes.map_err(|why| usage(&why))?;
    if inventory.kind == Kind::Real && !args.sim_faults.is_empty() {
        return Err(usage("--sim-fault needs a simulated cluster, and this inventory is real"));
    }
    let faults: Result<Vec<NodeFault>, String> =
        args.sim_faults.iter().map(|text| NodeFault::parse(text)).collect();
    let faults = faults.map_err(|why| usage(&format!("--sim-fault: {why}")))?;
    interrupt::watch_terminal();
    let simulated = inventory.kind == Kind::Simulated;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(simulated).build();
    let runtime = runtime.map_err(|error| report_error(&error.to_string()))?;
    let made = runtime.block_on(async {
        if simulated {
            let reach = SimulatedReach::new(&inventory, args.seed, faults, BTreeMap::new())
                .map_err(|why| usage(&format!("--sim-fault: {why}")))?;
            let clock = Clock::starting_at(SimulatedReach::epoch_unix_s(args.seed) as f64);
            let slurm = through_slurm(&inventory, &reach);
            let made = make(&inventory, &nodes, &slurm, clock, args).await;
            if names_beyond && made.is_ok() {
                name_beyond(&slurm, &inventory).await;
            }
            match reach.violations().as_slice() {
                [] => Ok(made),
                broken => Err(report_error(&format!(
                    "the simulated cluster detected a violation: {}",
                    broken.join("; ")
                ))),
            }
        } else {
            let name = store::new_run_id("probe");
            let fanout = args.ssh_fanout as usize;
            let scope = ReachScope { run: &name, nodes: &nodes, seed: args.seed, fanout, has_folder: false };
            let reached = Reached::new(&inventory, &scope);
            let reached = reached.map_err(|why| report_error(&why))?;
            run_cluster::check_named(&inventory).await.map_err(|why| report_error(&why))?;
            reached.begin().await;
            let clock = Clock::starting_at(store::wall_clock_s());
            let redactor = redactor(&inventory);
            let clean = reached.clean(&redactor);
            let made = make(&inventory, &nodes, &clean, clock, args).await;
            if names_beyond && made.is_ok() {
                name_beyond(&clean, &inventory).await;
            }
            reached.end().await;
            Ok(made)
        }
    })?;
    let made = made.map_err(|NotMade::Interrupted(code)| code)?;
    if let Some(check) = no_answer::check(&made, &inventory) {
        eprintln!("check: {check}");
    }
    Ok(made)
}

async fn make(
    inventory: &Inventory,
    nodes: &[String],
    reach: &dyn Reach,
    clock: Clock,
    args: &ProbeTarget,
) -> Result<Probe, NotMade> {
    let name = store::new_run_id("probe");
    let fanout = args.ssh_fanout as usize;
    let allow_busy = args.allow_busy;
    made_of::make(&Probing { inventory, nodes, reach, clock, fanout, name: &name, allow_busy }).await
}

/// On stderr: stdout may be JSON.
async fn name_beyond(reach: &dyn Reach, inventory: &Inventory) {
    if let Some(note) = made_of::nodes_beyond(reach, inventory).await {
        eprintln!("note: {note}");
    }
}

fn print_json<T: serde::Serialize>(value: &T) {
    match serde_json::to_string_pretty(value) {
        Ok(text) => print(&format!("{text}\n")),
        Err(error) => eprintln!("error: {error}"),
    }
}

fn print(text: &str) {
    crate::standard_output::print(text.as_bytes());
}
