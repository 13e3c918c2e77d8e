//! `harness trace`: its arguments.

use super::home;
use crate::error::Error;
use crate::memory;
use crate::publish::RemoteInputs;
use crate::session::stored;
use crate::stats::Exporting;
use crate::trace::{self, Order, Source, of_run};
use base::text::{count, show};
use clap::Args;
use recipes::excerpt::WindowRequest;
use std::io;
use std::path::PathBuf;

const ABOUT: &str =
    "Write one window of all ranks of a job as a trace for Perfetto: the failing step or collective.";

const LONG_ABOUT: &str = "\
Write one window of all ranks of a job as a trace for Perfetto: the failing step or collective.

A process for each rank, the one to look at first; a row for each thread and stream: kernels, memory operations, NVTX ranges, \
calls of NCCL; counters of the NICs of each node. Clocks are aligned as the recipe `stragglers` does it; where they cannot be, \
a line says so and nothing is aligned.

The file is small by construction: of each kind the longest slices are kept, up to 20,000 in all; the others are counted, by row \
and hundredth of the window.

An input is what `harness recipe` takes, or a run: its id, the beginning of it, `latest` or its folder; then the first failed \
case with reports is shown.";

/// `harness trace`
#[derive(Debug, Args)]
#[command(about = ABOUT, long_about = LONG_ABOUT)]
pub(super) struct TraceArgs {
    /// Report, export or folder of them, of one job; or a run
    #[arg(value_name = "INPUT|RUN", required = true)]
    inputs: Vec<PathBuf>,
    /// Two times of the first report (`1.5s,1.7s`), an NVTX range as filters name it (`step`, `step@domain/3`), or a
    /// collective (`AllReduce/3`); by default the collective in which a straggler is waited for longest, else a long one
    #[arg(long, value_name = "FROM,TO|NAME", value_parser = window, allow_hyphen_values = true)]
    window: Option<WindowRequest>,
    /// The case of the run
    #[arg(long, value_name = "CASE")]
    case: Option<String>,
    /// The file to write
    #[arg(long, value_name = "FILE", default_value = "trace.json")]
    output: PathBuf,
    /// Export reports again, even if an export exists
    #[arg(long)]
    force_export: bool,
    /// Read exports that are older than their reports
    #[arg(long)]
    stale_ok: bool,
    /// The nsys that exports reports; else the one on PATH
    #[arg(long, value_name = "PATH")]
    nsys: Option<PathBuf>,
}

fn window(text: &str) -> Result<WindowRequest, String> {
    text.parse()
}

pub(super) fn run(args: &TraceArgs) -> Result<i32, Error> {
    let names = RemoteInputs::open(&args.inputs)?;
    let run = match names.paths.as_slice() {
        [one] if !one.exists() || one.join("plan.json").is_file() => {
            one.to_str().map(|text| stored::open(&home()?, text).map_err(Error::Usage)).transpose()?
        }
        _ => None,
    };
    let source = match (run, &args.case) {
        (Some(run), case) => {
            let job = of_run::find(&run, case.as_deref()).map_err(Error::Usage)?;
            let others = match job.others {
                0 => String::new(),
                others => format!("; {} of the case", count(others, "further job")),
            };
            println!("case: {}, job {}{others}", show(&job.case), show(&job.job));
            Source::Job(job)
        }
        (None, Some(_)) => return Err(Error::Usage("--case needs a run: reports have no cases".to_owned())),
        (None, None) => Source::Reports(names.paths.clone()),
    };
    let order = Order {
        source,
        names,
        window: args.window.clone().unwrap_or(WindowRequest::Auto),
        output: args.output.clone(),
        exporting: Exporting { again: args.force_export, stale_ok: args.stale_ok, nsys: args.nsys.clone() },
    };
    memory::limit();
    Ok(trace::run(&order, &mut io::stdout(), &mut io::stderr()))
}
