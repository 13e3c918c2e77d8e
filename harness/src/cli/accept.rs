//! `harness accept`: its arguments.

use super::home;
use crate::accept::accept;
use crate::accept::request::AcceptRequest;
use crate::error::Error;
use crate::report::json::document;
use crate::session::output::{Output, print_quietly};
use clap::Args;
use cluster::reach::openssh;
use config::suite::Soak;
use std::path::PathBuf;

const CODES: &str = "\
Exit codes: 0 all are accepted; 1 some are rejected (beats 3); 2 wrong usage; 3 some are not decided: something was not \
measured, was inconclusive, or the budget ran out; 130/143 interrupted, `--resume DIR` continues.

With --format json stdout holds the certificate as in `acceptance.json`, and nothing where the delivery did not come to its \
end; progress goes to stderr.";

/// `harness accept`
#[derive(Debug, Args)]
#[command(
    about = "Accept or reject new nodes: preflight, each by itself, soak, pairs, groups, all at once; with a certificate.",
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
    /// Nodes that are known to be good, or `none`; those of the inventory's others that the last passing run was on,
    /// where absent
    #[arg(long, value_name = "RANGE")]
    partners: Option<String>,
    /// How long each node is loaded in the stage `soak`, such as `24h`; 0 leaves it out; as the suite says, where absent
    #[arg(long, value_name = "LENGTH", value_parser = soak_s)]
    soak: Option<u32>,
    /// Start no run that would exceed this many node-hours in total
    #[arg(long, value_name = "NODE-HOURS", value_parser = super::node_hours)]
    budget: Option<f64>,
    /// The folder of the delivery; one of its own below `deliveries`, where absent
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Make a copy for the vendor too, without names of hosts, users, paths, addresses and clusters
    #[arg(long)]
    sanitise: bool,
    /// Nodes on which a case was skipped, since its program is not installed, are not decided
    #[arg(long)]
    strict: bool,
    /// Nodes whose GPUs are in use take part
    #[arg(long)]
    allow_busy: bool,
    /// Only print what it would cost
    #[arg(long)]
    dry_run: bool,
    /// Resume a delivery that was interrupted: its folder
    #[arg(long, value_name = "DIR", conflicts_with_all = ["nodes", "suite", "partners", "output", "dry_run", "allow_busy", "soak"])]
    resume: Option<PathBuf>,
    /// Seed of the simulated cluster
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// A fault of the simulated cluster, such as `p5-040:nic-slow=0.4@rdmap113s0`; may be repeated
    #[arg(long = "sim-fault", value_name = "NODE:FAULT")]
    sim_faults: Vec<String>,
    /// Connect to at most this many hosts by ssh at the same time
    #[arg(long, value_name = "N", default_value_t = openssh::FANOUT as u32, value_parser = clap::value_parser!(u32).range(1..=1000))]
    ssh_fanout: u32,
    /// text, or json: the certificate as one object
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    format: String,
}

pub(super) fn run(args: AcceptArgs) -> Result<i32, Error> {
    let output = Output::from_format(&args.format);
    if args.dry_run && output == Output::Stderr {
        return Err(Error::Usage("--dry-run makes no certificate: leave out `--format json`".to_owned()));
    }
    let (code, acceptance) = accept(&home()?, &args.into_request(), output);
    if let (Output::Stderr, Some(acceptance)) = (output, acceptance) {
        print_quietly(&document(&acceptance));
    }
    Ok(code)
}

fn soak_s(text: &str) -> Result<u32, String> {
    match text {
        "0" => Ok(0),
        text => Soak::length_s(text)
            .ok_or_else(|| "a length is written `24h`, `90 min` or `0` for no soak".to_owned()),
    }
}

impl AcceptArgs {
    fn into_request(self) -> AcceptRequest {
        let AcceptArgs {
            nodes,
            suite,
            inventory,
            partners,
            soak,
            budget,
            output,
            sanitise,
            strict,
            allow_busy,
            dry_run,
            resume,
            seed,
            sim_faults,
            ssh_fanout,
            format: _,
        } = self;
        AcceptRequest {
            nodes,
            suite,
            inventory,
            partners,
            soak_s: soak,
            budget,
            out: output,
            sanitise,
            strict,
            allow_busy,
            dry_run,
            resume,
            seed,
            sim_faults,
            ssh_fanout,
        }
    }
}
