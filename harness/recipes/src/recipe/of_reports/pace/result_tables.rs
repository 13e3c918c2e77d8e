//! The tables of a pace: figures of each rank, every instance, and ranks beside each other.

use super::extract::{Extract, Series};
use crate::figures::Stats;
use crate::recipe::of_reports::{ReportExtract, ReportRecipe};
use crate::result_table::{Column, Quantity, ResultTable};
use metric::quantile::quantile;
use std::collections::BTreeMap;

const PLAIN: Quantity = Quantity::Plain;
const NS: Quantity = Quantity::Nanoseconds;

/// A row for each place.
pub(super) fn stats(recipe: &ReportRecipe<'static>, all: &[Series]) -> ResultTable {
    let durations: Vec<Option<Stats>> = all.iter().map(|one| Stats::from_values(&one.durations())).collect();
    let distances: Vec<Option<Signed>> = all.iter().map(Signed::from_distances).collect();
    let whole = |name: &str, of: fn(&Stats) -> u128| {
        let values = durations.iter().map(|stats| i64::try_from(of(stats.as_ref()?)).ok());
        Column::maybe_integers(name, NS, values)
    };
    let real = |name: &str, of: fn(&Stats) -> f64| {
        Column::maybe_decimals(name, NS, durations.iter().map(|stats| stats.as_ref().map(of)))
    };
    let apart = |name: &str, of: fn(&Signed) -> f64| {
        Column::maybe_decimals(name, NS, distances.iter().map(|stats| stats.as_ref().map(of)))
    };
    let cv = |stats: &Option<Stats>| {
        let stats = stats.as_ref()?;
        (stats.mean > 0.0).then(|| 100.0 * stats.stddev / stats.mean)
    };
    let mut columns = places(all, |_| 1);
    columns.extend([
        Column::integers("Count", PLAIN, all.iter().map(|one| one.spans.len() as i64)),
        whole("Total", |stats| stats.total),
        real("Avg", |stats| stats.mean),
        real("Med", |stats| stats.median),
        real("Q1", |stats| stats.q1),
        real("Q3", |stats| stats.q3),
        whole("Min", |stats| stats.min.into()),
        whole("Max", |stats| stats.max.into()),
        real("StdDev", |stats| stats.stddev),
        Column::maybe_decimals("CV", Quantity::Percent, durations.iter().map(cv)),
        apart("Distance Avg", |of| of.least + of.above.mean),
        apart("Distance Med", |of| of.least + of.above.median),
        apart("Distance Q1", |of| of.least + of.above.q1),
        apart("Distance Q3", |of| of.least + of.above.q3),
        apart("Distance Min", |of| of.least),
        apart("Distance Max", |of| of.least + of.above.max as f64),
        apart("Distance StdDev", |of| of.above.stddev),
    ]);
    ResultTable::new(recipe.name, recipe.title, columns)
}

/// Figures of numbers that may be less than nothing: those of what they are above the least.
struct Signed {
    least: f64,
    above: Stats,
}

impl Signed {
    fn from_distances(series: &Series) -> Option<Signed> {
        let all: Vec<i64> = (1..series.spans.len()).filter_map(|at| series.distance(at)).collect();
        let least = *all.iter().min()?;
        let mut above: Vec<u64> = all.iter().map(|ns| ns.wrapping_sub(least) as u64).collect();
        Some(Signed { least: least as f64, above: Stats::from_values_mut(&mut above)? })
    }
}

/// A row for each instance.
pub(super) fn pace(recipe: &ReportRecipe<'static>, all: &[Series]) -> ResultTable {
    let rows = || all.iter().flat_map(|one| (0..one.spans.len()).map(move |at| (one, at)));
    let time = |name: &str, of: fn(&Series, usize) -> Option<i64>| {
        Column::maybe_integers(name, NS, rows().map(|(one, at)| of(one, at)))
    };
    let accumulated = all.iter().flat_map(|one| {
        let sums = (0..one.spans.len()).scan(0u128, |sum, at| {
            *sum += u128::from(one.ns(at));
            Some(i64::try_from(*sum).ok())
        });
        sums.collect::<Vec<_>>()
    });
    let accumulated = Column::maybe_integers("Accumulated", NS, accumulated);
    let mut columns = places(all, |one| one.spans.len());
    columns.extend([
        Column::integers("Instance", PLAIN, rows().map(|(_, at)| at as i64)),
        time("Start", |one, at| Some(one.spans[at].0)),
        time("End", |one, at| Some(one.spans[at].1)),
        time("Duration", |one, at| i64::try_from(one.ns(at)).ok()),
        time("Distance", Series::distance),
        accumulated,
        time("Common Start", Series::common_start),
    ]);
    ResultTable::new(recipe.name, "Instances", columns)
}

