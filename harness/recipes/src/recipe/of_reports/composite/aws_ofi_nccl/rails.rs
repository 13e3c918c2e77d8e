//! How evenly rails carried what they carried: by rank, device, rail and event.

use super::events::Event;
use crate::recipe::of_reports::ReportRecipe;
use crate::result_table::{Column, Quantity, ResultTable};
use logs::lttng;
use std::collections::BTreeMap;

/// Rank, kind, device, rail, event.
type EventDomain<'a> = (i64, &'a str, Option<i64>, Option<i64>, &'a str);

/// Rank, device, rail, event.
type Rail<'a> = (i64, Option<i64>, Option<i64>, &'a str);

#[derive(Default)]
struct Sum {
    events: i64,
    open: i64,
    ns: i128,
    ended: i64,
    /// Beginnings and ends of those that ended.
    spans: Vec<(i64, i64)>,
}

/// Of all places with a rail, or, where a capture was by communicators, of these.
pub(super) fn event_rails(recipe: &ReportRecipe<'static>, all: &[(i64, &Event)]) -> ResultTable {
    let mut sums: BTreeMap<EventDomain, Sum> = BTreeMap::new();
    for (rank, event) in all {
        let key = (*rank, event.place.kind(), event.place.dev, event.place.rail, event.name.as_str());
        let sum = sums.entry(key).or_default();
        sum.events += 1;
        sum.open += i64::from(event.is_open());
        if let (Some(ns), Some(end)) = (event.ns(), event.end) {
            sum.ended += 1;
            sum.ns += i128::from(ns);
            sum.spans.push((event.start, end));
        }
    }
    // Of one event of one device all rails together.
    let mut wholes: BTreeMap<(i64, Option<i64>, &str), i64> = BTreeMap::new();
    for ((rank, _, dev, rail, name), sum) in &sums {
        if rail.is_some() {
            *wholes.entry((*rank, *dev, name)).or_default() += sum.events;
        }
    }
    let (plain, time) = (Quantity::Plain, Quantity::Nanoseconds);
    let share = |key: &EventDomain, sum: &Sum| {
        key.3?;
        let whole = wholes.get(&(key.0, key.2, key.4)).copied()?;
        (whole > 0).then(|| 100.0 * sum.events as f64 / whole as f64)
    };
    let columns = vec![
        Column::integers("Rank", plain, sums.keys().map(|key| key.0)),
        Column::texts("kind", sums.keys().map(|key| key.1)),
        Column::maybe_integers("dev", plain, sums.keys().map(|key| key.2)),
        Column::maybe_integers("rail", plain, sums.keys().map(|key| key.3)),
        Column::texts("event", sums.keys().map(|key| key.4)),
        Column::integers("Count", plain, sums.values().map(|sum| sum.events)),
        Column::integers("Open", plain, sums.values().map(|sum| sum.open)),
        Column::maybe_decimals("Of Device", Quantity::Percent, sums.iter().map(|(key, sum)| share(key, sum))),
        Column::maybe_decimals(
            "Avg",
            time,
            sums.values().map(|sum| (sum.ended > 0).then(|| sum.ns as f64 / sum.ended as f64)),
        ),
        Column::maybe_integers("Most at Once", plain, sums.values().map(|sum| deepest(&sum.spans))),
    ];
    ResultTable::new(recipe.name, "Requests by Rail", columns)
}

/// How many of them there were at once at most; one that ends when another begins is no more there.
fn deepest(spans: &[(i64, i64)]) -> Option<i64> {
    let mut steps: Vec<(i64, i64)> =
        spans.iter().flat_map(|(start, end)| [(*start, 1), (*end, -1)]).collect();
    steps.sort_unstable();
    let deep = steps.iter().scan(0, |depth, (_, step)| {
        *depth += step;
        Some(*depth)
    });
    deep.max()
}

/// From sizes of requests: bytes by rail, of each device.
pub(super) fn request_rails(recipe: &ReportRecipe<'static>, all: &[(i64, &lttng::Event)]) -> ResultTable {
    #[derive(Default)]
    struct Bytes {
        events: i64,
        sized: i64,
        bytes: u128,
    }
    let mut sums: BTreeMap<Rail, Bytes> = BTreeMap::new();
    for (rank, event) in all {
        let sum = sums.entry((*rank, event.dev, event.rail, event.name.as_str())).or_default();
        sum.events += 1;
        if let Some(size) = event.size {
            sum.sized += 1;
            sum.bytes += u128::from(size);
        }
    }
    let mut wholes: BTreeMap<(i64, Option<i64>, &str), u128> = BTreeMap::new();
    for ((rank, dev, rail, name), sum) in &sums {
        if rail.is_some() {
            *wholes.entry((*rank, *dev, name)).or_default() += sum.bytes;
        }
    }
    let plain = Quantity::Plain;
    let share = |(rank, dev, rail, name): &Rail, sum: &Bytes| {
        (*rail)?;
        let whole = wholes.get(&(*rank, *dev, name)).copied()?;
        (whole > 0).then(|| 100.0 * sum.bytes as f64 / whole as f64)
    };
    let columns = vec![
        Column::integers("Rank", plain, sums.keys().map(|key| key.0)),
        Column::maybe_integers("dev", plain, sums.keys().map(|key| key.1)),
        Column::maybe_integers("rail", plain, sums.keys().map(|key| key.2)),
        Column::texts("event", sums.keys().map(|key| key.3)),
        Column::integers("Count", plain, sums.values().map(|sum| sum.events)),
        Column::maybe_integers(
            "Bytes",
            plain,
            sums.values().map(|sum| i64::try_from(sum.bytes).ok().filter(|_| sum.sized > 0)),
        ),
        Column::maybe_decimals("Of Device", Quantity::Percent, sums.iter().map(|(key, sum)| share(key, sum))),
    ];
    ResultTable::new(recipe.name, "Bytes of Requests by Rail", columns)
}
