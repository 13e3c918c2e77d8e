//! Traffic of every NIC of every node during a job, from the counters that the sampler read before, during and after.
//! `analysis` turns captures into traffic; here traffic becomes metrics.

pub mod analysis;
mod sampler_log;
mod transport;

use self::analysis::{DirectionMap, ExpectedNode, NicTraffic, SINCE_DRIVER, Traffic, TrafficReader};
use super::{Absent, FileRole, JobInput, Output, RecipeSpec, Workload, read_stream};
use logs::efa_counters;
use metric::finding::Finding;
use metric::finding_kinds;
use metric::unit::{Better, Unit};
use metric::{Blames, Covers, Dim, Dims, Files, Limit, MetricSpec, Names, Role};
use std::collections::BTreeMap;

/// Codes of findings that explain a low rate: NCCL used another transport than the instance's profile expects.
pub(crate) const OTHER_TRANSPORT: &[&str] = &[EfaFinding::TcpNotEfa.code(), EfaFinding::OtherProtocol.code()];

const fn nic_metric(name: &'static str, about: &'static str, unit: Unit, better: Better) -> MetricSpec {
    MetricSpec::new(name, about, unit, better, Files::Counters)
        .per(&[Dim::Node, Dim::Nic])
        .blaming(Blames::Node)
        .covering(Covers::Nics)
        .explained_by(OTHER_TRANSPORT)
        .with(&[Role::BetweenNodes])
        .next("on {nodes}: look at the counters before and after, and at the switch port")
}

const fn node_metric(name: &'static str, about: &'static str) -> MetricSpec {
    MetricSpec::new(name, about, Unit::GigabytesPerSecond, Better::Higher, Files::Counters)
        .per(&[Dim::Node])
        .blaming(Blames::Node)
        .covering(Covers::Nics)
        .explained_by(OTHER_TRANSPORT)
        .limited(Limit::NodeLine)
        .with(&[Role::Traffic])
        .next("run suite `nccl-p5`, case `nic-pairs`, on {nodes}: it measures each NIC separately")
}

const PRESENT: MetricSpec = nic_metric(
    "nic.present",
    "1 where the node lists the device of its profile, 0 where it does not",
    Unit::Count,
    Better::Higher,
)
.naming(Names::Unlisted)
.limited(Limit::One)
.next(
    "on {nodes}: `ls /sys/class/infiniband`, then `lspci`; replace the node if the device is still missing",
);
const TX_BYTES: MetricSpec = nic_metric(
    "nic.tx_bytes",
    "bytes that left through the NIC, by the instance's direction map",
    Unit::Bytes,
    Better::Higher,
)
.with(&[Role::Traffic, Role::ShowsNics, Role::BetweenNodes]);
const RX_BYTES: MetricSpec = nic_metric(
    "nic.rx_bytes",
    "bytes that arrived through the NIC, by the instance's direction map",
    Unit::Bytes,
    Better::Higher,
)
.with(&[Role::Traffic, Role::BetweenNodes]);
const SHARE: MetricSpec = nic_metric(
    "nic.share",
    "the NIC's fraction of its node's bytes, over the median of the same device on the job's other nodes; 1 where those \
     moved none",
    Unit::Ratio,
    Better::Higher,
)
.naming(Names::Unmoved)
.with(&[Role::Traffic, Role::BetweenNodes])
.next("on {nodes}: look at the link of the NIC and at its counters, then run suite `nccl-p5`, case `nic-pairs`, on them");
const RETRANS: MetricSpec =
    nic_metric("nic.retrans_pkts", "retransmitted packets", Unit::Count, Better::Lower);
const TIMEOUTS: MetricSpec = nic_metric(
    "nic.retrans_timeouts",
    "retransmission time-outs, each a change of path",
    Unit::Count,
    Better::Lower,
)
.with(&[Role::Timeouts, Role::BetweenNodes]);
const DROPS: MetricSpec =
    nic_metric("nic.rx_drops", "received packets that were dropped", Unit::Count, Better::Lower);
const NODE_TX: MetricSpec = node_metric("node.efa_tx", "sum of the plateau send rates of the node's NICs");
const NODE_RX: MetricSpec = node_metric("node.efa_rx", "sum of the plateau receive rates of the node's NICs");
const RESIDUAL: MetricSpec = MetricSpec::new(
    "job.conservation_residual",
    "absolute difference of bytes sent and received over all nodes of the job; 0 where nothing is lost",
    Unit::Bytes,
    Better::Lower,
    Files::Counters,
)
.blaming(Blames::Node);

/// Reads the sampler's captures of EFA counters.
pub(crate) const SPEC: RecipeSpec = RecipeSpec {
    name: "efa_traffic",
    about: "bytes, rates, retransmits and drops of every NIC, and whether sent bytes have arrived",
    metrics: &[PRESENT, TX_BYTES, RX_BYTES, SHARE, RETRANS, TIMEOUTS, DROPS, NODE_TX, NODE_RX, RESIDUAL],
    tables: &[],
    findings: &[EfaFinding::ALL],
    reads_nccl_log: false,
    compares_clocks: false,
    reads_inspector: false,
    run: &run,
};

