//! `harness history`: how a metric changed from run to run, or which parts were blamed before; for a person or a program.

mod filter;
mod program;
mod suspects;
mod text;

use super::home;
use crate::accept::certificate_files;
use crate::error::Error;
use crate::memory;
use crate::publish::{is_remote, open_runs};
use crate::report::not_counted;
use crate::session::load;
use base::text::show;
use clap::Args;
use model::exit_code;
use recipes::catalogue::Catalogue;
use std::collections::BTreeSet;
use std::path::PathBuf;
use store::Home;
use verdict::history::past::{self, Outlines, Past, RunKind};
use verdict::history::series::{self, Found};

const ABOUT: &str = "\
Changes are found by a rank test: a step or a drift is reported if the same runs in random order would show one in fewer than \
1 of 100 queries, and if it is more than 2 % of a bandwidth (5 % of other metrics). That takes about ten runs.

Exit codes: 0 reported; 2 wrong usage, or there is no run; 3 no run has measured it.";

/// `harness history`
#[derive(Debug, Args)]
#[command(
    about = "Show how a metric changed from run to run, or which parts were blamed before.",
    after_help = ABOUT
)]
pub(super) struct HistoryArgs {
    /// The metric, such as `nccl.busbw`
    #[arg(value_name = "METRIC", required_unless_present = "suspects", conflicts_with = "suspects")]
    metric: Option<String>,
    /// Show which nodes and parts were blamed, how often, and whether they were cleared since
    #[arg(long)]
    suspects: bool,
    /// Only of these: a dimension of the metric (`op=all_reduce`, `size=1GiB`, `node=p5-001`), or `suite`, `instance`,
    /// `nodes`; with --suspects `node`, `part` or `inventory`
    #[arg(long = "where", value_name = "KEY=VALUE", value_parser = super::key_and_value, num_args = 1..)]
    only: Vec<(String, String)>,
    /// Runs of this kind: measured, simulated, or of a suite that goes red on purpose, such as `canary`; by default the
    /// kind of the inventory
    #[arg(long, value_name = "KIND", value_parser = RunKind::ALL.map(RunKind::name))]
    kind: Option<String>,
    /// The inventory, whose kind is the default
    #[arg(long, value_name = "NAME|PATH", env = "HARNESS_INVENTORY", default_value = "default")]
    inventory: String,
    /// The folder of runs, or the URL below which runs are published, such as `s3://BUCKET/runs`, of which the newest 100
    /// are read; by default the project's
    #[arg(long, value_name = "DIR|URL")]
    runs: Option<PathBuf>,
    /// How many of the newest runs a metric is read from
    #[arg(long, value_name = "N", default_value_t = 1_000, conflicts_with = "suspects")]
    last: usize,
    /// How it is printed, for people or for programs
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json", "csv"])]
    format: String,
}

pub(super) fn run(args: &HistoryArgs) -> Result<i32, Error> {
    let home = home()?;
    let folder = args.runs.clone().unwrap_or_else(|| home.path().join("runs"));
    let deliveries = home.path().join("deliveries");
    if args.runs.is_none() && !folder.exists() {
        let of_delivery = certificate_files::hint_at_runs(&deliveries).unwrap_or_default();
        let why = format!("no runs here yet; make one with `harness run --suite NAME`{of_delivery}");
        return Err(Error::Usage(why));
    }
    let remote = match &args.runs {
        Some(url) if is_remote(url) => {
            memory::limit();
            Some(open_runs(&url.to_string_lossy(), args.last)?)
        }
        _ => None,
    };
    let past = match &remote {
        Some(runs) => past::read(runs.folder()).map_err(Error::Usage)?,
        None => {
            let Outlines { past, notes, .. } = past::outlines(&folder, None).map_err(Error::Usage)?;
            notes.iter().for_each(|note| eprintln!("{}", show(note)));
            past
        }
    };
    if past.runs.is_empty() {
        eprint!("{}", not_counted(&past));
        let folder = folder.display();
        return Err(Error::Usage(format!("no runs in `{folder}`; give a folder of runs with --runs")));
    }
    let kind = kind(&home, args).map_err(Error::Usage)?;
    let kinds: Vec<&str> =
        past.runs.iter().map(|run| run.kind().name()).collect::<BTreeSet<_>>().into_iter().collect();
    let past = past.only(kind);
    if past.runs.is_empty() {
        let (kind, folder, others) = (kind.name(), folder.display(), kinds.join("`, `--kind "));
        return Err(Error::Usage(format!(
            "no {kind} runs in `{folder}`; there are some with `--kind {others}`"
        )));
    }
    let rendered = match &args.metric {
        Some(metric) => metric_report(&past, metric, args),
        None => suspects::render(&past, &args.only, &args.format),
    };
    let (text, code) = rendered.map_err(Error::Usage)?;
    if let Some(apart) =
        certificate_files::runs_apart(&deliveries).filter(|_| args.suspects && args.runs.is_none())
    {
        eprintln!("not read: {}", show(&apart));
    }
    crate::standard_output::print(text.as_bytes());
    Ok(code)
}

fn kind(home: &Home, args: &HistoryArgs) -> Result<RunKind, String> {
    let named = args.kind.as_ref().and_then(|name| RunKind::ALL.into_iter().find(|kind| kind.name() == name));
    if let Some(kind) = named {
        return Ok(kind);
    }
    let loaded = load::without_suite(home, &args.inventory);
    let inventory =
        loaded.map_err(|errors| format!("{}; or choose with --kind", errors.join("; ")))?.inventory;
    Ok(if inventory.is_simulated() { RunKind::Simulated } else { RunKind::Real })
}

fn metric_report(past: &Past, metric: &str, args: &HistoryArgs) -> Result<(String, i32), String> {
    let mut asked = filter::read(metric, &args.only)?;
    asked.first = past.runs.len().saturating_sub(args.last);
    let found: Found = series::find(past, &asked);
    let is_measured =
        found.series.iter().any(|series| series.points.iter().any(|point| point.value.is_some()));
    if !is_measured {
        filter::is_known(metric, &Catalogue::built_in())?;
        filter::is_there(past, &asked)?;
    }
    let code = if is_measured { exit_code::PASSED } else { exit_code::INCONCLUSIVE };
    let text = match args.format.as_str() {
        "json" => program::json(past, metric, asked.first, &found),
        "csv" => program::csv(past, metric, &found),
        _ => text::text(past, metric, asked.first, &found),
    };
    Ok((text, code))
}
