//! How the times of calls of one operation and size are spread, beside the mean that nccl-tests printed of them: which
//! sizes are shown, their bins, and their charts.

use super::buckets::{bytes, format_size};
use super::means::{Means, Printed};
use super::messages::{Key, Messages};
use super::msg::{BINS, NCCL_MSG, OP, SIZES};
use crate::chart::{Along, Axis, Bins, Chart, Figure, Histogram, Mark};
use crate::figures::{Edges, Stats, modes};
use crate::report::Arguments;
use crate::result_table::{Column, Quantity, ResultTable};
use metric::quantile::quantile;
use nsys::nccl::Function;
use nsys::nccl::sequence::Placement;
use std::collections::{BTreeMap, BTreeSet};

/// Calls that are held together in one chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    function: Function,
    /// As nccl-tests prints it; where the number of ranks is not known, one rank's part.
    size: u64,
    ranks: Option<u32>,
}

impl Group {
    fn from_key(key: &Key) -> Option<Group> {
        let size = key.total_bytes().or(key.bytes)?;
        Some(Group { function: key.function, size, ranks: key.ranks })
    }
}

#[derive(Default)]
struct Calls {
    /// By their placement, ascending.
    times: BTreeMap<Option<Placement>, Vec<u64>>,
    communicators: BTreeSet<Option<u64>>,
    /// Warm-up, synchronisation and checks.
    not_counted: usize,
    /// Those whose kernels are others' too, or that have none.
    without_time: usize,
}

/// Of one key, before it is known whether it is shown.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    ns: u128,
    timed: usize,
    not_counted: usize,
    without_time: usize,
}

/// One per size and placement; no more charts are made than this has names.
const NAMES: [&str; 16] = [
    "spread-1",
    "spread-2",
    "spread-3",
    "spread-4",
    "spread-5",
    "spread-6",
    "spread-7",
    "spread-8",
    "spread-9",
    "spread-10",
    "spread-11",
    "spread-12",
    "spread-13",
    "spread-14",
    "spread-15",
    "spread-16",
];
/// How many of the largest sizes are shown by default.
const LARGEST: usize = 2;

pub(super) struct Spread {
    /// Its bins.
    pub result_table: ResultTable,
    pub charts: Vec<Chart>,
    /// How many more there would be than are made.
    pub without_chart: usize,
}

/// Nothing where no call has a time. Fails with what is wrong with the arguments.
pub(super) fn compute(
    messages: &Messages,
    means: &Means,
    arguments: &Arguments,
) -> Result<Option<Spread>, String> {
    let counts = counts(messages);
    let of_key: Vec<Option<Group>> = messages.keys.iter().map(Group::from_key).collect();
    let timed = || of_key.iter().zip(&counts).filter(|(_, count)| count.timed > 0);
    let timed = || timed().filter_map(|(group, count)| Some((group.as_ref()?, count)));
    let Some(function) = function(timed(), arguments.text(&OP))? else { return Ok(None) };
    let there: BTreeSet<u64> =
        timed().filter(|(group, _)| group.function == function).map(|(group, _)| group.size).collect();
    let there: Vec<u64> = there.into_iter().collect();
    let (sizes, chosen) = match arguments.text(&SIZES) {
        "" if there.len() > LARGEST => {
            let chosen = format!(". The largest of {} sizes, others with `sizes`", there.len());
            (there[there.len() - LARGEST..].to_vec(), chosen)
        }
        "" => (there, String::new()),
        asked => (asked_sizes(asked, &there, function)?, String::new()),
    };
    let is_shown = |group: &Group| group.function == function && sizes.contains(&group.size);
    let of_key: Vec<Option<Group>> = of_key.into_iter().map(|group| group.filter(is_shown)).collect();
    let groups = groups(messages, &counts, &of_key);
    let mut shown = Vec::new();
    for (group, calls) in groups {
        let all = || calls.times.values().flatten().copied();
        let (Some(least), Some(most)) = (all().min(), all().max()) else { continue };
        shown.push((group, Edges::linear(least, most, arguments.number(&BINS)), calls));
    }
    let of_placement = shown.iter().flat_map(|(group, edges, calls)| {
        calls.times.iter().map(move |(placement, times)| (*group, edges, calls, *placement, times.as_slice()))
    });
    let all: Vec<_> = of_placement.collect();
    let charts = NAMES.iter().zip(&all).map(|(name, (group, edges, calls, placement, times))| {
        let printed = means.matching(group.function, group.size, *placement);
        Chart {
            name: (*name).into(),
            title: title(group, *placement),
            about: format!("{}{}{chosen}", figures(times, &printed), left_out(calls)),
            figure: Figure::Histogram(histogram(edges, *placement, times, printed)),
        }
    });
    let charts: Vec<Chart> = charts.collect();
    let without_chart = all.len() - charts.len();
    Ok((!shown.is_empty()).then(|| Spread { result_table: result_table(&shown), charts, without_chart }))
}

