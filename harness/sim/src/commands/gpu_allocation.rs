//! A simulated `gpu_allocation.sh`: steps of a job that are given some of its GPUs. A node that does not constrain
//! devices shows each of them all.

use super::{CommandCall, CommandOutput};
use model::fault::Fault;
use std::fmt::Write as _;

/// What Slurm takes to start and end a step.
const STEP_S: f64 = 0.6;

pub(super) fn run(call: &CommandCall<'_>) -> CommandOutput {
    let numbers: Option<Vec<u32>> = match call.arguments() {
        [_, _, option, _, gpus @ ..] if ["gres", "gpus-per-node"].contains(&option.as_str()) => {
            gpus.iter().map(|word| word.parse().ok()).collect()
        }
        _ => None,
    };
    let Some(numbers) = numbers else {
        let stderr = format!("gpu_allocation.sh: wrong arguments\n{}", call.exits(2));
        return CommandOutput { stderr, code: 2, ..CommandOutput::default() };
    };
    let stdout = (0..call.nodes.len()).map(|node| output(call, node, &numbers)).collect();
    CommandOutput { stdout, seconds: STEP_S * numbers.len() as f64, ..CommandOutput::default() }
}

fn output(call: &CommandCall<'_>, node: usize, numbers: &[u32]) -> String {
    let is_open = call.active_faults.tool_faults(node).any(|fault| matches!(fault, Fault::GpusUnconstrained));
    let mut text = String::new();
    for asked in numbers {
        let devices: Vec<String> = (0..*asked).map(|gpu| gpu.to_string()).collect();
        // Infallible: writing to a string.
        let _ = writeln!(text, "step {asked}\nvisible {}", devices.join(","));
        let listed = if is_open { call.cluster.gpus } else { *asked };
        for gpu in 0..listed {
            let _ = writeln!(text, "GPU {gpu}: {} (UUID: GPU-{gpu:08x})", call.cluster.gpu_name);
        }
        text.push_str("status 0 \n");
    }
    // Infallible: writing to a string.
    let _ = writeln!(text, "end {}", numbers.len());
    text
}
