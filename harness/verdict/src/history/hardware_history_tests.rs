//! Suspicion over runs in which nodes and GPUs come back as others under their old names.

use super::hardware::{Unvouched, newest, read_probe, unvouched};
use super::suspects::{Blamed, Replaced, SuspectedPart, before, blamed};
use crate::stored_runs::{Made, NIC, culprit, past};
use model::artefact::{Culprit, Format, Probe, ProbedNode, Status, Value};
use std::collections::{BTreeMap, BTreeSet};

const GPUS: usize = 4;

fn node(name: &str, machine: &str, gpus: &[String]) -> ProbedNode {
    let row = |(at, id): (usize, &String)| format!("gpu{at} GPU-{id} 165");
    let facts = BTreeMap::from([
        ("machine".to_owned(), Value::Text(machine.to_owned())),
        ("gpu_ids".to_owned(), Value::Names(gpus.iter().enumerate().map(row).collect())),
    ]);
    ProbedNode { node: name.to_owned(), facts, ..ProbedNode::default() }
}

fn gpus(of: &str) -> Vec<String> {
    (0..GPUS).map(|at| format!("{of}-{at}")).collect()
}

fn run(minute: usize, probed: Vec<ProbedNode>, culprits: Vec<Culprit>) -> Made {
    let mut made = Made::at(minute, &[]).ending(Status::Fail).naming(culprits);
    made.plan.nodes = probed.iter().map(|node| node.node.clone()).collect();
    made.probed = probed;
    made
}

fn part(node: &str, part: &str) -> SuspectedPart {
    SuspectedPart { simulated: false, inventory: "default".into(), node: node.into(), part: part.into() }
}

#[test]
fn what_replaced_a_node_inherits_no_suspicion_and_is_reported() {
    let runs = [
        run(1, vec![node("p5-001", "i-1", &gpus("old"))], vec![culprit("p5-001", NIC)]),
        run(2, vec![node("p5-001", "i-1", &gpus("old"))], vec![culprit("p5-001", NIC)]),
        run(3, vec![node("p5-001", "i-1", &gpus("new"))], vec![]),
    ];
    let (_folder, past) = past(&runs);
    let Blamed { suspects, gone } = blamed(&past);
    assert_eq!(suspects, []);
    let replaced = Replaced { runs: BTreeSet::from([0, 1]), why: "other hardware has this name now" };
    assert_eq!(gone, BTreeMap::from([(part("p5-001", NIC), replaced)]));
    let lines = before(&past, false, "default", &[culprit("p5-001", "gpu1")]);
    let expected =
        "before: p5-001 rdmap79s0: other hardware has this name now; not counted: blamed in 2 runs";
    assert_eq!(lines, [expected]);
}

#[test]
fn a_record_begins_with_the_hardware_and_runs_without_a_probe_change_nothing() {
    let blames = || vec![culprit("p5-001", NIC)];
    let runs = [
        run(1, vec![node("p5-001", "i-1", &gpus("old"))], blames()),
        run(2, vec![node("p5-001", "i-2", &gpus("new"))], blames()),
        run(3, vec![], blames()),
    ];
    let (_folder, past) = past(&runs);
    let Blamed { suspects, gone } = blamed(&past);
    assert_eq!(suspects[0].culprit, [1, 2]);
    assert_eq!(gone[&part("p5-001", NIC)].runs, BTreeSet::from([0]));
    // The runs on the hardware that is gone are not among those with it.
    assert!(!suspects[0].with.contains(&0), "{:?}", suspects[0]);
}

#[test]
fn a_gpu_that_moved_is_followed_and_one_in_its_old_place_is_not_suspected() {
    let mut swapped = [gpus("a"), gpus("b")];
    let (first, second) = swapped.split_at_mut(1);
    std::mem::swap(&mut first[0][1], &mut second[0][3]);
    let runs = [
        run(
            1,
            vec![node("p5-001", "i-1", &gpus("a")), node("p5-002", "i-2", &gpus("b"))],
            vec![culprit("p5-001", "gpu1")],
        ),
        run(2, vec![node("p5-001", "i-1", &swapped[0]), node("p5-002", "i-2", &swapped[1])], vec![]),
    ];
    let (_folder, past) = past(&runs);
    let Blamed { suspects, gone } = blamed(&past);
    let found: Vec<&SuspectedPart> = suspects.iter().map(|suspect| &suspect.component).collect();
    assert_eq!((found, gone.len()), (vec![&part("p5-002", "gpu3")], 0));
}