/// Of each key.
fn counts(messages: &Messages) -> Vec<Count> {
    let mut counts = vec![Count::default(); messages.keys.len()];
    for message in &messages.all {
        let count = &mut counts[message.key as usize];
        match message.ns() {
            _ if !message.counts => count.not_counted += 1,
            Some(ns) => (count.timed, count.ns) = (count.timed + 1, count.ns + u128::from(ns)),
            None => count.without_time += 1,
        }
    }
    counts
}

/// The shown groups, by the group of each key.
fn groups(messages: &Messages, counts: &[Count], of_key: &[Option<Group>]) -> BTreeMap<Group, Calls> {
    let mut times: Vec<Vec<u64>> = vec![Vec::new(); of_key.len()];
    for message in messages.all.iter().filter(|message| message.counts) {
        let key = message.key as usize;
        if let (Some(_), Some(ns)) = (of_key[key], message.ns()) {
            times[key].push(ns);
        }
    }
    let mut groups: BTreeMap<Group, Calls> = BTreeMap::new();
    for (((key, group), times), count) in messages.keys.iter().zip(of_key).zip(times).zip(counts) {
        let Some(group) = group else { continue };
        let calls = groups.entry(*group).or_default();
        calls.communicators.insert(key.communicator);
        calls.not_counted += count.not_counted;
        calls.without_time += count.without_time;
        if !times.is_empty() {
            calls.times.entry(key.placement).or_default().extend(times);
        }
    }
    groups.values_mut().flat_map(|calls| calls.times.values_mut()).for_each(|times| times.sort_unstable());
    groups
}

/// The requested one, else the one whose calls have the most time.
fn function<'a>(
    timed: impl Iterator<Item = (&'a Group, &'a Count)>,
    asked: &str,
) -> Result<Option<Function>, String> {
    let mut sums: BTreeMap<Function, u128> = BTreeMap::new();
    for (group, count) in timed {
        *sums.entry(group.function).or_default() += count.ns;
    }
    if asked.is_empty() {
        // Of equal ones the first.
        return Ok(sums.into_iter().rev().max_by_key(|(_, sum)| *sum).map(|(function, _)| function));
    }
    let plain = |name: &str| name.to_lowercase().replace('_', "").trim_start_matches("nccl").to_owned();
    let found = sums.keys().find(|function| plain(function.name()) == plain(asked));
    let there = || sums.keys().map(|function| function.name()).collect::<Vec<_>>().join(", ");
    match found {
        Some(function) => Ok(Some(*function)),
        None if sums.is_empty() => Ok(None),
        None => Err(format!("`op`: no call of `{asked}` has a time; operations with times: {}", there())),
    }
}

fn asked_sizes(asked: &str, there: &[u64], function: Function) -> Result<Vec<u64>, String> {
    let mut sizes = Vec::new();
    for word in asked.split('+') {
        let size = bytes(word).ok_or_else(|| format!("`sizes`: `{word}` is not a size such as `1G`"))?;
        if !there.contains(&size) {
            let known: Vec<String> = there.iter().rev().take(8).map(|size| format_size(*size)).collect();
            let known = known.join(", ");
            return Err(format!(
                "`sizes`: no timed call of `{function}` has size `{word}`; the largest are {known}"
            ));
        }
        sizes.push(size);
    }
    Ok(sizes)
}

