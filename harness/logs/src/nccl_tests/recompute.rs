//! Compares the printed bandwidths with size, time and number of ranks, as exactly as the printed digits allow.
//! Which number of ranks was asked for, and what follows from a difference, is the caller's business.

use super::{Format, Half, NcclRun, Row, cell};
use crate::range::Range;
use metric::finding::Finding;
use metric::op::Op;

/// One finding `bandwidth-disagrees` per figure that does not follow from the others. Without `ranks` the ranks that
/// the run lists are taken, if they are all there and in groups of one size.
pub fn recompute(run: &NcclRun, ranks: Option<u32>) -> Vec<Finding> {
    let ranks = ranks.or_else(|| listed(run)).filter(|ranks| *ranks > 0);
    let mut findings = Vec::new();
    for row in &run.rows {
        for (place, half) in [("out of place", &row.out_of_place), ("in place", &row.in_place)] {
            if let Some(half) = half
                && let Some(why) = disagrees(run, row, half, ranks)
            {
                let message = format!("size {} {place}: {why}", row.size_bytes);
                findings.push(Finding::new("bandwidth-disagrees", message).line(row.line));
            }
        }
    }
    findings
}

/// The median of busbw over algbw, where busbw is at least 1 GB/s, and the one number of ranks that explains every
/// row. The ratio is a hint: it never says which operation it was.
pub fn ranks_from_ratio(run: &NcclRun) -> Option<(f64, Option<u32>)> {
    let halves = run.rows.iter().flat_map(|row| [&row.out_of_place, &row.in_place]).flatten();
    let halves: Vec<&Half> = halves.filter(|half| half.busbw_gb_s >= 1.0 && half.algbw_gb_s > 0.0).collect();
    let mut ratios: Vec<f64> = halves.iter().map(|half| half.busbw_gb_s / half.algbw_gb_s).collect();
    ratios.sort_by(f64::total_cmp);
    let median = *ratios.get(ratios.len() / 2)?;
    let factor = match run.op {
        Some(Op::AllReduce) => 2.0,
        Some(Op::AllGather | Op::ReduceScatter | Op::AllToAll | Op::Gather | Op::Scatter) => 1.0,
        _ => return Some((median, None)),
    };
    // busbw / algbw = factor * (n - 1) / n, so n = factor / (factor - ratio), and each row leaves a range of them.
    let (mut low, mut high) = (1.0_f64, f64::INFINITY);
    for half in halves {
        let (algbw, busbw) = (Range::around(half.algbw_gb_s, half.rounding.algbw_gb_s), busbw_of(half));
        let ranks = |ratio: f64| if ratio < factor { factor / (factor - ratio) } else { f64::INFINITY };
        low = low.max(ranks(busbw.low / algbw.high));
        high = high.min(if algbw.low > 0.0 { ranks(busbw.high / algbw.low) } else { f64::INFINITY });
    }
    let (first, last) = ((low - 1e-6).ceil(), (high + 1e-6).floor());
    let only = first == last && (1.0..1e7).contains(&first);
    Some((median, only.then_some(first as u32)))
}

/// Whether busbw over algbw is what `ranks` ranks of `op` give, for figures printed with two decimals or what the
/// width of the columns left of them.
pub fn ratio_matches(op: Op, ranks: u32, algbw: f64, busbw: f64) -> bool {
    if ranks == 0 {
        return false;
    }
    let factor = op.bus_factor(ranks);
    let algbw = Range::around(algbw, digits(algbw));
    Range { low: algbw.low * factor, high: algbw.high * factor }.meets(Range::around(busbw, digits(busbw)))
}

/// Half a unit of the last digit of a bandwidth, in the coarsest of the forms that print it.
fn digits(bandwidth: f64) -> f64 {
    match bandwidth {
        ..1e3 => 0.005,
        1e3..1e4 => 0.05,
        1e4..1e6 => 0.5,
        _ => bandwidth * 0.5,
    }
}

/// How many ranks of each process are not listed: JSON lists the first alone.
pub fn unlisted(run: &NcclRun) -> u64 {
    match (&run.parameters, run.format) {
        (Some(parameters), Format::Json { .. }) => {
            let threads = parameters.threads.unwrap_or(1);
            threads.saturating_mul(parameters.gpus_per_thread.unwrap_or(1)).saturating_sub(1)
        }
        _ => 0,
    }
}

