//! The work of ranks beside waiting, round by round, and which of them took longer for it than those that do the same
//! work. A rank waits where communication and nothing else runs on it; that is not counted, also where waiting in one
//! communicator makes it late for another.

use super::clocks::Aligned;
use super::robust::{deviation, median, median_of_others, narrow};
use super::series::Series;
use super::{Collective, Evidence, Limits};
use std::collections::BTreeMap;

/// Of one rank, over all rounds. Times are medians but where it is said.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rounds {
    /// How many rounds were compared.
    pub rounds: usize,
    /// From one end of the collective that separates rounds to the next.
    pub length_ns: i64,
    /// Where no communication ran on it, or kernels that compute did meanwhile.
    pub own_ns: i64,
    /// By how much that is more than the median of the others in the same round.
    pub late_ns: i64,
    /// The mean of lateness, where `late_ns` is the median.
    pub mean_late_ns: i64,
    /// The robust deviation of lateness from round to round.
    pub deviation_ns: i64,
    /// In how many rounds it took longer than the median of the others.
    pub later: usize,
    /// Lateness by its own standard error.
    pub sure: f64,
}

/// Ranks that do the same work and can be compared.
pub(super) struct Group {
    pub members: Vec<usize>,
    pub rounds: Vec<Rounds>,
}

/// Communicators that have the same part on several ranks: the n-th of one size that a rank uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Family {
    kind: Collective,
    ranks: usize,
    nth: usize,
}

/// Which families a rank has, and how many instances of each. Ranks of one role that are connected are comparable.
type Role = Vec<(Family, usize)>;

/// Of a rank: which series is of which family, and which member it is there.
type Part = BTreeMap<Family, (usize, usize)>;

/// The ranks in groups of at least two; a rank that is in none has no peers.
pub(super) fn groups(
    evidence: &Evidence,
    series: &[Series],
    aligned: &Aligned,
    limits: &Limits,
) -> Vec<Group> {
    let parts = parts(evidence, series);
    let mut of_role: BTreeMap<(usize, Role), Vec<usize>> = BTreeMap::new();
    for (rank, part) in parts.iter().enumerate().filter(|(_, part)| !part.is_empty()) {
        let role = part.iter().map(|(family, (at, _))| (*family, series[*at].len)).collect();
        of_role.entry((aligned.together(rank), role)).or_default().push(rank);
    }
    let groups =
        of_role.into_iter().filter(|(_, members)| members.len() > 1).filter_map(|((_, role), members)| {
            let ends = |rank: usize, family: &Family| -> Vec<i64> {
                let Some((at, member)) = parts[rank].get(family) else { return Vec::new() };
                let work = evidence.ranks[rank].work;
                series[*at].places[*member].iter().map(|place| work[*place as usize].end).collect()
            };
            let anchor = anchor(&role, limits, |family| {
                let first = evidence.ranks[members[0]].work;
                Regular::measure(&ends(members[0], family), first.first()?.start, first.last()?.end)
            })?;
            let own = members.iter().map(|rank| {
                let ends = ends(*rank, &anchor);
                let own = own(evidence, *rank, &ends).into_iter().map(|ns| aligned.lasted(*rank, ns));
                (own.collect(), length(&ends))
            });
            let (own, lengths): (Vec<Vec<i64>>, Vec<i64>) = own.unzip();
            Some(Group { members, rounds: compared(&own, &lengths) })
        });
    groups.collect()
}

