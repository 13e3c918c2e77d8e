//! Fleets with planted faults, small and large: the culprits, the suspects, and that no healthy NIC is named.

use super::*;
use crate::recipe::ring;
use proptest::prelude::*;
use std::collections::BTreeSet;

const GOOD: f64 = 11.9;
const SLOW: f64 = 4.1;
const FLOOR: f64 = 10.0;

#[derive(Debug, Clone, Copy, PartialEq)]
enum NicFault {
    Slow,
    Dead,
}
use NicFault::{Dead, Slow};

/// A node, a device and what is wrong with it in both directions.
type Fault = (usize, usize, NicFault);

fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|at| format!("{prefix}{at}")).collect()
}

/// Every flow that the ring runs, as bad as the worse of its ends.
fn flows(nodes: &[String], devices: &[String], faults: &[Fault]) -> Vec<FlowResult> {
    let wrong = |node: usize, device: usize, kind: NicFault| faults.contains(&(node, device, kind));
    let mut flows = Vec::new();
    for (one, other) in ring::rounds(nodes).into_iter().flatten() {
        for (tx, rx) in [(one, other), (other, one)] {
            for (at, device) in devices.iter().enumerate() {
                let either = |kind| wrong(tx, at, kind) || wrong(rx, at, kind);
                let outcome = match (either(Dead), either(Slow)) {
                    (true, _) => Err(GapKind::NotConnected),
                    (_, slow) => Ok(if slow { SLOW } else { GOOD }),
                };
                let (tx_node, rx_node) = (nodes[tx].clone(), nodes[rx].clone());
                flows.push(FlowResult { tx_node, rx_node, device: device.clone(), outcome });
            }
        }
    }
    flows
}

fn judged(count: usize, faults: &[Fault]) -> NicRates {
    let (nodes, devices) = (names("n", count), names("d", 3));
    judge(&flows(&nodes, &devices, faults), &nodes, &devices, FLOOR, 0.1)
}

/// Culprits, suspects, failures and inconclusive ones, each as `n0d0 n1d0`.
fn summary(rates: &NicRates) -> [String; 4] {
    let of = |choose: &dyn Fn(&NicRate) -> bool| {
        let found: BTreeSet<_> = rates
            .nics
            .iter()
            .filter(|nic| choose(nic))
            .map(|nic| format!("{}{}", nic.node, nic.device))
            .collect();
        found.into_iter().collect::<Vec<_>>().join(" ")
    };
    [
        of(&|nic| nic.blame == Blame::Culprit),
        of(&|nic| matches!(nic.blame, Blame::Suspect { .. })),
        of(&|nic| nic.verdict == NicVerdict::Fail),
        of(&|nic| nic.verdict == NicVerdict::Inconclusive),
    ]
}

