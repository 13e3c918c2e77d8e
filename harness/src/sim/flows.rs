//! What `flows.sh` leaves of one flow: its tool's print, or the script's own line on why there is none.

use super::work::FlowCourse;
use crate::script::Flows;
use recipes::source::flow_log::{self, Flow, Tool};

/// The text of one flow's output that was over when the job ended.
pub fn text(flows: &Flows, flow: &FlowCourse) -> String {
    let Some(tool) = Tool::named(&flows.tool) else {
        return format!("tool-missing {} {}\n", flows.tool, flows.client);
    };
    match flow.rate_gb_s {
        Some(rate_gb_s) => flow_log::render(&Flow {
            tool,
            bytes: flows.message_bytes,
            iterations: flows.iterations,
            seconds: flow.seconds,
            rate_gb_s,
        }),
        None => {
            // Each attempt takes a second to be refused, and a second's pause.
            let attempts = (flows.limit_s / 2).max(1);
            format!("not-connected no rate in {} s, attempts: {attempts}, last status: 1\n", flows.limit_s)
        }
    }
}

/// Where the server's end never came.
pub fn not_started(flows: &Flows) -> String {
    format!("not-started server {} was not ready after {} s\n", flows.server, flows.limit_s)
}

/// Which of two ends sends, and which receives: `(sends, receives)` for the node.
pub fn directions(flows: &Flows, node: &str) -> (bool, bool) {
    match (flows.op.as_str(), flows.tool.as_str()) {
        // Both ends of this tool read at once.
        ("read", "fi_rma_bw") => (true, true),
        ("read", _) => (node == flows.server, node == flows.client),
        _ => (node == flows.client, node == flows.server),
    }
}
