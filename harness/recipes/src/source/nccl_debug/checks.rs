//! What is odd about a log: ranks that do not call the same, messages that nobody takes, slow transports, warnings and time-outs,
//! and what was left out for its number. Each is named with where it was seen.

use super::super::nccl_tests::{LogLine, of_warning};
use super::Reader;
use super::communicators::{Communicator, Communicators};
use super::{communicators, distinct, processes, tally};
use crate::finding::Finding;

/// So many of a kind are told one by one.
const TOLD: usize = 3;

pub(super) fn findings(reader: &Reader) -> Vec<Finding> {
    let mut all = Vec::new();
    reading(reader, &mut all);
    time_outs(reader, &mut all);
    warnings(reader, &mut all);
    missing(reader, &mut all);
    sequences(reader, &mut all);
    unmatched(reader, &mut all);
    network(reader, &mut all);
    left_out(reader, &mut all);
    all
}

fn reading(reader: &Reader, all: &mut Vec<Finding>) {
    if reader.garbled_calls > TOLD as u64 {
        let why = format!("{} more lines of calls cannot be read", reader.garbled_calls - TOLD as u64);
        all.push(Finding::new("nccl-garbled", why));
    }
    if reader.unknown_calls > 0 {
        let names: Vec<String> = reader
            .unknown_operations
            .all()
            .into_iter()
            .take(TOLD)
            .map(|it| format!("`{}`", it.text))
            .collect();
        let why = format!(
            "{} calls count for nothing, of operations that are not known: {}",
            reader.unknown_calls,
            names.join(", ")
        );
        all.push(Finding::new("nccl-unknown-operation", why));
    }
    if reader.clocks_back > TOLD {
        let why = format!("clocks go back {} more times", reader.clocks_back - TOLD);
        all.push(Finding::new("nccl-clock-back", why));
    }
    let unsized_calls: u64 = reader.tally.operations().iter().map(|it| it.unsized_calls).sum();
    if unsized_calls > 0 {
        let why = format!("{unsized_calls} calls are of types whose size is not known, or of too many bytes");
        all.push(Finding::new("nccl-unsized", why));
    }
    let versions = reader.tally.versions.all();
    if let [first, second, ..] = versions.as_slice() {
        let why = format!(
            "the logs are of {} versions of NCCL, such as {} and {}: of several jobs, or of nodes that differ",
            versions.len(),
            first.text,
            second.text
        );
        all.push(Finding::new("nccl-versions-differ", why));
    }
}

