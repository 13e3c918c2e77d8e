//! What places are called in pictures: by their rank, with the process and the device where a rank has several.

use std::collections::{BTreeMap, BTreeSet};

/// Rank, process and device; the latter two where they are known.
pub(super) type Place = (i64, Option<i64>, Option<i64>);

/// Of each place its label.
pub(super) fn of(places: &[Place]) -> Vec<String> {
    type Several = BTreeSet<Option<i64>>;
    let mut known: BTreeMap<i64, (Several, Several)> = BTreeMap::new();
    for (rank, pid, device) in places {
        let of_rank = known.entry(*rank).or_default();
        of_rank.0.insert(*pid);
        of_rank.1.insert(*device);
    }
    let label = |(rank, pid, device): &Place| {
        let mut label = format!("rank {rank}");
        let (pids, devices) = &known[rank];
        if let (Some(pid), true) = (pid, pids.len() > 1) {
            label.push_str(&format!(", process {pid}"));
        }
        if let (Some(device), true) = (device, devices.len() > 1) {
            label.push_str(&format!(", GPU {device}"));
        }
        label
    };
    places.iter().map(label).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_called_by_what_tells_it_from_the_others_of_its_rank() {
        let places =
            [(0, Some(40), Some(0)), (0, Some(41), Some(0)), (0, Some(41), Some(1)), (1, None, Some(3))];
        let labels =
            ["rank 0, process 40, GPU 0", "rank 0, process 41, GPU 0", "rank 0, process 41, GPU 1", "rank 1"];
        assert_eq!(of(&places), labels);
    }
}
