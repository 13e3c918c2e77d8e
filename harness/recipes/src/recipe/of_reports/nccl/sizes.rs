//! Times of messages of one operation, communicator, size and placement, over all ranks.

use super::means::Means;
use super::messages::{Key, Messages};
use crate::figures::{Stats, modes};
use crate::recipe::of_reports::ReportRecipe;
use crate::result_table::{Column, Quantity, ResultTable};
use metric::quantile::quantile;
use metric::warmup;
use rayon::prelude::*;

/// Of one key. Of its times nothing is kept but figures: all of them together are as many as there are calls.
struct Row {
    key: Key,
    calls: usize,
    /// Calls whose kernels are those of others too.
    shared: usize,
    ranks_seen: usize,
    /// The figures of times are of those that count.
    count: usize,
    /// How many instances count.
    instances: usize,
    stats: Option<Stats>,
    /// As `QUANTILES` has them.
    quantiles: [Option<f64>; QUANTILES.len()],
    modes: Option<Vec<f64>>,
    /// Of each instance's fastest rank: the median and the least.
    fastest: [Option<f64>; 2],
    /// How much longer the other ranks took than the fastest, over instances that several ranks had.
    wait: Option<f64>,
    found_warmup: Option<usize>,
}

const QUANTILES: [(&str, f64); 5] = [("P1", 0.01), ("P5", 0.05), ("P50", 0.5), ("P95", 0.95), ("P99", 0.99)];
const MEDIAN: usize = 2;

pub(super) fn result_table(
    recipe: &ReportRecipe<'static>,
    messages: &Messages,
    means: &Means,
) -> ResultTable {
    let of_keys = messages.by_key();
    let keys = messages.keys.par_iter().enumerate();
    let mut rows: Vec<Row> = keys.map(|(at, key)| row(*key, messages, of_keys.get(at))).collect();
    rows.sort_by_key(|row| row.key);
    let (plain, time) = (Quantity::Plain, Quantity::Nanoseconds);
    let number = |name: &str, quantity, value: &dyn Fn(&Row) -> Option<i64>| {
        Column::maybe_integers(name, quantity, rows.iter().map(value))
    };
    let decimal = |name: &str, quantity, value: &dyn Fn(&Row) -> Option<f64>| {
        Column::maybe_decimals(name, quantity, rows.iter().map(value))
    };
    let whole = |value: Option<u64>| value.and_then(|value| i64::try_from(value).ok());
    let of_stats = |name: &str, quantity, value: fn(&Stats) -> f64| {
        Column::maybe_decimals(name, quantity, rows.iter().map(|row| row.stats.as_ref().map(value)))
    };
    let mut columns = vec![
        Column::texts("Operation", rows.iter().map(|row| row.key.function.name())),
        Column::maybe_texts(
            "Communicator",
            rows.iter().map(|row| row.key.communicator.map(super::communicator)),
        ),
        number("Ranks", plain, &|row| row.key.ranks.map(i64::from)),
        number("Bytes", plain, &|row| whole(row.key.bytes)),
        number("Total Bytes", plain, &|row| whole(row.key.total_bytes())),
        decimal("Wire Bytes", plain, &|row| {
            row.key.function.wire_bytes(row.key.total_bytes()?, row.key.ranks)
        }),
        Column::maybe_texts(
            "Placement",
            rows.iter().map(|row| row.key.placement.map(|placement| placement.name())),
        ),
        number("Ranks Seen", plain, &|row| Some(row.ranks_seen as i64)),
        number("Calls", plain, &|row| Some(row.calls as i64)),
        number("Sharing Kernels", plain, &|row| Some(row.shared as i64)),
        number("Count", plain, &|row| Some(row.count as i64)),
        number("Instances", plain, &|row| Some(row.instances as i64)),
        number("Found Warm-up", plain, &|row| row.found_warmup.map(|found| found as i64)),
    ];
    columns.push(of_stats("Avg", time, |stats| stats.mean));
    columns.push(number("Min", time, &|row| whole(row.stats.as_ref().map(|stats| stats.min))));
    for (at, (name, _)) in QUANTILES.into_iter().enumerate() {
        columns.push(decimal(name, time, &|row| row.quantiles[at]));
    }
    columns.push(number("Max", time, &|row| whole(row.stats.as_ref().map(|stats| stats.max))));
    columns.push(of_stats("CV", Quantity::Percent, |stats| match stats.mean > 0.0 {
        true => 100.0 * stats.stddev / stats.mean,
        false => 0.0,
    }));
    columns.push(number("Modes", plain, &|row| row.modes.as_ref().map(|modes| modes.len() as i64)));
    let places = |modes: &Vec<f64>| {
        let places: Vec<String> = modes.iter().map(|ns| format!("{ns:.0}")).collect();
        places.join("+")
    };
    columns.push(Column::maybe_texts("Modes at (ns)", rows.iter().map(|row| row.modes.as_ref().map(places))));
    columns.push(decimal("Printed", time, &|row| row.printed(means)));
    columns.push(decimal("P50 of Printed", Quantity::Percent, &|row| {
        Some(100.0 * row.quantiles[MEDIAN]? / row.printed(means)?)
    }));
    columns.push(decimal("Fastest Rank P50", time, &|row| row.fastest[0]));
    columns.push(decimal("Wait Avg", time, &|row| row.wait));
    columns.push(decimal("BusBW P50 (GB/s)", plain, &|row| row.busbw(row.fastest[0]?)));
    columns.push(decimal("BusBW Max (GB/s)", plain, &|row| row.busbw(row.fastest[1]?)));
    ResultTable::new(recipe.name, "NCCL Messages by Size", columns)
}