#[test]
fn faults_are_found_where_partners_are_proven_and_are_suspected_elsewhere() {
    // Number of nodes, faults; culprits, suspects, failures, inconclusive.
    let table: &[(usize, &[Fault], [&str; 4])] = &[
        (2, &[], ["", "", "", ""]),
        (2, &[(0, 0, Slow)], ["", "n0d0 n1d0", "n0d0 n1d0", ""]),
        (2, &[(0, 0, Dead)], ["", "n0d0 n1d0", "", "n0d0 n1d0"]),
        (2, &[(0, 0, Slow), (1, 0, Slow)], ["", "n0d0 n1d0", "n0d0 n1d0", ""]),
        (2, &[(0, 0, Slow), (1, 1, Slow)], ["", "n0d0 n0d1 n1d0 n1d1", "n0d0 n0d1 n1d0 n1d1", ""]),
        (2, &[(0, 0, Slow), (1, 0, Dead)], ["", "n0d0 n1d0", "", "n0d0 n1d0"]),
        (3, &[], ["", "", "", ""]),
        (3, &[(1, 0, Slow)], ["n1d0", "", "n1d0", ""]),
        (3, &[(1, 0, Dead)], ["n1d0", "", "", "n1d0"]),
        (3, &[(0, 0, Slow), (1, 0, Slow)], ["", "n0d0 n1d0 n2d0", "n0d0 n1d0 n2d0", ""]),
        (3, &[(0, 0, Slow), (1, 1, Slow)], ["n0d0 n1d1", "", "n0d0 n1d1", ""]),
        (3, &[(0, 0, Slow), (0, 1, Dead)], ["n0d0 n0d1", "", "n0d0", "n0d1"]),
        (3, &[(0, 0, Slow), (1, 0, Dead)], ["n1d0", "n0d0 n2d0", "n0d0 n2d0", "n1d0"]),
        (3, &[(0, 0, Dead), (1, 0, Dead)], ["", "n0d0 n1d0 n2d0", "", "n0d0 n1d0 n2d0"]),
        (4, &[], ["", "", "", ""]),
        (4, &[(3, 2, Slow)], ["n3d2", "", "n3d2", ""]),
        (4, &[(3, 2, Dead)], ["n3d2", "", "", "n3d2"]),
        (4, &[(0, 0, Slow), (1, 0, Slow)], ["", "n0d0 n1d0", "n0d0 n1d0", ""]),
        (4, &[(0, 0, Dead), (1, 0, Dead)], ["", "n0d0 n1d0", "", "n0d0 n1d0"]),
        (4, &[(0, 0, Dead), (1, 0, Slow)], ["n0d0", "n1d0", "n1d0", "n0d0"]),
        (4, &[(0, 0, Slow), (1, 1, Dead)], ["n0d0 n1d1", "", "n0d0", "n1d1"]),
        (4, &[(0, 0, Slow), (2, 0, Slow)], ["", "n0d0 n1d0 n2d0 n3d0", "n0d0 n1d0 n2d0 n3d0", ""]),
        (4, &[(0, 0, Dead), (2, 0, Slow)], ["n0d0", "n1d0 n2d0 n3d0", "n1d0 n2d0 n3d0", "n0d0"]),
        (4, &[(0, 0, Slow), (2, 1, Slow)], ["n0d0 n2d1", "", "n0d0 n2d1", ""]),
        (5, &[], ["", "", "", ""]),
        (5, &[(4, 0, Slow)], ["n4d0", "", "n4d0", ""]),
        (5, &[(4, 0, Dead)], ["n4d0", "", "", "n4d0"]),
        (5, &[(4, 0, Slow), (0, 0, Slow)], ["", "n0d0 n4d0", "n0d0 n4d0", ""]),
        (5, &[(4, 0, Dead), (0, 0, Slow)], ["n4d0", "n0d0", "n0d0", "n4d0"]),
        // The node between them has no good flow, and so proves neither.
        (5, &[(0, 0, Slow), (2, 0, Slow)], ["", "n0d0 n1d0 n2d0", "n0d0 n1d0 n2d0", ""]),
        (5, &[(0, 0, Dead), (2, 0, Dead)], ["", "n0d0 n1d0 n2d0", "", "n0d0 n1d0 n2d0"]),
        (5, &[(0, 0, Slow), (2, 2, Dead)], ["n0d0 n2d2", "", "n0d0", "n2d2"]),
        (8, &[], ["", "", "", ""]),
        (8, &[(7, 1, Slow)], ["n7d1", "", "n7d1", ""]),
        (8, &[(7, 1, Dead)], ["n7d1", "", "", "n7d1"]),
        (8, &[(0, 0, Slow), (4, 0, Slow)], ["n0d0 n4d0", "", "n0d0 n4d0", ""]),
        (8, &[(0, 0, Slow), (4, 0, Dead)], ["n0d0 n4d0", "", "n0d0", "n4d0"]),
        (8, &[(0, 0, Slow), (1, 0, Slow)], ["", "n0d0 n1d0", "n0d0 n1d0", ""]),
        (8, &[(0, 0, Dead), (1, 0, Slow)], ["n0d0", "n1d0", "n1d0", "n0d0"]),
        (8, &[(0, 0, Slow), (0, 1, Slow)], ["n0d0 n0d1", "", "n0d0 n0d1", ""]),
        (8, &[(3, 0, Slow), (4, 1, Dead)], ["n3d0 n4d1", "", "n3d0", "n4d1"]),
    ];
    for (count, faults, expected) in table {
        assert_eq!(summary(&judged(*count, faults)), *expected, "{count} nodes: {faults:?}");
    }
}