fn parts(evidence: &Evidence, series: &[Series]) -> Vec<Part> {
    let mut parts: Vec<Part> = evidence.ranks.iter().map(|_| Part::new()).collect();
    // Of each rank its communicators by size, in the order of their first use.
    let mut first_uses: Vec<BTreeMap<(usize, u64), i64>> = parts.iter().map(|_| BTreeMap::new()).collect();
    for series in series {
        for (member, rank) in series.members.iter().enumerate() {
            let Some(place) = series.places[member].first() else { continue };
            let start = evidence.ranks[*rank].work[*place as usize].start;
            let first = first_uses[*rank].entry((series.members.len(), series.communicator)).or_insert(start);
            *first = (*first).min(start);
        }
    }
    for (at, series) in series.iter().enumerate() {
        let ranks = series.members.len();
        for (member, rank) in series.members.iter().enumerate() {
            let uses = &first_uses[*rank];
            let own = (uses.get(&(ranks, series.communicator)).copied(), series.communicator);
            let before = |(of, communicator): &(usize, u64), first: i64| {
                *of == ranks && (Some(first), *communicator) < own
            };
            let nth = uses.iter().filter(|(key, first)| before(key, **first)).count();
            parts[*rank].insert(Family { kind: series.kind, ranks, nth }, (at, member));
        }
    }
    parts
}

/// How evenly something comes again.
struct Regular {
    covers_most: bool,
    even: bool,
    span: i64,
}

impl Regular {
    fn measure(ends: &[i64], from: i64, to: i64) -> Option<Regular> {
        let span = |from: i64, to: i64| narrow(i128::from(to) - i128::from(from));
        let (first, last) = (*ends.first()?, *ends.last()?);
        let (covered, all) = (span(first, last), span(from, to));
        let mean = covered / (ends.len() as i64 - 1).max(1);
        Some(Regular { covers_most: covered / 4 >= all / 5, even: length(ends) >= mean / 2, span: covered })
    }
}

/// The collective whose ends part the rounds: the rarest that comes evenly through all that was recorded, so that a round
/// holds all that comes again; where none does, the one that reaches furthest.
fn anchor(
    role: &[(Family, usize)],
    limits: &Limits,
    regular: impl Fn(&Family) -> Option<Regular>,
) -> Option<Family> {
    let all = role.iter().filter_map(|(family, n)| Some((*family, *n, regular(family)?)));
    let all: Vec<(Family, usize, Regular)> = all.collect();
    let enough = |n: usize| n > limits.least_rounds;
    let widest = |family: &Family| std::cmp::Reverse(family.ranks);
    let even = all.iter().filter(|(_, n, regular)| enough(*n) && regular.covers_most && regular.even);
    let rarest = even.min_by_key(|(family, n, _)| (*n, widest(family), *family));
    let furthest = || {
        all.iter().filter(|(_, n, _)| enough(*n)).max_by_key(|(family, n, regular)| {
            (regular.span, std::cmp::Reverse((*n, widest(family), *family)))
        })
    };
    let most = || all.iter().max_by_key(|(family, n, _)| (*n, std::cmp::Reverse(*family)));
    rarest.or_else(furthest).or_else(most).map(|(family, ..)| *family)
}

/// Between two ends, the median.
fn length(ends: &[i64]) -> i64 {
    let lengths = ends.windows(2).map(|pair| narrow(i128::from(pair[1]) - i128::from(pair[0])));
    median(&mut lengths.collect::<Vec<_>>()).unwrap_or_default()
}

/// Of each round, from one of `ends` to the next, how much of it the rank did not wait.
fn own(evidence: &Evidence, rank: usize, ends: &[i64]) -> Vec<i64> {
    let mut own = vec![0i64; ends.len().saturating_sub(1)];
    let mut covered: Option<i64> = None;
    let mut passed = 0;
    for work in evidence.ranks[rank].work {
        // Before an end its own collective runs, so that what is between two kernels is of one round.
        let since = covered.map_or(work.start, |covered| covered.min(work.start));
        while passed < ends.len() && ends[passed] <= since {
            passed += 1;
        }
        if let Some(own) = passed.checked_sub(1).and_then(|round| own.get_mut(round)) {
            *own = own.saturating_add(work.start.saturating_sub(since)).saturating_add(work.busy_ns);
        }
        covered = Some(covered.map_or(work.end, |covered| covered.max(work.end)));
    }
    own
}