finding_kinds! {
    /// Of counters of EFA, and of what carried the traffic.
    pub(crate) enum EfaFinding {
        CaptureUnreadable = "capture-unreadable": NoOutput,
        CaptureUnexpected = "capture-unexpected": NoOutput,
        CaptureDuplicate = "capture-duplicate": NoOutput,
        CaptureMissing = "capture-missing": NoOutput,
        CaptureCut = "capture-cut": NoOutput,
        CounterAbsent = "counter-absent": NoOutput,
        CounterBad = "counter-bad": NoOutput,
        CounterMissing = "counter-missing": NoOutput,
        CounterReset = "counter-reset": NoOutput,
        CounterWrap = "counter-wrap": NoOutput,
        FolderUnreadable = "folder-unreadable": Garbled,
        SamplerEnded = "sampler-ended": NotCounted,
        TcpNotEfa = "tcp-not-efa": Setup,
        OtherProtocol = "other-protocol": Setup,
        ConservationBroken = "conservation-broken": Note,
        ConservationNotShown = "conservation-not-shown": Note,
        NicMissing = "nic-missing": Note,
        NicUnexpected = "nic-unexpected": Note,
        ReadingStale = "reading-stale": Note,
        ClockJump = "clock-jump": Note,
        NotQuiet = "not-quiet": Note,
    }
}

fn run(job: &JobInput) -> Output {
    let mut output = Output::default();
    let traffic = traffic(job, &mut output);
    let sockets = transport::sockets(job, &traffic);
    metrics_of(job, &traffic, sockets.is_some(), &mut output);
    output.absent = absent(&traffic);
    output.findings.extend(sockets);
    output.findings.extend(transport::protocol(job, &traffic));
    output.findings.extend(traffic.findings);
    output.findings.extend(sampler_log::findings(job));
    output
}

/// Metrics of counters that older drivers lack.
const SINCE: [(&MetricSpec, &str); 2] = [(&RETRANS, "retrans_pkts"), (&TIMEOUTS, "retrans_timeout_events")];

/// By node: the metrics that none of its devices can give.
fn absent(traffic: &Traffic) -> Vec<Absent> {
    let of_node = |(node, counters): (&String, &Vec<&'static str>)| {
        let lacks = SINCE.iter().filter(|(_, counter)| counters.contains(counter));
        let metrics: Vec<String> = lacks.map(|(spec, _)| spec.name.to_string()).collect();
        let why =
            format!("the EFA driver of {node} lacks the counter; it exists since driver {SINCE_DRIVER}");
        (!metrics.is_empty()).then(|| Absent { metrics, node: node.clone(), why })
    };
    traffic.absent.iter().filter_map(of_node).collect()
}

/// What the NICs of a job moved; captures that cannot be read become findings in `output`.
pub(super) fn traffic(job: &JobInput, output: &mut Output) -> Traffic {
    let expected: Vec<ExpectedNode> =
        job.nodes.iter().map(|node| ExpectedNode { node: node.clone(), devices: job.nics.clone() }).collect();
    let map = DirectionMap {
        sent: job.tx_counters.clone(),
        received: job.rx_counters.clone(),
        conservation_shown: job.conservation_shown,
    };
    let mut traffic = TrafficReader::new(&expected, &map);
    for file in job.files_of(FileRole::Counters) {
        let read = read_stream(file, output, |from| Ok(efa_counters::read_stream(from, &file.shown)));
        let Some(read) = read else { continue };
        match read {
            Ok(capture) => traffic.read(&capture),
            Err(error) => {
                let mut finding = Finding::new(
                    EfaFinding::CaptureUnreadable.code(),
                    format!("counters cannot be read: {error}"),
                )
                .file(&file.shown);
                finding.node = file.node.clone();
                output.findings.push(finding);
            }
        }
    }
    traffic.finish()
}

