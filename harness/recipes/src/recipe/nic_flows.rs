//! The rate of every flow of a `nic-pairs` job: one NIC to its peer, the same device on another node, without other
//! NICs. `nic_rate` finds the slow NIC once all rounds are known.

use super::efa_traffic::OTHER_TRANSPORT;
use super::{FileRole, JobInput, Output, RecipeSpec, Workload, bytes_of};
use crate::recipe::shared_findings::FileFinding;
use logs::flow_log::{self, FlowGap, FlowPath};
use metric::finding::Finding;
use metric::finding_kinds;
use metric::unit::{Better, Unit};
use metric::{Blames, Covers, Dim, Files, Limit, MetricSpec, Role};

/// One row per flow and end: `tx` at the node that data leaves, `rx` at the node where it arrives. `gpu` is the one whose
/// memory the flow moved; flows of the host's memory have none.
pub const FLOW_RATE: MetricSpec = MetricSpec::new(
    "flow.rate",
    "rate of one flow between a NIC and its peer on another node",
    Unit::GigabytesPerSecond,
    Better::Higher,
    Files::Flows,
)
.per(&[Dim::Node, Dim::Nic, Dim::Peer, Dim::Direction, Dim::Gpu, Dim::Round])
.blaming(Blames::Node)
.limited(Limit::NicLine)
.with(&[Role::Flow]);
/// Made from the rows above once all rounds of a case are in.
pub const NIC_RATE: MetricSpec = MetricSpec::new(
    "nic.rate",
    "rate of a NIC in one direction: the best of its flows, since one good flow proves both its ends",
    Unit::GigabytesPerSecond,
    Better::Higher,
    Files::Flows,
)
.per(&[Dim::Node, Dim::Nic, Dim::Direction])
.blaming(Blames::Part)
.covering(Covers::Nics)
.explained_by(OTHER_TRANSPORT)
.limited(Limit::NicLine)
.with(&[Role::OverRounds, Role::Rate, Role::ShowsNics, Role::BetweenNodes])
.next("run `harness isolate` with this suite and inventory to name the part; replace it if it is slow with two partners");

/// For `nic-pairs` cases; `run` makes `FLOW_RATE`, and the caller `NIC_RATE` from all jobs.
pub const SPEC: RecipeSpec = RecipeSpec {
    name: "nic_flows",
    about: "rate of every NIC alone, from independent flows between pairs of nodes",
    metrics: &[FLOW_RATE, NIC_RATE],
    tables: &[],
    findings: &[FlowFinding::ALL, FileFinding::ALL],
    reads_nccl_log: false,
    compares_clocks: false,
    reads_inspector: false,
    run: &run,
};

finding_kinds! {
    /// Of flows between NICs; a flow without a rate has a `GapKind`.
    pub(crate) enum FlowFinding {
        HostMemory = "host-memory": Remark("through host memory, NICs in turns"),
    }
}

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
        output.findings.push(Finding::new(FlowFinding::HostMemory.code(), message).file(&shown));
    }
    output
}

/// A gap concerns both ends until another partner isolates one of them, so no node is named.
fn finding(gap: &FlowGap, device: &str, from: &str, to: &str, shown: &str) -> Finding {
    Finding::new(&gap.kind().code(), format!("no rate from {from} to {to}: {gap}")).part(device).file(shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::{InputFile, testing};

    const RATE: &str = "path host 1/4 fi_rma_bw on p5-001 cannot use CUDA\n---\n- { xfer_size: 1048576, iterations: 60000, \
                        time: 5.242880, MB/sec: 12000.000000 }\n";

    #[test]
    fn messages() {
        let folder = tempfile::tempdir().expect("a folder");
        let of = |name: &str, text: Option<&str>| {
            let workload = Workload::NicPairs { tool: "fi_rma_bw".to_owned(), op: "write".to_owned() };
            let mut job = testing::job(workload, &[], |_| "p5-001".to_owned(), 0);
            job.nodes.push("p5-002".to_owned());
            let path = folder.path().join(name);
            if let Some(text) = text {
                std::fs::write(&path, text).expect("written");
            }
            let (shown, part) = (format!("raw/j/{name}.out"), Some("rdmap79s0".to_owned()));
            job.files.push(InputFile { role: FileRole::Flow, path, shown, node: None, part, rank: None });
            run(&job)
        };
        let outputs = [
            of("gone", None),
            of("empty", Some("")),
            of("missing", Some("tool-missing fi_rma_bw p5-002\n")),
            of("refused", Some("tool-refused ib_write_bw on p5-001: SRD connection only possible\n")),
            of("away", Some("not-connected no rate in 60 s, attempts: 3, last status: 124\n")),
            of("cut", Some(RATE.trim_end())),
            of("prose", Some("hello\n")),
            of("host", Some(RATE)),
        ];
        insta::assert_snapshot!(testing::messages(&outputs));
    }
}
