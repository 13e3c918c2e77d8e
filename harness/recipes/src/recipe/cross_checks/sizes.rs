//! Compares two sources of one rank's calls, call by call.

use super::super::nccl_profile::printed::Printed;
use nsys::nccl::Function;
use nsys::nccl::sequence::{Difference, assign};

/// A call by its function and, where known, its bytes.
pub(super) type SizedCall = (Function, Option<u64>);

/// The result of the comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Compared {
    /// Calls in both.
    pub calls: u64,
    pub disagree: u64,
    /// Calls whose size the shorter source lacks.
    pub unsized_calls: u64,
    /// How many calls of the log come before the report begins.
    pub before: u64,
    /// The first disagreement, in words.
    pub first: Option<String>,
}

/// At most this many calls are compared to find where a report begins in a log.
const MOST_LOOKS: u64 = 50_000_000;

/// The calls of a report must stand in those of the log, in one row: a capture may begin later and end earlier.
pub(super) fn log_and_report(log: &[SizedCall], report: &[SizedCall]) -> Compared {
    let unsized_calls = report.iter().filter(|(_, bytes)| bytes.is_none()).count() as u64;
    let found = |before: usize, calls: &[SizedCall]| Compared {
        calls: report.len().min(calls.len()) as u64,
        disagree: 0,
        unsized_calls,
        before: before as u64,
        first: None,
    };
    let mut looks = 0;
    for before in 0..=log.len().saturating_sub(report.len()) {
        if report.len() > log.len() || looks > MOST_LOOKS {
            break;
        }
        let behind = &log[before..];
        let same = report.iter().zip(behind).take_while(|(report, log)| agree(log, report)).count();
        looks += same as u64 + 1;
        if same == report.len() {
            return found(before, behind);
        }
    }
    // Nowhere: at its begin or its end it may be nearly there.
    let differing = |before: usize| {
        let pairs = log[before..].iter().zip(report).enumerate();
        pairs.filter(|(_, (log, report))| !agree(log, report)).map(|(at, _)| at).collect::<Vec<usize>>()
    };
    let last = log.len().saturating_sub(report.len());
    let (before, places) = match (differing(0), differing(last)) {
        (front, back) if back.len() < front.len() => (last, back),
        (front, _) => (0, front),
    };
    let more = report.len().saturating_sub(log.len()) as u64;
    let first = match places.first() {
        Some(at) => {
            let (log, report) = (describe(log[before + at]), describe(report[*at]));
            format!("call {} of the report is {report}, call {} of the log {log}", at + 1, before + at + 1)
        }
        None => format!("the report has {} calls, the log {}", report.len(), log.len()),
    };
    Compared { disagree: places.len() as u64 + more, first: Some(first), ..found(before, &log[before..]) }
}

fn agree(log: &SizedCall, report: &SizedCall) -> bool {
    log.0 == report.0 && (log.1.is_none() || report.1.is_none() || log.1 == report.1)
}

fn describe((function, bytes): SizedCall) -> String {
    match bytes {
        Some(bytes) => format!("{function} of {bytes} bytes"),
        None => format!("{function} of unknown size"),
    }
}

/// Whether calls are those that nccl-tests must have made for what it printed; today's way of warming up, or the older
/// one.
pub(super) fn with_print(units: &[Option<u64>], printed: &Printed) -> Result<(), Difference> {
    let seen = units.len() as u64;
    let plan = printed.plans.iter().find(|plan| plan.calls() == seen);
    let plan = plan.ok_or(Difference::Count { expected: printed.plans[0].calls(), seen })?;
    let warmups = plan.warmup_rows.len() * plan.warmup as usize;
    // Warm-up sizes are skipped: the part of one rank is rounded there.
    let sizes: Vec<Option<u64>> =
        units.iter().enumerate().map(|(at, unit)| unit.filter(|_| at >= warmups)).collect();
    assign(&sizes, plan).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Function = Function::AllReduce;
    const G: Function = Function::AllGather;

    fn row(sizes: &[u64]) -> Vec<SizedCall> {
        sizes.iter().map(|bytes| (A, Some(*bytes))).collect()
    }

    #[test]
    fn a_report_is_found_in_its_log_wherever_its_capture_began() {
        let log = row(&[1, 2, 3, 4, 5]);
        let whole = log_and_report(&log, &log);
        assert_eq!((whole.calls, whole.disagree, whole.before), (5, 0, 0));
        let window = log_and_report(&log, &row(&[3, 4]));
        assert_eq!((window.calls, window.disagree, window.before), (2, 0, 2));
        let bare = log_and_report(&log, &[(A, None), (A, Some(2))]);
        assert_eq!((bare.disagree, bare.unsized_calls), (0, 1));
    }

    #[test]
    fn disagreements_are_counted_and_the_first_is_reported_with_both_values() {
        let log = row(&[8, 8, 16, 16]);
        let size = log_and_report(&log, &row(&[8, 8, 4, 16]));
        let expected =
            "call 3 of the report is ncclAllReduce of 4 bytes, call 3 of the log ncclAllReduce of 16 bytes";
        assert_eq!((size.calls, size.disagree, size.first.as_deref()), (4, 1, Some(expected)));
        let operation = log_and_report(&log, &[(A, Some(8)), (G, Some(8)), (A, Some(16)), (A, Some(16))]);
        assert_eq!(operation.disagree, 1);
        let more = log_and_report(&log, &row(&[8, 8, 16, 16, 16]));
        let expected = "the report has 5 calls, the log 4";
        assert_eq!((more.disagree, more.first.as_deref()), (1, Some(expected)));
        let window = log_and_report(&log, &row(&[16, 17]));
        assert_eq!((window.calls, window.disagree, window.before), (2, 1, 2));
    }
}
