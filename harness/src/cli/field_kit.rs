//! `harness field-kit`: checks which assumptions of the harness hold on a cluster, and packs the evidence.

use super::{home, usage};
use crate::error::Error;
use crate::session::reached::{ReachScope, Reached};
use crate::session::{load, report_error, run_cluster};
use base::text::count;
use clap::Args;
use cluster::field_kit::{self, Evidence, Finding, Gathering};
use cluster::interrupt;
use cluster::probe::NotMade;
use cluster::reach::openssh;
use cluster::run::Clock;
use config::inventory::Inventory;
use model::exit_code;
use serde::Serialize;
use sim::SimulatedReach;
use std::collections::BTreeMap;
use std::path::PathBuf;
use store::{self, Home};

const ABOUT: &str = "Check read-only which assumptions of the harness hold on a cluster, and pack the evidence into one file without names and \
secrets. Runs a short command on a few nodes, and nothing else.";

const CODES: &str = "Exit codes:
  0    every assumption holds
  1    an assumption does not hold
  2    usage or configuration error, no node was asked
  3    an assumption could not be checked, or nothing could be packed
  130  interrupted (143: terminated)";

/// `harness field-kit`
#[derive(Debug, Args)]
#[command(about = ABOUT, after_help = CODES)]
pub(super) struct FieldKitArgs {
    /// The cluster, by name or path
    #[arg(long, value_name = "NAME|PATH", env = "HARNESS_INVENTORY", default_value = "default")]
    inventory: String,
    /// Ask these nodes only, such as `p5-[001-002]` or `@group`
    #[arg(long, value_name = "RANGE")]
    nodes: Option<String>,
    /// Ask at most this many nodes, idle ones first
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=16))]
    most_nodes: u32,
    /// The file to write; by default `field-kit-UTC.tar.gz` in this folder
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How it is printed, for people or for programs
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    format: String,
    /// Also list what holds, and how each assumption was checked
    #[arg(short, long)]
    verbose: bool,
    /// Seed of a simulated cluster
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

#[derive(Serialize)]
struct Report<'a> {
    simulated: bool,
    inventory: &'a str,
    nodes: Vec<&'a str>,
    findings: &'a [Finding],
}

pub(super) fn run(args: &FieldKitArgs) -> Result<i32, Error> {
    let home = home()?;
    Ok(check(&home, args))
}

fn check(home: &Home, args: &FieldKitArgs) -> i32 {
    let output = args
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("{}.tar.gz", store::new_run_id("field-kit"))));
    // Asked before any node is: a person should not wait for a refusal.
    if output.exists() {
        return usage(&format!("--output: `{}` already exists", output.display()));
    }
    let (inventory, nodes) = match chosen(home, args) {
        Ok(chosen) => chosen,
        Err(code) => return code,
    };
    interrupt::watch_terminal();
    let simulated = inventory.is_simulated();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(simulated).build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return report_error(&error.to_string()),
    };
    let evidence = match runtime.block_on(gathered(&inventory, &nodes, args)) {
        Ok(evidence) => evidence,
        Err(code) => return code,
    };
    let findings = field_kit::check(&evidence);
    show(&evidence, &findings, args);
    let at = store::iso8601(match simulated {
        true => SimulatedReach::epoch_unix_s(args.seed) as f64,
        false => store::wall_clock_s(),
    });
    let packed = field_kit::pack(&evidence, &findings, &at, &store::redactor(), &output);
    let [_, differs, not_seen] = field_kit::counts(&findings);
    match packed {
        Ok(packed) => {
            eprintln!(
                "written: {} ({}, names and secrets removed; review it before you send it)",
                output.display(),
                count(packed.files, "file")
            );
            match (differs, not_seen) {
                (0, 0) => exit_code::PASSED,
                (0, _) => exit_code::INCONCLUSIVE,
                _ => exit_code::FAILED,
            }
        }
        Err(why) => report_error(&why),
    }
}

fn chosen(home: &Home, args: &FieldKitArgs) -> Result<(Inventory, Vec<String>), i32> {
    let loaded = load::without_suite(home, &args.inventory).map_err(|diagnostics| {
        diagnostics.iter().for_each(|diagnostic| eprintln!("error: {diagnostic}"));
        exit_code::USAGE
    })?;
    let nodes = loaded.inventory.select(args.nodes.as_deref(), None).map_err(|why| usage(&why))?;
    Ok((loaded.inventory, nodes))
}

async fn gathered<'a>(
    inventory: &'a Inventory,
    nodes: &'a [String],
    args: &FieldKitArgs,
) -> Result<Evidence<'a>, i32> {
    let name = store::new_run_id("field-kit");
    let most_nodes = args.most_nodes as usize;
    let evidence = if inventory.is_simulated() {
        let reach = SimulatedReach::new(inventory, args.seed, Vec::new(), BTreeMap::new());
        let reach = reach.map_err(|why| report_error(&why))?;
        let clock = Clock::starting_at(SimulatedReach::epoch_unix_s(args.seed) as f64);
        let gathering = Gathering { inventory, nodes, most_nodes, reach: &reach, clock, name: &name };
        let evidence = field_kit::gather(&gathering).await;
        let broken = reach.violations();
        if !broken.is_empty() {
            let broken = broken.join("; ");
            return Err(report_error(&format!("the simulated cluster detected a violation: {broken}")));
        }
        evidence
    } else {
        let scope =
            ReachScope { run: &name, nodes, seed: args.seed, fanout: openssh::FANOUT, has_folder: false };
        let reached = Reached::new(inventory, &scope);
        let reached = reached.map_err(|why| report_error(&why))?;
        run_cluster::check_named(inventory).await.map_err(|why| report_error(&why))?;
        reached.begin().await;
        let clock = Clock::starting_at(store::wall_clock_s());
        let gathering =
            Gathering { inventory, nodes, most_nodes, reach: reached.reach(), clock, name: &name };
        let evidence = field_kit::gather(&gathering).await;
        reached.end().await;
        evidence
    };
    evidence.map_err(|NotMade::Interrupted(code)| {
        eprintln!("interrupted: nothing was packed");
        code
    })
}

fn show(evidence: &Evidence<'_>, findings: &[Finding], args: &FieldKitArgs) {
    let inventory = evidence.inventory;
    let nodes: Vec<&str> = evidence.nodes.iter().map(|node| node.node.as_str()).collect();
    let text = match args.format == "json" {
        true => {
            let report =
                Report { simulated: inventory.is_simulated(), inventory: &inventory.name, nodes, findings };
            serde_json::to_string_pretty(&report).unwrap_or_default() + "\n"
        }
        false => {
            let mark = if inventory.is_simulated() { "SIMULATED\n" } else { "" };
            mark.to_owned() + &field_kit::render(findings, &inventory.name, nodes.len(), args.verbose)
        }
    };
    crate::standard_output::print(text.as_bytes());
}
