//! `harness accept`: new nodes, from the preflight to all at once, each stage a run of its own; and the certificate of what
//! became of them.

mod certificate;
mod delivery;
mod meeting;
mod outlook;
mod partners;
mod stages;
mod suspects;
mod told;
mod vendor;

use super::{home, load, no_home, run_suites};
use crate::own_recipes;
use base::nodeset;
use clap::Parser;
use cluster::interrupt;
use cluster::reach::openssh;
use config::diagnostic::Diagnostic;
use config::physics;
use delivery::{Asked, Delivery, Record, Stopped};
use model::artefact::FORMAT;
use model::exit_code;
use model::fault::NodeFault;
use stages::Accepting;
use std::fs;
use std::path::{Path, PathBuf};
use store::{self, Home};
use verdict::accept::stages::divide;
use verdict::isolate::round::Probes;

const CODES: &str = "\
Exit codes: 0 all are accepted; 1 some are rejected (beats 3); 2 wrong usage; 3 some are not decided: something was not
measured, could not be told, or the budget ended it; 130/143 interrupted, `--resume DIR` goes on.";

/// `harness accept`
#[derive(Debug, Parser)]
#[command(
    name = "harness accept",
    about = "Say of new nodes whether they are good: preflight, each by itself, pairs, groups, all; with a certificate.",
    after_help = CODES
)]
pub(super) struct AcceptArgs {
    /// The new nodes, such as `p5-[033-064]` or `@group`
    #[arg(long, value_name = "RANGE", required_unless_present = "resume")]
    nodes: Option<String>,
    /// What they must pass, by name or path; `acceptance-` and the instance's name, where absent
    #[arg(long, value_name = "NAME|PATH")]
    suite: Option<String>,
    /// The cluster, by name or path
    #[arg(long, value_name = "NAME|PATH", env = "HARNESS_INVENTORY", default_value = "default")]
    inventory: String,
    /// Nodes that are known to be good, or `none`; those of the inventory's others that the last passing run was on, where absent
    #[arg(long, value_name = "RANGE")]
    partners: Option<String>,
    /// Begin no run that would take the sum beyond so many node-hours
    #[arg(long, value_name = "NODE-HOURS", value_parser = super::isolate::hours)]
    budget: Option<f64>,
    /// The folder of the delivery; one of its own below `deliveries`, where absent
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Make a copy for the vendor too, without names of hosts, users, paths, addresses and clusters
    #[arg(long)]
    sanitise: bool,
    /// Nodes whose GPUs are in use take part
    #[arg(long)]
    allow_busy: bool,
    /// Only tell what it would cost
    #[arg(long)]
    dry_run: bool,
    /// Go on with a delivery that was ended: its folder
    #[arg(long, value_name = "DIR", conflicts_with_all = ["nodes", "suite", "partners", "out", "dry_run", "allow_busy"])]
    resume: Option<PathBuf>,
    /// Seed of the simulated cluster
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// A fault of the simulated cluster, such as `p5-040:nic-slow=0.4@rdmap113s0`; may be repeated
    #[arg(long = "sim-fault", value_name = "NODE:FAULT")]
    sim_faults: Vec<String>,
    /// Connect to at most so many hosts by ssh at the same time
    #[arg(long, value_name = "N", default_value_t = openssh::FANOUT as u32, value_parser = clap::value_parser!(u32).range(1..=1000))]
    ssh_fanout: u32,
}

pub(super) fn run(args: &AcceptArgs) -> i32 {
    let Some(home) = home() else { return no_home() };
    let mut accepting = match begin(&home, args) {
        Ok(accepting) => accepting,
        Err(diagnostics) => {
            diagnostics.iter().for_each(|diagnostic| eprintln!("error: {diagnostic}"));
            return exit_code::USAGE;
        }
    };
    told::heading(&accepting);
    told::outlook(&outlook::of(&accepting), accepting.delivery.record.asked.budget);
    if args.dry_run {
        return exit_code::PASSED;
    }
    interrupt::watch();
    let folder = accepting.delivery.folder.clone();
    match go(&home, &mut accepting) {
        Ok(code) => code,
        Err(Stopped::Interrupted(code)) => {
            eprintln!("interrupted: `harness accept --resume {}` goes on", folder.display());
            code
        }
        Err(Stopped::Budget(needed)) => {
            run_suites::machinery(&format!("the next run needs so many node-hours: {needed:.2}"))
        }
        Err(Stopped::Machinery(why)) => {
            let code = run_suites::machinery(&why);
            eprintln!("`harness accept --resume {}` goes on", folder.display());
            code
        }
    }
}

fn go(home: &Home, accepting: &mut Accepting) -> Result<i32, Stopped> {
    accepting.delivery.write_record()?;
    accepting.go(&mut told::stage)?;
    let acceptance = certificate::of(accepting);
    certificate::write(accepting, &acceptance)?;
    let copied = match accepting.delivery.record.asked.sanitise {
        true => Some(vendor::write(home, &accepting.delivery)?),
        false => None,
    };
    told::conclusion(accepting, &acceptance, copied);
    Ok(match (acceptance.rejected.is_empty(), acceptance.undecided.is_empty()) {
        (false, _) => exit_code::FAILED,
        (true, false) => exit_code::INCONCLUSIVE,
        (true, true) if acceptance.accepted.is_empty() => exit_code::INCONCLUSIVE,
        (true, true) => exit_code::PASSED,
    })
}

