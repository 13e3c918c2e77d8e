//! What is odd in the files: damage, loss, and what has no record. None of it says that a call did not happen.

use super::batch::Batch;
use super::record::Call;
use super::series::Facts;
use super::{Gauge, InspectorLog};
use crate::text::count;
use metric::finding::Finding;
use std::collections::{BTreeMap, BTreeSet};

/// So many ranks or places are named, the others are counted.
const MOST_NAMED: usize = 8;

/// Oddities of one kind: how many, and where the first stands.
#[derive(Debug, Default)]
struct Oddity {
    lines: u64,
    first: Option<(String, u64)>,
}

#[derive(Debug, Default)]
pub(super) struct Odd {
    garbled: Oddity,
    cut: Oddity,
    bare: Oddity,
    beyond: Oddity,
    short: Oddity,
    disagreeing: Oddity,
    /// Announced records that never came.
    never_came: u64,
    timed_on_host: u64,
    wrapped_sizes: u64,
    /// Records for which there was no room.
    pub left_out: u64,
}

impl Oddity {
    fn add(&mut self, file: &str, line: u64) {
        self.lines += 1;
        self.first.get_or_insert_with(|| (file.to_owned(), line));
    }

    fn finding(&self, code: &str, message: String) -> Option<Finding> {
        let (file, line) = self.first.clone()?;
        let message = format!("{message}; the first: {file}:{line}");
        Some(Finding::new(code, message).file(file).line(line))
    }
}

impl Odd {
    pub(super) fn garbled(&mut self, file: &str, line: u64) {
        self.garbled.add(file, line);
    }

    pub(super) fn cut(&mut self, file: &str, line: u64) {
        self.cut.add(file, line);
    }

    pub(super) fn bare(&mut self, file: &str, line: u64) {
        self.bare.add(file, line);
    }

    pub(super) fn beyond(&mut self, file: &str, line: u64) {
        self.beyond.add(file, line);
    }

    pub(super) fn disagrees(&mut self, file: &str, line: u64) {
        self.disagreeing.add(file, line);
    }

    pub(super) fn call(&mut self, call: &Call<'_>) {
        self.timed_on_host += u64::from(call.is_timed_on_host);
        self.wrapped_sizes += u64::from(i64::try_from(call.bytes).is_err());
    }

    pub(super) fn end_of_batch(&mut self, file: &str, batch: &Batch) {
        let never_came = batch.announced.saturating_sub(batch.came);
        if never_came > 0 {
            self.short.add(file, batch.line);
            self.never_came = self.never_came.saturating_add(never_came);
        }
    }
}

pub(super) fn all(log: &InspectorLog, facts: &Facts, odd: Odd) -> Vec<Finding> {
    let mut found = Vec::new();
    let lines = |oddity: &Oddity| count(oddity.lines, "line");
    let damage = [
        (&odd.garbled, "inspector-garbled", format!("{} not readable", lines(&odd.garbled))),
        (&odd.cut, "inspector-cut", format!("{} cut at the end of a file", lines(&odd.cut))),
        (&odd.bare, "inspector-bare", format!("{} without a header and marker, left out", lines(&odd.bare))),
        (&odd.beyond, "inspector-beyond", format!("{} more than their marker announced", lines(&odd.beyond))),
        (
            &odd.short,
            "inspector-short",
            format!("{} announced and never came", count(odd.never_came, "record")),
        ),
        (
            &odd.disagreeing,
            "inspector-disagrees",
            format!(
                "{} with bandwidths that bytes, time and ranks do not give",
                count(odd.disagreeing.lines, "record")
            ),
        ),
    ];
    found.extend(damage.into_iter().filter_map(|(oddity, code, message)| oddity.finding(code, message)));
    loss(log, facts, &mut found);
    let mut find = |code: &str, n: u64, message: String| {
        if n > 0 {
            found.push(Finding::new(code, message));
        }
    };
    find("inspector-no-room", odd.left_out, format!("no room for rows of {}", count(odd.left_out, "record")));
    find(
        "inspector-copies",
        facts.copies,
        format!("{} with the number of another: files given twice?", count(facts.copies, "record")),
    );
    let wrapped = odd.wrapped_sizes;
    let message =
        format!("{} with a size near 2^64: unknown data type, no bandwidth", count(wrapped, "record"));
    find("inspector-size", wrapped, message);
    let on_host = odd.timed_on_host;
    let message = format!("{} timed by callbacks on the host, not by the GPU", count(on_host, "record"));
    find("inspector-host-times", on_host, message);
    if let Some((communicator, rank)) = facts.doubled.first() {
        let all = facts.doubled.len() as u64;
        let message = format!(
            "rank {rank} of {communicator}: several processes, of several jobs or restarts; {all} such"
        );
        find("inspector-processes", all, message);
    }
    found.extend(absent_ranks(log));
    found.extend(short_ranks(log, facts));
    gauges(&log.gauges, &mut found);
    found
}

