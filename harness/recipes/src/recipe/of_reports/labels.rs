//! Labels of places in charts: the rank, with the process and the device where a rank has several.

use std::collections::{BTreeMap, BTreeSet};

/// Rank, process and device; the latter two where they are known.
pub(super) type LabelKey = (i64, Option<i64>, Option<i64>);

/// Process and device.
type InRank = (Option<i64>, Option<i64>);

/// Of each place its label.
pub(super) fn unique(places: &[LabelKey]) -> Vec<String> {
    let mut of_ranks: BTreeMap<i64, Vec<InRank>> = BTreeMap::new();
    for (rank, pid, device) in places {
        of_ranks.entry(*rank).or_default().push((*pid, *device));
    }
    let needs: BTreeMap<i64, Needs> =
        of_ranks.iter().map(|(rank, of_rank)| (*rank, needs(of_rank))).collect();
    let label = |(rank, pid, device): &LabelKey| {
        let mut label = format!("rank {rank}");
        let needs = needs[rank];
        if let (Some(pid), true) = (pid, needs.process) {
            label.push_str(&format!(", process {pid}"));
        }
        if let (Some(device), true) = (device, needs.device) {
            label.push_str(&format!(", GPU {device}"));
        }
        label
    };
    places.iter().map(label).collect()
}

/// The parts that distinguish the places of a rank.
#[derive(Clone, Copy)]
struct Needs {
    process: bool,
    device: bool,
}

fn needs(of_rank: &[InRank]) -> Needs {
    let pids: BTreeSet<Option<i64>> = of_rank.iter().map(|(pid, _)| *pid).collect();
    let devices: BTreeSet<Option<i64>> = of_rank.iter().map(|(_, device)| *device).collect();
    Needs { process: pids.len() > 1 && devices.len() < of_rank.len(), device: devices.len() > 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_named_by_what_distinguishes_it_from_others_of_its_rank() {
        let places = [
            (0, Some(40), Some(0)),
            (0, Some(41), Some(0)),
            (0, Some(41), Some(1)),
            (1, None, Some(3)),
            (2, Some(50), Some(0)),
            (2, Some(51), Some(1)),
            (3, Some(60), Some(0)),
            (3, Some(61), Some(0)),
        ];
        let labels = [
            "rank 0, process 40, GPU 0",
            "rank 0, process 41, GPU 0",
            "rank 0, process 41, GPU 1",
            "rank 1",
            "rank 2, GPU 0",
            "rank 2, GPU 1",
            "rank 3, process 60",
            "rank 3, process 61",
        ];
        assert_eq!(unique(&places), labels);
    }
}