#[test]
fn the_evidence_compares_a_slow_nic_with_its_neighbours() {
    let (nodes, devices) = (["p5-001", "p5-002", "p5-003", "p5-004"].map(String::from), names("rdmap", 32));
    let rates = judge(&flows(&nodes, &devices, &[(2, 13, Slow), (0, 2, Dead)]), &nodes, &devices, FLOOR, 0.1);
    let line = |node: &str, device: &str| {
        let nic = rates.nics.iter().find(|nic| nic.node == node && nic.device == device).unwrap();
        nic.evidence.clone()
    };
    assert_eq!(
        line("p5-003", "rdmap13"),
        "p5-003 rdmap13: 4.1 GB/s with p5-002 and with p5-004, the other 31 at 11.9"
    );
    assert_eq!(
        line("p5-001", "rdmap2"),
        "p5-001 rdmap2: no connection with p5-002 and with p5-004, the other 31 at 11.9"
    );
    assert_eq!(
        line("p5-002", "rdmap13"),
        "p5-002 rdmap13: 11.9 GB/s with p5-001 and 4.1 GB/s with p5-003, the other 31 at 11.9"
    );
}

#[test]
fn a_node_with_one_device_is_compared_with_other_nodes() {
    let (nodes, devices) = (names("n", 4), names("d", 1));
    let rates = judge(&flows(&nodes, &devices, &[(0, 0, Slow)]), &nodes, &devices, FLOOR, 0.1);
    assert_eq!(rates.nics[0].evidence, "n0 d0: 4.1 GB/s with n1 and with n3, the other 3 nodes at 11.9");
}

#[test]
fn if_all_rates_are_low_one_line_says_so_and_no_nic_is_blamed() {
    for count in [2, 3, 4, 5, 8] {
        let faults: Vec<Fault> =
            (0..count).flat_map(|node| (0..3).map(move |device| (node, device, Slow))).collect();
        let rates = judged(count, &faults);
        let line = rates.fleet_low.clone().unwrap();
        assert!(line.starts_with("all measured NICs on "), "{line}");
        assert!(line.ends_with(": 4.1 to 4.1 GB/s, floor 10.0 GB/s"), "{line}");
        assert!(rates.nics.iter().all(|nic| nic.blame == Blame::None && nic.verdict == NicVerdict::Fail));
        assert_eq!(judged(count, &faults[1..3]).fleet_low, None);
    }
}

#[test]
fn if_no_nic_of_any_node_connects_one_line_says_so_and_none_is_blamed() {
    let dead = |nodes: &[usize]| -> Vec<Fault> {
        nodes.iter().flat_map(|node| (0..3).map(move |device| (*node, device, Dead))).collect()
    };
    for (count, nodes) in [(2, &[0, 1][..]), (2, &[1]), (3, &[0, 1]), (4, &[0, 1, 2, 3]), (4, &[1, 3])] {
        let rates = judged(count, &dead(nodes));
        let line = format!("no NIC of {count} nodes connected: check security group and `nics`");
        assert_eq!(rates.fleet_unconnected, Some(line), "{count} nodes: {nodes:?}");
        assert!(rates.nics.iter().all(|nic| nic.blame == Blame::None));
        assert!(rates.nics.iter().all(|nic| nic.verdict == NicVerdict::Inconclusive));
    }
    // The others connect, so the one node is named with all its NICs.
    let rates = judged(4, &dead(&[1]));
    assert_eq!(rates.fleet_unconnected, None);
    assert_eq!(summary(&rates)[0], "n1d0 n1d1 n1d2");
    // One NIC that does connect shows that the network admits traffic.
    let rates = judged(2, &dead(&[1])[1..]);
    assert_eq!(rates.fleet_unconnected, None);
    assert_eq!(summary(&rates)[1], "n0d1 n0d2 n1d1 n1d2");
    // Outputs that are missing say nothing about the network.
    let (nodes, devices) = (names("n", 3), names("d", 3));
    let mut flows = flows(&nodes, &devices, &[]);
    flows.iter_mut().for_each(|flow| flow.outcome = Err(GapKind::NoOutput));
    assert_eq!(judge(&flows, &nodes, &devices, FLOOR, 0.1).fleet_unconnected, None);
}

