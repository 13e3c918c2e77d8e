//! The order of sizes in a table: a sweep ascends, and whole sweeps may follow each other. What does not is of several
//! tables that were printed at once.

use super::super::{NcclRun, Row, Step};

/// Sizes of operations with a part per rank are rounded down to this, times the ranks; of so many ranks where none is
/// listed.
const ROUNDING: u64 = 16;
const MOST_RANKS: u64 = 4096;

/// Why the rows of a run are not of one table.
pub(super) fn odd(run: &NcclRun) -> Option<String> {
    let kind = |row: &Row| (row.dtype.clone(), row.redop.clone(), row.root);
    let max = run.rows.iter().map(|row| row.size_bytes).max()?;
    let min = run.rows.iter().map(|row| row.size_bytes).min()?;
    run.rows.windows(2).find_map(|pair| {
        let [before, after] = pair else { return None };
        let (from, to) = (before.size_bytes, after.size_bytes);
        // The next type, operation or root, or the next cycle.
        let begins_again = kind(before) != kind(after) || (from == max && to == min);
        if to > from || begins_again || (to == from && is_rounded(run, to)) {
            return None;
        }
        let what = if to == from { "comes twice" } else { "follows a larger one" };
        Some(format!(
            "size {to} of line {} {what}: rows of several tables are mixed, no row is attributable",
            after.line
        ))
    })
}

/// Whether sizes that were asked for may have become the same by rounding.
fn is_rounded(run: &NcclRun, size: u64) -> bool {
    let ranks = if run.ranks.is_empty() { MOST_RANKS } else { run.ranks.len() as u64 };
    let step = run.parameters.as_ref().and_then(|parameters| parameters.step);
    size == 0 || matches!(step, Some(Step::Bytes(bytes)) if bytes < ROUNDING * ranks)
}
