//! iperf3: what TCP moves from one node to another.

use super::{ToolFinding, about, client_text, result};
use crate::recipe::shared_findings::FileFinding;
use crate::recipe::{JobInput, Output, RecipeSpec};
use logs::node_tools::iperf3 as source;
use metric::unit::{Better, Unit};
use metric::{Blames, Covers, Files, MetricSpec};

/// Between two nodes: either may be at fault, and a node with a good partner is not.
const RATE: MetricSpec = MetricSpec::new(
    "tcp.rate",
    "what TCP moves from a node to another over all streams, by iperf3",
    Unit::GigabytesPerSecond,
    Better::Higher,
    Files::Output,
)
.blaming(Blames::Node)
.covering(Covers::NoNics)
.next("look at speed, MTU and drops of the Ethernet interfaces of {nodes}, and for other traffic on them");

pub(crate) const SPEC: RecipeSpec<'static> = RecipeSpec {
    name: "iperf3",
    about: "rate of TCP from node to node, by iperf3",
    metrics: &[RATE],
    tables: &[],
    findings: &[ToolFinding::ALL, FileFinding::ALL],
    reads_nccl_log: false,
    compares_clocks: false,
    reads_inspector: false,
    run: &run,
};

fn run(job: &JobInput) -> Output {
    let mut output = Output::default();
    let Some((file, text)) = client_text(job, &mut output) else { return output };
    match source::read(&text) {
        Ok(tcp) => {
            output.metrics.push(RATE.of(job.dims(), tcp.rate_gb_s));
            output.versions.extend(tcp.version.map(|version| ("iperf3".to_owned(), [version].into())));
        }
        // It says nothing of how fast anything is.
        Err(why) if job.exit_code == Some(0) => {
            output.findings.push(about(job, file, ToolFinding::NotMeasured.code(), None, why));
        }
        failed => {
            result(job, file, failed, &mut output);
        }
    }
    output
}