/// The same, with these GUIDs of the device that is blamed and of another.
fn with_guids(mut node: ProbedNode, guids: [&str; 2]) -> ProbedNode {
    let rows = [NIC, "rdmap80s0"].iter().zip(guids).filter(|(_, guid)| !guid.is_empty());
    let rows = rows.map(|(nic, guid)| format!("{nic} {guid} 0000:4f:00.0")).collect();
    node.facts.insert("nic_ids".to_owned(), Value::Names(rows));
    node
}

#[test]
fn a_nic_with_another_guid_under_its_name_keeps_no_suspicion() {
    const OLD: [&str; 2] = ["00000000000000a1", "00000000000000a2"];
    const NEW: &str = "00000000000000c1";
    let found = |then: [&str; 2], now: [&str; 2]| {
        let probed = |guids| vec![with_guids(node("p5-001", "i-1", &gpus("a")), guids)];
        let runs = [run(1, probed(then), vec![culprit("p5-001", NIC)]), run(2, probed(now), vec![])];
        let (_folder, past) = past(&runs);
        let lines = before(&past, false, "default", &[culprit("p5-001", NIC)]);
        let suspects = blamed(&past).suspects;
        (suspects.into_iter().map(|one| one.component).collect::<Vec<_>>(), lines)
    };
    let expected = "before: p5-001 rdmap79s0: the device has another GUID; not counted: blamed in 1 run";
    assert_eq!(found(OLD, [NEW, OLD[1]]), (vec![], vec![expected.to_owned()]));
    // The same; another was replaced; one of the two is not there, or has a GUID that is none.
    let none = "0000000000000000";
    for (then, now) in [
        (OLD, OLD),
        (OLD, [OLD[0], NEW]),
        (OLD, ["", OLD[1]]),
        (OLD, [none, OLD[1]]),
        (["", OLD[1]], OLD),
        ([none, OLD[1]], OLD),
    ] {
        assert_eq!(found(then, now).0, [part("p5-001", NIC)], "{then:?} {now:?}");
    }
}

#[test]
fn a_gpu_is_where_it_was_seen_last_and_two_places_at_once_are_none() {
    let alone = |minute, name: &str, ids: &[String], blames| run(minute, vec![node(name, name, ids)], blames);
    let mut with_b3 = gpus("a");
    with_b3[1] = "b-3".to_owned();
    // Blamed in p5-002, where it came from p5-001, which no later run probed.
    let runs = [
        alone(1, "p5-001", &with_b3, vec![]),
        alone(2, "p5-002", &gpus("b"), vec![culprit("p5-002", "gpu3")]),
    ];
    let (_folder, all) = past(&runs);
    assert_eq!(blamed(&all).suspects[0].component, part("p5-002", "gpu3"));
    // One probe has it twice: a contradiction moves nothing.
    let runs = [
        alone(1, "p5-002", &gpus("b"), vec![culprit("p5-002", "gpu3")]),
        run(2, vec![node("p5-001", "i-1", &with_b3), node("p5-002", "i-2", &gpus("b"))], vec![]),
    ];
    let (_folder, all) = past(&runs);
    assert_eq!(blamed(&all).suspects[0].component, part("p5-002", "gpu3"));
}

/// Numbers that are as good as drawn.
fn draw(seed: u64, what: u64) -> u64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ what.wrapping_mul(0xd1b5_4a32_d192_ed03);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ (x >> 27)
}

