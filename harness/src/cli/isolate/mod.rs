//! `harness isolate`: from a suite that went badly to the part that makes it, in rounds of ordinary runs. Which runs a round
//! has is decided in `crate::isolate`; here they are launched, counted and told.

mod fleet;
mod rounds;
mod told;

use super::{home, load, no_home, run_suites, usage};
use crate::inventory::Inventory;
use crate::isolate::evidence::{self, Evidence};
use crate::isolate::outlook::outlook;
use crate::isolate::round::{Asked, Probes};
use crate::reach::openssh;
use crate::sim::fault::NodeFault;
use crate::store::{self, Home, Stored};
use crate::{exit_code, interrupt, nodeset};
use clap::Parser;
use rounds::{Isolation, Stopped};
use std::collections::BTreeSet;

const CODES: &str = "\
Exit codes: 0 no culprit; 1 culprits are named; 2 wrong usage; 3 could not tell: something stayed open, the budget
ended it, or the machinery failed; 130/143 interrupted, `--resume` goes on.";

/// `harness isolate`
#[derive(Debug, Parser)]
#[command(
    name = "harness isolate",
    about = "Find the part that makes a suite red, with as few runs as it takes.",
    after_help = CODES
)]
pub struct IsolateArgs {
    /// The suite that went badly, by name or path
    #[arg(long, value_name = "NAME|PATH", required_unless_present = "resume")]
    suite: Option<String>,
    /// The cluster, by name or path
    #[arg(long, value_name = "NAME|PATH", env = "HARNESS_INVENTORY", default_value = "default")]
    inventory: String,
    /// Look among these nodes of the inventory only, such as `p5-[001-032]` or `@group`
    #[arg(long, value_name = "RANGE")]
    nodes: Option<String>,
    /// Leave these nodes out
    #[arg(long, value_name = "RANGE")]
    exclude_nodes: Option<String>,
    /// Begin no round that would take the sum beyond so many node-hours
    #[arg(long, value_name = "NODE-HOURS", value_parser = hours)]
    budget: Option<f64>,
    /// Run this case of the suite on sets of nodes, instead of the first that spans nodes
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
    /// The run whose evidence is looked at first; else the newest of that suite and inventory
    #[arg(long, value_name = "ID|PATH", conflicts_with = "no_evidence")]
    run: Option<String>,
    /// Look at no run that was made before
    #[arg(long)]
    no_evidence: bool,
    /// Only tell what it would cost
    #[arg(long)]
    dry_run: bool,
    /// Go on with an isolation that was ended: any run of it, or `latest`
    #[arg(long, value_name = "ID|PATH", conflicts_with_all = ["suite", "nodes", "exclude_nodes", "case", "run", "no_evidence", "dry_run", "budget"])]
    resume: Option<String>,
    /// Seed of the pretend cluster
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// A fault of the pretend cluster, such as `p5-002:nic-slow=0.4@rdmap113s0`; may be repeated
    #[arg(long = "sim-fault", value_name = "NODE:FAULT")]
    sim_faults: Vec<String>,
    /// Connect to at most so many hosts by ssh at the same time
    #[arg(long, value_name = "N", default_value_t = openssh::FANOUT as u32, value_parser = clap::value_parser!(u32).range(1..=1000))]
    ssh_fanout: u32,
}

/// Fewer cannot be told apart: nothing would be left to compare with.
const FEWEST: usize = 4;

pub fn run(args: &IsolateArgs) -> i32 {
    let Some(home) = home() else { return no_home() };
    let mut isolation = match begin(&home, args) {
        Ok(Begun::Told(code)) => return code,
        Ok(Begun::Rounds(isolation)) => isolation,
        Err(mistakes) => {
            for mistake in &mistakes {
                eprintln!("error: {mistake}");
            }
            return exit_code::USAGE;
        }
    };
    interrupt::watch();
    match isolation.go() {
        Ok(conclusion) => told::conclusion(&isolation, conclusion),
        Err(Stopped::Interrupted(code)) => {
            eprintln!("interrupted: `harness isolate --resume {}` goes on", isolation.first());
            code
        }
        Err(Stopped::Budget(needed)) => told::budget(&isolation, needed),
        Err(Stopped::Machinery(why)) => run_suites::machinery(&why),
    }
}

enum Begun {
    Told(i32),
    Rounds(Box<Isolation>),
}

