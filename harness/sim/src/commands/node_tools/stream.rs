//! `stream` of release 5.10.

use super::super::{CommandCall, CommandOutput};
use super::{is_a100, left};
use crate::noise;
use model::fault::Fault;

/// The size of each of its three arrays.
const ARRAY_MIB: f64 = 4096.0;

pub(in super::super) fn run(call: &CommandCall<'_>) -> CommandOutput {
    let of_fault = |fault: &Fault| match fault {
        Fault::MemorySlow { left } => Some(*left),
        _ => None,
    };
    let of_node = |node: usize| {
        let mut draws = noise::stream(call.cluster.seed, &["stream", &call.nodes[node]]);
        // 80 % of 12 channels of DDR4-2933, and of 16 of DDR4-3200.
        let sound = if is_a100(call) { 225_000.0 } else { 328_000.0 };
        let rate = sound * left(call, node, of_fault);
        let row = |name: &str, arrays: f64, draws: &mut noise::Noise| {
            let share = if arrays > 2.0 { 1.0 } else { 0.97 };
            let rate = rate * share * draws.factor(0.004);
            let least = arrays * ARRAY_MIB * f64::from(1 << 20) / 1e6 / rate;
            let (mean, most) = (least * 1.0035, least * 1.0114);
            format!("{name:<11}{rate:>12.1}  {mean:>11.6}  {least:>11.6}  {most:>11.6}\n")
        };
        let mut text = format!(
            "STREAM version $Revision: 5.10 $\nMemory per array = {ARRAY_MIB:.1} MiB (= {:.1} GiB).\n\
             Number of Threads counted = 96\n\
             Function    Best Rate MB/s  Avg time     Min time     Max time\n",
            ARRAY_MIB / 1024.0
        );
        for (name, arrays) in [("Copy:", 2.0), ("Scale:", 2.0), ("Add:", 3.0), ("Triad:", 3.0)] {
            text += &row(name, arrays, &mut draws);
        }
        text + "Solution Validates: avg error less than 1.000000e-13 on all three arrays\n"
    };
    let stdout = (0..call.nodes.len()).map(of_node).collect();
    CommandOutput { stdout, seconds: 9.0, ..CommandOutput::default() }
}
