//! Aligns the clocks of hosts by the ends of collectives: offset and rate of each. Clocks that no collective connects,
//! directly or over others, are not comparable, and stay in separate groups.

mod chain;
mod joint;

use super::Evidence;
use super::robust::{deviation, median, narrow};
use super::series::Series;

/// One clock, compared with the first one of its connected group.
#[derive(Debug, Clone, PartialEq)]
pub struct Clock {
    /// As in `Rank::clock`.
    pub name: String,
    /// The clock that it is compared with.
    pub against: String,
    /// How many ranks of the evidence go by it.
    pub ranks: usize,
    /// In the middle of what was recorded; nothing where it stands alone.
    pub ahead_ns: Option<i64>,
    /// How much faster it goes, in parts per million.
    pub rate_ppm: Option<f64>,
    /// The robust deviation of its ends from those of the others.
    pub residual_ns: Option<u64>,
    /// How many ends it was aligned by.
    pub ends: usize,
}

/// How times of one clock become times of the one it is compared with: exact in whole nanoseconds but for a correction
/// that is small.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Fit {
    /// The first clock of its connected group.
    root: usize,
    shift: i128,
    /// In the middle of what was recorded.
    pivot: i128,
    more: f64,
    /// Nanoseconds in each.
    slope: f64,
}

impl Fit {
    fn alone(clock: usize) -> Fit {
        Fit { root: clock, shift: 0, pivot: 0, more: 0.0, slope: 0.0 }
    }

    fn at(&self, time: i128) -> i128 {
        let correction = self.more + self.slope * (time - self.pivot) as f64;
        // A correction that is no number is none.
        time + self.shift + correction.round() as i128
    }
}

/// When one collective ended by each of its clocks: the median of their ranks.
struct Ended {
    of_clock: Vec<(usize, i128)>,
}

/// The ends of one series by its clocks, in the order of time.
struct SeriesEnds {
    clocks: Vec<usize>,
    ended: Vec<Ended>,
}

pub(super) struct Aligned {
    names: Vec<String>,
    of_rank: Vec<usize>,
    fits: Vec<Fit>,
    zeros: Vec<i64>,
    /// What a rank's ends differ by from those of its clock: reports of one host need not begin at the same zero.
    shifts: Vec<i128>,
    residuals: Vec<Option<u64>>,
    ends: Vec<usize>,
    pub residual_ns: Option<u64>,
}

/// So many collectives are enough to align by, evenly taken from all.
const ENOUGH: usize = 16_384;
const ENOUGH_OF_SERIES: usize = 512;

pub(super) fn align(evidence: &Evidence, series: &[Series]) -> Aligned {
    let mut names: Vec<String> = Vec::new();
    let of_rank: Vec<usize> = evidence
        .ranks
        .iter()
        .map(|rank| {
            names.iter().position(|name| name == rank.clock).unwrap_or_else(|| {
                names.push(rank.clock.to_owned());
                names.len() - 1
            })
        })
        .collect();
    let mut aligned = Aligned {
        fits: (0..names.len()).map(Fit::alone).collect(),
        zeros: evidence.ranks.iter().map(|rank| rank.zero).collect(),
        shifts: vec![0; evidence.ranks.len()],
        residuals: vec![None; names.len()],
        ends: vec![0; names.len()],
        residual_ns: None,
        names,
        of_rank,
    };
    let most = (ENOUGH / series.len().max(1)).clamp(8, ENOUGH_OF_SERIES);
    let series_ends: Vec<SeriesEnds> =
        series.iter().map(|series| aligned.ends_of(evidence, series, most)).collect();
    chain::lay(&series_ends, &mut aligned.fits);
    joint::settle(&series_ends, &mut aligned.fits);
    for one in series_ends.iter().filter(|one| one.clocks.len() > 1) {
        for clock in &one.clocks {
            aligned.ends[*clock] += one.ended.len();
        }
    }
    aligned.take_residuals(evidence, series, most);
    aligned
}

/// Evenly taken numbers below `len`, the first and the last among them.
fn sample(len: usize, most: usize) -> impl Iterator<Item = usize> {
    let taken = len.min(most);
    (0..taken).map(move |n| if taken < 2 { 0 } else { n * (len - 1) / (taken - 1) })
}

impl Aligned {
    /// A time of a rank's report, by the first clock of its connected group.
    pub(super) fn at(&self, rank: usize, time: i64) -> i128 {
        self.fits[self.of_rank[rank]].at(self.by_clock(rank, time)) + self.shifts[rank]
    }

    /// A time of a clock by its name, by the first clock of its connected group.
    pub(super) fn at_clock(&self, name: &str, time: i128) -> i128 {
        let clock = self.names.iter().position(|known| known == name);
        clock.map_or(time, |clock| self.fits[clock].at(time))
    }