fn begin(home: &Home, args: &IsolateArgs) -> Result<Begun, Vec<String>> {
    let resumed = match &args.resume {
        Some(word) => Some(rounds::records(home, word).map_err(|why| vec![format!("--resume: {why}")])?),
        None => None,
    };
    let first = resumed.as_ref().and_then(|records| records.first()).map(|(_, record)| &record.asked);
    let suite = first.map_or_else(|| args.suite.clone().unwrap_or_default(), |asked| asked.suite.clone());
    let named = first.map_or(&args.inventory, |asked| &asked.inventory);
    let loaded = load::load(home, std::slice::from_ref(&suite), named, None)?;
    let inventory = loaded.inventory;
    let suite_read = loaded.suites.first().ok_or_else(|| vec!["no suite".to_owned()])?;
    let one = |why: String| vec![why];
    if let (Some(records), Some(asked)) = (resumed.as_ref(), first) {
        let probes = Probes::of(suite_read, &inventory, Some(&asked.case)).map_err(one)?;
        let fleet = records
            .first()
            .map(|(_, record)| record.fleet.clone())
            .unwrap_or_else(|| fleet::flat(&inventory, 0));
        let sources = loaded.sources;
        let mut isolation =
            Isolation::new(home, inventory, probes, fleet, asked.clone(), sources, args.ssh_fanout);
        isolation.take_up(records).map_err(|why| vec![format!("--resume: {why}")])?;
        told::heading(&isolation);
        return Ok(Begun::Rounds(Box::new(isolation)));
    }
    for text in &args.sim_faults {
        NodeFault::parse(text)
            .and_then(|fault| run_suites::check_fault(&inventory, fault))
            .and_then(|()| refused_on_real(&inventory))
            .map_err(|why| vec![format!("--sim-fault: {why}")])?;
    }
    let mut nodes = inventory.select(args.nodes.as_deref(), args.exclude_nodes.as_deref()).map_err(one)?;
    let seen = evidence_at_hand(home, args, &suite_read.name, &inventory, &nodes).map_err(one)?;
    if let Some((id, found)) = &seen {
        if found.explains_all {
            told::evidence(&inventory, id, found, nodes.len());
            return Ok(Begun::Told(exit_code::FAILED));
        }
        println!("evidence: run {id} names {} by itself, and that is not all", found.lines.len());
        // What is known to be bad is no part of the search.
        let known: BTreeSet<&str> = found.lines.iter().map(|line| line.node.as_str()).collect();
        nodes.retain(|node| !known.contains(node.as_str()));
    }
    if nodes.len() < FEWEST {
        return Err(vec![format!(
            "{FEWEST} nodes at least are needed, so that something is left to compare with, there are: {}",
            nodeset::fold(&nodes)
        )]);
    }
    let probes = Probes::of(suite_read, &inventory, args.case.as_deref()).map_err(one)?;
    let (fleet, groups) = fleet::of(&inventory, &nodes);
    let asked = Asked {
        suite,
        inventory: args.inventory.clone(),
        case: probes.case.clone(),
        nodes,
        groups,
        budget: args.budget,
        seed: args.seed,
        sim_faults: args.sim_faults.clone(),
    };
    let known = seen.map(|(_, found)| found.lines).unwrap_or_default();
    let mut isolation =
        Isolation::new(home, inventory, probes, fleet, asked, loaded.sources, args.ssh_fanout);
    isolation.known = known;
    told::heading(&isolation);
    let outlook = outlook(&isolation.fleet);
    let each_s = isolation.seconds_each()?;
    told::outlook(&outlook, each_s, args.budget);
    if args.dry_run {
        return Ok(Begun::Told(exit_code::PASSED));
    }
    Ok(Begun::Rounds(Box::new(isolation)))
}

/// The newest run of that suite on that cluster, and what it names by itself. No run, no evidence.
fn evidence_at_hand(
    home: &Home,
    args: &IsolateArgs,
    suite: &str,
    inventory: &Inventory,
    nodes: &[String],
) -> Result<Option<(String, Evidence)>, String> {
    if args.no_evidence {
        return Ok(None);
    }
    let stored = match &args.run {
        Some(word) => Some(super::stored::open(home, word).map_err(|why| format!("--run: {why}"))?),
        None => home.runs().iter().rev().find_map(|folder| {
            let stored = Stored::open(folder).ok()?;
            let plan = &stored.plan;
            let fits = plan.suites.iter().any(|name| name == suite) && plan.inventory == inventory.name;
            let is_round = folder.join(rounds::RECORD).exists();
            (fits && !is_round && folder.join("summary.json").exists()).then_some(stored)
        }),
    };
    let Some(stored) = stored else { return Ok(None) };
    let path = stored.folder().join("summary.json");
    let summary: crate::artefact::Summary = store::read_json(&path).map_err(|error| error.to_string())?;
    let mut found = evidence::of_run(&summary.culprits, &summary.left_out);
    found.lines.retain(|line| nodes.contains(&line.node));
    found.explains_all &= !found.lines.is_empty();
    Ok(Some((summary.run_id, found)))
}

fn refused_on_real(inventory: &Inventory) -> Result<(), String> {
    match inventory.is_simulated() {
        true => Ok(()),
        false => {
            Err(format!("faults exist on a pretend cluster only, and this is a real one: {}", inventory.name))
        }
    }
}

fn hours(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(hours) if hours > 0.0 && hours.is_finite() => Ok(hours),
        _ => Err("node-hours are a number above 0".to_owned()),
    }
}

/// `harness explain`
#[derive(Debug, Parser)]
#[command(name = "harness explain", about = "Tell what a code of a culprit means, and what to do next.")]
pub struct ExplainArgs {
    /// The code, such as `HRN-NIC-SLOW`; all of them where absent
    #[arg(value_name = "CODE")]
    code: Option<String>,
}

pub fn explain(args: &ExplainArgs) -> i32 {
    use crate::isolate::code::{CODES, Code};
    let Some(name) = &args.code else {
        for code in CODES {
            println!("{:<18} {:<9} {}", code.name, code.severity.name(), code.what);
        }
        return exit_code::PASSED;
    };
    match Code::find(name) {
        Some(code) => {
            print!("{}", code.page());
            exit_code::PASSED
        }
        None => {
            let near = crate::suggest::nearest(name, CODES.iter().map(|code| code.name));
            let hint = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
            usage(&format!("no such code, {hint}`harness explain` lists them: `{name}`"))
        }
    }
}
