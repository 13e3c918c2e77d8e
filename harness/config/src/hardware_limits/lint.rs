//! Checks suites, profiles and baselines against the hardware limits.

use super::{LATENCY_BETWEEN_NODES_US, LATENCY_WITHIN_NODE_US, algbw_ceiling, busbw_ceiling, published};
use crate::baseline::Baselines;
use crate::diagnostic::Diagnostic;
use crate::inventory::{Instance, Transport};
use crate::suite::{Algorithm, Assertion, Case, NcclTests, Placement, Suite};
use base::size;
use base::suggest::nearest;
use metric::op::Op;
use metric::unit::Unit;
use metric::{Limit, Role};
use recipes::recipe::{self, nccl_tests};

/// What in a suite this instance makes impossible; and in `baselines`, where they are given.
pub fn lint(suite: &Suite, instance: &Instance, baselines: Option<&Baselines>) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for case in &suite.cases {
        if let Some((message, suggestion)) = too_large(case, instance) {
            let message = format!("case `{}`: {message}", case.name);
            let diagnostic = Diagnostic::at(&suite.file, case.line, 1, message);
            let is_none = suggestion.is_empty();
            diagnostics.push(if is_none { diagnostic } else { diagnostic.suggest(suggestion) });
        }
        for assertion in &case.assertions {
            let found =
                limits(case, assertion, instance).into_iter().chain(stillness(case, assertion, instance));
            diagnostics.extend(found.map(|(message, suggestion)| {
                let message = format!("case `{}`: {message}", case.name);
                let diagnostic = Diagnostic::at(&suite.file, assertion.line, 1, message);
                if suggestion.is_empty() { diagnostic } else { diagnostic.suggest(suggestion) }
            }));
        }
    }
    diagnostics.extend(baselines.map(|baselines| lint_baselines(baselines, instance)).unwrap_or_default());
    diagnostics
}

/// What in a profile contradicts what is published, or itself.
pub fn lint_instance(instance: &Instance, file: &str) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let mut report = |message: String| diagnostics.push(Diagnostic::in_file(file, message));
    if let Some(published) = published(instance) {
        let gbit = instance.nic_line_rate_gb_s * 8.0;
        if gbit > published.nic_gbit_s {
            report(format!(
                "the line rate of a NIC of {} is {} Gb/s, not: {gbit}",
                instance.name, published.nic_gbit_s
            ));
        }
        if instance.nics.len() > published.nics {
            report(format!(
                "a node of {} has {} NICs, not: {}",
                instance.name,
                published.nics,
                instance.nics.len()
            ));
        }
        if instance.nvlink_gb_s > published.nvlink_gb_s {
            let (name, rate) = (&instance.name, published.nvlink_gb_s);
            report(format!(
                "a GPU of {name} has {rate} GB/s of NVLink one way, not: {}",
                instance.nvlink_gb_s
            ));
        }
    }
    for (key, own, other) in [
        ("tx_counters", &instance.tx_counters, moving(instance.transport, true)),
        ("rx_counters", &instance.rx_counters, moving(instance.transport, false)),
    ] {
        for counter in own.iter().filter(|counter| !other.contains(&counter.as_str())) {
            let near =
                nearest(counter, other.iter().copied()).unwrap_or(other.first().copied().unwrap_or_default());
            let message = format!("`{key}` lists counter `{counter}`, which does not count on this instance");
            diagnostics.push(Diagnostic::in_file(file, message).suggest(format!("did you mean `{near}`?")));
        }
    }
    diagnostics
}

