//! Sums over records in bounded memory: what each rank called, how long it took, and which numbers are missing.

use super::record::{Call, Identity, Stats};
use super::{InspectorLog, MemberRecords, RankCall, Series, Spread};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Ranks of communicators, and rows; what is beyond them is counted and left out.
const MOST_MEMBERS: usize = 200_000;
const MOST_SERIES: usize = 400_000;
/// Calls that are kept one by one.
const MOST_CALLS: usize = 4_000_000;
/// Runs of numbers without a gap, of all counters.
const MOST_RUNS: usize = 1_000_000;
/// The usual size of a ring.
const RING: u64 = 1024;

#[derive(Debug, Default)]
pub(super) struct Tables {
    members: HashMap<Identity, usize>,
    records: Vec<u64>,
    dropped: Vec<Option<Dropped>>,
    operations: Vec<String>,
    series: BTreeMap<Key, Sums>,
    numbers: BTreeMap<(usize, usize), Numbers>,
    runs: usize,
    /// Where they are wanted.
    calls: Option<Vec<RankCall>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    member: usize,
    operation: usize,
    bytes: u64,
}

/// Cumulative, as the last marker has it.
#[derive(Debug, Clone, Copy, Default)]
struct Dropped {
    calls: u64,
    proxy: u64,
}

#[derive(Debug, Default)]
struct Sums {
    calls: u64,
    time: Sum,
    algbw: Sum,
    busbw: Sum,
    timed_on_host: u64,
}

#[derive(Debug, Default)]
struct Sum {
    n: u64,
    sum: f64,
    min: f64,
    max: f64,
}

/// The counter of one operation.
#[derive(Debug, Default)]
struct Numbers {
    seen: u64,
    /// Records whose number another one has.
    copies: u64,
    /// Records with the highest number so far, which the ones before them have, too.
    repeats: u64,
    /// Whether one of those is of another call: NCCL gives all replays of a CUDA graph the number of its next call outside
    /// of the graph (`ncclProfilerStartTaskEvents` of <https://github.com/NVIDIA/nccl/blob/master/src/plugin/profiler.cc>).
    is_replayed: bool,
    /// First and last of numbers that came one behind the other.
    runs: BTreeMap<u64, u64>,
    last: u64,
    /// Bytes and time of the record that has the last one.
    content: (u64, Option<u64>),
}

impl Numbers {
    /// Takes the number of a record; true where it begins a run. A copy must not stand for a record that was lost.
    fn take(&mut self, number: u64, content: (u64, Option<u64>), has_room: bool) -> bool {
        self.seen += 1;
        let before = (self.last, self.content);
        if number >= self.last {
            (self.last, self.content) = (number, content);
        }
        if let Some((_, end)) = self.runs.range_mut(..=number).next_back() {
            if number <= *end {
                if number == before.0 {
                    self.repeats += 1;
                    self.is_replayed |= content != before.1;
                } else {
                    self.copies += 1;
                }
                return false;
            }
            if end.checked_add(1) == Some(number) {
                *end = number;
                return false;
            }
        }
        if has_room {
            self.runs.insert(number, number);
        }
        has_room
    }

    /// How many numbers lie between the first and the last one, both included.
    fn span(&self) -> u64 {
        let first = self.runs.keys().next().copied().unwrap_or(self.last);
        (self.last - first).saturating_add(1)
    }

    /// Records of a number each, but for copies.
    fn numbered(&self) -> u64 {
        if self.is_replayed { self.seen - self.repeats } else { self.seen }
    }

    fn copies(&self) -> u64 {
        let repeats = if self.is_replayed { 0 } else { self.repeats };
        (self.copies + repeats).max(self.numbered().saturating_sub(self.span()))
    }

    /// Numbers between the first and the last one that no record has.
    fn gaps(&self) -> u64 {
        self.span().saturating_sub(self.numbered() - self.copies())
    }
}

/// Host and number.
type Process<'a> = (Option<&'a str>, Option<u64>);

