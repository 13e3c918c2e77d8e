//! One line that says what to look at first in the window.

use super::Report;
use super::counters::Counter;
use super::window::Window;
use crate::stragglers::robust::median_of_others;
use crate::stragglers::{Evidence, Verdict, Who};
use std::collections::BTreeMap;

/// A NIC that carries less than this part of the others' median.
const SLOW: f64 = 0.75;
/// Peers that a NIC is compared with.
const LEAST_PEERS: usize = 3;

pub(super) fn line(
    window: &Window,
    reports: &[Report<'_>],
    evidence: &Evidence<'_>,
    verdict: &Verdict,
    counters: &[Counter],
) -> String {
    let run = window.run.as_ref();
    let called = |rank: i64| {
        let report = reports.iter().find(|report| report.input.rank == rank);
        report.map_or_else(|| format!("rank {rank}"), Report::called)
    };
    if let (Verdict::Named(culprits), Some(run)) = (verdict, run)
        && let Some(culprit) = culprits.first()
    {
        let who = match &culprit.who {
            Who::Node { node, .. } => format!("all ranks of {node}"),
            Who::Rank { rank, node, gpu } => {
                format!(
                    "{} on {node}{}",
                    called(*rank),
                    gpu.map(|gpu| format!(" gpu{gpu}")).unwrap_or_default()
                )
            }
        };
        return format!(
            "{who}: the others wait up to {} in {} until it comes; {}",
            time(run.last_start - run.first_start),
            run.kind.name(),
            culprit.cause.name()
        );
    }
    if let Some(slow) = slow_nic(counters) {
        return slow;
    }
    match run {
        Some(run) if run.last_start - run.first_start > (run.end - run.last_start) => {
            let last = &evidence.ranks[run.last_rank];
            format!(
                "{} on {}: last into {}, {} after the first",
                called(last.rank),
                last.node,
                run.kind.name(),
                time(run.last_start - run.first_start)
            )
        }
        Some(run) => format!(
            "{}: all {} ranks are in it together for {} of {}: the transfer itself takes the time",
            run.kind.name(),
            run.ranks,
            time(run.end - run.last_start),
            time(run.end - run.first_start)
        ),
        None => format!("{} of {} ranks", window.label, reports.len()),
    }
}

/// The NIC that carries least of what its peers carry, where it is far less.
fn slow_nic(counters: &[Counter]) -> Option<String> {
    let mut of_counter: BTreeMap<(&str, &str), Vec<&Counter>> = BTreeMap::new();
    let of_bytes = |counter: &&Counter| counter.unit.starts_with("bytes") && counter.coarse_ns.is_none();
    for counter in counters.iter().filter(of_bytes) {
        of_counter.entry((&counter.counter, &counter.unit)).or_default().push(counter);
    }
    let slow = of_counter.into_iter().filter_map(|((name, unit), mut peers)| {
        peers.sort_by(|a, b| a.mean.total_cmp(&b.mean));
        let means: Vec<i64> = peers.iter().map(|one| one.mean as i64).collect();
        let others = median_of_others(&means, 0)? as f64;
        let least = peers[0];
        let share = least.mean / others;
        (peers.len() > LEAST_PEERS && others > 0.0 && share < SLOW).then(|| {
            let line = format!(
                "{} {}: {name} {}, the others {}",
                least.node,
                least.device,
                rate(least.mean, unit),
                rate(others, unit)
            );
            (share, line)
        })
    });
    slow.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, line)| line)
}

fn rate(value: f64, unit: &str) -> String {
    let (per, factor) = match unit {
        "bytes/s" => ("GB/s", 1e9),
        "bytes/ms" => ("GB/s", 1e6),
        other => (other, 1.0),
    };
    format!("{:.1} {per}", value / factor)
}

fn time(ns: i128) -> String {
    match ns {
        ns if ns >= 1_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        ns => format!("{:.1} us", ns as f64 / 1e3),
    }
}
