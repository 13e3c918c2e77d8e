//! Calls by operation and by size: how many, and how many bytes.

use super::call::{Call, OPERATIONS, Operation};
use super::tables::{Bucket, OfOperation};
use super::wire::ByRanks;

#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Sum {
    pub calls: u64,
    bytes: u128,
}

impl Sum {
    pub(super) fn add(&mut self, bytes: Option<u64>) {
        self.calls += 1;
        self.bytes += u128::from(bytes.unwrap_or(0));
    }

    pub(super) fn bytes(&self) -> Option<u64> {
        self.bytes.try_into().ok()
    }
}

#[derive(Debug, Clone)]
struct OfOne {
    sum: Sum,
    empty: u64,
    unsized_calls: u64,
    min: u64,
    max: u64,
    by_ranks: ByRanks,
    buckets: Vec<Sum>,
}

#[derive(Debug)]
pub(super) struct Operations {
    edges: Vec<u64>,
    all: Vec<OfOne>,
}

impl Operations {
    /// Edges ascend, and each begins a bucket.
    pub(super) fn new(edges: Vec<u64>) -> Self {
        let none = OfOne {
            sum: Sum::default(),
            empty: 0,
            unsized_calls: 0,
            min: u64::MAX,
            max: 0,
            by_ranks: ByRanks::default(),
            buckets: vec![Sum::default(); edges.len() + 1],
        };
        Operations { all: vec![none; OPERATIONS.len()], edges }
    }

    pub(super) fn call(&mut self, call: &Call, bytes: Option<u64>) {
        let Some(of_one) = self.all.get_mut(call.operation as usize) else { return };
        of_one.sum.add(bytes);
        of_one.empty += u64::from(call.count == 0);
        let Some(bytes) = bytes else {
            of_one.unsized_calls += 1;
            return;
        };
        of_one.min = of_one.min.min(bytes);
        of_one.max = of_one.max.max(bytes);
        of_one.by_ranks.add(call.nranks, bytes);
        let bucket = self.edges.partition_point(|edge| *edge <= bytes);
        if let Some(bucket) = of_one.buckets.get_mut(bucket) {
            bucket.add(Some(bytes));
        }
    }

    pub(super) fn table(&self) -> Vec<OfOperation> {
        let one = |(operation, it): (Operation, &OfOne)| {
            let sized = it.sum.calls - it.unsized_calls;
            let is_any = sized > 0;
            OfOperation {
                operation,
                calls: it.sum.calls,
                empty: it.empty,
                unsized_calls: it.unsized_calls,
                min_bytes: is_any.then_some(it.min),
                mean_bytes: is_any.then(|| it.sum.bytes as f64 / sized as f64),
                max_bytes: is_any.then_some(it.max),
                total_bytes: if is_any { it.sum.bytes() } else { None },
                message_bytes: if is_any { it.by_ranks.message(operation) } else { None },
                wire_bytes: if is_any { it.by_ranks.wire(operation) } else { None },
            }
        };
        OPERATIONS.into_iter().zip(&self.all).filter(|(_, it)| it.sum.calls > 0).map(one).collect()
    }

    pub(super) fn histogram(&self) -> Vec<Bucket> {
        let mut all = Vec::new();
        for (operation, it) in OPERATIONS.into_iter().zip(&self.all) {
            for (at, sum) in it.buckets.iter().enumerate().filter(|(_, sum)| sum.calls > 0) {
                let from_bytes = at.checked_sub(1).and_then(|at| self.edges.get(at)).copied().unwrap_or(0);
                let below_bytes = self.edges.get(at).copied();
                all.push(Bucket { operation, from_bytes, below_bytes, calls: sum.calls, bytes: sum.bytes() });
            }
        }
        all
    }
}