/// The median of so many values is off by this much of their deviation, by the root of their number.
const MEDIAN_ERROR: f64 = 1.2533;

fn compared(own: &[Vec<i64>], lengths: &[i64]) -> Vec<Rounds> {
    let rounds = own.first().map_or(0, Vec::len);
    let mut late: Vec<Vec<i64>> = own.iter().map(|_| Vec::with_capacity(rounds)).collect();
    let mut order: Vec<(i64, usize)> = Vec::new();
    let mut sorted: Vec<i64> = Vec::new();
    for round in 0..rounds {
        order.clear();
        order.extend(own.iter().enumerate().map(|(member, own)| (own[round], member)));
        order.sort_unstable();
        sorted.clear();
        sorted.extend(order.iter().map(|(own, _)| *own));
        for (place, (own, member)) in order.iter().enumerate() {
            let others = median_of_others(&sorted, place).unwrap_or(*own);
            late[*member].push(own.saturating_sub(others));
        }
    }
    let middles: Vec<i64> = late.iter_mut().map(|late| median(late).unwrap_or_default()).collect();
    let deviations: Vec<f64> =
        late.iter().zip(&middles).map(|(late, middle)| deviation(late, *middle)).collect();
    let usual = median(&mut deviations.clone()).unwrap_or_default();
    let all = own.iter().zip(&late).zip(&middles).zip(&deviations).zip(lengths);
    let all = all.map(|((((own, late), middle), deviation), length)| {
        // A few rounds show little of a rank's deviation: it is not taken as below that of its peers.
        let error = MEDIAN_ERROR * deviation.max(usual).max(1.0) / (rounds.max(1) as f64).sqrt();
        let total: i128 = late.iter().map(|ns| i128::from(*ns)).sum();
        Rounds {
            rounds,
            length_ns: *length,
            own_ns: median(&mut own.clone()).unwrap_or_default(),
            late_ns: *middle,
            mean_late_ns: narrow(total / rounds.max(1) as i128),
            deviation_ns: deviation.ceil() as i64,
            later: late.iter().filter(|ns| **ns > 0).count(),
            sure: *middle as f64 / error,
        }
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stragglers::{Rank, Work};

    #[test]
    fn the_deviation_of_few_rounds_is_not_below_that_of_peers() {
        // By chance most of the first one's rounds are alike.
        let first = (0..16i64).map(|n| 300 + if n < 9 { 0 } else { (n - 12) * 900 }).collect();
        let other = |sign: i64| (0..16i64).map(|n| sign * ((n * 37) % 16 - 8) * 500).collect::<Vec<i64>>();
        let all = compared(&[first, other(1), other(-1), vec![0; 16]], &[9000; 4]);
        assert!(all[0].late_ns > 0 && all[0].sure < 3.0, "{:?}", all[0]);
    }

    #[test]
    fn communicators_of_one_size_are_matched_by_the_order_of_their_use() {
        let work = |communicator, start| Work {
            communicator: Some(communicator),
            stream: 0,
            kind: Collective::AllGather,
            start,
            end: start + 1,
            busy_ns: 0,
        };
        // The ids are in another order than the uses.
        let works = [[work(9, 0), work(4, 10)], [work(9, 1), work(4, 11)]];
        let ranks = works.iter().enumerate().map(|(rank, work)| Rank {
            rank: rank as i64,
            node: "n",
            gpu: None,
            clock: "n",
            zero: 0,
            lead_ns: None,
            work,
            compute: &[],
        });
        let evidence = Evidence { ranks: ranks.collect(), ..Evidence::default() };
        let found = super::super::series::find(&evidence);
        for part in parts(&evidence, &found.whole) {
            let nth: Vec<(usize, u64)> =
                part.iter().map(|(family, (at, _))| (family.nth, found.whole[*at].communicator)).collect();
            assert_eq!(nth, [(0, 9), (1, 4)]);
        }
    }
}
