//! What is predicted, and why something is not.

use super::*;

fn hardware(instance: &str) -> Hardware {
    published().hardware_of(instance).expect("published").clone()
}

fn predicted(instance: &str, op: Op, size_bytes: u64, nodes: u32) -> Result<Prediction, String> {
    let hardware = hardware(instance);
    let key = Key { hardware: &hardware, op, size_bytes, nodes, ranks: nodes * 8, chosen: None };
    predict(&key).map_err(|why| why.to_string())
}

const GIB: u64 = 1 << 30;

#[test]
fn every_node_count_of_the_issue_is_predicted_on_a_p5() {
    for op in [Op::AllReduce, Op::AllGather, Op::AllToAll] {
        for nodes in [2, 3, 4, 7, 16, 31, 32] {
            for size in [GIB, 8 * GIB] {
                let one = predicted("p5", op, size, nodes).expect("a prediction");
                assert!(one.lower > 0.0 && one.lower < one.value && one.value < one.upper, "{one:?}");
                assert!(one.half_width() < 0.35 * one.value, "{op} {nodes} nodes: {one:?}");
            }
        }
    }
}

#[test]
fn a_published_key_is_predicted_near_its_figures() {
    for row in &published().rows {
        let one = &row.figure;
        let got = predicted(&one.instance, one.op, one.size_bytes, one.nodes).expect("a prediction");
        assert!((got.value / one.busbw - 1.0).abs() < 0.15, "{one:?}: {got:?}");
        assert_eq!(got.reach, Reach::Published);
    }
}

#[test]
fn reach_names_the_nearest_node_counts() {
    let cases = [
        ("p5", 4, GIB, "figures of this key"),
        ("p5", 4, 3 * GIB, "figures of other sizes"),
        ("p5", 7, GIB, "figures of 4 and 8 nodes"),
        ("p5", 48, GIB, "figures of 32 nodes"),
        ("p6-b200", 8, GIB, "figures of 4 nodes"),
    ];
    for (instance, nodes, size, expected) in cases {
        let one = predicted(instance, Op::AllReduce, size, nodes).expect("a prediction");
        assert_eq!(one.reach.to_string(), expected, "{instance} {nodes}");
    }
}

#[test]
fn where_figures_allow_none_there_is_no_prediction() {
    let cases = [
        (
            predicted("p5", Op::Broadcast, GIB, 4),
            "no published figure of p5 broadcast; there are some of all_reduce, all_gather, alltoall",
        ),
        (
            predicted("p5en", Op::AllGather, GIB, 4),
            "no published figure of p5en all_gather; there are some of all_reduce",
        ),
        (
            predicted("p5", Op::AllGather, GIB, 1),
            "no published figure is like p5 all_gather on 1 node: another link limits it",
        ),
        (
            predicted("p6-b200", Op::AllReduce, GIB, 2),
            "no published figure is like p6-b200 all_reduce on 2 nodes: another link limits it",
        ),
        (predicted("p5", Op::AllReduce, GIB, 65), "65 nodes; predictions were tested on up to 64"),
        (predicted("p5", Op::AllReduce, 1 << 26, 4), "64MiB; published figures are of 128MiB to 16GiB"),
        (predicted("p5", Op::AllReduce, 32 * GIB, 4), "32GiB; published figures are of 128MiB to 16GiB"),
        (
            predicted("p5", Op::AllGather, GIB / 2, 64),
            "8 MiB for each node; the least in a published figure is 16 MiB",
        ),
    ];
    for (got, expected) in cases {
        assert_eq!(got.expect_err("no prediction"), expected);
    }
}

#[test]
fn other_hardware_ranks_or_choices_have_no_prediction() {
    let p5 = hardware("p5");
    let key = Key { hardware: &p5, op: Op::AllReduce, size_bytes: GIB, nodes: 4, ranks: 32, chosen: None };
    let why = |key: Key| predict(&key).expect_err("no prediction").to_string();
    assert!(why(Key { ranks: 16, ..key }).starts_with("16 ranks on 4 nodes;"));
    assert!(why(Key { nodes: 0, ranks: 0, ..key }).starts_with("0 ranks on 0 nodes;"));
    assert!(why(Key { nodes: u32::MAX, ranks: 8, ..key }).starts_with("8 ranks on"));
    assert!(why(Key { chosen: Some("algorithm tree"), ..key }).starts_with("algorithm tree;"));
    let fewer_nics = Hardware { wire_gb_s: 200.0, ..p5.clone() };
    assert!(why(Key { hardware: &fewer_nics, ..key }).starts_with("NVLink or NICs of p5 differ"));
    let other = Hardware { instance: "p4d".to_owned(), ..p5.clone() };
    assert_eq!(
        why(Key { hardware: &other, ..key }),
        "too few published figures of p4d; there are enough of p5, p5en, p6-b200"
    );
}
