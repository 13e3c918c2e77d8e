//! `harness logs`: what was read from logs.

use super::home;
use crate::error::Error;
use crate::library::Library;
use crate::logs;
use base::suggest;
use clap::Subcommand;
use config::inventory::instance::why_without_profile;
use std::io;
use std::path::PathBuf;

const CODES: &str = "\
Exit codes: 0 read, with or without findings; 1 there are findings, with --fail-on-findings; 2 wrong usage, or a file cannot \
be read; 3 a file has nothing of this kind.";
const EFA_CODES: &str =
    "Exit codes: 0 read; 2 wrong usage, or a file cannot be read; 3 a file has no counters.";

/// `harness logs`
#[derive(Debug, Subcommand)]
#[command(about = "Print the calls, steps or counters of logs.")]
pub(super) enum LogKind {
    /// Counters of EFA devices, as `rdma statistic`, `hw_counters` or a node exporter show them
    #[command(after_help = EFA_CODES)]
    Efa(logs::efa::EfaArgs),
    /// Dumps of PyTorch's flight recorder: the first collective at which ranks disagree, which called nothing, which called another one
    #[command(after_help = CODES)]
    FlightRecorder(logs::flight_recorder::FlightRecorderArgs),
    /// Records of NCCL's Inspector, JSON or Prometheus: calls by rank, operation and size, with time and bandwidth, and loss
    #[command(after_help = CODES)]
    Inspector(logs::inspector::InspectorArgs),
    /// Logs of MPI messages, as a preloaded logger writes them: calls with their bytes, ranks, and findings
    #[command(after_help = CODES)]
    Mpi(logs::mpi::MpiArgs),
    /// Logs of NCCL (NCCL_DEBUG=INFO): calls with their bytes, communicators, networks, and findings
    #[command(after_help = CODES)]
    Nccl(logs::nccl::NcclArgs),
    /// Output of nccl-tests, text or JSON; `-` is standard input
    #[command(after_help = CODES)]
    NcclTests {
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// `text`; `json`: one object per file; or `csv`: one line per size, with the columns of `nccl_to_csv.py` and more
        #[arg(long, value_name = "FORMAT", default_value = "text", hide_possible_values = true)]
        format: logs::nccl_tests::TableFormat,
        /// Exit with 1 if there are findings
        #[arg(long)]
        fail_on_findings: bool,
    },
    /// Programs that test one node: `dcgmi diag`, nvbandwidth, gpu_burn, STREAM, fio, Xids and lost GPUs
    #[command(after_help = CODES)]
    Node(logs::node::NodeArgs),
    /// Reports of NCCL's RAS (`ncclras`, port 28028): ranks that are missing, dead, or launched fewer operations
    #[command(after_help = CODES)]
    Ras(logs::ras::RasArgs),
    /// Logs of trainings: the time, throughput and loss of each step, with statistics
    #[command(after_help = CODES)]
    Steps(logs::steps::StepsArgs),
}

pub(super) fn run(kind: LogKind) -> Result<i32, Error> {
    let (out, err) = (&mut io::stdout(), &mut io::stderr());
    Ok(match kind {
        LogKind::Efa(args) => logs::efa::run(&args, out, err),
        LogKind::FlightRecorder(args) => logs::flight_recorder::run(&args, out, err),
        LogKind::Inspector(args) => logs::inspector::run(&args, out, err),
        LogKind::Mpi(args) => logs::mpi::run(&args, out, err),
        LogKind::Nccl(args) => return nccl(args),
        LogKind::NcclTests { files, format, fail_on_findings } => {
            logs::nccl_tests::run(&files, format, fail_on_findings, out, err)
        }
        LogKind::Node(args) => logs::node::run(&args, out, err),
        LogKind::Ras(args) => logs::ras::run(&args, out, err),
        LogKind::Steps(args) => logs::steps::run(&args, out, err),
    })
}

/// With the number of network cards of the instance that is named.
fn nccl(mut args: logs::nccl::NcclArgs) -> Result<i32, Error> {
    if let Some(name) = &args.instance {
        let instances = Library::for_project(home()?.path()).instances()?;
        let Some(instance) = instances.get(name) else {
            let known: Vec<&str> = instances.names().collect();
            return Err(Error::Usage(unknown_instance(name, &known)));
        };
        args.nics = Some(instance.nics.len() as u64);
    }
    Ok(logs::nccl::run(&args, &mut io::stdout(), &mut io::stderr()))
}

/// Why `--instance` cannot be NAME, with what may be meant.
pub(super) fn unknown_instance(name: &str, known: &[&str]) -> String {
    let near = suggest::nearest(name, known.iter().copied());
    let near = why_without_profile(name)
        .map(|why| format!("{why}; "))
        .or_else(|| near.map(|near| format!("did you mean `{near}`? ")))
        .unwrap_or_default();
    let (name, known) = (name.escape_debug(), known.join("`, `"));
    format!("--instance: unknown instance type `{name}`; {near}known: `{known}`")
}

#[cfg(test)]
mod tests {
    use super::unknown_instance;

    #[test]
    fn messages() {
        let lines = ["p55", "gb200"].map(|name| unknown_instance(name, &["p4de", "p5", "sim-p5"]));
        insta::assert_snapshot!(lines.join("\n"));
    }
}
