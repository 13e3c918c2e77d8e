//! Refuses values of the variables that libraries read for threads and their stacks, where these would overflow the stack,
//! or end or hang the program before it has read anything.

use std::ffi::OsString;
use std::ops::RangeInclusive;

/// More than the processors of any node.
const MOST_THREADS: u64 = 1024;
/// What a thread gets where the variable is not set: with less the engine of tables overflows it.
const LEAST_STACK: u64 = 2 << 20;
const MOST_STACK: u64 = 1 << 30;

/// What is no whole number is ignored by those that read them, and so is 0 by rayon.
const VARIABLES: [(&str, RangeInclusive<u64>); 3] = [
    ("POLARS_MAX_THREADS", 1..=MOST_THREADS),
    ("RAYON_NUM_THREADS", 0..=MOST_THREADS),
    ("RUST_MIN_STACK", LEAST_STACK..=MOST_STACK),
];

/// Why these variables are refused, by the first that is out of its range.
pub(super) fn refused(environment: impl IntoIterator<Item = (OsString, OsString)>) -> Option<String> {
    environment.into_iter().find_map(|(name, value)| {
        let (name, range) = VARIABLES.iter().find(|(own, _)| name == *own)?;
        let number = value.to_str()?.parse::<u64>().ok()?;
        (!range.contains(&number)).then(|| {
            let (least, most) = (range.start(), range.end());
            format!("environment variable `{name}` is {number}, allowed are {least} to {most}; unset it")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_threads_and_stacks_that_end_the_program_are_refused() {
        let why = |name: &str, value: &str| refused([(OsString::from(name), OsString::from(value))]);
        for (name, value) in [
            ("POLARS_MAX_THREADS", "0"),
            ("POLARS_MAX_THREADS", "100000000"),
            ("RAYON_NUM_THREADS", "1025"),
            ("RUST_MIN_STACK", "0"),
            ("RUST_MIN_STACK", "1"),
            ("RUST_MIN_STACK", "18446744073709551615"),
        ] {
            let why = why(name, value).expect(name);
            assert!(why.starts_with(&format!("environment variable `{name}` is {value}, allowed")), "{why}");
        }
        for (name, value) in [
            ("POLARS_MAX_THREADS", "192"),
            ("POLARS_MAX_THREADS", "many"),
            ("RAYON_NUM_THREADS", "0"),
            ("RAYON_NUM_THREADS", ""),
            ("RUST_MIN_STACK", "8388608"),
            ("OMP_NUM_THREADS", "0"),
        ] {
            assert_eq!(why(name, value), None, "{name}={value}");
        }
    }
}
