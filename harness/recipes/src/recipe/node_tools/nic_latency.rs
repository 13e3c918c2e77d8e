//! fi_pingpong: how long a message takes from each NIC to its peer on another node, or to itself, and what large ones move.

use super::{ToolFinding, about, client_text, result};
use crate::recipe::shared_findings::FileFinding;
use crate::recipe::{JobInput, Output, RecipeSpec};
use logs::node_tools::pingpong as source;
use metric::unit::{Better, Unit};
use metric::{Blames, Covers, Dim, Files, MetricSpec, Names, Role, RunNoise};

/// Between two nodes: either may be at fault, and a node with a good partner is not.
const LATENCY: MetricSpec = MetricSpec::new(
    "nic.latency",
    "time of a message of 256 bytes from a NIC to its peer on another node, by fi_pingpong",
    Unit::Microseconds,
    Better::Lower,
    Files::Output,
)
.per(&[Dim::Nic])
.blaming(Blames::Node)
.covering(Covers::Nics)
.varying(RunNoise::NotComparable)
.with(&[Role::BetweenNodes])
.next("run `fi_pingpong` by hand on {nodes} with other partners, and compare retransmits of the NIC");

const fn loopback(name: &'static str, about: &'static str, unit: Unit, better: Better) -> MetricSpec {
    MetricSpec::new(name, about, unit, better, Files::Output)
        .per(&[Dim::Node, Dim::Nic])
        .blaming(Blames::Part)
        .naming(Names::Coded(Some("fabric"), "HRN-NIC-LOOPBACK"))
        .covering(Covers::Nics)
        .varying(RunNoise::NotComparable)
        .next("reboot {nodes} once; replace it if a NIC stays unlike its peers in messages to itself")
}

const LOOPBACK: MetricSpec = loopback(
    "nic.loopback",
    "time of a message of 256 bytes from a NIC to itself, by fi_pingpong",
    Unit::Microseconds,
    Better::Lower,
);
const LOOPBACK_RATE: MetricSpec = loopback(
    "nic.loopback_rate",
    "what messages of 1 MiB from a NIC to itself move, one at a time, by fi_pingpong",
    Unit::GigabytesPerSecond,
    Better::Higher,
);

/// Of a message that shows the latency, and of one that shows the rate: what the plan asks for, and all that is taken.
pub const MESSAGE_BYTES: [u64; 2] = [SMALL, LARGE];
const SMALL: u64 = 256;
const LARGE: u64 = 1 << 20;

pub(crate) const SPEC: RecipeSpec<'static> = RecipeSpec {
    name: "nic_latency",
    about: "latency of each NIC to another node, and latency and rate to itself, by fi_pingpong",
    metrics: &[LATENCY, LOOPBACK, LOOPBACK_RATE],
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
    if let (Some(why), Some(0)) = (source::not_started(&text), job.exit_code) {
        // A server that was late is no damaged output, and neither node's fault.
        output.findings.push(about(job, file, ToolFinding::NotMeasured.code(), None, why));
        return output;
    }
    let Some(links) = result(job, file, read(job, &text), &mut output) else { return output };
    for messages in &links.measured {
        let (is_large, nic) = (messages.bytes == LARGE, messages.device.as_str());
        let dims = job.dims().with(Dim::Nic, nic);
        match job.nodes.as_slice() {
            [node] => {
                let dims = dims.with(Dim::Node, node.as_str());
                output.metrics.push(match is_large {
                    true => LOOPBACK_RATE.of(dims, messages.rate_gb_s),
                    false => LOOPBACK.of(dims, messages.latency_us),
                });
            }
            _ if is_large => {}
            _ => output.metrics.push(LATENCY.of(dims, messages.latency_us)),
        }
    }
    for (device, why) in &links.silent {
        let message = format!("{device}: {why}");
        let finding = about(job, file, ToolFinding::NotMeasured.code(), None, message).part(device.as_str());
        output.findings.push(finding);
    }
    output
}

/// Each NIC and size once, no other NIC than those of the instance, and no other size than was asked for.
fn read(job: &JobInput, text: &str) -> Result<source::Links, String> {
    let links = source::read(text)?;
    let mut seen = std::collections::BTreeSet::new();
    for messages in &links.measured {
        if !job.nics.contains(&messages.device) {
            return Err(format!("the instance has no such NIC: {}", messages.device));
        }
        if !MESSAGE_BYTES.contains(&messages.bytes) {
            return Err(format!(
                "{}: messages of {} B, asked for: {SMALL} and {LARGE}",
                messages.device, messages.bytes
            ));
        }
        if !seen.insert((messages.device.clone(), messages.bytes)) {
            return Err(format!("{} was measured twice", messages.device));
        }
    }
    // The script prints one result for each size: more are of two runs.
    for (device, _) in &links.silent {
        let measured = links.measured.iter().filter(|messages| messages.device == *device).count();
        let silent = links.silent.iter().filter(|(other, _)| other == device).count();
        if measured + silent > MESSAGE_BYTES.len() {
            return Err(format!("{device} was measured and did not connect: the output is of two runs"));
        }
    }
    Ok(links)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::{Workload, testing};

    #[test]
    fn messages_of_a_size_that_was_not_asked_for_are_no_latency() {
        let job = testing::job(Workload::Command, &[], |_| "n1".to_owned(), 0);
        let job = JobInput { nics: vec!["rdmap79s0".to_owned()], ..job };
        let text = |size: &str, rate: &str| {
            format!(
                "device rdmap79s0\nbytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n\
                 {size}     10k     =10k     4.8m        0.24s     {rate}      12.00       0.08\n"
            )
        };
        let bytes = |text: &str| read(&job, text).map(|links| links.measured[0].bytes);
        assert_eq!(bytes(&text("256", "21.33")), Ok(256));
        assert_eq!(bytes(&text("1m", "87381.33")), Ok(1 << 20));
        for (size, rate, shown) in
            [("64", "5.33", 64), ("32k", "2730.67", 32768), ("512k", "43690.67", 524_288)]
        {
            let why = format!("rdmap79s0: messages of {shown} B, asked for: 256 and 1048576");
            assert_eq!(bytes(&text(size, rate)), Err(why));
        }
        let silent = "not-connected rdmap79s0 no answer in 30 s\n";
        let large = text("1m", "87381.33") + silent;
        assert_eq!(bytes(&large), Ok(1 << 20), "the small ones did not come");
        let why = "rdmap79s0 was measured and did not connect: the output is of two runs";
        assert_eq!(bytes(&(text("256", "21.33") + &large)), Err(why.to_owned()));
    }
}