/// The columns that identify the track of each row.
fn places(all: &[Series], rows: fn(&Series) -> usize) -> Vec<Column> {
    let of = |name: &str, value: fn(&Series) -> Option<i64>| {
        let values = all.iter().flat_map(|one| std::iter::repeat_n(value(one), rows(one)));
        Column::maybe_integers(name, PLAIN, values)
    };
    let mut columns = vec![of("Rank", |one| Some(one.rank)), of("PID", |one| one.place.pid)];
    if all.iter().any(|one| one.place.device.is_some()) {
        columns.push(of("Device", |one| one.place.device));
    }
    columns
}

/// A row for each instance that all places have.
pub(super) fn across(recipe: &ReportRecipe<'static>, all: &[Series]) -> ResultTable {
    let shortest = all.iter().map(|one| one.spans.len()).min().unwrap_or(0);
    let of_instance = |at: usize| {
        let mut times: Vec<(u64, i64)> = all.iter().map(|one| (one.ns(at), one.rank)).collect();
        times.sort_unstable();
        times
    };
    let times: Vec<Vec<(u64, i64)>> = (0..shortest).map(of_instance).collect();
    let spread = |at: usize| {
        let starts: Option<Vec<i64>> = all.iter().map(|one| one.common_start(at)).collect();
        let starts = starts?;
        starts.iter().max()?.checked_sub(*starts.iter().min()?)
    };
    let median = |times: &Vec<(u64, i64)>| {
        let sorted: Vec<u64> = times.iter().map(|(ns, _)| *ns).collect();
        quantile(&sorted, 0.5)
    };
    let whole = |of: fn(&[(u64, i64)]) -> Option<i64>| times.iter().map(move |times| of(times));
    let columns = vec![
        Column::integers("Instance", PLAIN, (0..shortest).map(|at| at as i64)),
        Column::maybe_integers("Min", NS, whole(|times| i64::try_from(times.first()?.0).ok())),
        Column::maybe_decimals("Med", NS, times.iter().map(median)),
        Column::maybe_integers("Max", NS, whole(|times| i64::try_from(times.last()?.0).ok())),
        Column::maybe_integers("Slowest Rank", PLAIN, whole(|times| Some(times.last()?.1))),
        Column::maybe_integers("First to Last Start", NS, (0..shortest).map(spread)),
    ];
    ResultTable::new(recipe.name, "Ranks beside Each Other", columns)
}

/// Ranks that have none, and ranks that have more than others.
pub(super) fn differences(
    all: &[Series],
    reports: &[ReportExtract<&Extract>],
) -> impl Iterator<Item = String> {
    let without: Vec<String> = reports
        .iter()
        .filter(|report| all.iter().all(|one| one.rank != report.rank))
        .map(|report| report.rank.to_string())
        .collect();
    let none = (!without.is_empty()).then(|| format!("ranks without an instance: {}", without.join(", ")));
    let mut counts: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for one in all {
        counts.entry(one.spans.len()).or_default().push(one.rank.to_string());
    }
    let shortest = counts.keys().next().copied().unwrap_or_default();
    let groups: Vec<String> =
        counts.iter().map(|(count, ranks)| format!("{count} on ranks {}", ranks.join(", "))).collect();
    let differ = (counts.len() > 1).then(|| {
        format!(
            "ranks have different numbers of instances: {}; comparing the first {shortest}",
            groups.join("; ")
        )
    });
    none.into_iter().chain(differ)
}
