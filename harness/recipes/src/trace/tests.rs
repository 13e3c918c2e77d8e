//! Groups, windows and names over small reports.

use super::*;
use crate::figures::NO_GROUP;

#[test]
fn rows_are_told_apart_by_several_things_at_once() {
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
fn numbers_of_any_size_and_sign_are_told_apart() {
    let part = Part::numbers([i64::MIN, -1, i64::MAX, -1, 0, 1 << 22].into_iter());
    assert_eq!(part.of_row, [0, 1, 2, 1, 3, 4]);
    assert_eq!(part.labels, [i64::MIN, -1, i64::MAX, 0, 1 << 22]);
}
