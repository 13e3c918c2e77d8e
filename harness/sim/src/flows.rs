//! What `flows.sh` leaves of one flow: its tool's print, or the script's own line on why there is none.

use super::cluster::Cluster;
use job::script::{EXIT_NO_TOOL, EXIT_TOOL_REFUSED, FLOWS_SH, FlowMemory, Flows};
use logs::flow_log::{self, Flow, FlowPath, Tool};

/// From the clients' start to the common mark at which all flows begin.
pub const MARK_S: f64 = 2.0;

/// One flow between two NICs of one name.
pub struct FlowTimeline {
    /// Nothing where the ends do not connect.
    pub rate_gb_s: Option<f64>,
    /// From the moment at which the first turn begins.
    pub from_s: f64,
    /// How long it lasts: at most the time limit of the script.
    pub seconds: f64,
}

/// Why no flow runs at all: the line that stands in every output, and the script's exit code.
pub(crate) fn refused(cluster: &Cluster, flows: &Flows) -> Option<(String, i32)> {
    let (tool, world) = (&flows.tool, &cluster.world);
    if !world.flow_tools {
        return Some((format!("tool-missing {tool} {}\n", flows.server), EXIT_NO_TOOL));
    }
    let words = match (flows.tool.as_str(), flows.op.as_str()) {
        // As perftest 4.5 of the distributions says it.
        ("ib_write_bw", "write") if !world.flow_tools_srd => {
            "SRD connection only possible in SEND/READ verbs"
        }
        _ if !world.flow_tools_cuda && flows.memory == FlowMemory::Gpu => "cannot use CUDA",
        _ => return None,
    };
    Some((format!("tool-refused {tool} on {}: {words}\n", flows.server), EXIT_TOOL_REFUSED))
}

/// Through whose memory a flow goes, and in which turn.
pub(crate) fn path(cluster: &Cluster, flows: &Flows, device: &str) -> FlowPath {
    let switch = |device: &str| {
        let nic = cluster.nics.iter().position(|nic| nic == device)?;
        cluster.gpu_of_nic.get(nic).copied()
    };
    let own = switch(device);
    if flows.memory != FlowMemory::Host && cluster.world.flow_tools_cuda {
        return FlowPath::Gpu { gpu: own.unwrap_or_default(), from_sysfs: true };
    }
    let before = flows.devices.iter().take_while(|other| other.as_str() != device);
    let turn = before.filter(|other| switch(other) == own).count() as u32 + 1;
    let together = |gpu: &Option<u32>| flows.devices.iter().filter(|other| switch(other) == *gpu).count();
    let turns = flows.devices.iter().map(|other| together(&switch(other))).max().unwrap_or(1) as u32;
    let why = match flows.memory {
        FlowMemory::Host => "the case asks for it".to_owned(),
        _ => format!("{} on {} cannot use CUDA", flows.tool, flows.client),
    };
    let (turn, turns) = if takes_turns(FLOWS_SH) { (turn, turns) } else { (1, 1) };
    FlowPath::Host { turn, turns, why }
}

/// Whether the script lets each flow begin in its own turn alone; else all run at once.
pub(crate) fn takes_turns(script: &str) -> bool {
    script.contains("turn_of[$device] == turn")
}

/// The text of one flow's output that was over when the job ended.
pub(crate) fn text(cluster: &Cluster, flows: &Flows, flow: &FlowTimeline, device: &str) -> String {
    let printed = print(flows, flow);
    match flow.rate_gb_s {
        Some(_) => format!("{}\n{printed}", path(cluster, flows, device)),
        None => printed,
    }
}

/// What the tool prints of a flow.
pub fn print(flows: &Flows, flow: &FlowTimeline) -> String {
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
pub(crate) fn not_started(flows: &Flows) -> String {
    format!("not-started server {} was not ready after {} s\n", flows.server, flows.limit_s)
}

/// Which of two ends sends, and which receives: `(sends, receives)` for the node.
pub(crate) fn directions(flows: &Flows, node: &str) -> (bool, bool) {
    match (flows.op.as_str(), flows.tool.as_str()) {
        // Both ends of this tool read at once.
        ("read", "fi_rma_bw") => (true, true),
        ("read", _) => (node == flows.server, node == flows.client),
        _ => (node == flows.client, node == flows.server),
    }
}
