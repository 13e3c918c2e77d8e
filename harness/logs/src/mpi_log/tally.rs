//! What the lines of MPI messages add up to, in bounded memory, and what is odd about it.

use super::line::{Call, CallLine, OPERATIONS, Operation, Said};
use super::{Bucket, Calls, MpiLog, OfOperation, OfRank};
use crate::text;
use metric::finding::Finding;
use std::collections::{BTreeMap, BTreeSet};

/// Of ranks, kinds of calls and pairs: the rest is left out, and counted in a finding.
const MOST: usize = 1 << 16;

#[derive(Debug, Default, Clone)]
struct Sum {
    calls: u64,
    bytes: u128,
}

impl Sum {
    fn add(&mut self, bytes: u64) {
        self.calls += 1;
        self.bytes += u128::from(bytes);
    }

    fn bytes(&self) -> Option<u64> {
        self.bytes.try_into().ok()
    }
}

#[derive(Debug, Clone)]
struct OfOne {
    sum: Sum,
    receive: u128,
    empty: u64,
    min: u64,
    max: u64,
    buckets: Vec<Sum>,
}

#[derive(Debug, Default)]
struct Rank {
    begun: bool,
    ended: bool,
    clock: f64,
    clock_back: Option<u64>,
    calls: BTreeMap<Operation, Sum>,
    /// Collectives of the largest communicator so far.
    collectives: BTreeMap<Operation, u64>,
    takes_any: bool,
}

#[derive(Debug, Default, Clone, Copy)]
struct Pair {
    sends: u64,
    receives: u64,
}

#[derive(Debug)]
pub(super) struct Tally {
    edges: Vec<u64>,
    operations: Vec<OfOne>,
    kinds: BTreeMap<(Operation, u64), u64>,
    ranks: BTreeMap<u64, Rank>,
    rankless: u64,
    /// By sender and receiver.
    pairs: BTreeMap<(u64, u64), Pair>,
    /// Whether ranks of communicators are those of the world.
    is_one_world: bool,
    largest: u64,
    beyond: u64,
}

impl Tally {
    pub(super) fn new(edges: Vec<u64>) -> Tally {
        let none = OfOne {
            sum: Sum::default(),
            receive: 0,
            empty: 0,
            min: u64::MAX,
            max: 0,
            buckets: vec![Sum::default(); edges.len() + 1],
        };
        Tally {
            operations: vec![none; OPERATIONS.len()],
            edges,
            kinds: BTreeMap::new(),
            ranks: BTreeMap::new(),
            rankless: 0,
            pairs: BTreeMap::new(),
            is_one_world: true,
            largest: 0,
            beyond: 0,
        }
    }

    pub(super) fn line(&mut self, line: &CallLine, number: u64) {
        if let Said::Call(call) = &line.said {
            self.call(call);
        }
        let Some(number_of) = line.world_rank else {
            self.rankless += u64::from(matches!(line.said, Said::Call(_)));
            return;
        };
        if self.ranks.len() >= MOST && !self.ranks.contains_key(&number_of) {
            self.beyond += 1;
            return;
        }
        let rank = self.ranks.entry(number_of).or_default();
        if line.seconds < rank.clock && line.seconds > 0.0 {
            rank.clock_back.get_or_insert(number);
        }
        rank.clock = line.seconds;
        match &line.said {
            Said::Begin => rank.begun = true,
            Said::End => rank.ended = true,
            Said::Call(call) => {
                rank.calls.entry(call.operation).or_default().add(call.bytes);
                if call.comm_size.is_some_and(|size| size == self.largest) {
                    *rank.collectives.entry(call.operation).or_default() += 1;
                }
                self.messages(number_of, call);
            }
        }
    }