fn loss(log: &InspectorLog, facts: &Facts, found: &mut Vec<Finding>) {
    let dropped = log.members.iter().filter(|member| member.dropped.is_some_and(|dropped| dropped > 0));
    for member in dropped.clone().take(MOST_NAMED) {
        let (rank, communicator) = (member.rank, &member.communicator);
        let calls = count(member.dropped.unwrap_or_default(), "call");
        let message = format!("rank {rank} of {communicator}: {calls} dropped, {} recorded", member.records);
        let finding = Finding::new("inspector-dropped", message);
        found.push(match &member.host {
            Some(host) => finding.node(host),
            None => finding,
        });
    }
    let more = dropped.clone().skip(MOST_NAMED).count() as u64;
    if more > 0 {
        let calls: u64 =
            dropped.skip(MOST_NAMED).filter_map(|member| member.dropped).fold(0, u64::saturating_add);
        let message = format!("{} dropped {}", count(more, "more rank"), count(calls, "call"));
        found.push(Finding::new("inspector-dropped", message));
    }
    if facts.proxy_dropped > 0 {
        let message = format!("{} of the proxy dropped", count(facts.proxy_dropped, "record"));
        found.push(Finding::new("inspector-dropped", message));
    }
    let gaps = log.members.iter().map(|member| member.gaps).fold(0, u64::saturating_add);
    if gaps > 0 {
        let members = log.members.iter().filter(|member| member.gaps > 0).count() as u64;
        let old = if facts.is_old { "; NCCL before 2.30 keeps one a dump" } else { "" };
        let message = format!(
            "{} of {} without a record: lost or filtered{old}",
            count(gaps, "call"),
            count(members, "rank")
        );
        found.push(Finding::new("inspector-gaps", message));
    }
    if facts.full_rings > 0 {
        let message = format!(
            "{} with a multiple of 1024 records: full rings, loss not counted",
            count(facts.full_rings, "rank")
        );
        found.push(Finding::new("inspector-ring", message));
    }
}

/// Ranks of which no file has a record.
fn absent_ranks(log: &InspectorLog) -> Option<Finding> {
    let mut communicators: BTreeMap<&str, (u64, BTreeSet<u64>)> = BTreeMap::new();
    for member in &log.members {
        let (ranks, seen) = communicators.entry(&member.communicator).or_default();
        *ranks = (*ranks).max(member.ranks);
        seen.insert(member.rank);
    }
    let mut partial = communicators.iter().filter(|(_, (ranks, seen))| (seen.len() as u64) < *ranks);
    let (communicator, (ranks, seen)) = partial.next()?;
    let more = partial.count() as u64;
    let more = if more > 0 { format!("; {}", count(more, "more communicator")) } else { String::new() };
    let message = format!(
        "{communicator}: {} of {ranks} ranks have records: others lost, filtered or not given{more}",
        seen.len()
    );
    Some(Finding::new("inspector-ranks", message))
}

/// Files that were cut between two lines, at their end or their beginning, have no other sign.
fn short_ranks(log: &InspectorLog, facts: &Facts) -> Option<Finding> {
    let first = facts.short_ranks.first()?;
    let member = log.members.get(first.member)?;
    let more = facts.short_ranks.len() as u64 - 1;
    let more = if more > 0 { format!("; {more} more such") } else { String::new() };
    let message = format!(
        "rank {} of {}: {} of {}, most ranks have {}: files cut or incomplete{more}",
        member.rank,
        member.communicator,
        count(first.records, "record"),
        first.operation,
        first.usual,
    );
    Some(Finding::new("inspector-partial", message))
}

fn gauges(gauges: &[Gauge], found: &mut Vec<Finding>) {
    let dropped = |gauge: &&Gauge| gauge.metric.ends_with("_dropped_total") && gauge.value > 0.0;
    for gauge in gauges.iter().filter(dropped).take(MOST_NAMED) {
        let message = format!("{}: {} {}", gauge.file, gauge.metric, gauge.value);
        found.push(Finding::new("inspector-dropped", message).file(&gauge.file));
    }
    let name = |gauge: &Gauge| {
        gauge.labels.iter().find(|(name, _)| name == "comm_name").map(|(_, name)| name.clone())
    };
    let is_unnamed = |gauge: &&Gauge| name(gauge).is_some_and(|name| name.is_empty() || name == "unknown");
    let unnamed = gauges.iter().filter(is_unnamed).count() as u64;
    if unnamed > 0 {
        let message =
            format!("{} without a communicator's name: several may be one", count(unnamed, "value"));
        found.push(Finding::new("inspector-unnamed", message));
    }
}