fn begin(home: &Home, args: &AcceptArgs) -> Result<Accepting, Vec<String>> {
    own_recipes::load(Some(home.path()), None).map_err(|diagnostics| lines(&diagnostics))?;
    match &args.resume {
        Some(folder) => resumed(home, args, folder),
        None => anew(home, args),
    }
}

fn resumed(home: &Home, args: &AcceptArgs, folder: &Path) -> Result<Accepting, Vec<String>> {
    let record = delivery::read_record(folder).map_err(|why| vec![format!("--resume: {why}")])?;
    let asked = Asked {
        // More may be spent than was thought, and a copy be wanted afterwards.
        budget: args.budget.or(record.asked.budget),
        sanitise: args.sanitise || record.asked.sanitise,
        ..record.asked
    };
    let (suite, inventory) = (asked.suite.clone(), asked.inventory.clone());
    assemble(home, args, folder, &suite, &inventory, |_| Ok(Record { asked, ..record }))
}

fn anew(home: &Home, args: &AcceptArgs) -> Result<Accepting, Vec<String>> {
    let one = |why: String| vec![why];
    let suite = match &args.suite {
        Some(suite) => suite.clone(),
        None => {
            let loaded = load::load(home, &[], &args.inventory, None)?;
            let instance = loaded.inventory.instance;
            format!("acceptance-{}", instance.like.unwrap_or(instance.name))
        }
    };
    let stem = Path::new(&suite).file_stem().and_then(|stem| stem.to_str()).unwrap_or("suite");
    let id = store::new_run_id(&format!("accept-{stem}"));
    let folder = args.out.clone().unwrap_or_else(|| home.path().join("deliveries").join(&id));
    let is_taken = fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some());
    if is_taken {
        return Err(one(format!(
            "--out: it is not empty, `--resume` goes on with a delivery: {}",
            folder.display()
        )));
    }
    assemble(home, args, &folder, &suite, &args.inventory, |inventory| {
        let nodes = inventory.select(args.nodes.as_deref(), None).map_err(one)?;
        let faults = args.sim_faults.iter().map(|text| {
            let fault = NodeFault::parse(text).and_then(|fault| run_suites::check_fault(inventory, fault));
            fault.map_err(|why| format!("--sim-fault: {why}"))
        });
        faults.collect::<Result<Vec<()>, String>>().map_err(one)?;
        if !inventory.is_simulated() && !args.sim_faults.is_empty() {
            return Err(one(format!(
                "--sim-fault: faults exist on a simulated cluster only, and this is a real one: {}",
                inventory.name
            )));
        }
        let (partners, vouched) =
            partners::of(home, inventory, &nodes, args.partners.as_deref()).map_err(one)?;
        let asked = Asked {
            suite: suite.clone(),
            inventory: args.inventory.clone(),
            nodes,
            partners,
            vouched,
            budget: args.budget,
            seed: args.seed,
            sim_faults: args.sim_faults.clone(),
            allow_busy: args.allow_busy,
            sanitise: args.sanitise,
        };
        Ok(Record { format: FORMAT, delivery: id.clone(), asked })
    })
}

/// Everything read and checked, and nothing launched.
fn assemble(
    home: &Home,
    args: &AcceptArgs,
    folder: &Path,
    suite: &str,
    inventory: &str,
    record: impl FnOnce(&config::inventory::Inventory) -> Result<Record, Vec<String>>,
) -> Result<Accepting, Vec<String>> {
    let loaded = load::load(home, &[suite.to_owned()], inventory, None)?;
    let inventory = loaded.inventory;
    let read = loaded.suites.first().ok_or_else(|| vec!["no suite".to_owned()])?;
    let mut diagnostics: Vec<String> = physics::lint(read, &inventory.instance, loaded.baselines.as_ref())
        .iter()
        .map(ToString::to_string)
        .collect();
    let stages = divide(read).map_err(|more| diagnostics.extend(more)).unwrap_or_default();
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let record = record(&inventory)?;
    let probes = Probes::of(read, &inventory, None).ok();
    let names = read.cases.iter().flat_map(|case| case.recipes.iter().map(String::as_str));
    let recipes = own_recipes::planned(names);
    let delivery = Delivery::new(folder, record, inventory, args.ssh_fanout);
    let accepting = Accepting::new(delivery, stages, probes, loaded.baselines, loaded.sources, recipes);
    // What speaks against a plan is told before anything is launched.
    for (stage, suite) in &accepting.suites {
        let (suite, nodes, sets) = accepting.first_of(*stage, suite);
        accepting.plan(&suite, "none", nodes, sets)?;
    }
    Ok(accepting)
}

fn lines(diagnostics: &[Diagnostic]) -> Vec<String> {
    diagnostics.iter().map(ToString::to_string).collect()
}

/// Nodes as a person reads them, and how many.
fn counted(nodes: &[String]) -> String {
    match nodes.len() {
        0 => "none".to_owned(),
        n => format!("{n} ({})", nodeset::fold(nodes)),
    }
}
