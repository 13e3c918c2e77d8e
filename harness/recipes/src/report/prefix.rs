//! Prefixes kernel names with the ranges within which they were launched.

use nsys::export::{ExportError, Rows};
use nsys::trace::launches::Calls;
use nsys::trace::nesting::threads;
use nsys::trace::nvtx::Ranges;
use nsys::trace::projection::innermost;
use nsys::trace::{Keys, Part, Trace};
use std::borrow::Cow;

/// Of several calls of one kernel the first one counts.
pub(super) fn put_before(
    trace: &Trace,
    kernels: &Rows,
    names: Part<String>,
) -> Result<Part<String>, ExportError> {
    let (Some(ranges), Some(calls)) = (Ranges::read(trace)?, Calls::read(trace, &[])?) else {
        return Ok(names);
    };
    let of_call = innermost(&calls, &ranges, &threads(&ranges))?;
    let (pids, ids) = (kernels.maybe_ints("globalPid")?, kernels.maybe_ints("correlationId")?);
    let range_of = |row: usize| {
        let call = calls.with_correlation(pids.get(row)?, ids.get(row)?).next()?;
        of_call[call]
    };
    let labels = &ranges.label.labels;
    // Kernels outside all ranges have the number behind the last one.
    let outside = labels.len() as u32;
    let numbers = (0..kernels.len())
        .map(|row| range_of(row).map_or(outside, |range| ranges.label.of_row[range as usize]));
    let numbers: Vec<u32> = numbers.collect();
    let keys = Keys::by(&[&numbers, &names.of_row]);
    let whole = keys.groups.iter().map(|group| {
        let name = &names.labels[group[1] as usize];
        match labels.get(group[0] as usize) {
            Some(range) => Some(Cow::Owned(format!("{range}:{name}"))),
            None => Some(Cow::Borrowed(name.as_str())),
        }
    });
    // A kernel's own name may look like that of another one behind a range.
    let whole = Part::texts(whole);
    let of_row = keys.of_row.iter().map(|group| whole.of_row[*group as usize]).collect();
    Ok(Part { of_row, labels: whole.labels })
}

#[cfg(test)]
mod tests {
    use super::super::tests::lines;
    use crate::testing::Made;

    #[test]
    fn kernels_are_named_behind_the_innermost_range_of_their_calls() {
        let made = Made::begin();
        made.string(1, "k(int)").string(2, "k");
        made.range((0, 100), 3, "outer").range((10, 20), 3, "inner").started((12, 18), (3, 3), "started");
        made.range((15, 40), 3, "crossing");
        made.call((13, 16), 3, 1, 9).kernel((500, 501), 1, 1);
        made.call((16, 30), 3, 2, 9).kernel((600, 602), 2, 1);
        made.call((35, 45), 3, 3, 9).kernel((700, 704), 3, 1);
        // Outside all ranges, on a thread without any, and without a call.
        made.call((99, 101), 3, 4, 9).kernel((800, 808), 4, 1);
        made.call((13, 16), 4, 5, 9).kernel((900, 916), 5, 1).kernel((1000, 1032), 6, 1);
        let found = lines(&made.trace(), "cuda_gpu_kern_sum:base:nvtx-name");
        let names: Vec<(&str, &str)> = found[1..]
            .iter()
            .map(|line| (line.split('|').nth(1).unwrap_or(""), line.split('|').nth(8).unwrap_or("")))
            .collect();
        assert_eq!(names, [("56", "k"), ("4", ":outer:k"), ("2", ":crossing:k"), ("1", ":inner:k")]);
    }

    #[test]
    fn without_ranges_or_without_calls_names_stay_as_they_are() {
        let (calls, ranges) = (Made::begin(), Made::begin());
        calls.string(1, "k").call((0, 1), 3, 1, 9).kernel((5, 6), 1, 1);
        ranges.string(1, "k").range((0, 1), 3, "r").kernel((5, 6), 1, 1);
        for made in [calls, ranges] {
            let found = lines(&made.trace(), "cuda_gpu_kern_sum:nvtx-name");
            assert!(found[1].ends_with("|k") && found.len() == 2, "{found:?}");
        }
    }
}
