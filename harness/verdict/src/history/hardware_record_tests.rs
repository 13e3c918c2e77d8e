//! Which runs are evidence about a piece of hardware: over replacements, moves, runs without a probe and contradictions.

use super::hardware::PartId;
use super::hardware_record::{HardwareRecord, Sighting, record};
use super::identifiers::{Identity, Subject, find};
use super::past::Past;
use crate::stored_runs::{Made, NIC, culprit, past};
use model::artefact::{Culprit, LeftOut, ProbedNode, Status, Value};
use std::collections::BTreeMap;

const GUID: &str = "0000:0000:0000:00a1";

fn gpus(of: &str) -> Vec<String> {
    (0..4).map(|at| format!("{of}-{at}")).collect()
}

fn node(name: &str, machine: &str, gpus: &[String], guid: &str) -> ProbedNode {
    let row = |(at, id): (usize, &String)| format!("gpu{at} GPU-{id} 165{}", id.replace('-', ""));
    let facts = BTreeMap::from([
        ("machine".to_owned(), Value::Text(machine.to_owned())),
        ("gpu_ids".to_owned(), Value::Names(gpus.iter().enumerate().map(row).collect())),
        ("nic_ids".to_owned(), Value::Names(vec![format!("{NIC} {guid} 0000:4f:00.0")])),
    ]);
    ProbedNode { node: name.to_owned(), facts, ..ProbedNode::default() }
}

fn run(minute: usize, probed: Vec<ProbedNode>, culprits: Vec<Culprit>) -> Made {
    let status = if culprits.is_empty() { Status::Pass } else { Status::Fail };
    let mut made = Made::at(minute, &[]).ending(status).naming(culprits);
    made.plan.nodes = vec!["p5-001".into(), "p5-002".into()];
    made.probed = probed;
    made
}

fn old() -> Vec<ProbedNode> {
    vec![node("p5-001", "i-old", &gpus("old"), GUID)]
}

fn new() -> Vec<ProbedNode> {
    vec![node("p5-001", "i-new", &gpus("new"), "0000:0000:0000:00b2")]
}

fn blames() -> Vec<Culprit> {
    vec![culprit("p5-001", NIC)]
}

fn records(past: &Past, word: &str) -> (Subject, HardwareRecord) {
    let subject = find(past, word, None).unwrap_or_else(|why| panic!("{word}: {why}"));
    let record = record(past, &subject);
    (subject, record)
}

fn runs(seen: &[Sighting]) -> Vec<usize> {
    seen.iter().map(|one| one.run).collect()
}

fn blamed(record: &HardwareRecord) -> Vec<usize> {
    record.blames.iter().map(|blame| blame.run).collect()
}

#[test]
fn a_name_is_the_hardware_that_has_it_now_and_earlier_hardware_is_left_out() {
    let made =
        [run(1, old(), blames()), run(2, old(), vec![]), run(3, new(), blames()), run(4, new(), vec![])];
    let (_folder, past) = past(&made);
    let (_, now) = records(&past, "p5-001");
    assert_eq!((runs(&now.seen), blamed(&now), now.passed), (vec![2, 3], vec![2], vec![3]));
    assert_eq!(now.other.iter().map(|one| one.run).collect::<Vec<_>>(), [0, 1]);
    // The number of what is gone finds it all the same, and nothing of what came after.
    for word in ["i-old", "I-OLD"] {
        let (_, gone) = records(&past, word);
        assert_eq!((runs(&gone.seen), blamed(&gone), gone.passed), (vec![0, 1], vec![0], vec![1]), "{word}");
    }
    for word in [GUID, "00000000000000a1", "0x00000000000000A1"] {
        let (subject, nic) = records(&past, word);
        assert_eq!(subject.identity, Identity::Part(PartId::Nic(GUID.into())));
        assert_eq!((runs(&nic.seen), blamed(&nic), nic.passed), (vec![0, 1], vec![0], vec![1]), "{word}");
    }
}

#[test]
fn a_gpu_that_moved_is_followed_by_its_uuid_and_serial() {
    let mut moved = gpus("b");
    moved[3] = "a-1".into();
    let mut left = gpus("a");
    left[1] = "b-3".into();
    let both = |a: &[String], b: &[String]| {
        vec![node("p5-001", "i-1", a, GUID), node("p5-002", "i-2", b, "0000:0000:0000:00c3")]
    };
    let made = [
        run(1, both(&gpus("a"), &gpus("b")), vec![culprit("p5-001", "gpu1")]),
        // What took its old place is not it.
        run(2, both(&left, &moved), vec![culprit("p5-001", "gpu1")]),
        run(3, both(&left, &moved), vec![culprit("p5-002", "gpu3")]),
    ];
    let (_folder, past) = past(&made);
    for word in ["GPU-a-1", "a-1", "165a1", "p5-002:gpu3"] {
        let (_, record) = records(&past, word);
        let places: Vec<(&str, Option<&str>)> =
            record.seen.iter().map(|one| (one.node.as_str(), one.part.as_deref())).collect();
        let expected = [("p5-001", Some("gpu1")), ("p5-002", Some("gpu3")), ("p5-002", Some("gpu3"))];
        assert_eq!((places.as_slice(), blamed(&record)), (&expected[..], vec![0, 2]), "{word}");
    }
}