impl Row {
    /// The mean that nccl-tests printed of these calls, where there is just one.
    fn printed(&self, means: &Means) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        match means.matching(self.key.function, self.key.total_bytes()?, self.key.placement).as_slice() {
            [one] => Some(one.ns),
            _ => None,
        }
    }

    fn busbw(&self, ns: f64) -> Option<f64> {
        let wire = self.key.function.wire_bytes(self.key.total_bytes()?, self.key.ranks)?;
        (ns > 0.0).then(|| wire / ns)
    }
}

/// One message on all ranks that had it.
#[derive(Clone, Copy)]
struct Instance {
    least: u64,
    most: u64,
    ranks: u32,
    counts: bool,
}

fn row(key: Key, messages: &Messages, numbers: &[u32]) -> Row {
    let mut times = Vec::with_capacity(numbers.len());
    let mut instances: Vec<Option<Instance>> = Vec::new();
    let mut ranks: Vec<(u32, Option<u32>)> = Vec::new();
    let mut shared = 0;
    for message in numbers.iter().map(|number| &messages.all[*number as usize]) {
        let rank = (message.report, message.call.rank);
        // Calls of one rank stand together.
        if ranks.last() != Some(&rank) {
            ranks.push(rank);
        }
        shared += usize::from(!message.alone);
        let Some(ns) = message.ns() else { continue };
        if message.counts {
            times.push(ns);
        }
        let at = message.instance as usize;
        if at >= instances.len() {
            instances.resize(at + 1, None);
        }
        let seen = instances[at].get_or_insert(Instance { least: ns, most: ns, ranks: 0, counts: true });
        (seen.least, seen.most) = (seen.least.min(ns), seen.most.max(ns));
        (seen.ranks, seen.counts) = (seen.ranks + 1, seen.counts && message.counts);
    }
    times.sort_unstable();
    ranks.sort_unstable();
    ranks.dedup();
    let shortest: Vec<u64> = instances.iter().flatten().map(|one| one.least).collect();
    let counted = || instances.iter().flatten().filter(|one| one.counts);
    let mut fastest: Vec<u64> = counted().map(|one| one.least).collect();
    fastest.sort_unstable();
    let waits: Vec<u64> = counted().filter(|one| one.ranks > 1).map(|one| one.most - one.least).collect();
    Row {
        key,
        calls: numbers.len(),
        shared,
        ranks_seen: ranks.len(),
        count: times.len(),
        instances: fastest.len(),
        stats: Stats::from_values(&times),
        quantiles: QUANTILES.map(|(_, part)| quantile(&times, part)),
        modes: modes(&times),
        fastest: [0.5, 0.0].map(|part| quantile(&fastest, part)),
        wait: Stats::from_values(&waits).map(|stats| stats.mean),
        found_warmup: warmup::found(&shortest),
    }
}