    fn call(&mut self, call: &Call) {
        let at = OPERATIONS.iter().position(|operation| *operation == call.operation).unwrap_or_default();
        if let Some(of_one) = self.operations.get_mut(at) {
            of_one.sum.add(call.bytes);
            of_one.receive += u128::from(call.receive_bytes.unwrap_or(0));
            of_one.empty += u64::from(call.bytes == 0);
            of_one.min = of_one.min.min(call.bytes);
            of_one.max = of_one.max.max(call.bytes);
            let bucket = self.edges.partition_point(|edge| *edge <= call.bytes);
            if let Some(bucket) = of_one.buckets.get_mut(bucket) {
                bucket.add(call.bytes);
            }
        }
        let kind = (call.operation, call.bytes);
        match self.kinds.len() >= MOST && !self.kinds.contains_key(&kind) {
            true => self.beyond += 1,
            false => *self.kinds.entry(kind).or_default() += 1,
        }
        if call.comm_size.is_some_and(|size| size > self.largest) {
            self.largest = call.comm_size.unwrap_or_default();
            self.ranks.values_mut().for_each(|rank| rank.collectives.clear());
        }
    }

    fn messages(&mut self, rank: u64, call: &Call) {
        if call.operation.is_collective() {
            return;
        }
        self.is_one_world &= i64::try_from(rank).is_ok_and(|rank| rank == call.comm_rank);
        if let Some(to) = call.to.and_then(|peer| u64::try_from(peer.rank).ok()) {
            self.pair((rank, to)).sends += 1;
        }
        match call.from.map(|peer| u64::try_from(peer.rank)) {
            Some(Ok(from)) => self.pair((from, rank)).receives += 1,
            Some(Err(_)) => self.ranks.entry(rank).or_default().takes_any = true,
            None => {}
        }
    }

    fn pair(&mut self, key: (u64, u64)) -> &mut Pair {
        if self.pairs.len() >= MOST && !self.pairs.contains_key(&key) {
            self.beyond += 1;
            // None of its pairs can be compared any more.
            self.is_one_world = false;
        }
        self.pairs.entry(key).or_default()
    }

    pub(super) fn finish(self, log: &mut MpiLog) {
        log.operations = self.operations();
        log.histogram = self.histogram();
        let kinds = self.kinds.iter();
        log.calls = kinds
            .map(|((operation, bytes), calls)| Calls { operation: *operation, bytes: *bytes, calls: *calls })
            .collect();
        log.ranks = self.rank_rows();
        log.largest_communicator = (self.largest > 0).then_some(self.largest);
        log.findings.extend(self.findings());
    }

    fn operations(&self) -> Vec<OfOperation> {
        let one = |(operation, it): (Operation, &OfOne)| OfOperation {
            operation,
            calls: it.sum.calls,
            empty: it.empty,
            min_bytes: it.min,
            mean_bytes: it.sum.bytes as f64 / it.sum.calls as f64,
            max_bytes: it.max,
            total_bytes: it.sum.bytes(),
            receive_bytes: matches!(operation, Operation::Allgather | Operation::Sendrecv)
                .then(|| it.receive.try_into().ok())
                .flatten(),
        };
        OPERATIONS.into_iter().zip(&self.operations).filter(|(_, it)| it.sum.calls > 0).map(one).collect()
    }

    fn histogram(&self) -> Vec<Bucket> {
        let mut all = Vec::new();
        for (operation, it) in OPERATIONS.into_iter().zip(&self.operations) {
            for (at, sum) in it.buckets.iter().enumerate().filter(|(_, sum)| sum.calls > 0) {
                let from_bytes = at.checked_sub(1).and_then(|at| self.edges.get(at)).copied().unwrap_or(0);
                let below_bytes = self.edges.get(at).copied();
                all.push(Bucket { operation, from_bytes, below_bytes, calls: sum.calls, bytes: sum.bytes() });
            }
        }
        all
    }

    fn rank_rows(&self) -> Vec<OfRank> {
        let rows = self.ranks.iter().flat_map(|(rank, it)| {
            it.calls.iter().map(|(operation, sum)| OfRank {
                rank: *rank,
                operation: *operation,
                calls: sum.calls,
                bytes: sum.bytes(),
            })
        });
        rows.collect()
    }

    fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut find = |code: &str, why: String| findings.push(Finding::new(code, why));
        let seen = self.ranks.len() as u64;
        if seen < self.largest {
            let why = format!(
                "{seen} of {} ranks logged: ranks that share a log file overwrite each other; set one file per rank \
                 with `MPI_MSG_LOG_FILE`",
                self.largest
            );
            find("mpi-ranks-missing", why);
        }
        let open: Vec<String> = self
            .ranks
            .iter()
            .filter(|(_, it)| it.begun && !it.ended)
            .map(|(rank, _)| rank.to_string())
            .collect();
        if let Some(first) = open.first() {
            let ranks = text::count(open.len() as u64, "rank");
            let why = format!("{ranks} never called MPI_Finalize, the first rank {first}");
            find("mpi-not-finalised", why);
        }
        for (rank, line) in self.ranks.iter().filter_map(|(rank, it)| Some((rank, it.clock_back?))).take(3) {
            let why = format!("rank {rank}: clock goes back; two runs or two ranks wrote into one file");
            findings.push(Finding::new("mpi-clock-back", why).line(line));
        }
        if seen == self.largest {
            findings.extend(self.unequal());
        }
        if self.is_one_world {
            findings.extend(self.unpaired());
        }
        if self.rankless > 0 {
            let why = format!("calls before MPI_Init, of no known rank: {}", self.rankless);
            findings.push(Finding::new("mpi-no-rank", why));
        }
        if self.beyond > 0 {
            let why =
                format!("lines beyond {MOST} ranks, sizes or pairs, not listed by them: {}", self.beyond);
            findings.push(Finding::new("mpi-too-many", why));
        }
        findings
    }

    /// Collectives that all ranks must have called equally often, and did not.
    fn unequal(&self) -> Option<Finding> {
        let all: BTreeSet<Operation> =
            self.ranks.values().flat_map(|rank| rank.collectives.keys().copied()).collect();
        let mut differing = all.into_iter().filter_map(|operation| {
            let count = |rank: &Rank| rank.collectives.get(&operation).copied().unwrap_or(0);
            let (fewest, least) = self.ranks.iter().min_by_key(|(_, rank)| count(rank))?;
            let (most, greatest) = self.ranks.iter().max_by_key(|(_, rank)| count(rank))?;
            let (least, greatest) = (count(least), count(greatest));
            let name = operation.name();
            (least != greatest).then(|| {
                let (least, greatest) = (text::count(least, "time"), text::count(greatest, "time"));
                format!("`MPI_{name}` was called {least} by rank {fewest} and {greatest} by rank {most}")
            })
        });
        let first = differing.next()?;
        let more = match differing.count() as u64 {
            0 => String::new(),
            more => format!("; {} with unequal calls", text::count(more, "more operation")),
        };
        Some(Finding::new("mpi-calls-differ", format!("{first}{more}")))
    }

    /// Messages between two ranks that are both there, sent and not received, or the other way round.
    fn unpaired(&self) -> Vec<Finding> {
        let is_known = |rank: u64| self.ranks.get(&rank).is_some_and(|rank| !rank.takes_any);
        let odd = self.pairs.iter().filter(|((from, to), pair)| {
            self.ranks.contains_key(from) && is_known(*to) && pair.sends != pair.receives
        });
        let odd: Vec<_> = odd.collect();
        odd.first()
            .map(|((from, to), pair)| {
                let why = format!(
                    "rank {from} sent {} to rank {to}, which received {}; first of {}; non-blocking calls are not logged",
                    text::count(pair.sends, "message"),
                    pair.receives,
                    text::count(odd.len() as u64, "such pair")
                );
                Finding::new("mpi-unpaired", why)
            })
            .into_iter()
            .collect()
    }
}
