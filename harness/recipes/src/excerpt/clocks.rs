//! The clocks of the reports, aligned as for stragglers. Where one of them cannot be aligned, none is.

use super::Report;
use crate::stragglers::{Alignment, Evidence};
use std::collections::BTreeSet;

/// From times of each report to times of one clock.
pub(super) struct Clocks<'a> {
    pub is_aligned: bool,
    /// How, or why not.
    pub how: String,
    pub alignment: Alignment<'a>,
    /// Of each report: its clock and what makes its times those of that clock.
    own: Vec<(String, i64)>,
    /// Of each report the first of its GPUs in the evidence.
    ranks: Vec<Option<usize>>,
}

impl<'a> Clocks<'a> {
    pub(super) fn new(reports: &[Report<'_>], evidence: &'a Evidence<'a>) -> Clocks<'a> {
        let alignment = Alignment::new(evidence);
        let mut next = 0;
        let ranks = reports.iter().map(|report| {
            let gpus = report.extract.gpus.len();
            next += gpus;
            (gpus > 0).then(|| next - gpus)
        });
        let ranks: Vec<Option<usize>> = ranks.collect();
        let own = reports.iter().map(Report::rank_report).map(|part| (part.clock.to_owned(), part.zero));
        let own: Vec<(String, i64)> = own.collect();
        let used: BTreeSet<&str> = own.iter().map(|(clock, _)| clock.as_str()).collect();
        let (is_aligned, how) = match used.len() {
            _ if reports.len() == 1 => (true, "one report".to_owned()),
            1 => (true, "one host's clock".to_owned()),
            clocks => aligned_by_collectives(&alignment, clocks, &used),
        };
        Clocks { is_aligned, how, alignment, own, ranks }
    }

    /// A time of a report by the clock of all; its own time where clocks are not aligned.
    pub(super) fn at(&self, report: usize, time: i64) -> i128 {
        if !self.is_aligned {
            return i128::from(time);
        }
        match self.ranks[report] {
            Some(rank) => self.alignment.at(rank, time),
            None => {
                let (clock, zero) = &self.own[report];
                self.alignment.at_clock(clock, i128::from(time) + i128::from(*zero))
            }
        }
    }

    /// The time of a report at a time of all: rates of clocks differ by parts in a million, so that two steps find it.
    pub(super) fn back(&self, report: usize, time: i128) -> i64 {
        let mut own = time;
        for _ in 0..3 {
            let guess = clamp(own);
            own = i128::from(guess) + time - self.at(report, guess);
        }
        clamp(own)
    }

    pub(super) fn rank_of(&self, report: usize) -> Option<usize> {
        self.ranks[report]
    }

    /// The report that a GPU of the evidence is of.
    pub(super) fn report_of(&self, rank: usize) -> Option<usize> {
        self.ranks.iter().rposition(|first| first.is_some_and(|first| first <= rank))
    }
}

fn aligned_by_collectives(alignment: &Alignment<'_>, clocks: usize, used: &BTreeSet<&str>) -> (bool, String) {
    let apart = alignment.apart();
    if !apart.is_empty() {
        let groups: Vec<String> = apart.iter().map(|group| group.join(", ")).collect();
        return (false, format!("not aligned: no collective connects {}", groups.join(" | ")));
    }
    if let Some(unknown) = used.iter().find(|clock| !alignment.knows(clock)) {
        return (false, format!("not aligned: no collective was traced by the clock of {unknown}"));
    }
    let residual = alignment.residual_ns().map_or_else(
        || "unknown".to_owned(),
        |ns| match ns {
            0..10_000 => format!("{ns} ns"),
            _ => format!("{} us", ns.div_ceil(1000)),
        },
    );
    (true, format!("{clocks} clocks aligned by the ends of collectives, which agree within {residual}"))
}

fn clamp(time: i128) -> i64 {
    i64::try_from(time).unwrap_or(if time < 0 { i64::MIN } else { i64::MAX })
}