/// A thousand nodes, each with a blamed part and a replacement drawn by its own seed.
#[test]
fn a_thousand_replacements_inherit_no_suspicion_and_each_is_reported() {
    const RUNS: u64 = 8;
    let name = |seed: u64| format!("n{seed:04}");
    let (mut open, mut gone) = (BTreeSet::new(), BTreeSet::new());
    let mut of_runs: Vec<(Vec<ProbedNode>, Vec<Culprit>)> = vec![Default::default(); RUNS as usize];
    for seed in 0..1000 {
        let (blamed_in, replaced_in) = (draw(seed, 1) % (RUNS - 1), draw(seed, 2) % RUNS);
        let gpu = (draw(seed, 3) % GPUS as u64) as usize;
        let blamed_part =
            [NIC.to_owned(), "node".to_owned(), format!("gpu{gpu}")][(draw(seed, 4) % 3) as usize].clone();
        // All of the node, the GPU that may be blamed, another, or nothing.
        let replaced = draw(seed, 5) % 4;
        let other = (gpu + 1) % GPUS;
        for (at, (probed, culprits)) in of_runs.iter_mut().enumerate() {
            let name = name(seed);
            let mut own = gpus(&name);
            if at as u64 >= replaced_in {
                match replaced {
                    0 => own = gpus(&format!("{name}new")),
                    1 => own[gpu].push_str("new"),
                    2 => own[other].push_str("new"),
                    _ => {}
                }
            }
            probed.push(node(&name, "i-1", &own));
            if at as u64 == blamed_in {
                culprits.push(culprit(&name, &blamed_part));
            }
        }
        let is_hit = replaced == 0 || (replaced == 1 && blamed_part.starts_with("gpu"));
        let to = if is_hit && replaced_in > blamed_in { &mut gone } else { &mut open };
        to.insert(part(&name(seed), &blamed_part));
    }
    let made: Vec<Made> = of_runs
        .into_iter()
        .enumerate()
        .map(|(at, (probed, culprits))| run(at + 1, probed, culprits))
        .collect();
    let (_folder, past) = past(&made);
    let found = blamed(&past);
    let suspected: BTreeSet<SuspectedPart> = found.suspects.into_iter().map(|one| one.component).collect();
    assert_eq!(suspected, open);
    assert_eq!(found.gone.into_keys().collect::<BTreeSet<_>>(), gone);
    assert!(gone.len() > 100 && open.len() > 500, "{} replaced, {} not", gone.len(), open.len());
}

fn probe(nodes: Vec<ProbedNode>) -> Probe {
    Probe {
        format: Format,
        harness: "0.1.0".into(),
        simulated: false,
        inventory: "default".into(),
        instance: "p5".into(),
        at: "2026-03-01T08:00:00Z".into(),
        nodes,
    }
}

/// A thousand nodes that a run vouches for, and what its own seed has made of each since.
#[test]
fn a_thousand_replacements_inherit_no_acceptance_and_each_is_reported() {
    let (mut then, mut now, mut nodes) = (Vec::new(), Vec::new(), Vec::new());
    let mut expected = Unvouched::default();
    for seed in 0..1000 {
        let name = format!("n{seed:04}");
        let (old, mut own) = (gpus(&name), gpus(&name));
        let gpu = (draw(seed, 1) % GPUS as u64) as usize;
        let change = draw(seed, 2) % 8;
        match change {
            0 => own = gpus(&format!("{name}new")),
            1 => own[gpu].push_str("new"),
            // In other places, or fewer of them.
            2 => own.rotate_left(gpu),
            3 => {
                own.remove(gpu);
            }
            _ => {}
        }
        if change != 4 {
            then.push(node(&name, "i-1", &old));
        }
        if change != 5 {
            now.push(node(&name, "i-1", &own));
        }
        match change {
            0 | 1 => expected.other.push(name.clone()),
            4 | 5 => expected.unknown.push(name.clone()),
            _ => {}
        }
        nodes.push(name);
    }
    let (then, now) = (read_probe(&probe(then)), read_probe(&probe(now)));
    assert_eq!(unvouched(&nodes, &then, &now), expected);
    let counts = (expected.other.len(), expected.unknown.len());
    assert!(counts.0 > 150 && counts.1 > 150 && counts.0 + counts.1 < 700, "{counts:?}");
    assert_eq!(unvouched(&nodes, &now, &now).other, Vec::<String>::new());
}

#[test]
fn the_newest_probe_of_each_node_is_taken() {
    let runs = [
        run(1, vec![node("p5-001", "i-1", &gpus("a")), node("p5-002", "i-2", &gpus("b"))], vec![]),
        run(2, vec![node("p5-001", "i-1", &gpus("c"))], vec![]),
        run(3, vec![], vec![]),
    ];
    let (_folder, past) = past(&runs);
    let last = read_probe(&probe(vec![node("p5-001", "i-1", &gpus("c")), node("p5-002", "i-2", &gpus("b"))]));
    assert_eq!(newest(&past, false, "default"), last);
    assert!(newest(&past, true, "default").is_empty() && newest(&past, false, "other").is_empty());
}