/// What in a file of baselines this instance makes impossible.
pub fn lint_baselines(baselines: &Baselines, instance: &Instance) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for entry in &baselines.entries {
        let nodes = entry.key.nodes;
        let ranks = entry.key.ranks.or(nodes.map(|nodes| nodes.saturating_mul(instance.gpus)));
        let limit = recipe::built_in(&entry.metric).and_then(|metric| metric.limit);
        let ceiling = match (limit, entry.key.op, nodes, ranks) {
            (Some(Limit::BusBandwidth), Some(op), Some(nodes), Some(ranks)) => {
                busbw_ceiling(op, ranks, nodes, None, instance)
            }
            (Some(Limit::AlgorithmBandwidth), Some(op), Some(nodes), Some(ranks)) => {
                algbw_ceiling(op, ranks, nodes, None, instance)
            }
            (Some(Limit::NicLine), ..) => instance.nic_line_rate_gb_s,
            (Some(Limit::NodeLine), ..) => instance.node_wire_gb_s(),
            _ => continue,
        };
        // A bandwidth there is the reciprocal of a latency, and no NIC that is slow shows in it.
        if let (Some(Limit::BusBandwidth), Some(op), Some(bytes), Some(nodes), Some(ranks)) =
            (limit, entry.key.op, entry.key.size_bytes, nodes, ranks)
            && is_latency_bound(op, bytes, &Span { nodes, ranks }, None, instance)
        {
            let message = format!(
                "`{}` {}: the size is latency-bound, its bandwidth shows no slow NIC",
                entry.metric, entry.key
            );
            let diagnostic = Diagnostic::at(&baselines.file, entry.line, 1, message);
            diagnostics.push(
                diagnostic.suggest(format!("keep `{}` there, or a larger size", nccl_tests::TIME.name)),
            );
        }
        for value in entry.lower.iter().chain([&entry.median()]).filter(|value| **value > ceiling) {
            let message = format!(
                "`{}` {}: baseline of {} is above the hardware limit of {}, {}",
                entry.metric,
                entry.key,
                entry.unit.show(*value),
                instance.name,
                entry.unit.show(ceiling)
            );
            diagnostics.push(Diagnostic::at(&baselines.file, entry.line, 1, message));
        }
    }
    diagnostics
}

/// Message and suggestion.
type LimitError = (String, String);

