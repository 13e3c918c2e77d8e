//! `dcgmi diag -j -r LEVEL` of DCGM 4. Its exit code is not 0 where a test failed.

use super::super::{CommandCall, CommandOutput};
use model::artefact::HOST_ENGINE;
use model::fault::Fault;
use serde_json::{Value, json};

/// `DCGM_ST_CONNECTION_NOT_VALID` as a shell sees it.
const NOT_CONNECTED: i32 = 235;
/// `DCGM_ST_NVVS_ISOLATE_ERROR` as a shell sees it.
const ISOLATE: i32 = 205;
/// By level, the tests that it has and a lower one does not, and how long they take.
const LEVELS: [(&[(&str, &str)], f64); 4] = [
    (&[("Deployment", "software")], 8.0),
    (&[("Hardware", "memory"), ("Integration", "pcie")], 150.0),
    (
        &[
            ("Hardware", "diagnostic"),
            ("Integration", "nvbandwidth"),
            ("Stress", "memory_bandwidth"),
            ("Stress", "targeted_power"),
            ("Stress", "targeted_stress"),
        ],
        900.0,
    ),
    (&[("Hardware", "memtest"), ("Hardware", "pulse_test")], 4000.0),
];

pub(in super::super) fn run(call: &CommandCall<'_>) -> CommandOutput {
    let level = call.arguments().iter().skip_while(|word| *word != "-r").nth(1);
    let Some(level @ 1..=4) = level.and_then(|level| level.parse::<usize>().ok()) else {
        let stdout = vec!["Error: unknown diagnostic run\n".to_owned(); call.nodes.len()];
        return CommandOutput { stdout, code: 1, ..CommandOutput::default() };
    };
    if call.nodes.iter().any(|node| !call.cluster.world.has_program(node, HOST_ENGINE)) {
        let line = "Error: Unable to connect to host engine. Host engine connection invalid/disconnected.\n";
        let stdout = vec![line.to_owned(); call.nodes.len()];
        return CommandOutput {
            stdout,
            stderr: call.exits(NOT_CONNECTED),
            code: NOT_CONNECTED,
            seconds: 1.0,
        };
    }
    let tests: Vec<(&str, &str)> =
        LEVELS[..level].iter().flat_map(|(tests, _)| tests.iter().copied()).collect();
    let has_ecc = |node: usize, gpu: u32| {
        call.active_faults.tool_faults(node).any(|fault| *fault == Fault::EccErrors { gpu })
    };
    // From level 2 on it looks at the memory itself; what is pending in the row remapper, level 1 sees as well.
    let shows = |test: &str| test == if level == 1 { "software" } else { "memory" };
    let of_node = |node: usize| {
        let of_gpu = |test: &str, gpu: u32| match shows(test) && has_ecc(node, gpu) {
            true => {
                json!({"entity_group": "GPU", "entity_group_id": 1, "entity_id": gpu, "status": "Fail", "warnings": [{
                    "error_category": 7, "error_id": 45, "error_severity": 2,
                    "warning": format!("GPU {gpu} had uncorrectable memory errors and row remapping failed. Run a field diagnostic on the GPU.")
                }]})
            }
            false => json!({"entity_group": "GPU", "entity_group_id": 1, "entity_id": gpu, "status": "Pass"}),
        };
        let gpus = || 0..call.cluster.gpus;
        let of_test = |test: &str| {
            let results: Vec<Value> = gpus().map(|gpu| of_gpu(test, gpu)).collect();
            let failed = gpus().any(|gpu| shows(test) && has_ecc(node, gpu));
            let status = if failed { "Fail" } else { "Pass" };
            json!({"name": test, "results": results, "test_summary": {"status": status}})
        };
        let mut categories: Vec<(&str, Vec<Value>)> = Vec::new();
        for (category, test) in &tests {
            match categories.iter_mut().find(|(name, _)| name == category) {
                Some((_, tests)) => tests.push(of_test(test)),
                None => categories.push((category, vec![of_test(test)])),
            }
        }
        let categories: Vec<Value> = categories
            .into_iter()
            .map(|(category, tests)| json!({"category": category, "tests": tests}))
            .collect();
        let document = json!({
            "DCGM Diagnostic": {"test_categories": categories},
            "metadata": {"Driver Version Detected": "570.133.20", "version": "4.2.3"},
        });
        format!("{document:#}\n")
    };
    let failed = (0..call.nodes.len()).any(|node| (0..call.cluster.gpus).any(|gpu| has_ecc(node, gpu)));
    CommandOutput {
        stdout: (0..call.nodes.len()).map(of_node).collect(),
        stderr: if failed { call.exits(ISOLATE) } else { String::new() },
        code: if failed { ISOLATE } else { 0 },
        seconds: LEVELS[..level].iter().map(|(_, seconds)| seconds).sum(),
    }
}
