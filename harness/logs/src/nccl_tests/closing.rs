//! Compares what a run prints twice: its rows with its closing lines and with the sweep that its head, or `config` of its
//! JSON, announces. A row that was lost, doubled or changed shows in one of them.

use super::{Half, NcclRun, OutOfBounds, Parameters, Step, Wrong};
use metric::finding::Finding;
use std::collections::BTreeSet;

/// Sweeps of more sizes are none.
const MOST_SIZES: u64 = 1 << 16;

/// One finding per contradiction, in a run whose closing lines are there.
pub fn closing(run: &NcclRun) -> Vec<Finding> {
    if !run.concluded {
        return Vec::new();
    }
    if run.rows.is_empty() {
        let finding = || Finding::new("no-rows", "run has closing lines and no rows");
        return run.failure.is_none().then(finding).into_iter().collect();
    }
    [average(run), sizes(run), wrong(run), odd(run)].into_iter().flatten().collect()
}

fn halves(run: &NcclRun) -> impl Iterator<Item = &Half> {
    run.rows.iter().flat_map(|row| [&row.out_of_place, &row.in_place]).flatten()
}

/// nccl-tests averages the bus bandwidth of each size and placement before it rounds.
fn average(run: &NcclRun) -> Option<Finding> {
    let printed = run.average_busbw_gb_s?;
    let (mut sum, mut rounding, mut count) = (0.0, 0.0, 0.0);
    for half in halves(run) {
        sum += half.busbw_gb_s;
        rounding += half.rounding.busbw_gb_s;
        count += 1.0;
    }
    if count == 0.0 {
        return None;
    }
    let (mean, slack) = (sum / count, rounding / count);
    // It is printed with six digits that count.
    let slack = slack + printed.abs().max(mean) * 1e-5;
    ((mean - printed).abs() > slack).then(|| {
        let why = format!(
            "rows average {mean:.3} GB/s bus bandwidth, the closing line {printed}: rows lost, doubled or of another run"
        );
        Finding::new("average-disagrees", why)
    })
}

/// Programs may run a sweep several times: in cycles, and for several types, operations and roots.
fn sizes(run: &NcclRun) -> Option<Finding> {
    let expected = announced(run.parameters.as_ref()?)?;
    let rows = run.rows.len();
    let lacks = rows % expected.len();
    if lacks == 0 {
        return None;
    }
    let seen: BTreeSet<u64> = run.rows.iter().map(|row| row.size_bytes).collect();
    // Where memory is short nccl-tests leave out the largest sizes, and say so behind the head.
    if rows == seen.len() && seen.iter().eq(expected.iter().take(rows)) {
        return None;
    }
    // Operations with a part per rank round sizes down, and then no size can be named.
    let is_exact = seen.iter().all(|size| expected.contains(size));
    let missing = expected.iter().find(|size| !seen.contains(size)).filter(|_| is_exact);
    let missing = missing.map_or_else(String::new, |size| format!(", no row of size {size}"));
    let why = format!("{rows} rows{missing}; the header announces {} sizes", expected.len());
    Some(Finding::new("rows-missing", why))
}

fn announced(parameters: &Parameters) -> Option<BTreeSet<u64>> {
    let (min, max) = (parameters.min_bytes?, parameters.max_bytes?);
    let mut sizes = BTreeSet::new();
    let mut size = min;
    while size <= max && (sizes.len() as u64) < MOST_SIZES {
        sizes.insert(size);
        let next = match parameters.step? {
            Step::Factor(factor) => size.checked_mul(factor),
            Step::Bytes(bytes) => size.checked_add(bytes),
        };
        match next.filter(|next| *next > size) {
            Some(next) => size = next,
            None => break,
        }
    }
    (!sizes.is_empty() && (sizes.len() as u64) < MOST_SIZES).then_some(sizes)
}

/// The closing line counts tables with wrong values and not the values: only whether there are any is printed twice.
fn wrong(run: &NcclRun) -> Option<Finding> {
    let OutOfBounds { count: closing, ok } = run.out_of_bounds?;
    if ok != (closing == 0) {
        let word = if ok { "OK" } else { "FAILED" };
        let why = format!("the closing line contradicts itself: {closing} wrong values, {word}");
        return Some(Finding::new("wrong-disagrees", why));
    }
    let mut wrong = 0.0;
    let mut is_checked = false;
    for half in halves(run) {
        match half.wrong {
            Wrong::Count(count) => {
                is_checked = true;
                wrong += count;
            }
            Wrong::MaxError(_) => return None,
            Wrong::NotChecked => {}
        }
    }
    (is_checked && (wrong > 0.0) != (closing > 0)).then(|| {
        let why = format!("rows count {wrong} wrong values, the closing line {closing}");
        Finding::new("wrong-disagrees", why)
    })
}

fn odd(run: &NcclRun) -> Option<Finding> {
    let line = run.odd_closing.as_ref()?;
    Some(Finding::new("closing-odd", format!("a closing line is not as nccl-tests prints it: `{line}`")))
}
