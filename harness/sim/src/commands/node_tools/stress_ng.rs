//! `stress-ng --cpu 0 --vm 0 --verify --metrics-brief` of release 0.17.

use super::super::{CommandCall, CommandOutput};
use super::{is_a100, left};
use crate::noise;
use model::fault::Fault;

/// With it stress-ng ends where a worker failed.
const FAILED: i32 = 2;

pub(in super::super) fn run(call: &CommandCall<'_>) -> CommandOutput {
    let mut words = call.arguments().iter().skip_while(|word| *word != "--timeout");
    let asked = words.nth(1).and_then(|word| word.strip_suffix('s')?.parse::<f64>().ok());
    let Some(seconds) = asked else {
        let stdout = vec!["stress-ng: error: [7] no time-out\n".to_owned(); call.nodes.len()];
        return CommandOutput { stdout, code: 1, ..CommandOutput::default() };
    };
    let is_wrong =
        |node: usize| call.active_faults.tool_faults(node).any(|fault| *fault == Fault::MemoryWrong);
    let of_fault = |fault: &Fault| match fault {
        Fault::CpuSlow { left } | Fault::CpuShared { left } => Some(*left),
        _ => None,
    };
    let of_others = |fault: &Fault| match fault {
        Fault::CpuShared { left } => Some(*left),
        _ => None,
    };
    let of_node = |node: usize| {
        let mut draws = noise::stream(call.cluster.seed, &["stress-ng", &call.nodes[node]]);
        let workers = if is_a100(call) { 96 } else { 192 };
        let real = seconds + 0.01;
        let own = left(call, node, of_others);
        let row = |name: &str, rate: f64| {
            let done = (rate * real).round();
            let (user, system) =
                (own * real * f64::from(workers) * 0.49, own * real * f64::from(workers) * 0.01);
            format!(
                "stress-ng: metrc: [7] {name:<13}{done:>10.0} {real:>9.2} {user:>9.2} {system:>9.2} {:>12.2} \
                 {:>14.2}\n",
                done / real,
                done / (user + system)
            )
        };
        let cpu = 23.0 * f64::from(workers) * left(call, node, of_fault) * draws.factor(0.006);
        let memory = 9400.0 * f64::from(workers) * draws.factor(0.02);
        let others = match 1.0 - own {
            had if had > 0.0 => format!("busy: {:.0} python3\n", 100.0 * had * f64::from(workers)),
            _ => String::new(),
        };
        let head = format!(
            "stress-ng: info:  [7] setting to a {seconds:.0} secs run per stressor\n\
             stress-ng: info:  [7] dispatching hogs: {workers} cpu, {workers} vm\n"
        );
        let (fault, failed, word) = match is_wrong(node) {
            true => {
                let line = "stress-ng: fail:  [211] vm: detected 16 bit errors while stressing memory\n";
                (line, "failed: 1: vm (1)".to_owned(), "unsuccessful")
            }
            false => ("", "failed: 0".to_owned(), "successful"),
        };
        format!(
            "{others}{head}{fault}stress-ng: metrc: [7] stressor       bogo ops real time  usr time  sys time   bogo ops/s     \
             bogo ops/s\nstress-ng: metrc: [7]                           (secs)    (secs)    (secs)   (real time) (usr+sys time)\n\
             {}{}stress-ng: info:  [7] skipped: 0\nstress-ng: info:  [7] {failed}\n\
             stress-ng: info:  [7] metrics untrustworthy: 0\n\
             stress-ng: info:  [7] {word} run completed in {real:.2} secs\n",
            row("cpu", cpu),
            row("vm", memory)
        )
    };
    let code = if (0..call.nodes.len()).any(is_wrong) { FAILED } else { 0 };
    CommandOutput {
        stdout: (0..call.nodes.len()).map(of_node).collect(),
        stderr: if code == 0 { String::new() } else { call.exits(code) },
        code,
        seconds: seconds + 1.0,
    }
}
