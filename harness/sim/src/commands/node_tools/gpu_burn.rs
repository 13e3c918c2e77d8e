//! `gpu_burn -tc SECONDS`, and `python3 torch_burn.py DTYPE ... SECONDS`, which prints the same: a line that is written over
//! and over, then a verdict for each GPU. Its exit code is 0 whatever it found.

use super::super::{CommandCall, CommandOutput};
use crate::{gpu_state_wanted, noise};
use job::script::files;
use model::fault::Fault;
use std::fmt::Write as _;

/// Of a GPU's peak.
const SHARE_OF_PEAK: f64 = 0.42;
/// Where in the run a GPU begins to throttle.
const HOT_AT: f64 = 0.4;
const LINES: u32 = 200;
/// Of the rate of a GPU that is slowed down from some minute on.
const LEFT_BY_HEAT: f64 = 0.6;

pub(in super::super) fn run(call: &CommandCall<'_>) -> CommandOutput {
    let Some(seconds) = call.arguments().last().and_then(|word| word.parse::<u32>().ok()) else {
        let stdout = vec!["Usage: gpu_burn [OPTIONS] [TIME]\n".to_owned(); call.nodes.len()];
        return CommandOutput { stdout, code: 22, ..CommandOutput::default() };
    };
    burnt(call, "gpu_burn", SHARE_OF_PEAK, f64::from(seconds))
}

/// Of a GPU's peak, which is that of bf16 by tensor cores.
const SHARES_BY_TORCH: [(&str, f64); 6] =
    [("fp64", 0.055), ("fp32", 0.05), ("tf32", 0.36), ("bf16", 0.68), ("fp16", 0.67), ("fp8", 1.15)];

pub(in super::super) fn by_torch(call: &CommandCall<'_>) -> CommandOutput {
    let (script, rest) = call.arguments().split_first().unzip();
    let script = script.map(String::as_str).unwrap_or_default();
    if script != files::TORCH_BURN {
        let stderr = format!("python3: can't open file '{script}': [Errno 2] No such file or directory\n");
        return CommandOutput { stderr: stderr + &call.exits(2), code: 2, ..CommandOutput::default() };
    }
    let dtype = rest.and_then(|rest| rest.first()).map(String::as_str).unwrap_or_default();
    let share = SHARES_BY_TORCH.iter().find(|(name, _)| *name == dtype).map(|(_, share)| *share);
    let seconds = call.arguments().last().and_then(|word| word.parse::<u32>().ok());
    let (Some(share), Some(seconds)) = (share, seconds) else {
        let stderr = format!("torch_burn.py: error: argument dtype: invalid choice: '{dtype}'\n");
        return CommandOutput { stderr: stderr + &call.exits(2), code: 2, ..CommandOutput::default() };
    };
    burnt(call, dtype, share, f64::from(seconds))
}

fn burnt(call: &CommandCall<'_>, what: &str, share: f64, seconds: f64) -> CommandOutput {
    let stdout = (0..call.nodes.len()).map(|node| output(call, node, (what, share), seconds)).collect();
    CommandOutput { stdout, seconds: seconds + 12.0, ..CommandOutput::default() }
}

fn output(call: &CommandCall<'_>, node: usize, (what, share): (&str, f64), seconds: f64) -> String {
    let mut draws = noise::stream(call.cluster.seed, &[what, &call.nodes[node]]);
    let gpus = call.cluster.gpus;
    let peak = call.cluster.peak_tflops * 1000.0 * share;
    let own: Vec<f64> =
        (0..gpus).map(|gpu| peak * call.active_faults.gpu_left(node, gpu) * draws.factor(0.004)).collect();
    let soaked_s = gpu_state_wanted::wanted(&call.run.argv).map_or(0.0, |wanted| wanted.soaked_s);
    let throttled = |gpu: u32, part: f64| {
        let load_s = soaked_s + part * seconds;
        let of_gpu = |fault: &Fault| match fault {
            Fault::Throttles { left, gpu: which } if *which == gpu && part > HOT_AT => Some(*left),
            Fault::ThrottlesAfter { minutes, gpu: which } if *which == gpu && load_s >= minutes * 60.0 => {
                Some(LEFT_BY_HEAT)
            }
            _ => None,
        };
        call.active_faults.tool_faults(node).filter_map(of_gpu).fold(1.0, f64::min)
    };
    let is_corrupt = |gpu: u32| call.active_faults.is_corrupt(node, gpu);
    let mut text = String::new();
    for gpu in 0..gpus {
        // Infallible: writing to a string.
        let _ = writeln!(text, "GPU {gpu}: {} (UUID: GPU-{gpu:08x})", call.cluster.gpu_name);
    }
    let (mut done, mut next_summary) = (vec![0u64; gpus as usize], 10.0);
    let mut errors = vec![0u64; gpus as usize];
    for line in 1..=LINES {
        let part = f64::from(line) / f64::from(LINES);
        let (mut rates, mut wrong) = (Vec::new(), Vec::new());
        for gpu in 0..gpus {
            let at = gpu as usize;
            let left = throttled(gpu, part);
            done[at] += 2261;
            errors[at] += u64::from(is_corrupt(gpu));
            let rate = own[at] * left * draws.factor(0.003);
            rates.push(format!("{} ({rate:.0} Gflop/s) ", done[at]));
            wrong.push(format!("{} {}", errors[at], if errors[at] > 0 { " (WARNING!)" } else { "" }));
        }
        let temps = vec!["61 C "; gpus as usize].join("- ");
        let _ = write!(
            text,
            "\r{:.1}%  proc'd: {}  errors: {}  temps: {temps}",
            part * 100.0,
            rates.join("- "),
            wrong.join("- ")
        );
        if part * 100.0 > next_summary {
            next_summary = part * 100.0 + 10.0;
            let _ = write!(text, "\n\tSummary at:   Thu Jan  1 00:00:00 UTC 2026\n\n");
            errors.fill(0);
        }
    }
    let _ = write!(text, "\nKilling processes with SIGTERM (soft kill)\ndone\n\nTested {gpus} GPUs:\n");
    for gpu in 0..gpus {
        let _ = writeln!(text, "\tGPU {gpu}: {}", if is_corrupt(gpu) { "FAULTY" } else { "OK" });
    }
    text
}
