//! `stream` of release 5.10.

use super::super::{CommandCall, CommandOutput};
use super::{is_a100, left};
use crate::noise;
use model::fault::Fault;

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
        let row = |name: &str, share: f64, draws: &mut noise::Noise| {
            let rate = rate * share * draws.factor(0.004);
            format!("{name:<16}{rate:>8.1}     0.017811     0.017748     0.017950\n")
        };
        let mut text = "STREAM version $Revision: 5.10 $\nMemory per array = 4096.0 MiB (= 4.0 GiB).\nNumber of Threads counted = 96\nFunction    Best Rate MB/s  Avg time     Min time     Max time\n"
            .to_owned();
        for (name, share) in [("Copy:", 0.97), ("Scale:", 0.97), ("Add:", 1.0), ("Triad:", 1.0)] {
            text += &row(name, share, &mut draws);
        }
        text + "Solution Validates: avg error less than 1.000000e-13 on all three arrays\n"
    };
    let stdout = (0..call.nodes.len()).map(of_node).collect();
    CommandOutput { stdout, seconds: 9.0, ..CommandOutput::default() }
}
