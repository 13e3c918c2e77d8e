//! `nhc` of LBNL Node Health Check 1.4: silent and 0 where all checks pass; else a line about the first that failed, and 1.

use super::super::{CommandCall, CommandOutput};
use model::fault::Fault;

pub(in super::super) fn run(call: &CommandCall<'_>) -> CommandOutput {
    let failed = |node: usize| {
        call.active_faults.tool_faults(node).find_map(|fault| match fault {
            Fault::EccErrors { gpu } => Some(*gpu),
            _ => None,
        })
    };
    let stdout: Vec<String> = (0..call.nodes.len())
        .map(|node| match failed(node) {
            Some(gpu) => format!(
                "ERROR:  nhc:  Health check failed:  check_nvsmi_healthmon:  GPU {gpu} has uncorrectable ECC errors\n"
            ),
            None => String::new(),
        })
        .collect();
    let code = i32::from(stdout.iter().any(|text| !text.is_empty()));
    let stderr = if code == 0 { String::new() } else { call.exits(code) };
    CommandOutput { stdout, stderr, code, seconds: 4.0 }
}