    /// Whether any rank of the evidence goes by it.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    /// How long what a rank's clock measured lasted by the clock that it is compared with.
    pub(super) fn lasted(&self, rank: usize, ns: i64) -> i64 {
        let slope = self.fits[self.of_rank[rank]].slope;
        ns.saturating_add((slope * ns as f64).round() as i64)
    }

    /// Ranks with one number here are comparable.
    pub(super) fn together(&self, rank: usize) -> usize {
        self.fits[self.of_rank[rank]].root
    }

    fn by_clock(&self, rank: usize, time: i64) -> i128 {
        i128::from(time) + i128::from(self.zeros[rank])
    }

    fn end(&self, evidence: &Evidence, series: &Series, member: usize, n: usize) -> i64 {
        evidence.ranks[series.members[member]].work[series.places[member][n] as usize].end
    }

    fn ends_of(&self, evidence: &Evidence, series: &Series, most: usize) -> SeriesEnds {
        let mut members: Vec<usize> = (0..series.members.len()).collect();
        members.sort_by_key(|member| (self.of_rank[series.members[*member]], *member));
        let groups: Vec<&[usize]> = members
            .chunk_by(|a, b| self.of_rank[series.members[*a]] == self.of_rank[series.members[*b]])
            .collect();
        let clock = |group: &[usize]| self.of_rank[series.members[group[0]]];
        let ended = sample(series.len, most).map(|n| {
            let of_clock = groups.iter().filter_map(|group| {
                let ends = group.iter().map(|member| {
                    self.by_clock(series.members[*member], self.end(evidence, series, *member, n))
                });
                Some((clock(group), median(&mut ends.collect::<Vec<_>>())?))
            });
            Ended { of_clock: of_clock.collect() }
        });
        SeriesEnds { ended: ended.collect(), clocks: groups.iter().map(|group| clock(group)).collect() }
    }

    fn take_residuals(&mut self, evidence: &Evidence, series: &[Series], most: usize) {
        let mut of_rank: Vec<Vec<i64>> = evidence.ranks.iter().map(|_| Vec::new()).collect();
        for series in series {
            for n in sample(series.len, most) {
                let ends = (0..series.members.len())
                    .map(|member| self.at(series.members[member], self.end(evidence, series, member, n)));
                let ends: Vec<i128> = ends.collect();
                let Some(middle) = median(&mut ends.clone()) else { continue };
                for (member, end) in series.members.iter().zip(ends) {
                    of_rank[*member].push(narrow(end - middle));
                }
            }
        }
        let mut of_clock: Vec<Vec<i64>> = self.names.iter().map(|_| Vec::new()).collect();
        for (rank, residuals) in of_rank.iter_mut().enumerate() {
            let Some(shift) = median(residuals) else { continue };
            self.shifts[rank] = -i128::from(shift);
            of_clock[self.of_rank[rank]]
                .extend(residuals.iter().map(|residual| residual.saturating_sub(shift)));
        }
        for (clock, residuals) in of_clock.iter().enumerate() {
            if !residuals.is_empty() {
                self.residuals[clock] = Some(deviation(residuals, 0).ceil() as u64);
            }
        }
        let all: Vec<i64> = of_clock.concat();
        self.residual_ns = (!all.is_empty()).then(|| deviation(&all, 0).ceil() as u64);
    }

    pub(super) fn clocks(&self) -> Vec<Clock> {
        let clocks = self.names.iter().enumerate().map(|(clock, name)| {
            let fit = &self.fits[clock];
            let connected = self.fits.iter().filter(|other| other.root == fit.root).count() > 1;
            Clock {
                name: name.clone(),
                against: self.names[fit.root].clone(),
                ranks: self.of_rank.iter().filter(|of| **of == clock).count(),
                ahead_ns: connected.then(|| narrow(fit.pivot - fit.at(fit.pivot))),
                // Which way is small beside the rate itself.
                rate_ppm: connected.then(|| if clock == fit.root { 0.0 } else { -1e6 * fit.slope }),
                residual_ns: self.residuals[clock],
                ends: self.ends[clock],
            }
        });
        clocks.collect()
    }

    /// The names of connected clocks by group, where there is more than one group.
    pub(super) fn apart(&self) -> Vec<Vec<String>> {
        let roots = (0..self.fits.len()).filter(|clock| self.fits[*clock].root == *clock);
        let groups = roots.map(|root| {
            let of_root = self.fits.iter().zip(&self.names).filter(|(fit, _)| fit.root == root);
            of_root.map(|(_, name)| name.clone()).collect::<Vec<_>>()
        });
        let groups: Vec<Vec<String>> = groups.collect();
        if groups.len() > 1 { groups } else { Vec::new() }
    }
}