#[test]
fn a_dead_nic_in_a_low_fleet_is_still_the_culprit_of_its_gaps() {
    let mut faults: Vec<Fault> =
        (0..5).flat_map(|node| (0..3).map(move |device| (node, device, Slow))).collect();
    faults.push((2, 1, Dead));
    let rates = judged(5, &faults);
    assert!(rates.fleet_low.is_some());
    assert_eq!(summary(&rates)[..2], ["n2d1", ""]);
    // Where a whole node has no rate, the others do not speak for it.
    faults.extend([(2, 0, Dead), (2, 2, Dead)]);
    assert_eq!(judged(5, &faults).fleet_low, None);
}

#[test]
fn a_nic_above_the_floor_but_far_below_its_peers_fails() {
    let (nodes, devices) = (names("n", 4), names("d", 3));
    let flows = flows(&nodes, &devices, &[(1, 1, Slow)]);
    assert_eq!(summary(&judge(&flows, &nodes, &devices, 2.0, 0.1))[0], "n1d1");
    assert_eq!(summary(&judge(&flows, &nodes, &devices, 2.0, 0.9)), ["", "", "", ""]);
    assert_eq!(summary(&judge(&flows, &nodes, &devices, f64::NAN, f64::NAN)), ["", "", "", ""]);
}

#[test]
fn a_fault_in_one_direction_is_seen_in_that_direction_only() {
    let (nodes, devices) = (names("n", 4), names("d", 2));
    let mut flows = flows(&nodes, &devices, &[]);
    for flow in flows.iter_mut().filter(|flow| flow.tx_node == "n2" && flow.device == "d0") {
        flow.outcome = Ok(SLOW);
    }
    let rates = judge(&flows, &nodes, &devices, FLOOR, 0.1);
    let failed: Vec<_> = rates.nics.iter().filter(|nic| nic.verdict != NicVerdict::Pass).collect();
    assert_eq!(failed.len(), 1);
    assert_eq!((failed[0].node.as_str(), failed[0].direction), ("n2", Direction::Tx));
    assert_eq!(failed[0].blame, Blame::Culprit);
}

#[test]
fn a_gap_without_evidence_about_a_nic_blames_none() {
    let (nodes, devices) = (names("n", 4), names("d", 2));
    let mut flows = flows(&nodes, &devices, &[]);
    for flow in flows.iter_mut().filter(|flow| flow.tx_node == "n2" || flow.rx_node == "n2") {
        flow.outcome = Err(GapKind::ToolMissing);
    }
    let rates = judge(&flows, &nodes, &devices, FLOOR, 0.1);
    assert_eq!(summary(&rates), ["", "", "", "n2d0 n2d1"]);
    assert_eq!(
        rates.nics[8].evidence,
        "n2 d0: no rate (tool-missing) with n1 and with n3, the other 3 nodes at 11.9"
    );
}

#[test]
fn one_good_flow_passes_beside_one_that_did_not_connect() {
    let (nodes, devices) = (names("n", 3), names("d", 1));
    let mut flows = flows(&nodes, &devices, &[]);
    flows[0].outcome = Err(GapKind::NotConnected);
    assert_eq!(summary(&judge(&flows, &nodes, &devices, FLOOR, 0.1)), ["", "", "", ""]);
}

