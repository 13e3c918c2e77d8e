//! `nvbandwidth -j -t TEST...` of release 0.6.

use super::super::{CommandCall, CommandOutput};
use super::is_a100;
use crate::noise;
use model::fault::Fault;
use serde_json::{Value, json};

/// GB/s of a sound GPU to or from the host, and to another: PCIe 4 and NVLink 3, PCIe 5 and NVLink 4.
const OF_A100: [f64; 2] = [24.6, 276.0];
const OF_H100: [f64; 2] = [55.2, 371.0];

pub(in super::super) fn run(call: &CommandCall<'_>) -> CommandOutput {
    let wanted: Vec<&String> = call
        .arguments()
        .iter()
        .skip_while(|word| *word != "-t")
        .skip(1)
        .take_while(|word| !word.starts_with('-'))
        .collect();
    let of_node = |node: usize| {
        let tests: Vec<Value> = wanted.iter().map(|test| test_case(call, node, test)).collect();
        let document = json!({"nvbandwidth": {
            "CUDA Runtime Version": 12080,
            "Driver Version": "570.133.20",
            "git_version": "v0.6",
            "testcases": tests,
        }});
        format!("{document:#}\n")
    };
    let stdout = (0..call.nodes.len()).map(of_node).collect();
    CommandOutput { stdout, seconds: 6.0 * wanted.len() as f64, ..CommandOutput::default() }
}

fn test_case(call: &CommandCall<'_>, node: usize, test: &str) -> Value {
    let [host, peer] = if is_a100(call) { OF_A100 } else { OF_H100 };
    let mut draws = noise::stream(call.cluster.seed, &["nvbandwidth", &call.nodes[node], test]);
    let gpus = call.cluster.gpus;
    let faults = call.active_faults;
    let to_host = |gpu: u32| {
        let of_gpu = |fault: &Fault| match fault {
            Fault::PcieSlow { left, gpu: which } if *which == gpu => Some(*left),
            _ => None,
        };
        faults.tool_faults(node).filter_map(of_gpu).fold(1.0, f64::min)
    };
    let mut rate = |rate: f64| Some(rate * draws.factor(0.003));
    let matrix: Vec<Vec<Option<f64>>> = match test {
        "host_to_device_memcpy_ce" | "device_to_host_memcpy_ce" => {
            vec![(0..gpus).map(|gpu| rate(host * to_host(gpu))).collect()]
        }
        "device_to_device_memcpy_read_ce" if gpus > 1 => {
            let mut pair = |one: u32, other: u32| match one == other {
                true => None,
                false => rate(peer * faults.nvlink_left(node)),
            };
            (0..gpus).map(|one| (0..gpus).map(|other| pair(one, other)).collect()).collect()
        }
        "device_to_device_memcpy_read_ce" => return json!({"name": test, "status": "Waived"}),
        _ => return json!({"name": test, "status": "Not Found"}),
    };
    let shown = |rate: &Option<f64>| rate.map_or("N/A".to_owned(), six_digits);
    let cells: Vec<Vec<String>> = matrix.iter().map(|row| row.iter().map(shown).collect()).collect();
    let sum: f64 = matrix.iter().flatten().flatten().sum();
    json!({"name": test, "status": "Passed", "bandwidth_matrix": cells, "sum": sum,
           "bandwidth_description": "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s) "})
}

/// As a C++ stream prints it.
fn six_digits(rate: f64) -> String {
    let whole = rate.log10().floor() as usize + 1;
    format!("{rate:.*}", 6usize.saturating_sub(whole))
}