fn metrics_of(job: &JobInput, traffic: &Traffic, by_sockets: bool, output: &mut Output) {
    let parts = parts_per_device(&traffic.nics);
    for nic in &traffic.nics {
        let dims = || job.dims().with(Dim::Node, nic.node.as_str()).with(Dim::Nic, nic.nic.as_str());
        // Where a node's folder could not be read, its devices are unknown, neither present nor absent.
        if let Some(listed) = nic.listed {
            output.metrics.push(PRESENT.of(dims(), f64::from(u8::from(listed))));
        }
        let mut put = |spec: &MetricSpec, dims: Dims, value: Option<u64>| {
            if let Some(value) = value {
                output.metrics.push(spec.of(dims, value as f64));
            }
        };
        put(&TX_BYTES, dims(), nic.tx_bytes);
        put(&RX_BYTES, dims(), nic.rx_bytes);
        put(&RETRANS, dims(), nic.retrans_pkts);
        put(&TIMEOUTS, dims(), nic.retrans_timeouts);
        put(&DROPS, dims(), nic.rx_drops);
        // NICs that NCCL does not use have no share.
        if job.nodes.len() > 1
            && !by_sockets
            && let Some(share) = share(nic, &parts)
        {
            output.metrics.push(SHARE.of(dims(), share));
        }
    }
    let mut of_node: BTreeMap<&str, Vec<&NicTraffic>> = BTreeMap::new();
    for nic in traffic.nics.iter().filter(|nic| nic.listed == Some(true)) {
        of_node.entry(&nic.node).or_default().push(nic);
    }
    for node in &job.nodes {
        let dims = || job.dims().with(Dim::Node, node.as_str());
        let nics = of_node.get(node.as_str()).map(Vec::as_slice).unwrap_or_default();
        for (spec, rate) in [
            (&NODE_TX, (|nic: &NicTraffic| nic.plateau_tx_gb_s) as fn(&NicTraffic) -> Option<f64>),
            (&NODE_RX, |nic: &NicTraffic| nic.plateau_rx_gb_s),
        ] {
            let rates: Option<Vec<f64>> = nics.iter().copied().map(rate).collect();
            // The sum of some of the NICs is not the node's: one without a rate leaves the node without one.
            if let Some(rates) = rates.filter(|rates| !rates.is_empty()) {
                output.metrics.push(spec.of(dims(), rates.iter().sum()));
            }
        }
    }
    if let Some(residual) = residual(traffic) {
        output.metrics.push(RESIDUAL.of(job.dims(), residual as f64));
    }
}

fn moved(nic: &NicTraffic) -> Option<u64> {
    Some(nic.tx_bytes?.saturating_add(nic.rx_bytes?))
}

/// The part that each NIC has in its node's bytes, by device, sorted. Parts and not bytes, since nodes differ by their
/// place in the operation: the ends of a chain move half, the root of a scatter moves all.
fn parts_per_device(nics: &[NicTraffic]) -> BTreeMap<&str, Parts<'_>> {
    let mut per_node: BTreeMap<&str, u128> = BTreeMap::new();
    for nic in nics {
        *per_node.entry(&nic.node).or_default() += u128::from(moved(nic).unwrap_or_default());
    }
    let mut per_device: BTreeMap<&str, Vec<(f64, &str)>> = BTreeMap::new();
    for nic in nics {
        if let Some(bytes) = moved(nic) {
            let all = per_node.get(nic.node.as_str()).copied().unwrap_or_default();
            // A node that moved nothing has no part in what the others moved.
            let part = if all > 0 { bytes as f64 / all as f64 } else { 0.0 };
            per_device.entry(&nic.nic).or_default().push((part, &nic.node));
        }
    }
    per_device.into_iter().map(|(device, parts)| (device, Parts::new(parts))).collect()
}

/// The parts of one device on all nodes.
struct Parts<'a> {
    sorted: Vec<f64>,
    /// The place of a node's part, and the part.
    of_node: BTreeMap<&'a str, (usize, f64)>,
}

impl<'a> Parts<'a> {
    fn new(mut parts: Vec<(f64, &'a str)>) -> Parts<'a> {
        parts.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(b.1)));
        let places = parts.iter().enumerate().map(|(at, (part, node))| (*node, (at, *part)));
        Parts { of_node: places.rev().collect(), sorted: parts.iter().map(|(part, _)| *part).collect() }
    }
}

fn share(nic: &NicTraffic, per_device: &BTreeMap<&str, Parts>) -> Option<f64> {
    moved(nic)?;
    let all = per_device.get(nic.nic.as_str())?;
    let others = all.sorted.len().checked_sub(1).filter(|others| *others > 0)?;
    let (at, own) = *all.of_node.get(nic.node.as_str())?;
    // The median of the others, without copying the list for each of its members.
    let other = |index: usize| all.sorted.get(if index < at { index } else { index + 1 }).copied();
    let median = (other((others - 1) / 2)? + other(others / 2)?) / 2.0;
    Some(if median > 0.0 { own / median } else { 1.0 })
}

/// |sent - received| over all NICs of the job; nothing where any of them is not known.
fn residual(traffic: &Traffic) -> Option<u64> {
    let mut sent: u128 = 0;
    let mut received: u128 = 0;
    if traffic.nics.is_empty() {
        return None;
    }
    for nic in traffic.nics.iter().filter(|nic| nic.listed != Some(false)) {
        sent += u128::from(nic.all_tx_bytes?);
        received += u128::from(nic.all_rx_bytes?);
    }
    u64::try_from(sent.abs_diff(received)).ok()
}