#[test]
fn unknown_repeated_and_invalid_flows_are_ignored() {
    let (nodes, devices) = (names("n", 3), names("d", 1));
    let known = flows(&nodes, &devices, &[(0, 0, Slow)]);
    let before = judge(&known, &nodes, &devices, FLOOR, 0.1);
    let mut more = [known.clone(), known].concat();
    for (tx, rx, rate) in [("x", "n0", 11.9), ("n0", "n0", 11.9), ("n0", "n1", f64::NAN), ("n0", "n1", -1.0)]
    {
        let (tx_node, rx_node, device) = (tx.to_owned(), rx.to_owned(), "d0".to_owned());
        more.push(FlowResult { tx_node, rx_node, device, outcome: Ok(rate) });
    }
    assert_eq!(judge(&more, &nodes, &devices, FLOOR, 0.1), before);
    assert!(judge(&more, &[], &devices, FLOOR, 0.1).nics.is_empty());
    assert!(judge(&more, &nodes, &[], FLOOR, 0.1).nics.is_empty());
    let none = judge(&[], &nodes, &devices, FLOOR, 0.1);
    assert!(none.nics.iter().all(|nic| nic.verdict == NicVerdict::Inconclusive && nic.blame == Blame::None));
    assert_eq!((none.nics[0].evidence.as_str(), none.fleet_low), ("n0 d0: no flow", None));
}

#[test]
fn a_large_fleet_names_its_one_culprit() {
    let (nodes, devices) = (names("n", 512), names("d", 32));
    let rates = judge(&flows(&nodes, &devices, &[(300, 7, Slow)]), &nodes, &devices, FLOOR, 0.1);
    assert_eq!(rates.nics.len(), 512 * 32 * 2);
    assert_eq!(summary(&rates), ["n300d7", "", "n300d7", ""]);
}

proptest! {
    #[test]
    fn no_innocent_nic_is_ever_a_culprit(
        count in 1usize..12,
        faults in proptest::collection::vec((0usize..12, 0usize..3, prop_oneof![Just(Slow), Just(Dead)]), 0..9),
    ) {
        let rates = judged(count, &faults);
        for nic in rates.nics.iter().filter(|nic| nic.blame == Blame::Culprit) {
            let named = |(node, device, _): &Fault| format!("n{node}d{device}");
            let guilty = faults.iter().any(|fault| named(fault) == format!("{}{}", nic.node, nic.device));
            prop_assert!(guilty, "{}: {:?}", nic.evidence, faults);
        }
    }

    #[test]
    fn a_fault_two_links_away_from_all_others_of_its_device_is_found(
        count in 3usize..40,
        at in any::<proptest::sample::Index>(),
        kind in prop_oneof![Just(Slow), Just(Dead)],
        rest in proptest::collection::vec((0usize..40, 0usize..3), 0..4),
    ) {
        let at = at.index(count);
        let far = |node: usize| (node + count - at) % count > 2 && (at + count - node) % count > 2;
        let mut faults: Vec<Fault> = rest
            .into_iter()
            .filter(|(node, device)| *node < count && (*device != 0 || far(*node)))
            .map(|(node, device)| (node, device, Slow))
            .collect();
        faults.push((at, 0, kind));
        let rates = judged(count, &faults);
        prop_assert!(rates.nics.iter().any(|nic| nic.blame == Blame::Culprit
            && nic.node == format!("n{at}") && nic.device == "d0"), "{at} of {count}: {faults:?}");
    }
}

#[test]
fn messages() {
    let low: Vec<Fault> = (0..3).flat_map(|node| (0..3).map(move |device| (node, device, Slow))).collect();
    let all =
        [judged(4, &[(1, 0, Slow)]), judged(4, &[(1, 0, Dead)]), judged(2, &[(1, 0, Slow)]), judged(3, &low)];
    let lines = all.iter().flat_map(|rates| {
        let failed =
            rates.nics.iter().filter(|nic| nic.verdict != NicVerdict::Pass && rates.fleet_low.is_none());
        rates.fleet_low.clone().into_iter().chain(failed.map(|nic| nic.evidence.clone()))
    });
    let lines: BTreeSet<String> = lines.collect();
    insta::assert_snapshot!(lines.into_iter().collect::<Vec<_>>().join("\n"));
}
