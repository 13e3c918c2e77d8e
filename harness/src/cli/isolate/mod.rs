//! `harness isolate`: from a suite that went badly to the part that makes it, in rounds of ordinary runs. Which runs a round
//! has is decided in `verdict::isolate`; here they are launched, counted and told.

pub(super) mod after;
mod chase;
mod consent;
mod drained;
pub(super) mod fleet;
mod fleetwide;
mod rounds;
mod seen;
pub(super) mod told;
mod voice;

use super::{home, load, no_home, usage};
use clap::Parser;
use cluster::interrupt;
use cluster::reach::openssh;
use config::inventory::Inventory;
use model::exit_code;
use store::Home;
use voice::Voice;

const CODES: &str = "\
Draining: nothing is drained unasked. --drain takes nodes out of Slurm's queue whose culprits are of severity replace,
reboot or reset, never suspects, each for the reason `[harness] CODE PART: EVIDENCE, run ID`. What somebody else said of
a node stands, and isolate prints it. It asks before it drains; without a terminal --yes is needed. No more nodes than one, or 2 % of
the inventory's, 8 at most, are drained by the harness at the same time: where more would be, none is, and --drain-at-most N
allows N. A job that came to its time limit once drains none. --resume-drained runs --suite on each node that is drained for
such a reason, together with an idle node, in a reservation that keeps others off it; it stays in the queue only where that
run exits 0.

Exit codes: 0 no culprit; 1 culprits are named; 2 wrong usage; 3 could not tell: something stayed open, the budget
ended it, or the machinery failed; 130/143 interrupted, `--resume` goes on. With --resume-drained: 0 all that were ours
are in the queue again; 1 a re-check has failed; 3 one could not tell, or could not be made.";

/// `harness isolate`
#[derive(Debug, Parser)]
#[command(
    name = "harness isolate",
    about = "Find the part that makes a suite red, with as few runs as it takes.",
    after_help = CODES
)]
pub(super) struct IsolateArgs {
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
    /// Run inside this reservation of Slurm, whatever the inventory says
    #[arg(long, value_name = "NAME")]
    reservation: Option<String>,
    /// Drain the nodes that are named, where Slurm is and their severity asks for it
    #[arg(long, conflicts_with = "dry_run")]
    drain: bool,
    /// With --drain: the harness has at most so many nodes drained, with those of earlier calls; else 2 % of the
    /// inventory's, one at least and 8 at most
    #[arg(long, value_name = "N", requires = "drain", value_parser = clap::value_parser!(u32).range(1..))]
    drain_at_most: Option<u32>,
    /// With --drain: drain without asking
    #[arg(long, requires = "drain")]
    yes: bool,
    /// Look again at nodes that were drained so, and put back into the queue what passes
    #[arg(long, requires = "suite", conflicts_with_all = ["drain", "resume", "dry_run", "case", "run", "no_evidence", "budget", "seed", "sim_faults", "reservation"])]
    resume_drained: bool,
    /// Only tell what it would cost
    #[arg(long)]
    dry_run: bool,
    /// Go on with an isolation that was ended: any run of it, or `latest`
    #[arg(long, value_name = "ID|PATH", conflicts_with_all = ["suite", "nodes", "exclude_nodes", "case", "run", "no_evidence", "dry_run", "budget", "reservation"])]
    resume: Option<String>,
    /// Seed of the simulated cluster
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// A fault of the simulated cluster, such as `p5-002:nic-slow=0.4@rdmap113s0`; may be repeated
    #[arg(long = "sim-fault", value_name = "NODE:FAULT")]
    sim_faults: Vec<String>,
    /// Connect to at most so many hosts by ssh at the same time
    #[arg(long, value_name = "N", default_value_t = openssh::FANOUT as u32, value_parser = clap::value_parser!(u32).range(1..=1000))]
    ssh_fanout: u32,
}

pub(super) fn run(args: &IsolateArgs) -> i32 {
    let Some(home) = home() else { return no_home() };
    if args.resume_drained {
        return match drained_nodes(&home, args) {
            Ok((inventory, nodes)) => {
                interrupt::watch();
                drained::resume(&inventory, &nodes, args)
            }
            Err(diagnostics) => wrong(&diagnostics),
        };
    }
    match chase::chase(&home, args, Voice::Out, None) {
        Ok(chased) => chased.code,
        Err(diagnostics) => wrong(&diagnostics),
    }
}

fn wrong(diagnostics: &[String]) -> i32 {
    for diagnostic in diagnostics {
        eprintln!("error: {diagnostic}");
    }
    exit_code::USAGE
}

/// The nodes that `--resume-drained` looks at.
fn drained_nodes(home: &Home, args: &IsolateArgs) -> Result<(Inventory, Vec<String>), Vec<String>> {
    let suite = args.suite.clone().unwrap_or_default();
    let inventory = load::load(home, &[suite], &args.inventory, None)?.inventory;
    let flag = "--resume-drained";
    drained::refused(&inventory, flag).map_err(|why| vec![why])?;
    if inventory.is_simulated() {
        let why = format!("{flag}: a simulated cluster forgets who was drained: `{}`", inventory.name);
        return Err(vec![why]);
    }
    let nodes = inventory.select(args.nodes.as_deref(), args.exclude_nodes.as_deref());
    Ok((inventory, nodes.map_err(|why| vec![why])?))
}

pub(super) fn hours(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(hours) if hours > 0.0 && hours.is_finite() => Ok(hours),
        _ => Err("node-hours are a number above 0".to_owned()),
    }
}

/// `harness explain`
#[derive(Debug, Parser)]
#[command(name = "harness explain", about = "Tell what a code of a culprit means, and what to do next.")]
pub(super) struct ExplainArgs {
    /// The code, such as `HRN-NIC-SLOW`; all of them where absent
    #[arg(value_name = "CODE")]
    code: Option<String>,
}

pub(super) fn explain(args: &ExplainArgs) -> i32 {
    use verdict::isolate::code::{CODES, Code};
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
            let near = base::suggest::nearest(name, CODES.iter().map(|code| code.name));
            let hint = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
            usage(&format!("no such code, {hint}`harness explain` lists them: `{name}`"))
        }
    }
}
