//! `fio --output-format=json` of release 3.36: one group of jobs.

use super::super::{CommandCall, CommandOutput};
use super::left;
use crate::noise;
use model::fault::Fault;
use serde_json::{Value, json};

/// Operations per second of 4 KiB that one process can ask for, and bytes per second of the drives of a node together.
const OPERATIONS: f64 = 400_000.0;
const BYTES: f64 = 14.0e9;

pub(in super::super) fn run(call: &CommandCall<'_>) -> CommandOutput {
    let value = |name: &str| {
        let word = call.arguments().iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        word.unwrap_or_default().to_owned()
    };
    let (block, seconds) = (value("--bs").parse::<f64>(), value("--runtime").parse::<f64>());
    let (Ok(block), Ok(seconds)) = (block, seconds) else {
        let stdout = vec!["fio: failed parsing bs\n".to_owned(); call.nodes.len()];
        return CommandOutput { stdout, code: 1, ..CommandOutput::default() };
    };
    let most = OPERATIONS * value("--numjobs").parse::<f64>().unwrap_or(1.0);
    let access = value("--rw");
    let reads = access.ends_with("read") || access.ends_with("rw") || access == "readwrite";
    let writes = access.ends_with("write") || access.ends_with("rw");
    let share = if reads && writes { 0.5 } else { 1.0 };
    let of_fault = |fault: &Fault| match fault {
        Fault::DiskSlow { left } => Some(*left),
        _ => None,
    };
    let of_node = |node: usize| {
        let mut draws = noise::stream(call.cluster.seed, &["fio", &call.nodes[node]]);
        let mut side = |is_on: bool, pace: f64| -> Value {
            let operations = match is_on {
                true => {
                    share * pace * left(call, node, of_fault) * most.min(BYTES / block) * draws.factor(0.01)
                }
                false => 0.0,
            };
            let p99 = if is_on { 64.0 * 4.0 / operations * 1e9 * 1.6 } else { 0.0 };
            json!({
                "io_bytes": (operations * seconds * block) as u64,
                "bw_bytes": (operations * block) as u64,
                "iops": operations,
                "runtime": (seconds * 1000.0) as u64,
                "total_ios": (operations * seconds) as u64,
                "clat_ns": {"percentile": {"50.000000": (p99 / 1.6) as u64, "99.000000": p99 as u64}},
            })
        };
        // As the kernel numbers an error of input or output.
        let fails = call.active_faults.tool_faults(node).any(|fault| *fault == Fault::DiskErrors);
        let error = if fails { 5 } else { 0 };
        let document = json!({
            "fio version": "fio-3.36",
            "jobs": [{"jobname": value("--name"), "error": error, "read": side(reads, 1.0), "write": side(writes, 0.6)}],
        });
        format!("{document:#}\n")
    };
    let stdout = (0..call.nodes.len()).map(of_node).collect();
    CommandOutput { stdout, seconds: seconds + 2.0, ..CommandOutput::default() }
}
