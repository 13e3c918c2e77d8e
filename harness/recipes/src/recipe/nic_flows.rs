//! The rate of every flow of a `nic-pairs` job: one NIC to its peer, the same device on another node, without other
//! NICs. `nic_rate` finds the slow NIC once all rounds are known.

use super::{FileRole, JobInput, Output, RecipeSpec, Workload, bytes_of};
use logs::flow_log::{self, FlowGap, FlowPath};
use metric::finding::Finding;
use metric::unit::{Better, Unit};
use metric::{Blames, Dim, MetricSpec};

/// One row per flow and end: `tx` at the node that data leaves, `rx` at the node where it arrives. `gpu` is the one whose
/// memory the flow moved; flows of the host's memory have none.
pub const FLOW_RATE: MetricSpec = MetricSpec {
    name: "flow.rate",
    about: "rate of one flow between a NIC and its peer on another node",
    unit: Unit::GigabytesPerSecond,
    better: Better::Higher,
    dims: &[Dim::Node, Dim::Nic, Dim::Peer, Dim::Direction, Dim::Gpu, Dim::Round],
    blames: Blames::Node,
};
/// Made from the rows above once all rounds of a case are in.
pub const NIC_RATE: MetricSpec = MetricSpec {
    name: "nic.rate",
    about: "rate of a NIC in one direction: the best of its flows, since one good flow proves both its ends",
    unit: Unit::GigabytesPerSecond,
    better: Better::Higher,
    dims: &[Dim::Node, Dim::Nic, Dim::Direction],
    blames: Blames::Part,
};

pub const SPEC: RecipeSpec = RecipeSpec {
    name: "nic_flows",
    about: "rate of every NIC alone, from independent flows between pairs of nodes",
    metrics: &[FLOW_RATE, NIC_RATE],
    tables: &[],
    causes: &[],
    run: &run,
};

fn run(job: &JobInput) -> Output {
    let mut output = Output::default();
    let (Workload::NicPairs { .. }, [from, to]) = (&job.workload, job.nodes.as_slice()) else {
        return output;
    };
    let mut host = None;
    for file in job.files_of(FileRole::Flow) {
        let Some(device) = file.part.as_deref() else { continue };
        let Some(bytes) = bytes_of(file, &mut output) else { continue };
        let path = FlowPath::read(&bytes);
        match flow_log::read(&bytes, &file.shown) {
            Ok(flow) => {
                for (node, peer, direction) in [(from, to, "tx"), (to, from, "rx")] {
                    let mut dims = job
                        .dims()
                        .with(Dim::Node, node.as_str())
                        .with(Dim::Nic, device)
                        .with(Dim::Peer, peer.as_str())
                        .with(Dim::Direction, direction)
                        .with(Dim::Round, job.round);
                    if let Some(FlowPath::Gpu { gpu, .. }) = path {
                        dims.set(Dim::Gpu, gpu);
                    }
                    output.metrics.push(FLOW_RATE.of(dims, flow.rate_gb_s));
                }
                if let Some(FlowPath::Host { turns, why, .. }) = path {
                    host.get_or_insert((turns, why, file.shown.clone()));
                }
            }
            Err(gap) => output.findings.push(finding(&gap, device, from, to, &file.shown)),
        }
    }
    if let Some((turns, why, shown)) = host {
        let message =
            format!("flows used host memory, one NIC per PCIe switch at a time ({turns} turns): {why}");
        output.findings.push(Finding::new(HOST_MEMORY, message).file(&shown));
    }
    output
}

/// Code of the finding, once per job, that its flows used host memory.
pub const HOST_MEMORY: &str = "host-memory";

/// A gap concerns both ends until another partner isolates one of them, so no node is named.
fn finding(gap: &FlowGap, device: &str, from: &str, to: &str, shown: &str) -> Finding {
    let code = format!("flow-{}", gap.kind());
    Finding::new(&code, format!("no rate from {from} to {to}: {gap}")).part(device).file(shown)
}
