//! What messages of one operation, communicator, size and placement took, over all ranks.

use super::means::Means;
use super::messages::{Key, Message, Messages};
use super::warmup;
use crate::figures::{Stats, modes, quantile};
use crate::recipe::of_reports::ReportRecipe;
use crate::sheet::{Column, Quantity, Sheet};
use rayon::prelude::*;

/// Of one key.
struct Row {
    key: Key,
    calls: usize,
    /// Calls whose kernels are those of others too.
    shared: usize,
    ranks_seen: usize,
    /// The times that count, ascending.
    times: Vec<u64>,
    /// Of each instance that counts, in their order: the shortest time, the longest, and of how many ranks.
    instances: Vec<(u64, u64, usize)>,
    /// Of the times of each instance's fastest rank, ascending.
    fastest: Vec<u64>,
    stats: Option<Stats>,
    modes: Option<Vec<f64>>,
    found_warmup: Option<usize>,
}

pub(super) fn sheet(recipe: &ReportRecipe, messages: &Messages, means: &Means) -> Sheet {
    let mut of_key: Vec<Vec<&Message>> = messages.keys.iter().map(|_| Vec::new()).collect();
    for message in &messages.all {
        of_key[message.key as usize].push(message);
    }
    let mut rows: Vec<Row> = messages.keys.par_iter().zip(of_key).map(|(key, all)| row(*key, &all)).collect();
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
        number("Count", plain, &|row| Some(row.times.len() as i64)),
        number("Instances", plain, &|row| Some(row.instances.len() as i64)),
        number("Found Warm-up", plain, &|row| row.found_warmup.map(|found| found as i64)),
    ];
    columns.push(of_stats("Avg", time, |stats| stats.mean));
    columns.push(number("Min", time, &|row| whole(row.times.first().copied())));
    for (name, part) in [("P1", 0.01), ("P5", 0.05), ("P50", 0.5), ("P95", 0.95), ("P99", 0.99)] {
        columns.push(decimal(name, time, &|row| quantile(&row.times, part)));
    }
    columns.push(number("Max", time, &|row| whole(row.times.last().copied())));
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
        Some(100.0 * quantile(&row.times, 0.5)? / row.printed(means)?)
    }));
    columns.push(decimal("Fastest Rank P50", time, &|row| row.fastest(0.5)));
    columns.push(decimal("Wait Avg", time, &Row::wait));
    columns.push(decimal("BusBW P50 (GB/s)", plain, &|row| row.busbw(row.fastest(0.5)?)));
    columns.push(decimal("BusBW Max (GB/s)", plain, &|row| row.busbw(row.fastest(0.0)?)));
    Sheet { name: recipe.name, title: "NCCL Messages by Size", columns }
}

impl Row {
    /// The mean that nccl-tests printed of these calls, where there is just one.
    fn printed(&self, means: &Means) -> Option<f64> {
        if self.times.is_empty() {
            return None;
        }
        match means.of(self.key.function, self.key.total_bytes()?, self.key.placement).as_slice() {
            [one] => Some(one.ns),
            _ => None,
        }
    }

    fn fastest(&self, part: f64) -> Option<f64> {
        quantile(&self.fastest, part)
    }

    /// How much longer the other ranks took than the fastest, over instances that several ranks had.
    fn wait(&self) -> Option<f64> {
        let of_several = self.instances.iter().filter(|(.., ranks)| *ranks > 1);
        let waits: Vec<u64> = of_several.map(|(least, most, _)| most - least).collect();
        Some(Stats::of(&waits)?.mean)
    }

    fn busbw(&self, ns: f64) -> Option<f64> {
        let wire = self.key.function.wire_bytes(self.key.total_bytes()?, self.key.ranks)?;
        (ns > 0.0).then(|| wire / ns)
    }
}

fn row(key: Key, all: &[&Message]) -> Row {
    let mut times = Vec::with_capacity(all.len());
    // By instance: of each the shortest time, the longest, of how many ranks, and whether it counts.
    let mut instances: Vec<Option<(u64, u64, usize, bool)>> = Vec::new();
    let mut ranks: Vec<(u32, Option<u32>)> = Vec::new();
    for message in all {
        let rank = (message.report, message.call.rank);
        // Calls of one rank stand together.
        if ranks.last() != Some(&rank) {
            ranks.push(rank);
        }
        let Some(ns) = message.ns() else { continue };
        if message.counts {
            times.push(ns);
        }
        let at = message.instance as usize;
        if at >= instances.len() {
            instances.resize(at + 1, None);
        }
        let seen = instances[at].get_or_insert((ns, ns, 0, message.counts));
        *seen = (seen.0.min(ns), seen.1.max(ns), seen.2 + 1, seen.3 && message.counts);
    }
    times.sort_unstable();
    ranks.sort_unstable();
    ranks.dedup();
    let shortest: Vec<u64> = instances.iter().flatten().map(|(least, ..)| *least).collect();
    let counted = instances.iter().flatten().filter(|(.., counts)| *counts);
    let instances: Vec<_> = counted.map(|(least, most, ranks, _)| (*least, *most, *ranks)).collect();
    let mut fastest: Vec<u64> = instances.iter().map(|(least, ..)| *least).collect();
    fastest.sort_unstable();
    Row {
        key,
        calls: all.len(),
        shared: all.iter().filter(|message| !message.alone).count(),
        ranks_seen: ranks.len(),
        stats: Stats::of(&times),
        modes: modes(&times),
        times,
        instances,
        fastest,
        found_warmup: warmup::found(&shortest),
    }
}
