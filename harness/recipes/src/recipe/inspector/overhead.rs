//! What NCCL's Inspector costs: the rates of a job beside those of the same job without it.

use super::OVERHEAD;
use crate::recipe::nccl_tests::BUSBW;
use metric::{Dim, Dims, Metric};
use std::collections::BTreeMap;

/// Of each rate of a job that has one without Inspector beside it. `control_runs` are the jobs without it, by those with it.
pub fn overheads(rows: &[Metric], control_runs: &BTreeMap<&str, &str>) -> Vec<Metric> {
    if control_runs.is_empty() {
        return Vec::new();
    }
    let rates = || rows.iter().filter(|row| *row.name == *BUSBW.name);
    let by_dims: BTreeMap<&Dims, f64> = rates().map(|row| (&row.dims, row.value)).collect();
    let overhead = |row: &Metric| {
        let control_run = *control_runs.get(row.dims.word(Dim::Job)?)?;
        let without = by_dims.get(&row.dims.clone().with(Dim::Job, control_run))?;
        let overhead = 1.0 - row.value / without;
        overhead.is_finite().then(|| OVERHEAD.of(row.dims.clone(), overhead))
    };
    rates().filter_map(overhead).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(job: &str, size: u64, value: f64) -> Metric {
        BUSBW.of(Dims::new().with(Dim::Job, job).with(Dim::SizeBytes, size), value)
    }

    #[test]
    fn each_size_is_compared_with_the_same_size_of_the_run_without_it() {
        let rows = [
            rate("all", 1, 90.0),
            rate("all", 2, 300.0),
            rate("all", 4, 200.0),
            rate("all.bare", 1, 100.0),
            rate("all.bare", 2, 240.0),
            // Nothing is known of what is not there, or measured 0.
            rate("all.bare", 8, 100.0),
            rate("all", 16, 100.0),
            rate("all.bare", 16, 0.0),
            rate("other", 1, 50.0),
        ];
        let found = overheads(&rows, &BTreeMap::from([("all", "all.bare"), ("other", "other.bare")]));
        let found: Vec<(Option<&str>, Option<u64>, f64)> = found
            .iter()
            .map(|row| (row.dims.word(Dim::Job), row.dims.number(Dim::SizeBytes), row.value))
            .collect();
        assert_eq!(found.len(), 2, "{found:?}");
        for ((job, size, value), expected) in found.iter().zip([(1, 0.1), (2, -0.25)]) {
            assert_eq!((*job, *size), (Some("all"), Some(expected.0)));
            assert!((value - expected.1).abs() < 1e-9, "{value}");
        }
        assert_eq!(overheads(&rows, &BTreeMap::new()), []);
    }
}
