//! `harness isolate`: its arguments.

use super::home;
use crate::error::Error;
use crate::isolate::isolate;
use crate::isolate::recheck::{RecheckRequest, recheck};
use crate::isolate::request::{DrainRequest, IsolationRequest};
use crate::library::Library;
use crate::own_recipes;
use crate::report::json::document;
use crate::session::output::{Output, print_quietly};
use crate::session::planning::to_lines;
use crate::session::print_errors;
use clap::Args;
use cluster::reach::openssh;
use recipes::catalogue::Catalogue;
use std::path::PathBuf;

const CODES: &str = "\
Draining: only --drain drains nodes. It takes nodes out of the queue of Slurm whose culprits are of severity replace, \
reboot or reset, never suspects, each for the reason `[harness] CODE PART: EVIDENCE, run ID`; in Kubernetes it cordons \
them, with a taint and the reason. A reason that is not the harness's stays, as does a cordon, and isolate prints it. It \
asks before it drains; without a terminal --yes is needed. No more nodes than one, or 2 % of the inventory's, 8 at most, \
are drained by the harness at the same time: where more would be, none is, and --drain-at-most N allows N. A job that \
came to its time limit once drains none.
--resume-drained runs --suite on each node that is drained for such a reason, together with an idle node, in a \
reservation that keeps others off it (in Kubernetes it stays cordoned); it is put back only where that run exits 0 and \
judged on it what it is blamed for, by the run that its reason names.

Exit codes: 0 no culprit; 1 culprits are named; 2 wrong usage; 3 inconclusive: something stayed open, the budget \
ran out, or the machinery failed; 130/143 interrupted, `--resume` continues. With --resume-drained: 0 all that were ours \
are in the queue again; 1 a re-check has failed; 3 a re-check was inconclusive, or could not be made.

With --format json stdout holds one object: `culprits` and `good` as in `outcome` of the last round's `isolation.json`, the \
runs of its `rounds`, `node_hours`, `simulated` and `exit_code`; and nothing where it was interrupted or the machinery \
failed. Progress goes to stderr.";

/// `harness isolate`
#[derive(Debug, Args)]
#[command(
    about = "Find the faulty component behind a failed suite, in as few runs as possible.",
    after_help = CODES
)]
pub(super) struct IsolateArgs {
    /// The suite that failed, by name or path; that of --run where absent
    #[arg(long, value_name = "NAME|PATH", required_unless_present_any = ["resume", "run"])]
    suite: Option<String>,
    /// The cluster, by name or path; that of --run where absent
    #[arg(long, value_name = "NAME|PATH", env = "HARNESS_INVENTORY", default_value = "default")]
    inventory: String,
    /// Whether the command line names it.
    #[arg(skip)]
    pub(super) is_inventory_typed: bool,
    /// Look among these nodes of the inventory only, such as `p5-[001-032]` or `@group`; those of --run where absent
    #[arg(long, value_name = "RANGE")]
    nodes: Option<String>,
    /// Leave these nodes out
    #[arg(long, value_name = "RANGE")]
    exclude_nodes: Option<String>,
    /// Start no round that would exceed this many node-hours in total
    #[arg(long, value_name = "NODE-HOURS", value_parser = super::node_hours)]
    budget: Option<f64>,
    /// Run this case of the suite on sets of nodes, instead of the first that spans nodes
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
    /// The run whose evidence is looked at first; else the newest of that suite and inventory
    #[arg(long, value_name = "ID|PATH", conflicts_with = "no_evidence")]
    run: Option<String>,
    /// Ignore the evidence of earlier runs
    #[arg(long)]
    no_evidence: bool,
    /// Start on all nodes without probing them
    #[arg(long, conflicts_with = "probe")]
    no_probe: bool,
    /// Probe the nodes of a simulated cluster too, before the first round
    #[arg(long)]
    probe: bool,
    /// Nodes whose GPUs are in use take part
    #[arg(long)]
    allow_busy: bool,
    /// Run inside this reservation of Slurm, whatever the inventory says
    #[arg(long, value_name = "NAME")]
    reservation: Option<String>,
    /// Drain the culprits from Slurm or Kubernetes, where their severity asks for it
    #[arg(long, conflicts_with = "dry_run")]
    drain: bool,
    /// With --drain: the harness has at most so many nodes drained, with those of earlier calls; else 2 % of the
    /// inventory's, one at least and 8 at most
    #[arg(long, value_name = "N", requires = "drain", value_parser = clap::value_parser!(u32).range(1..))]
    drain_at_most: Option<u32>,
    /// With --drain: drain without asking
    #[arg(long, requires = "drain")]
    yes: bool,
    /// Re-check nodes that the harness drained, and resume those that pass
    #[arg(long, requires = "suite", conflicts_with_all = ["drain", "resume", "dry_run", "case", "run", "no_evidence", "budget", "seed", "sim_faults", "reservation"])]
    resume_drained: bool,
    /// Only print what it would cost
    #[arg(long)]
    dry_run: bool,
    /// Resume an isolation that was interrupted: any run of it, or `latest`
    #[arg(long, value_name = "ID|PATH", conflicts_with_all = ["suite", "nodes", "exclude_nodes", "case", "run", "no_evidence", "dry_run", "budget", "reservation"])]
    resume: Option<String>,
    /// Seed of the simulated cluster
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// A fault of the simulated cluster, such as `p5-002:nic-slow=0.4@rdmap113s0`; may be repeated
    #[arg(long = "sim-fault", value_name = "NODE:FAULT")]
    sim_faults: Vec<String>,
    /// Connect to at most this many hosts by ssh at the same time
    #[arg(long, value_name = "N", default_value_t = openssh::FANOUT as u32, value_parser = clap::value_parser!(u32).range(1..=1000))]
    ssh_fanout: u32,
    /// text, or json: the outcome as one object
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    format: String,
}