fn result_table(shown: &[(Group, Edges, Calls)]) -> ResultTable {
    struct Row {
        group: Group,
        placement: Option<Placement>,
        bin: (u64, u64),
        count: u64,
        of: usize,
    }
    let mut rows = Vec::new();
    for (group, edges, calls) in shown {
        for (placement, times) in &calls.times {
            let counts = edges.count(times.iter().map(|ns| (*ns, 1)));
            rows.extend(edges.bins().zip(counts).map(|(bin, count)| Row {
                group: *group,
                placement: *placement,
                bin,
                count,
                of: times.len(),
            }));
        }
    }
    let (plain, time) = (Quantity::Plain, Quantity::Nanoseconds);
    let whole = |name: &str, quantity, of: fn(&Row) -> u64| {
        Column::maybe_integers(name, quantity, rows.iter().map(|row| i64::try_from(of(row)).ok()))
    };
    let columns = vec![
        Column::texts("Operation", rows.iter().map(|row| row.group.function.name())),
        Column::maybe_integers("Ranks", plain, rows.iter().map(|row| row.group.ranks.map(i64::from))),
        whole("Size", plain, |row| row.group.size),
        Column::maybe_texts("Placement", rows.iter().map(|row| row.placement.map(Placement::name))),
        whole("Lower", time, |row| row.bin.0),
        whole("Upper", time, |row| row.bin.1),
        whole("Count", plain, |row| row.count),
        Column::decimals(
            "Probability",
            Quantity::Fraction,
            rows.iter().map(|row| row.count as f64 / row.of as f64),
        ),
    ];
    ResultTable::new(NCCL_MSG.name, "Spread of Times by Size", columns)
}

fn title(group: &Group, placement: Option<Placement>) -> String {
    let ranks = group.ranks.map(|ranks| format!(" on {ranks} ranks")).unwrap_or_default();
    let place = placement.map(|placement| format!(", {}", placement.name())).unwrap_or_default();
    format!("Times of {} of {}{ranks}{place}", group.function, binary(group.size))
}

fn histogram(edges: &Edges, placement: Option<Placement>, times: &[u64], printed: Vec<Printed>) -> Histogram {
    let marks = printed.into_iter().map(|mean| Mark {
        label: format!("nccl-tests, {}", mean.whose),
        along: Along::X,
        at: mean.ns,
    });
    Histogram {
        x: Axis::linear("Time from first Kernel to last", Quantity::Nanoseconds),
        edges: edges.as_slice().iter().map(|edge| *edge as f64).collect(),
        series: vec![Bins {
            label: placement.map_or("all calls", Placement::name).to_owned(),
            rank: None,
            counts: edges.count(times.iter().map(|ns| (*ns, 1))),
        }],
        marks: marks.collect(),
    }
}

/// The numbers below the chart. Times are ascending, and at least one.
fn figures(times: &[u64], printed: &[Printed]) -> String {
    let at = |part: f64| quantile(times, part).map(time).unwrap_or_default();
    let mut text = format!("{} calls took {} to {}", times.len(), at(0.0), at(1.0));
    if let Some(modes) = modes(times) {
        let places: Vec<String> = modes.iter().map(|ns| time(*ns)).collect();
        let peaks = if modes.len() == 1 { "peak" } else { "peaks" };
        text.push_str(&format!(", with {} {peaks} at {}", modes.len(), places.join(", ")));
    }
    for mean in printed {
        let below = times.partition_point(|ns| (*ns as f64) < mean.ns);
        let share = 100.0 * below as f64 / times.len() as f64;
        text.push_str(&format!(
            ". nccl-tests printed {}, longer than {share:.0} % of the calls",
            time(mean.ns)
        ));
    }
    text.push_str(&format!(". p1 {}, p5 {}, median {}", at(0.01), at(0.05), at(0.5)));
    text.push_str(&format!(", p95 {}, p99 {}", at(0.95), at(0.99)));
    if let Some(stats) = Stats::from_values(times).filter(|stats| stats.mean > 0.0) {
        text.push_str(&format!(", CV {:.1} %", 100.0 * stats.stddev / stats.mean));
    }
    text
}

fn left_out(calls: &Calls) -> String {
    let mut text = String::new();
    if calls.communicators.len() > 1 {
        text.push_str(&format!(". Communicators together: {}", calls.communicators.len()));
    }
    for (count, what) in [
        (calls.not_counted, "Warm-up, synchronisation and check calls of this size, left out"),
        (calls.without_time, "Calls without a time of their own, left out"),
    ] {
        if count > 0 {
            text.push_str(&format!(". {what}: {count}"));
        }
    }
    text
}

/// The largest unit that divides it.
fn binary(bytes: u64) -> String {
    const UNITS: [(&str, u32); 3] = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let unit = UNITS.iter().find(|(_, bits)| bytes > 0 && bytes.is_multiple_of(1 << bits));
    match unit {
        Some((unit, bits)) => format!("{} {unit}", bytes >> bits),
        None => format!("{bytes} B"),
    }
}

/// For a person, with the unit that suits it.
fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{:.2} us", ns / 1e3),
        ns if ns < 1e9 => format!("{:.3} ms", ns / 1e6),
        ns => format!("{:.3} s", ns / 1e9),
    }
}
