//! `harness watch-fleet`: its arguments.

use super::{duration, home};
use crate::error::Error;
use crate::library::Library;
use crate::own_recipes;
use crate::session::planning::to_lines;
use crate::session::print_errors;
use crate::watch_fleet::{WatchFleetRequest, watch_fleet};
use clap::Args;
use cluster::reach::openssh;
use std::path::PathBuf;
use std::time::Duration;

const CODES: &str = "\
Each round checks idle nodes by an ordinary run of the suite, as far as the budget goes: suspects \
first, then nodes that came back or are new, then those whose last check is the oldest. A check \
that jobs push aside is no measurement. What falls below its own past and its peers is suspected, \
checked again beside other nodes, and only then an alarm: at most one false alarm in a year of \
1,000 nodes. Its state is in runs/fleet/INVENTORY; it may be ended at any moment.

Exit codes of the last round: 0 no alarm lasts; 1 an alarm lasts, or many nodes fell alike, or the \
suite failed without a culprit; 2 wrong usage; 3 inconclusive: the queue gave no answer, or nothing \
of what was checked was measured; 130/143 interrupted.";

/// `harness watch-fleet`
#[derive(Debug, Args)]
#[command(about = "Check idle nodes for months, within a budget, and report parts that fell.", after_help = CODES)]
pub(super) struct WatchFleetArgs {
    /// The suite of the checks, by name or path: short cases, on one node or pairs
    #[arg(long, value_name = "NAME|PATH")]
    suite: String,
    /// Only this case of the suite; may be repeated
    #[arg(long, value_name = "NAME")]
    case: Vec<String>,
    /// The cluster, by name or path; it says at which low priority jobs are launched
    #[arg(long, value_name = "NAME|PATH", env = "HARNESS_INVENTORY", default_value = "default")]
    inventory: String,
    /// Node-hours of checks, as a percentage of those of all nodes, over 7 days
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "0.5%")]
    budget: f64,
    /// Time between two rounds
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "10m")]
    every: u64,
    /// One round, for cron
    #[arg(long, conflicts_with = "rounds")]
    once: bool,
    /// End after so many rounds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    rounds: Option<u64>,
    /// Only print what would be checked, and why
    #[arg(long)]
    dry_run: bool,
    /// All nodes count as idle, where the cluster cannot be asked: Kubernetes and SSH
    #[arg(long)]
    assume_idle: bool,
    /// Take nodes with an alarm out of the queue of Slurm or Kubernetes
    #[arg(long)]
    drain: bool,
    /// Drain no more nodes at the same time, with those that other calls drained; else 2 %, at most 8
    #[arg(long, value_name = "N", requires = "drain")]
    drain_at_most: Option<u32>,
    /// Write metrics here, for node_exporter's textfile collector: a name that ends in `.prom`
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
    /// Do not probe nodes before a check: exchanged hardware is not noticed
    #[arg(long, conflicts_with = "probe")]
    no_probe: bool,
    /// Probe the nodes of a simulated cluster too
    #[arg(long)]
    probe: bool,
    /// Seed of the order of nodes, and of the simulated cluster
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// A fault of the simulated cluster, such as `p5-002:nic-slow=0.9@rdmap113s0`; may be repeated
    #[arg(long, value_name = "FAULT")]
    sim_fault: Vec<String>,
    /// Connect to at most this many hosts by ssh at the same time
    #[arg(long, value_name = "N", default_value_t = openssh::FANOUT as u32, value_parser = clap::value_parser!(u32).range(1..=1000))]
    ssh_fanout: u32,
}

/// `0.5%`, as a fraction.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').map(str::trim_end).and_then(|number| number.parse::<f64>().ok());
    match number {
        Some(number) if number > 0.0 && number <= 100.0 => Ok(number / 100.0),
        _ => Err("expected a percentage above 0% and up to 100%, such as `0.5%`".to_owned()),
    }
}

pub(super) fn run(args: WatchFleetArgs) -> Result<i32, Error> {
    let home = home()?;
    let code = own_recipes::load(Some(&Library::for_project(home.path())), None)
        .map_err(|diagnostics| to_lines(&diagnostics))
        .and_then(|catalogue| {
            let request = WatchFleetRequest {
                suite: args.suite,
                cases: args.case,
                inventory: args.inventory,
                budget: args.budget,
                every: Duration::from_secs(args.every),
                rounds: if args.once { Some(1) } else { args.rounds },
                dry_run: args.dry_run,
                assume_idle: args.assume_idle,
                drain: args.drain.then_some(args.drain_at_most),
                metrics: args.metrics,
                no_probe: args.no_probe,
                probe: args.probe,
                seed: args.seed,
                sim_faults: args.sim_fault,
                ssh_fanout: args.ssh_fanout,
                catalogue,
            };
            watch_fleet(&home, &request)
        });
    Ok(code.unwrap_or_else(|diagnostics| print_errors(&diagnostics)))
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn a_budget_is_a_percentage() {
        assert_eq!(percent("0.5%"), Ok(0.005));
        assert_eq!(percent("100 %"), Ok(1.0));
        for text in ["0.5", "0%", "-1%", "101%", "NaN%", "inf%", "%", ""] {
            assert!(percent(text).is_err(), "{text}");
        }
    }
}