/// What is known of all records beside their rows.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub proxy_dropped: u64,
    /// Records whose number others have, too.
    pub copies: u64,
    /// Members with exactly so many records as rings hold, and no count of loss.
    pub full_rings: u64,
    /// Members without a name of their communicator: NCCL before 2.30.
    pub is_old: bool,
    /// Ranks of a communicator that several processes recorded.
    pub doubled: Vec<(String, u64)>,
    /// Ranks with far fewer records than their peers, loss that the plugin counted aside.
    pub short_ranks: Vec<ShortRank>,
}

/// A rank with far fewer records of a collective than its peers in the communicator.
#[derive(Debug)]
pub(super) struct ShortRank {
    /// Index into `InspectorLog::members`.
    pub member: usize,
    pub operation: String,
    pub records: u64,
    /// The median of the communicator.
    pub usual: u64,
}

/// Below it, one writing more or less is a large part.
const LEAST_USUAL: u64 = 8;

impl Sum {
    fn add(&mut self, value: Option<f64>) {
        let Some(value) = value else { return };
        let is_first = self.n == 0;
        self.min = if is_first { value } else { self.min.min(value) };
        self.max = if is_first { value } else { self.max.max(value) };
        self.n += 1;
        self.sum += value;
    }

    fn spread(&self) -> Option<Spread> {
        let mean = self.sum / self.n as f64;
        (self.n > 0).then_some(Spread { n: self.n, min: self.min, mean, max: self.max })
    }
}

impl Tables {
    pub(super) fn keeping_calls() -> Tables {
        Tables { calls: Some(Vec::new()), ..Tables::default() }
    }

    fn member(&mut self, identity: &Identity) -> Option<usize> {
        if let Some(at) = self.members.get(identity) {
            return Some(*at);
        }
        let at = self.members.len();
        if at >= MOST_MEMBERS {
            return None;
        }
        self.members.insert(identity.clone(), at);
        self.records.push(0);
        self.dropped.push(None);
        Some(at)
    }

    /// False where there is no room.
    pub(super) fn call(&mut self, identity: &Identity, call: &Call<'_>) -> bool {
        let Some(member) = self.member(identity) else { return false };
        let known = self.operations.iter().position(|it| *it == call.operation);
        let operation = match known {
            Some(at) => at,
            // NCCL has a dozen.
            None if self.operations.len() >= 64 => return false,
            None => {
                self.operations.push(call.operation.clone().into_owned());
                self.operations.len() - 1
            }
        };
        let key = Key { member, operation, bytes: call.bytes };
        if self.series.len() >= MOST_SERIES && !self.series.contains_key(&key) {
            return false;
        }
        if let Some(calls) = &mut self.calls {
            if calls.len() >= MOST_CALLS {
                return false;
            }
            let gpu_us = call.time_us.filter(|_| !call.is_timed_on_host);
            calls.push(RankCall { member, operation, number: call.number, bytes: call.bytes, gpu_us });
        }
        self.records[member] += 1;
        let sums = self.series.entry(key).or_default();
        sums.calls += 1;
        sums.time.add(call.time_us);
        sums.algbw.add(call.algbw);
        sums.busbw.add(call.busbw);
        sums.timed_on_host += u64::from(call.is_timed_on_host);
        // Sends and receives of a communicator share a counter.
        let counter = if call.is_p2p { usize::MAX } else { operation };
        let numbers = self.numbers.entry((member, counter)).or_default();
        let content = (call.bytes, call.time_us.map(f64::to_bits));
        self.runs += usize::from(numbers.take(call.number, content, self.runs < MOST_RUNS));
        true
    }

    pub(super) fn stats(&mut self, identity: &Identity, stats: &Stats) {
        let Some(member) = self.member(identity) else { return };
        let dropped = self.dropped[member].get_or_insert_default();
        let calls = stats.coll_dropped_total.saturating_add(stats.p2p_dropped_total);
        let proxy = stats.proxy_dropped_total.saturating_add(stats.proxy_ops_dropped_total);
        dropped.calls = dropped.calls.max(calls);
        dropped.proxy = dropped.proxy.max(proxy);
    }