pub(super) fn run(args: IsolateArgs) -> Result<i32, Error> {
    let home = home()?;
    let output = Output::from_format(&args.format);
    if output == Output::Stderr && (args.dry_run || args.resume_drained) {
        let flag = if args.dry_run { "--dry-run" } else { "--resume-drained" };
        return Err(Error::Usage(format!(
            "{flag} has no outcome of an isolation: leave out `--format json`"
        )));
    }
    let code = match args.resume_drained {
        true => recheck(&home, &args.into_recheck()),
        false => own_recipes::load(Some(&Library::for_project(home.path())), None)
            .map_err(|diagnostics| to_lines(&diagnostics))
            .and_then(|catalogue| isolate(&home, &args.into_request(catalogue), output))
            .map(|outcome| {
                if let (Output::Stderr, Some(found)) = (output, outcome.json()) {
                    print_quietly(&document(&found));
                }
                outcome.code
            }),
    };
    Ok(code.unwrap_or_else(|diagnostics| print_errors(&diagnostics)))
}

impl IsolateArgs {
    fn into_request(self, catalogue: Catalogue) -> IsolationRequest {
        let drain = DrainRequest { at_most: self.drain_at_most, yes: self.yes, command: own_command() };
        IsolationRequest {
            catalogue,
            suite: self.suite,
            inventory: self.inventory,
            is_inventory_typed: self.is_inventory_typed,
            nodes: self.nodes,
            exclude_nodes: self.exclude_nodes,
            budget: self.budget,
            case: self.case,
            run: self.run,
            no_evidence: self.no_evidence,
            no_probe: self.no_probe,
            probe: self.probe,
            allow_busy: self.allow_busy,
            reservation: self.reservation,
            drain: self.drain.then_some(drain),
            dry_run: self.dry_run,
            resume: self.resume,
            seed: self.seed,
            sim_faults: self.sim_faults,
            ssh_fanout: self.ssh_fanout,
            caused_by: None,
        }
    }

    fn into_recheck(self) -> RecheckRequest {
        let recipe_path = std::env::var_os("HARNESS_RECIPE_PATH").filter(|path| !path.is_empty());
        RecheckRequest {
            suite: self.suite.unwrap_or_default(),
            inventory: self.inventory,
            nodes: self.nodes,
            exclude_nodes: self.exclude_nodes,
            recipe_path: recipe_path.map(PathBuf::from),
            ssh_fanout: self.ssh_fanout,
        }
    }
}

/// This call again, with the consent that it lacked.
fn own_command() -> String {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let joined = shlex::try_join(arguments.iter().map(String::as_str));
    format!("`harness {} --yes`", joined.unwrap_or_else(|_| arguments.join(" ")))
}