fn limits(case: &Case, assertion: &Assertion, instance: &Instance) -> Vec<LimitError> {
    let bound = &assertion.bound;
    let floor = bound.at_least.or(bound.equals);
    let rate = Unit::GigabytesPerSecond;
    let above = |what: String, ceiling: f64| match floor.filter(|floor| *floor > ceiling) {
        Some(floor) => {
            let message = format!("limit {} is above {what}, {}", rate.show(floor), rate.show(ceiling));
            vec![(message, String::new())]
        }
        None => Vec::new(),
    };
    let limit = recipe::built_in(&assertion.metric).and_then(|metric| metric.limit);
    match (limit, case.workload.collective()) {
        (Some(Limit::NicLine), _) => above("the line rate of a NIC".to_owned(), instance.nic_line_rate_gb_s),
        (Some(Limit::NodeLine), _) => {
            above("the line rate of a node's NICs".to_owned(), instance.node_wire_gb_s())
        }
        (Some(Limit::One), _) if floor.is_some_and(|floor| floor > 1.0) => {
            let message = format!("`{}` is either 1 or 0", assertion.metric);
            vec![(message, "write `equals = 1` and `per = \"nic\"`".to_owned())]
        }
        (Some(limit @ (Limit::BusBandwidth | Limit::AlgorithmBandwidth)), Some(tests)) => {
            let spans = spans(case, tests, instance);
            let sizes = sizes_of(assertion, tests);
            let mut found: Vec<LimitError> =
                latency_bound(&sizes, tests, &spans, instance).into_iter().collect();
            let ceiling = highest(spans.iter().map(|span| match limit {
                Limit::BusBandwidth => {
                    busbw_ceiling(tests.op, span.ranks, span.nodes, tests.algorithm, instance)
                }
                _ => algbw_ceiling(tests.op, span.ranks, span.nodes, tests.algorithm, instance),
            }));
            found.extend(above(format!("the hardware limit of {}", tests.op), ceiling));
            found
        }
        (Some(Limit::Time), Some(tests)) => {
            let limit = bound.at_most.or(bound.equals);
            limit.and_then(|limit| too_fast(limit, case, assertion, tests, instance)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// One extent that a job of the case may have.
struct Span {
    nodes: u32,
    ranks: u32,
}

/// The extents that the placement allows; where the number of nodes is open, those with the loosest limits.
fn spans(case: &Case, tests: &NcclTests, instance: &Instance) -> Vec<Span> {
    let least = case.requires.min_nodes.unwrap_or(1);
    let most = case.requires.max_nodes.unwrap_or(u32::MAX);
    let nodes = match case.placement {
        Placement::Nodes(nodes) | Placement::Groups(nodes) => vec![nodes],
        Placement::Pairs => vec![2],
        Placement::Each => vec![1],
        Placement::EachGpu => return vec![Span { nodes: 1, ranks: 1 }],
        Placement::All if least <= 1 && most >= 2 => vec![1, 2],
        Placement::All => vec![least],
    };
    // A communicator of a split job has fewer ranks, but may have the node's wire to itself while the others wait.
    let communicators = tests.communicators();
    let span = |nodes: u32| {
        let ranks = (nodes.saturating_mul(instance.gpus) / communicators).max(1);
        Span { nodes: if communicators == 1 { nodes } else { nodes.min(ranks) }, ranks }
    };
    nodes.into_iter().map(span).collect()
}

/// A time below that of the bytes at the hardware limit; reported for the largest such size.
fn too_fast(
    limit_us: f64,
    case: &Case,
    assertion: &Assertion,
    tests: &NcclTests,
    instance: &Instance,
) -> Option<LimitError> {
    let ceiling = |span: &Span| algbw_ceiling(tests.op, span.ranks, span.nodes, tests.algorithm, instance);
    let ceiling = highest(spans(case, tests, instance).iter().map(ceiling));
    let least_us = |bytes: u64| bytes as f64 / (ceiling * 1e3);
    let sizes = sizes_of(assertion, tests);
    let bytes = sizes.into_iter().filter(|bytes| least_us(*bytes) > limit_us).max()?;
    let unit = Unit::Microseconds;
    let (shown, least) = (size::show(bytes), unit.show(least_us(bytes)));
    let limit = unit.show(limit_us);
    Some((format!("limit {limit} is below the shortest possible time of {shown}, {least}"), String::new()))
}

/// nccl-tests has buffers for what is sent, for what is received, and for what is expected where results are checked. It
/// leaves 1 GiB free, and runs no size that does not fit: such a size would only be missing from its table.
fn too_large(case: &Case, instance: &Instance) -> Option<LimitError> {
    let tests = case.workload.collective().filter(|tests| tests.torch.is_none())?;
    let memory_gib = published(instance)?.gpu_gib;
    let buffers = if tests.check { 3 } else { 2 };
    let most = (memory_gib.saturating_sub(1) << 30) / buffers;
    let sizes = tests.sizes();
    let largest = size::show(sizes.iter().copied().max().filter(|bytes| *bytes > most)?);
    let name = &instance.name;
    let message = format!(
        "{largest} does not fit: nccl-tests needs it {buffers} times, and a GPU of {name} has {memory_gib} GiB"
    );
    let fits = sizes.into_iter().filter(|bytes| *bytes <= most).max();
    Some((message, fits.map_or_else(String::new, |bytes| format!("write `to = \"{}\"`", size::show(bytes)))))
}

/// Every size of the sweep where none is named.
fn sizes_of(assertion: &Assertion, tests: &NcclTests) -> Vec<u64> {
    if assertion.sizes.is_empty() { tests.sizes() } else { assertion.sizes.clone() }
}

fn highest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, f64::max)
}

/// A size is bound by latency where even at the ceiling its bytes take less time than the least that any message does.
fn latency_bound(
    sizes: &[u64],
    tests: &NcclTests,
    spans: &[Span],
    instance: &Instance,
) -> Option<LimitError> {
    let is_bound =
        |bytes: u64, span: &Span| is_latency_bound(tests.op, bytes, span, tests.algorithm, instance);
    let bound: Vec<u64> =
        sizes.iter().copied().filter(|bytes| spans.iter().all(|span| is_bound(*bytes, span))).collect();
    let shown = match bound.as_slice() {
        [] => return None,
        [one] => size::show(*one),
        [first, .., last] => format!("{} to {}", size::show(*first), size::show(*last)),
    };
    let message = format!("{shown} is latency-bound, its bandwidth shows no slow NIC");
    Some((message, format!("assert `{}` there, or name larger sizes", nccl_tests::TIME.name)))
}

fn is_latency_bound(
    op: Op,
    bytes: u64,
    span: &Span,
    algorithm: Option<Algorithm>,
    instance: &Instance,
) -> bool {
    let latency_us = if span.nodes > 1 { LATENCY_BETWEEN_NODES_US } else { LATENCY_WITHIN_NODE_US };
    let ceiling = algbw_ceiling(op, span.ranks, span.nodes, algorithm, instance);
    ceiling.is_finite() && bytes as f64 / (ceiling * 1e3) < latency_us
}

/// Traffic demanded of counters that will not move.
fn stillness(case: &Case, assertion: &Assertion, instance: &Instance) -> Vec<LimitError> {
    let metric = assertion.metric.as_str();
    let of_traffic = recipe::has_role(metric, Role::Traffic);
    let bound = &assertion.bound;
    let wants_some = bound.at_least.or(bound.equals).is_some_and(|floor| floor > 0.0)
        || bound.baseline
        || bound.within_peers.is_some();
    if !of_traffic || !wants_some {
        return Vec::new();
    }
    let mut found = Vec::new();
    if matches!(case.placement, Placement::Each | Placement::EachGpu | Placement::Nodes(1)) {
        let message = format!("EFA counters do not count within one node, so there is no `{metric}`");
        found.push((message, "place the case on two nodes or more".to_owned()));
    }
    let environment = case.workload.environment();
    let all_rdma = instance.tx_counters.iter().all(|counter| counter.starts_with("rdma_"));
    let is =
        |name: &str, value: &str| environment.get(name).is_some_and(|set| set.eq_ignore_ascii_case(value));
    let stills = [
        (is("FI_EFA_USE_DEVICE_RDMA", "0"), "FI_EFA_USE_DEVICE_RDMA=0"),
        (
            instance.transport == Transport::Rdma && is("OFI_NCCL_PROTOCOL", "SENDRECV"),
            "OFI_NCCL_PROTOCOL=SENDRECV",
        ),
        (
            instance.transport == Transport::Sendrecv && is("OFI_NCCL_PROTOCOL", "RDMA"),
            "OFI_NCCL_PROTOCOL=RDMA",
        ),
    ];
    for (_, setting) in stills.iter().filter(|(is_still, _)| *is_still && all_rdma) {
        let counters = instance.tx_counters.join("`, `");
        found.push((
            format!("with `{setting}` these counters of {} do not count: `{counters}`", instance.name),
            String::new(),
        ));
    }
    found
}

/// The counters that grow with a node's traffic, by the protocol of the OFI plugin. With send and receive, large
/// messages are fetched by the receiver's reads and writes stay zero; with RDMA they are written, and the only reads
/// are flushes within the node.
fn moving(transport: Transport, leaves: bool) -> &'static [&'static str] {
    match (transport, leaves) {
        (Transport::Sendrecv, true) => &["rdma_read_resp_bytes", "tx_bytes", "send_bytes"],
        (Transport::Sendrecv, false) => &["rdma_read_bytes", "rx_bytes", "recv_bytes"],
        (Transport::Rdma, true) => &["rdma_write_bytes", "tx_bytes", "send_bytes"],
        (Transport::Rdma, false) => &["rdma_write_recv_bytes", "rx_bytes", "recv_bytes"],
    }
}