/// The size of the groups, where every rank from 0 on is listed.
fn listed(run: &NcclRun) -> Option<u32> {
    let count = u32::try_from(run.ranks.len()).ok()?;
    let mut seen: Vec<u32> = run.ranks.iter().map(|rank| rank.rank).collect();
    seen.sort_unstable();
    if !seen.into_iter().eq(0..count) {
        return None;
    }
    if unlisted(run) > 0 {
        return None;
    }
    let mut groups = std::collections::BTreeMap::<Option<u32>, u32>::new();
    for rank in &run.ranks {
        *groups.entry(rank.group).or_default() += 1;
    }
    let mut sizes = groups.into_values();
    let size = sizes.next()?;
    sizes.all(|other| other == size).then_some(size)
}

fn busbw_of(half: &Half) -> Range {
    Range::around(half.busbw_gb_s, half.rounding.busbw_gb_s)
}

/// How an operation counted bytes, and what it made of them.
struct Convention {
    bytes: f64,
    factor: Option<f64>,
}

fn conventions(op: Option<Op>, ranks: Option<u32>, size: f64) -> Vec<Convention> {
    let now = |bytes, factor| Convention { bytes, factor };
    let Some(op) = op else { return vec![now(size, None)] };
    let factor = ranks.map(|ranks| op.bus_factor(ranks));
    let others = |n: u32| size * (f64::from(n) - 1.0) / f64::from(n);
    match (op, ranks) {
        (Op::Hypercube, Some(ranks)) => vec![now(others(ranks), Some(1.0))],
        (Op::Hypercube, None) => Vec::new(),
        // Up to 2.9 what a rank keeps to itself was not counted, and the bandwidths were equal.
        (Op::AllGather | Op::ReduceScatter, Some(ranks)) => {
            vec![now(size, factor), now(others(ranks), Some(1.0))]
        }
        (Op::AllGather | Op::ReduceScatter, None) => Vec::new(),
        _ => vec![now(size, factor)],
    }
}

/// Why a half is not what its size and time make it.
fn disagrees(run: &NcclRun, row: &Row, half: &Half, ranks: Option<u32>) -> Option<String> {
    // Before 2.13 the size shown may be larger than what the ranks shared by a few elements each.
    let width = cell::element_bytes(&row.dtype).unwrap_or(8);
    let spare = f64::from(ranks.unwrap_or(1)) * 16.0_f64.max(width as f64);
    let algbw_printed = Range::around(half.algbw_gb_s, half.rounding.algbw_gb_s);
    let busbw_printed = busbw_of(half);
    let conventions = conventions(run.op, ranks, row.size_bytes as f64);
    // Without an operation, equal bandwidths may be those of hypercube, which counts fewer bytes than it shows.
    if conventions.is_empty() || (run.op.is_none() && half.algbw_gb_s == half.busbw_gb_s) {
        return None;
    }
    let mut why = None;
    for Convention { bytes, factor } in conventions {
        let time = Range::around(half.time_us, half.rounding.time_us);
        let expected = Range {
            low: (bytes - spare).max(0.0) / (time.high * 1e3),
            high: if time.low > 0.0 { bytes / (time.low * 1e3) } else { f64::INFINITY },
        };
        let slack = if expected.high.is_finite() { expected.high * 1e-9 } else { 0.0 };
        let expected = Range { low: expected.low - slack, high: expected.high + slack };
        // The time shown with `-C` is not the one that the bandwidths come from.
        // A row without time and without bandwidth moved nothing; a bandwidth in no time contradicts itself.
        let timed = !run.cpu_time && (half.time_us > 0.0 || half.algbw_gb_s > 0.0);
        if timed && !expected.meets(algbw_printed) {
            why.get_or_insert(describe("algbw", expected, half.algbw_gb_s));
            continue;
        }
        let factor = factor?;
        let algbw = if timed { expected.and(algbw_printed) } else { algbw_printed };
        let busbw = Range { low: algbw.low * factor, high: algbw.high * factor };
        if busbw.meets(busbw_printed) {
            return None;
        }
        why.get_or_insert(describe("busbw", busbw, half.busbw_gb_s));
    }
    why
}

fn describe(name: &str, expected: Range, printed: f64) -> String {
    let (low, high) = (expected.low.max(0.0), expected.high);
    format!("`{name}`: {low:.3} to {high:.3} GB/s computed from the other columns, printed {printed}")
}
