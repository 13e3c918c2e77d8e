//! When each rank arrived at each collective, relative to the others: how long each waited, and which came last.

use super::clocks::Aligned;
use super::robust::{median, median_of_others, narrow};
use super::series::Series;
use super::{Collective, Evidence};

/// How a rank came to its collectives. Times are medians over the instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// Collectives that it was part of and that all their ranks recorded.
    pub instances: u64,
    /// How often no other rank came later or at the same time.
    pub last_in: u64,
    /// Behind the first rank that came.
    pub after_first_ns: i64,
    /// Against the median of the others; below nothing where it was earlier.
    pub late_ns: i64,
    /// Until the last one came.
    pub wait_ns: i64,
    /// The sum over all instances.
    pub wait_total_ns: i64,
}

/// The instances of one operation in one communicator, together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instances {
    /// Its id, or the number of a stream under `Evidence::by_order`.
    pub communicator: u64,
    /// Never `Collective::Other`.
    pub kind: Collective,
    /// How many ranks took part.
    pub ranks: usize,
    /// How many each of its ranks recorded.
    pub instances: usize,
    /// From the first arrival to the last, the median.
    pub spread_ns: i64,
    /// From the last arrival to the end, the median.
    pub transfer_ns: i64,
}

#[derive(Default)]
struct RankArrivals {
    last_in: u64,
    after_first: Vec<i64>,
    late: Vec<i64>,
    wait: Vec<i64>,
}

pub(super) fn find(
    evidence: &Evidence,
    series: &[Series],
    aligned: &Aligned,
) -> (Vec<Option<Arrived>>, Vec<Instances>) {
    let mut arrivals: Vec<RankArrivals> = evidence.ranks.iter().map(|_| RankArrivals::default()).collect();
    let mut instances = Vec::new();
    let mut order: Vec<(i128, usize)> = Vec::new();
    let mut starts: Vec<i64> = Vec::new();
    for series in series {
        let (mut spreads, mut transfers) = (Vec::new(), Vec::new());
        for n in 0..series.len {
            let work = |member: usize| {
                let rank = series.members[member];
                (rank, evidence.ranks[rank].work[series.places[member][n] as usize])
            };
            order.clear();
            order.extend((0..series.members.len()).map(|member| {
                let (rank, work) = work(member);
                (aligned.at(rank, work.start), member)
            }));
            order.sort_unstable();
            let (Some(first), Some(last)) = (order.first().copied(), order.last().copied()) else { continue };
            starts.clear();
            starts.extend(order.iter().map(|(start, _)| narrow(start - first.0)));
            let spread = narrow(last.0 - first.0);
            for (place, (_, member)) in order.iter().enumerate() {
                let arrivals = &mut arrivals[series.members[*member]];
                let others = median_of_others(&starts, place).unwrap_or_default();
                arrivals.after_first.push(starts[place]);
                arrivals.late.push(starts[place].saturating_sub(others));
                arrivals.wait.push(spread.saturating_sub(starts[place]));
            }
            if order.len() < 2 || order[order.len() - 2].0 < last.0 {
                arrivals[series.members[last.1]].last_in += 1;
            }
            let (rank, work) = work(last.1);
            spreads.push(spread);
            transfers.push(narrow(aligned.at(rank, work.end) - last.0));
        }
        instances.push(Instances {
            communicator: series.communicator,
            kind: series.kind,
            ranks: series.members.len(),
            instances: series.len,
            spread_ns: median(&mut spreads).unwrap_or_default(),
            transfer_ns: median(&mut transfers).unwrap_or_default(),
        });
    }
    (arrivals.into_iter().map(RankArrivals::summary).collect(), instances)
}

impl RankArrivals {
    fn summary(mut self) -> Option<Arrived> {
        let total: i128 = self.wait.iter().map(|ns| i128::from(*ns)).sum();
        Some(Arrived {
            instances: self.late.len() as u64,
            last_in: self.last_in,
            after_first_ns: median(&mut self.after_first)?,
            late_ns: median(&mut self.late)?,
            wait_ns: median(&mut self.wait)?,
            wait_total_ns: narrow(total),
        })
    }
}
