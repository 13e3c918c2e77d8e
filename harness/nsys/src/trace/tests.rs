//! Groups, windows and names over small reports.

use super::*;
use crate::tables::KERNEL;
use crate::testing::Made;
use crate::trace::NO_GROUP;

#[test]
fn rows_are_grouped_by_several_values_at_once() {
    let devices = Part::numbers([3i64, 3, 0, 3].into_iter());
    let names = Part::texts([Some("a".into()), Some("b".into()), Some("a".into()), None].into_iter());
    let keys = Keys::by(&[&devices.of_row, &names.of_row]);
    assert_eq!(keys.of_row, [0, 1, 2, NO_GROUP]);
    let labels: Vec<(i64, &str)> = keys
        .groups
        .iter()
        .map(|group| (devices.labels[group[0] as usize], names.labels[group[1] as usize].as_str()))
        .collect();
    assert_eq!(labels, [(3, "a"), (3, "b"), (0, "a")]);
    assert_eq!(Keys::by(&[]).groups.len(), 0);
}

#[test]
fn numbers_of_any_size_and_sign_are_distinguished() {
    let part = Part::numbers([i64::MIN, -1, i64::MAX, -1, 0, 1 << 22].into_iter());
    assert_eq!(part.of_row, [0, 1, 2, 1, 3, 4]);
    assert_eq!(part.labels, [i64::MIN, -1, i64::MAX, 0, 1 << 22]);
}

#[test]
fn under_a_filter_by_ranges_a_kernel_goes_with_its_calls() {
    let made = Made::begin();
    made.range((100, 200), 3, "step").call((110, 120), 3, 1, 1).call((10, 20), 3, 2, 1);
    // Launched within, launched before, launched before and within, and without a call: within and outside.
    made.kernel((900, 910), 1, 1).kernel((150, 160), 2, 2).call((30, 40), 3, 3, 1).call((130, 140), 3, 3, 1);
    made.kernel((950, 960), 3, 3).kernel((120, 130), 77, 4).kernel((900, 901), 77, 5);
    let names = |filter: Filter| {
        let trace = made.trace().filtered(&filter).expect("filtered");
        let rows = trace.rows(&KERNEL, &["demangledName"]).expect("read").expect("kernels");
        rows.ints("demangledName").expect("numbers").to_vec()
    };
    assert_eq!(names(Filter::Range("step".parse().expect("a range"))), [1, 3, 4]);
    assert_eq!(names(Filter::Time("100/200".parse().expect("a span"))), [2, 4]);
}
