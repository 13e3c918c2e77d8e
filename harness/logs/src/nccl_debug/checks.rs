//! Anomalies of a log: what could not be read, which ranks timed out, warnings of NCCL, and what was left out beyond a
//! limit. Whether ranks do the same is checked in `agreement`, what connects them in `network`.

use super::Reader;
use super::tables::Checks;
use super::{agreement, communicators, distinct, network, processes, steps, tally, wired};
use crate::text::count;
use metric::finding::Finding;
use std::collections::BTreeSet;

/// At most this many of a kind are listed one by one.
pub(super) const MOST_LISTED: usize = 3;

pub(super) fn findings(reader: &Reader) -> (Vec<Finding>, Checks) {
    let mut checks = Checks::default();
    let mut all = Vec::new();
    reading(reader, &mut all);
    time_outs(reader, &mut all);
    warnings(reader, &mut all);
    agreement::findings(reader, &mut checks, &mut all);
    network::findings(reader, &mut checks, &mut all);
    left_out(reader, &mut all);
    (all, checks)
}

fn reading(reader: &Reader, all: &mut Vec<Finding>) {
    if reader.garbled_calls > MOST_LISTED as u64 {
        let more = count(reader.garbled_calls - MOST_LISTED as u64, "more call line");
        let why = format!("{more} could not be read");
        all.push(Finding::new("nccl-garbled", why));
    }
    if reader.unknown_calls > 0 {
        let names: Vec<String> = reader
            .unknown_operations
            .all()
            .into_iter()
            .take(MOST_LISTED)
            .map(|it| format!("`{}`", it.text))
            .collect();
        let calls = count(reader.unknown_calls, "call");
        let why = format!("skipped {calls} of unknown operations: {}", names.join(", "));
        all.push(Finding::new("nccl-unknown-operation", why));
    }
    if reader.clocks_back > MOST_LISTED {
        let more = count((reader.clocks_back - MOST_LISTED) as u64, "more time");
        let why = format!("clocks go back {more}, not listed");
        all.push(Finding::new("nccl-clock-back", why));
    }
    let unsized_calls: u64 = reader.tally.operations.table().iter().map(|it| it.unsized_calls).sum();
    if unsized_calls > 0 {
        let calls = count(unsized_calls, "call");
        let why = format!("no size of {calls}: unknown data type, or too many bytes");
        all.push(Finding::new("nccl-unsized", why));
    }
    let versions = reader.tally.versions.all();
    if let [first, second, ..] = versions.as_slice() {
        let why = format!(
            "logs come from {} versions of NCCL, for example {} and {}: several jobs, or nodes with different images",
            versions.len(),
            first.text,
            second.text
        );
        all.push(Finding::new("nccl-versions-differ", why));
    }
}

fn time_outs(reader: &Reader, all: &mut Vec<Finding>) {
    let mut timed_out: Vec<_> = reader.timed_out.iter().collect();
    // By their clocks where each line has one: processes do not write in the order of events.
    if timed_out.iter().all(|it| it.at.is_some()) {
        timed_out.sort_by_key(|it| it.at);
    }
    if let Some(first) = timed_out.first() {
        let mut ranks: Vec<Option<u64>> = timed_out.iter().map(|it| it.rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        let after = first.after_ms.map_or_else(String::new, |ms| format!(" after {ms} ms"));
        let call = first
            .sequence
            .map_or_else(|| "a call".to_owned(), |number| format!("call {number} of its group"));
        let why = format!(
            "{} timed out{after}, first of {}: {call}, {}; another rank never joined this call",
            rank_name(first.rank),
            ranks.len(),
            first.operation
        );
        all.push(Finding::new("nccl-timed-out", why).line(first.line));
    }
    // Each process group counts its own calls.
    let groups: BTreeSet<_> = reader.reached.iter().map(|it| &it.group).collect();
    let behind = groups.into_iter().find_map(|group| {
        let of_group = || reader.reached.iter().filter(|it| it.group == *group);
        let least = of_group().min_by_key(|it| (it.enqueued, it.rank))?;
        let most = of_group().max_by_key(|it| it.enqueued)?;
        (least.enqueued < most.enqueued).then_some((least, most))
    });
    if let Some((least, most)) = behind {
        let why = format!(
            "{} had reached call {} when it timed out, others call {}: the others waited for it, or it was \
             delayed earlier",
            rank_name(least.rank),
            least.enqueued,
            most.enqueued
        );
        all.push(Finding::new("nccl-rank-behind", why).line(least.line));
    }
}

fn rank_name(rank: Option<u64>) -> String {
    rank.map_or_else(|| "a rank".to_owned(), |rank| format!("rank {rank}"))
}

fn warnings(reader: &Reader, all: &mut Vec<Finding>) {
    for warning in reader.warnings.as_slice() {
        let times = if warning.lines > 1 { format!("{} warnings", warning.lines) } else { "warning".into() };
        let (code, means) = match warning.kind {
            Some(kind) => (format!(" ({})", kind.code), format!(": {}; {}", kind.cause, kind.advice)),
            None => (String::new(), ": unknown warning; search for it in the NCCL source".to_owned()),
        };
        let why = format!("{times}{code}: {}{means}", warning.text);
        let mut finding = Finding::new("nccl-warning", why).file(warning.file.clone()).line(warning.line);
        if let Some(host) = &warning.host {
            finding = finding.node(host);
        }
        all.push(finding);
    }
}

/// Reports what was left out beyond a limit.
fn left_out(reader: &Reader, all: &mut Vec<Finding>) {
    if reader.repeats > 0 {
        let lines = count(reader.repeats, "line");
        let why =
            format!("Ray left out {lines} that other workers printed too: set RAY_DEDUP_LOGS=0 to log all");
        all.push(Finding::new("nccl-left-out", why));
    }
    let tally = &reader.tally;
    let few = [
        &tally.versions,
        &tally.bootstraps,
        &tally.drivers,
        &tally.networks,
        &tally.providers,
        &tally.plugins,
        &tally.variables,
    ];
    let compared = tally.communicators.all.iter().filter(|it| it.beyond).count() as u64;
    let counts = [
        (tally.processes.beyond, "lines of processes", processes::MOST),
        (tally.distinct.beyond, "calls of kinds", distinct::MOST),
        (tally.communicators.beyond, "communicators, by their ranks 0,", communicators::MOST),
        (tally.communicators.handles_beyond, "lines of ranks of communicators", communicators::MOST_HANDLES),
        (compared, "communicators whose last calls are not compared,", communicators::MOST_COMPARED),
        (tally.gpus_beyond, "calls of GPUs", tally::MOST),
        (tally.pairs_beyond, "messages of pairs of ranks", tally::MOST),
        (tally.connections_beyond, "connections of pairs of ranks", tally::MOST),
        (tally.choices_beyond, "choices", tally::MOST / 16),
        (tally.wired.beyond, "lines of rings, trees and cards", wired::MOST),
        (tally.steps.beyond, "steps", steps::MOST),
        (reader.warnings.beyond, "warnings of kinds", 256),
        (few.iter().map(|few| few.beyond).sum(), "lines of texts", 256),
    ];
    for (count, what, most) in counts.into_iter().filter(|(count, ..)| *count > 0) {
        let why = format!("{count} {what} beyond the first {most} are not listed one by one");
        all.push(Finding::new("nccl-left-out", why));
    }
}