    pub(super) fn finish(self, log: &mut InspectorLog) -> Facts {
        let mut facts = Facts::default();
        let mut gaps = vec![0_u64; self.records.len()];
        for ((member, _), numbers) in &self.numbers {
            gaps[*member] = gaps[*member].saturating_add(numbers.gaps());
            facts.copies += numbers.copies();
        }
        let mut members: Vec<(Identity, usize)> = self.members.into_iter().collect();
        members.sort();
        let mut places = vec![0; members.len()];
        let mut processes: BTreeMap<(&str, u64), BTreeSet<Process<'_>>> = BTreeMap::new();
        for (place, (identity, at)) in members.iter().enumerate() {
            places[*at] = place;
            let process = (identity.host.as_deref(), identity.pid);
            processes.entry((&identity.communicator, identity.rank)).or_default().insert(process);
            let (records, dropped) = (self.records[*at], self.dropped[*at]);
            facts.proxy_dropped = facts.proxy_dropped.saturating_add(dropped.map_or(0, |it| it.proxy));
            facts.full_rings += u64::from(dropped.is_none() && records > 0 && records.is_multiple_of(RING));
            facts.is_old |= identity.name.is_none();
            log.members.push(MemberRecords {
                communicator: identity.communicator.clone(),
                name: identity.name.clone(),
                rank: identity.rank,
                ranks: identity.ranks,
                host: identity.host.clone(),
                pid: identity.pid,
                records,
                dropped: dropped.map(|it| it.calls),
                gaps: gaps[*at],
            });
        }
        let doubled = processes.into_iter().filter(|(_, processes)| processes.len() > 1);
        facts.doubled = doubled.map(|((communicator, rank), _)| (communicator.to_owned(), rank)).collect();
        // Collectives have one number on all ranks; sends and receives are each rank's own.
        let mut counted: BTreeMap<(&str, usize), Vec<(usize, u64)>> = BTreeMap::new();
        for ((at, counter), numbers) in self.numbers.iter().filter(|((_, counter), _)| *counter != usize::MAX)
        {
            let place = places[*at];
            let distinct = numbers.numbered().saturating_sub(numbers.copies());
            let key = (log.members[place].communicator.as_str(), *counter);
            counted.entry(key).or_default().push((place, distinct));
        }
        for ((_, operation), ranks) in &counted {
            let mut records: Vec<u64> = ranks.iter().map(|(_, records)| *records).collect();
            records.sort_unstable();
            let usual = records[records.len() / 2];
            for (member, records) in ranks {
                let known = records.saturating_add(log.members[*member].dropped.unwrap_or_default());
                if usual >= LEAST_USUAL && known.saturating_mul(4) < usual.saturating_mul(3) {
                    let (operation, records) = (self.operations[*operation].clone(), *records);
                    facts.short_ranks.push(ShortRank { member: *member, operation, records, usual });
                }
            }
        }
        let calls = self.calls.into_iter().flatten();
        log.calls.extend(calls.map(|call| RankCall { member: places[call.member], ..call }));
        let operations = self.operations;
        log.series.extend(self.series.into_iter().map(|(key, sums)| Series {
            member: places[key.member],
            operation: operations[key.operation].clone(),
            bytes: key.bytes,
            calls: sums.calls,
            time_us: sums.time.spread(),
            algbw_gb_s: sums.algbw.spread(),
            busbw_gb_s: sums.busbw.spread(),
            timed_on_host: sums.timed_on_host,
        }));
        log.operations = operations;
        let members = &log.members;
        log.series.sort_by(|a, b| {
            let key = |it: &Series| (it.bytes, it.member);
            let communicator =
                |it: &Series| members.get(it.member).map(|member| member.communicator.as_str());
            communicator(a)
                .cmp(&communicator(b))
                .then_with(|| a.operation.cmp(&b.operation))
                .then_with(|| key(a).cmp(&key(b)))
        });
        facts
    }
}