#[test]
fn a_run_without_a_probe_counts_only_where_the_probes_next_to_it_agree() {
    let made = [
        run(1, vec![], blames()),
        run(2, old(), blames()),
        run(3, vec![], blames()),
        run(4, new(), blames()),
        run(5, vec![], blames()),
    ];
    let (_folder, past) = past(&made);
    let (_, now) = records(&past, "p5-001");
    assert_eq!(runs(&now.seen), [3, 4], "the third may be of either");
    assert!(now.seen[0].is_probed && !now.seen[1].is_probed);
    assert_eq!(now.other.iter().map(|one| one.run).collect::<Vec<_>>(), [0, 1, 2]);
    let (_, before) = records(&past, "i-old");
    assert_eq!(runs(&before.seen), [0, 1]);
}

#[test]
fn a_part_in_two_places_at_once_is_no_evidence() {
    let twice = vec![
        node("p5-001", "i-1", &gpus("a"), GUID),
        node("p5-002", "i-2", &gpus("a"), "0000:0000:0000:00c3"),
    ];
    let made = [
        run(1, vec![node("p5-001", "i-1", &gpus("a"), GUID)], vec![]),
        run(2, twice, vec![culprit("p5-001", "gpu1")]),
    ];
    let (_folder, past) = past(&made);
    let (_, record) = records(&past, "GPU-a-1");
    assert_eq!((runs(&record.seen), record.blames.len(), record.other[0].run), (vec![0], 0, 1));
}

#[test]
fn where_neither_gpus_nor_the_machine_were_read_nics_show_which_node_it_is() {
    let bare = |guid: &str| {
        let mut node = node("p5-001", "i-1", &[], guid);
        node.facts.retain(|name, _| name == "nic_ids");
        vec![node]
    };
    let made = [
        run(1, bare("0000:0000:0000:00b2"), blames()),
        run(2, bare(GUID), blames()),
        run(3, bare(GUID), vec![]),
    ];
    let (_folder, past) = past(&made);
    let (_, record) = records(&past, "p5-001");
    assert_eq!((runs(&record.seen), record.other[0].run), (vec![1, 2], 0));
}

#[test]
fn a_node_that_no_probe_has_read_is_known_by_its_name_alone() {
    let made = [run(1, vec![], blames()), run(2, vec![], vec![])];
    let (_folder, past) = past(&made);
    let (subject, record) = records(&past, "p5-001");
    assert_eq!(
        (subject.identity, runs(&record.seen), blamed(&record)),
        (Identity::Name, vec![0, 1], vec![0])
    );
    let (subject, record) = records(&past, &format!("p5-001:{NIC}"));
    assert_eq!((subject.identity, blamed(&record), record.passed), (Identity::Name, vec![0], vec![1]));
    let why = find(&past, "p5-001:rdmap97s0", None).expect_err("no such part");
    assert_eq!(
        why,
        format!("no run has measured a part `rdmap97s0` of p5-001; did you mean `p5-001:{NIC}`?")
    );
}

#[test]
fn suspects_and_nodes_that_a_probe_left_out_speak_against_a_node_and_against_none_of_its_parts() {
    let suspected =
        Culprit::Suspects { nodes: vec!["p5-001".into(), "p5-002".into()], evidence: "slow".into() };
    let left = LeftOut { node: "p5-001".into(), why: "7 GPUs".into(), by_folder: false, after: None };
    let made = [run(1, old(), vec![suspected]), run(2, old(), vec![]).leaving_out(left)];
    let (_folder, past) = past(&made);
    let (_, node) = records(&past, "p5-001");
    let blames: Vec<(bool, &str)> = node.blames.iter().map(|blame| (blame.alone, blame.code)).collect();
    assert_eq!(blames, [(false, "-"), (true, "HRN-NODE-UNFIT")]);
    assert_eq!(records(&past, GUID).1.blames, []);
}

#[test]
fn equal_names_in_two_inventories_are_two_nodes_unless_probes_show_one() {
    let elsewhere = |minute, probed| {
        let mut made = run(minute, probed, vec![]);
        made.plan.inventory = "other".into();
        made
    };
    let (_folder, apart) = past(&[run(1, vec![], blames()), elsewhere(2, vec![])]);
    let why = find(&apart, "p5-001", None).expect_err("two nodes");
    assert!(why.contains("`p5-001` matches 2 things") && why.contains("--inventory"), "{why}");
    let of_default = find(&apart, "p5-001", Some("default")).expect("one of them");
    assert_eq!(runs(&record(&apart, &of_default).seen), [0]);
    let (_folder, same) = past(&[run(1, old(), blames()), elsewhere(2, old())]);
    assert_eq!(runs(&records(&same, "p5-001").1.seen), [0, 1]);
}

#[test]
fn what_matches_nothing_lists_what_is_near() {
    let (_folder, past) = past(&[run(1, old(), blames())]);
    let why = |word: &str| find(&past, word, None).expect_err("nothing");
    assert_eq!(why("p5-01"), "no run has a node, GPU, NIC or machine `p5-01`; near: `p5-001`");
    assert!(
        why("0000-00a1").contains(&format!("near: NIC GUID `{GUID}` (p5-001 {NIC})")),
        "{}",
        why("0000-00a1")
    );
    assert!(why("quux").ends_with("`harness history --suspects` lists what runs blame"));
    assert!(why("\u{1b}[2J").contains("`\\x1b[2J`"));
}
