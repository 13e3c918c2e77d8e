//! The aligned clocks of a job and its collectives one by one, for views that show single ones; the verdict is of many.

use super::clocks::{self, Aligned};
use super::series::{self, Series};
use super::{Collective, Evidence};

/// Aligned clocks, and the collectives that all their ranks recorded.
pub(crate) struct Alignment<'a> {
    evidence: &'a Evidence<'a>,
    series: Vec<Series>,
    aligned: Aligned,
}

/// One collective on all its ranks, by the aligned clocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CollectiveRun {
    pub kind: Collective,
    /// Its place among those of its operation and communicator, from 0.
    pub number: usize,
    /// Ranks that take part.
    pub ranks: usize,
    pub first_start: i128,
    pub last_start: i128,
    /// That came last, as a place in the evidence.
    pub last_rank: usize,
    pub end: i128,
    /// When the one before it ended.
    pub before: Option<i128>,
    series: usize,
}

impl<'a> Alignment<'a> {
    pub(crate) fn new(evidence: &'a Evidence<'a>) -> Alignment<'a> {
        let series = series::find(evidence).whole;
        let aligned = clocks::align(evidence, &series);
        Alignment { evidence, series, aligned }
    }

    /// A time of a rank's report.
    pub(crate) fn at(&self, rank: usize, time: i64) -> i128 {
        self.aligned.at(rank, time)
    }

    /// A time of a clock by its name.
    pub(crate) fn at_clock(&self, clock: &str, time: i128) -> i128 {
        self.aligned.at_clock(clock, time)
    }

    /// Whether any rank goes by this clock.
    pub(crate) fn knows(&self, clock: &str) -> bool {
        self.aligned.knows(clock)
    }

    /// The groups of connected clocks, where there are several.
    pub(crate) fn apart(&self) -> Vec<Vec<String>> {
        self.aligned.apart()
    }

    /// How far ends of one collective differ.
    pub(crate) fn residual_ns(&self) -> Option<u64> {
        self.aligned.residual_ns
    }

    /// Each collective, by operation and communicator.
    pub(crate) fn runs(&self) -> impl Iterator<Item = CollectiveRun> + '_ {
        self.series.iter().enumerate().flat_map(move |(at, series)| {
            let mut before = None;
            (0..series.len).filter_map(move |number| {
                let run = self.run(at, series, number, before)?;
                before = Some(run.end);
                Some(run)
            })
        })
    }

    fn run(&self, at: usize, series: &Series, number: usize, before: Option<i128>) -> Option<CollectiveRun> {
        let works = || {
            series.members.iter().zip(&series.places).map(|(rank, places)| {
                let work = self.evidence.ranks[*rank].work[places[number] as usize];
                (self.at(*rank, work.start), self.at(*rank, work.end), *rank)
            })
        };
        let (last_start, _, last_rank) = works().max_by_key(|(start, _, rank)| (*start, *rank))?;
        Some(CollectiveRun {
            kind: series.kind,
            number,
            ranks: series.members.len(),
            first_start: works().map(|(start, ..)| start).min()?,
            last_start,
            last_rank,
            end: works().map(|(_, end, _)| end).max()?,
            before,
            series: at,
        })
    }

    /// When a rank came to it; `None` where it takes no part.
    pub(crate) fn arrival(&self, run: &CollectiveRun, rank: usize) -> Option<i128> {
        let series = &self.series[run.series];
        let member = series.members.iter().position(|member| *member == rank)?;
        let work = self.evidence.ranks[rank].work[series.places[member][run.number] as usize];
        Some(self.at(rank, work.start))
    }

    /// The series that it is one of; those of one operation in one communicator have the same.
    pub(crate) fn series_of(run: &CollectiveRun) -> usize {
        run.series
    }
}
