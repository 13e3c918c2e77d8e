//! `harness bisect`: its arguments.

use super::home;
use crate::bisect::{BisectRequest, bisect};
use crate::error::Error;
use crate::library::Library;
use crate::own_recipes;
use crate::session::planning::to_lines;
use crate::session::print_errors;
use clap::Args;
use cluster::reach::openssh;
use std::path::PathBuf;

const CODES: &str = "\
A stack is what a run is made with in place of what the inventory says: `image=IMAGE`, an \
environment variable `NAME=VALUE`, one taken out `NAME=`, or a path `paths.nccl_tests=/opt/tests`. \
A word without `=` is an image. What --good sets and --bad does not is as in the inventory again. \
Without --between the settings that differ are changed one at a time. Runs of both sides alternate \
on the same nodes, until the step lies between two neighbours with a probability of 99.4 %, by a \
model of normal noise. Earlier runs in `runs` of the good or the bad stack, with the same jobs on the \
same nodes, count too; `--no-earlier-runs` leaves them out.

Exit codes: 0 the bad stack is not worse; 1 the setting that makes it worse is named; 2 wrong usage; \
3 inconclusive: pairs or budget ran out, a stack does not run or returns wrong data, or one setting \
alone does not explain it; 130/143 interrupted, `--resume` continues.";

/// `harness bisect`
#[derive(Debug, Args)]
#[command(about = "Find the setting, version or image that made a case slower, in pairs of runs.", after_help = CODES)]
pub(super) struct BisectArgs {
    /// The suite, by name or path
    #[arg(long, value_name = "NAME|PATH", required_unless_present = "resume")]
    suite: Option<String>,
    /// The cluster, by name or path
    #[arg(long, value_name = "NAME|PATH", env = "HARNESS_INVENTORY", default_value = "default")]
    inventory: String,
    /// Run on these nodes of the inventory only, such as `p5-[001-004]` or `@group`
    #[arg(long, value_name = "RANGE")]
    nodes: Option<String>,
    /// Leave these nodes out
    #[arg(long, value_name = "RANGE")]
    exclude_nodes: Option<String>,
    /// Run this case of the suite, instead of the first that spans nodes
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
    /// Compare this metric, instead of the first rate or time that the case asserts
    #[arg(long, value_name = "NAME")]
    metric: Option<String>,
    /// A setting of the good stack, such as `image=REGISTRY/IMAGE:TAG` or `NCCL_ALGO=Ring`; may be repeated
    #[arg(long, value_name = "SETTING")]
    good: Vec<String>,
    /// A setting of the bad stack; may be repeated
    #[arg(long, value_name = "SETTING", required_unless_present = "resume")]
    bad: Vec<String>,
    /// The stacks between the two in their order, one on each line of this file
    #[arg(long, value_name = "FILE")]
    between: Option<PathBuf>,
    /// Make at most so many pairs of runs; else 60
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pairs: Option<u32>,
    /// Start no run that would exceed this many node-hours in total
    #[arg(long, value_name = "NODE-HOURS", value_parser = super::node_hours)]
    budget: Option<f64>,
    /// Start on all nodes without probing them
    #[arg(long, conflicts_with = "probe")]
    no_probe: bool,
    /// Probe the nodes of a simulated cluster too, before the first pair
    #[arg(long)]
    probe: bool,
    /// Nodes whose GPUs are in use take part
    #[arg(long)]
    allow_busy: bool,
    /// Run inside this reservation of Slurm, whatever the inventory says
    #[arg(long, value_name = "NAME")]
    reservation: Option<String>,
    /// Count no run that was made before
    #[arg(long)]
    no_earlier_runs: bool,
    /// Only print what it would cost
    #[arg(long)]
    dry_run: bool,
    /// Resume a bisection that was interrupted: any run of it, or `latest`
    #[arg(long, value_name = "ID|PATH", conflicts_with_all = ["suite", "inventory", "seed", "nodes", "exclude_nodes", "case", "metric", "good", "bad", "between", "dry_run", "reservation", "probe", "no_probe", "no_earlier_runs"])]
    resume: Option<String>,
    /// Seed of the simulated cluster
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Connect to at most this many hosts by ssh at the same time
    #[arg(long, value_name = "N", default_value_t = openssh::FANOUT as u32, value_parser = clap::value_parser!(u32).range(1..=1000))]
    ssh_fanout: u32,
}

pub(super) fn run(args: BisectArgs) -> Result<i32, Error> {
    let home = home()?;
    let code = own_recipes::load(Some(&Library::for_project(home.path())), None)
        .map_err(|diagnostics| to_lines(&diagnostics))
        .and_then(|catalogue| {
            let request = BisectRequest {
                suite: args.suite,
                inventory: args.inventory,
                nodes: args.nodes,
                exclude_nodes: args.exclude_nodes,
                case: args.case,
                metric: args.metric,
                good: args.good,
                bad: args.bad,
                between: args.between,
                pairs: args.pairs.map(|pairs| pairs as usize),
                budget: args.budget,
                no_earlier_runs: args.no_earlier_runs,
                no_probe: args.no_probe,
                probe: args.probe,
                allow_busy: args.allow_busy,
                reservation: args.reservation,
                dry_run: args.dry_run,
                resume: args.resume,
                seed: args.seed,
                ssh_fanout: args.ssh_fanout,
                catalogue,
            };
            bisect(&home, &request)
        });
    Ok(code.unwrap_or_else(|diagnostics| print_errors(&diagnostics)))
}