fn time_outs(reader: &Reader, all: &mut Vec<Finding>) {
    let Some(first) = reader.timed_out.first() else { return };
    let mut ranks: Vec<u64> = reader.timed_out.iter().map(|it| it.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let after = first.after_ms.map_or_else(String::new, |ms| format!(" after {ms} ms"));
    let why = format!(
        "rank {} was the first of {} to give up{after}: call {} of its group, {}",
        first.rank,
        ranks.len(),
        first.sequence,
        first.operation
    );
    all.push(Finding::new("nccl-timed-out", why).line(first.line));
}

fn warnings(reader: &Reader, all: &mut Vec<Finding>) {
    for warning in reader.warnings.seen() {
        let host = warning.host.as_deref().unwrap_or("");
        let log = LogLine { host, warns: true, text: &warning.text };
        let class = of_warning(&log, warning.line).and_then(|complaint| {
            serde_json::to_value(complaint.failure.class).ok()?.as_str().map(str::to_owned)
        });
        let class = class.map_or_else(String::new, |class| format!(" ({class})"));
        let times =
            if warning.lines > 1 { format!("{} lines warn", warning.lines) } else { "a line warns".into() };
        let mut finding = Finding::new("nccl-warning", format!("{times}{class}: {}", warning.text))
            .file(warning.file.clone())
            .line(warning.line);
        if !host.is_empty() {
            finding = finding.node(host);
        }
        all.push(finding);
    }
}

/// How a communicator is called.
fn name(at: usize, it: &Communicator) -> String {
    match it.id {
        Some(id) => format!("communicator 0x{id:x} of {} ranks", it.nranks),
        None => format!("communicator {} of {} ranks", at + 1, it.nranks),
    }
}

/// Ranks whose logs are not there: of them nothing is known, and no call of others is held against theirs.
fn missing(reader: &Reader, all: &mut Vec<Finding>) {
    let communicators = reader.tally.communicators.all.iter().enumerate();
    let lacking: Vec<_> = communicators.filter(|(_, it)| (it.members.len() as u64) < it.nranks).collect();
    if let Some((at, first)) = lacking.first() {
        let why = format!(
            "{} communicators lack ranks in these logs, of which nothing is known, such as {}: {} are there",
            lacking.len(),
            name(*at, first),
            first.members.len()
        );
        all.push(Finding::new("nccl-ranks-missing", why));
    }
}

fn sequences(reader: &Reader, all: &mut Vec<Finding>) {
    let tally = &reader.tally;
    let (mut short, mut holes, mut unfinished) = (0, 0, 0);
    for (at, it) in tally.communicators.all.iter().enumerate() {
        let name = name(at, it);
        let incomplete: Vec<u64> =
            it.members.iter().filter(|(_, member)| !member.complete).map(|(rank, _)| *rank).collect();
        if let Some(rank) = incomplete.first() {
            unfinished += 1;
            if unfinished <= TOLD {
                let why = format!(
                    "{name}: {} began and did not come to an end with its making, the first of them rank {rank}",
                    incomplete.len()
                );
                all.push(Finding::new("nccl-init-incomplete", why));
            }
        }
        let has_hole = |process: u32| tally.processes.get(process).is_some_and(|process| process.has_hole);
        let is_torn = it.members.values().any(|member| has_hole(member.process));
        if is_torn {
            // Behind a call that cannot be read, every other one would seem to differ.
            holes += 1;
            continue;
        }
        if let Some(difference) = &it.difference {
            let why = format!("{name}: {}", Communicators::told(difference, &tally.distinct));
            let mut finding = Finding::new("nccl-sequence-differs", why).line(difference.line);
            if let Some(file) = reader.files.get(difference.file as usize) {
                finding = finding.file(file.clone());
            }
            if let Some(member) = it.members.get(&difference.rank) {
                finding = finding.node(tally.processes.host(member.process));
            }
            all.push(finding);
            continue;
        }
        let most = it.members.iter().max_by_key(|(rank, member)| (member.calls, std::cmp::Reverse(**rank)));
        let least = it.members.iter().min_by_key(|(rank, member)| (member.calls, **rank));
        if let (Some((_, most)), Some((rank, least))) = (most, least)
            && most.calls > least.calls
        {
            short += 1;
            if short <= TOLD {
                let behind = it.members.values().filter(|member| member.calls < most.calls).count();
                let why = format!(
                    "{name}: rank {rank} made {} collective calls where others made {}, the furthest behind of {behind}: it \
                     ended or hangs, or the log is not whole",
                    least.calls, most.calls
                );
                let node = tally.processes.host(least.process);
                all.push(Finding::new("nccl-sequence-short", why).node(node));
            }
        }
    }
    for (code, count, what) in [
        ("nccl-sequence-short", short, "have ranks that called less than others"),
        ("nccl-init-incomplete", unfinished, "were begun and not made"),
    ] {
        if count > TOLD {
            all.push(Finding::new(code, format!("{} more communicators {what}", count - TOLD)));
        }
    }
    if holes > 0 {
        let why = format!("the calls of {holes} communicators are not compared: lines of calls are garbled");
        all.push(Finding::new("nccl-sequence-not-compared", why));
    }
}

fn unmatched(reader: &Reader, all: &mut Vec<Finding>) {
    let tally = &reader.tally;
    let mut pairs: Vec<_> = tally.pairs.iter().filter(|(_, pair)| pair.sends != pair.receives).collect();
    pairs.sort_by_key(|(key, _)| **key);
    let mut told = 0;
    for ((communicator, from, to), pair) in pairs {
        let Some(it) = tally.communicators.all.get(*communicator as usize) else { continue };
        // What a rank did whose log is not there is not known, nor where a line of it was garbled.
        let process = |rank: &u64| Some(tally.processes.get(it.members.get(rank)?.process)?.has_hole);
        let is_whole = process(from) == Some(false) && process(to) == Some(false);
        if !is_whole {
            continue;
        }
        told += 1;
        if told <= TOLD {
            let why = format!(
                "{}: rank {from} sends {} times to rank {to}, which receives {} times",
                name(*communicator as usize, it),
                pair.sends,
                pair.receives
            );
            all.push(Finding::new("nccl-send-unmatched", why));
        }
    }
    if told > TOLD {
        let why = format!("{} more pairs of ranks send and receive unequally", told - TOLD);
        all.push(Finding::new("nccl-send-unmatched", why));
    }
}

fn network(reader: &Reader, all: &mut Vec<Finding>) {
    let tally = &reader.tally;
    let connections = tally.connections();
    let net: Vec<_> = connections.iter().filter(|it| it.transport.starts_with("NET/")).collect();
    let slow: Vec<_> = net.iter().filter(|it| !it.gdrdma).collect();
    if let Some(first) = slow.first() {
        let why = format!(
            "{} of {} pairs of ranks go through host memory, without GPUDirect RDMA, such as rank {} to {} via {}",
            slow.len(),
            net.len(),
            first.from,
            first.to,
            first.transport
        );
        all.push(Finding::new("nccl-not-gdrdma", why));
    }
    for provider in tally.providers.all() {
        let name = provider.text.split(',').next().unwrap_or_default();
        if name != "efa" && !name.starts_with("efa;") {
            let why = format!("{} lines tell of a provider other than `efa`: `{name}`", provider.lines);
            all.push(Finding::new("nccl-provider", why));
        }
    }
    for network in tally.networks.all().into_iter().filter(|network| network.text == "Socket") {
        let why = format!("{} lines tell of the network `Socket`: no plugin or card was used", network.lines);
        all.push(Finding::new("nccl-network-socket", why));
    }
}

/// Nothing is left out without a word.
fn left_out(reader: &Reader, all: &mut Vec<Finding>) {
    let tally = &reader.tally;
    let few = [
        &tally.versions,
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
        (tally.communicators.handles_beyond, "lines of ranks of communicators", communicators::MOST),
        (compared, "communicators whose last calls are not compared,", communicators::MOST_COMPARED),
        (tally.gpus_beyond, "calls of GPUs", tally::MOST),
        (tally.pairs_beyond, "messages of pairs of ranks", tally::MOST),
        (tally.connections_beyond, "connections of pairs of ranks", tally::MOST),
        (tally.choices_beyond, "choices", tally::MOST / 16),
        (reader.warnings.beyond, "warnings of kinds", 256),
        (few.iter().map(|few| few.beyond).sum(), "lines of texts", 256),
    ];
    for (count, what, most) in counts.into_iter().filter(|(count, ..)| *count > 0) {
        let why = format!("{count} {what} beyond the first {most} are in no table of their own");
        all.push(Finding::new("nccl-left-out", why));
    }
}
