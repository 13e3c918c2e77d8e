//! Reads what STREAM prints: the best rates of four loops over the memory of the host, and whether the sums came out right.

use super::{NoResult, last_line};
use crate::range::Range;

/// Rates in GB/s, of 10^9 bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Rates {
    /// `a = b`.
    pub copy: f64,
    /// `a = b + s * c`.
    pub triad: f64,
    /// Its own check of the results.
    pub valid: bool,
}

/// Several times the caches of a large node, in MiB.
const LEAST_MIB: f64 = 800.0;

/// The rates in a text; an error where one or the check is missing.
pub fn read(text: &str) -> Result<Rates, NoResult> {
    let of = |name: &str| -> Result<(f64, &str), NoResult> {
        let mut lines = text.lines().filter_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'));
        let Some(line) = lines.next() else {
            let last = last_line(text).map(|line| format!("; its last line: {line}")).unwrap_or_default();
            return Err(format!("STREAM printed no rate of {name}{last}"));
        };
        if lines.next().is_some() {
            return Err(format!("STREAM printed {name} more than once: it ran twice"));
        }
        let rate = line.split_whitespace().next().and_then(|rate| rate.parse::<f64>().ok());
        match rate.filter(|rate| rate.is_finite() && *rate > 0.0) {
            Some(rate) => Ok((rate / 1000.0, line)),
            None => Err(format!("the rate of {name} is no number")),
        }
    };
    let ((copy, copies), (triad, triads)) = (of("Copy")?, of("Triad")?);
    let word = |name: &str| {
        let rest = text.lines().find_map(|line| line.trim().strip_prefix(name)?.trim().strip_prefix('='))?;
        rest.split_whitespace().next()
    };
    let number = |name: &str| word(name)?.parse::<f64>().ok();
    if number("Number of Threads counted").is_none() {
        return Err("STREAM was compiled without OpenMP: it ran on one core".to_owned());
    }
    match number("Memory per array") {
        Some(mib) if mib >= LEAST_MIB => {}
        Some(mib) => {
            return Err(format!(
                "arrays of {mib:.0} MiB fit into caches: compile STREAM with -DSTREAM_ARRAY_SIZE=500000000"
            ));
        }
        None => return Err("STREAM printed no size of its arrays".to_owned()),
    }
    let valid = text.contains("Solution Validates");
    let invalid = text.contains("Failed Validation");
    match (valid, invalid) {
        (true, false) => {
            let array = word("Memory per array").and_then(Range::printed);
            check("Copy", copies, array, 2.0)?;
            check("Triad", triads, array, 3.0)?;
            Ok(Rates { copy, triad, valid: true })
        }
        (_, true) => Ok(Rates { copy, triad, valid: false }),
        (false, false) => Err("STREAM did not come to its own check".to_owned()),
    }
}

/// A row has the best rate, and the mean, the least and the most time: the rate is that of the least, up to the digits
/// that are printed.
fn check(name: &str, line: &str, array: Option<Range>, arrays: f64) -> Result<(), NoResult> {
    let mut words = line.split_whitespace();
    let (rate, time) = (words.next().unwrap_or_default(), words.nth(1).unwrap_or_default());
    let Some(((array, rate_range), time_range)) = array.zip(Range::printed(rate)).zip(Range::printed(time))
    else {
        return Err(format!("the row of {name} has no least time"));
    };
    let mib = arrays * f64::from(1 << 20);
    // Megabytes of a million.
    let moved = Range { low: array.low * mib / 1e6, high: array.high * mib / 1e6 };
    match rate_range.times(time_range).meets(moved) {
        true => Ok(()),
        false => Err(format!("{name}: {rate} MB/s is not {arrays} arrays in {time} s")),
    }
}
