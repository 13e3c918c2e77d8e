//! Every sound published figure must be possible, and limits that no hardware can reach must be reported.

use super::*;
use crate::inventory::Instances;
use crate::suite::{Algorithm, Suite};
use metric::op::Op;
use recipes::catalogue::Catalogue;
use std::path::Path;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

type Row = (&'static str, u32, Op, u64, f64, Option<Algorithm>);

/// all_reduce: instance, nodes, and the figures at 128 and 512 MiB, 1, 2, 4, 8 and 16 GiB; 0 where none is published.
const ALL_REDUCE: [(&str, u32, [f64; 7]); 16] = [
    ("p4d", 1, [0.0, 0.0, 230.8, 0.0, 0.0, 0.0, 234.9]),
    ("p4d", 2, [0.0, 0.0, 45.8, 0.0, 0.0, 0.0, 0.0]),
    ("p4d", 2, [0.0, 0.0, 57.2, 0.0, 0.0, 0.0, 0.0]),
    ("p4de", 2, [64.3, 74.3, 76.8, 78.3, 0.0, 0.0, 0.0]),
    ("p5", 1, [0.0, 0.0, 441.8, 444.0, 476.0, 480.4, 483.1]),
    ("p5", 2, [289.2, 393.3, 437.0, 443.7, 465.9, 479.3, 487.1]),
    ("p5", 2, [0.0, 0.0, 313.3, 437.8, 0.0, 0.0, 487.9]),
    ("p5", 2, [305.1, 396.0, 435.1, 445.1, 465.8, 477.7, 0.0]),
    ("p5", 4, [229.5, 278.4, 280.3, 347.6, 354.5, 357.0, 0.0]),
    ("p5", 8, [156.3, 272.6, 274.5, 278.2, 351.3, 355.4, 0.0]),
    ("p5", 16, [129.2, 223.8, 269.2, 270.9, 306.2, 356.3, 0.0]),
    ("p5", 32, [115.8, 156.8, 220.1, 269.5, 302.8, 321.1, 0.0]),
    ("p5en", 1, [0.0, 0.0, 463.6, 0.0, 0.0, 473.0, 482.3]),
    ("p5en", 16, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 369.9]),
    ("p6-b200", 1, [0.0, 0.0, 0.0, 0.0, 0.0, 838.0, 845.7]),
    ("p6-b200", 4, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 381.8]),
];
const ALL_REDUCE_SIZES: [u64; 7] = [128 * MIB, 512 * MIB, GIB, 2 * GIB, 4 * GIB, 8 * GIB, 16 * GIB];

/// p5, at 2, 4, 8, 16 and 32 nodes.
const OTHERS: [(Op, u64, [f64; 5]); 8] = [
    (Op::AllGather, 512 * MIB, [275.5, 220.6, 261.3, 220.0, 146.4]),
    (Op::AllGather, GIB, [322.0, 288.5, 224.5, 261.9, 222.4]),
    (Op::AllGather, 2 * GIB, [328.6, 330.9, 293.7, 265.2, 262.8]),
    (Op::AllToAll, 512 * MIB, [75.8, 53.8, 46.6, 40.1, 33.1]),
    (Op::AllToAll, GIB, [77.7, 53.8, 48.3, 42.4, 38.7]),
    (Op::AllToAll, 2 * GIB, [79.3, 54.1, 49.6, 44.2, 40.8]),
    (Op::AllGather, 16 * GIB, [338.6, 0.0, 0.0, 0.0, 0.0]),
    (Op::AllToAll, 16 * GIB, [79.1, 0.0, 0.0, 0.0, 0.0]),
];

/// Those whose algorithm is known.
const BY_ALGORITHM: [Row; 4] = [
    ("p5en", 1, Op::AllReduce, 16 * GIB, 482.3, Some(Algorithm::Nvls)),
    ("p5en", 1, Op::AllReduce, 16 * GIB, 367.6, Some(Algorithm::Ring)),
    ("p5en", 4, Op::AllReduce, 4 * GIB, 364.9, Some(Algorithm::Ring)),
    ("p5en", 4, Op::AllReduce, 4 * GIB, 310.1, Some(Algorithm::NvlsTree)),
];

fn home() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn instances() -> Instances {
    Instances::load(home())
        .map_err(|diagnostics| diagnostics.to_string())
        .expect("the shipped profiles are good")
}

fn published_rows() -> Vec<Row> {
    let mut rows: Vec<Row> = BY_ALGORITHM.to_vec();
    for (instance, nodes, figures) in ALL_REDUCE {
        let sizes = ALL_REDUCE_SIZES.iter().zip(figures);
        rows.extend(sizes.map(|(size, figure)| (instance, nodes, Op::AllReduce, *size, figure, None)));
    }
    for (op, size, figures) in OTHERS {
        rows.extend(
            [2, 4, 8, 16, 32].iter().zip(figures).map(|(n, figure)| ("p5", *n, op, size, figure, None)),
        );
    }
    rows.retain(|row| row.4 > 0.0);
    rows
}

/// The messages for a suite that demands this row.
fn messages(row: &Row) -> Vec<String> {
    let (instance, nodes, op, size, figure, algorithm) = row;
    let algorithm = algorithm.map(|one| format!(", algorithm = \"{}\"", one.name())).unwrap_or_default();
    let text = format!(
        "instance = \"{instance}\"\nabout = \"a row\"\n[[case]]\nname = \"row\"\nplacement = {nodes}\n\
         recipes = [\"nccl_tests\"]\nworkload = {{ kind = \"nccl-tests\", op = \"{op}\", from = {size}, to = {size}, check = false{algorithm} }}\n\
         [[case.assert]]\nmetric = \"nccl.busbw\"\nsize = {size}\nat_least = \"{figure} GB/s\"\n"
    );
    lint_text(&text)
}

fn lint_text(text: &str) -> Vec<String> {
    let suite = Suite::read(text, "suites/x.toml", &Catalogue::built_in())
        .map_err(|diagnostics| diagnostics.to_string())
        .expect("a good suite");
    let instances = instances();
    let instance = instances.get(&suite.instance).expect("a profile");
    lint(&suite, instance, None).iter().map(ToString::to_string).collect()
}

#[test]
fn every_sound_published_row_passes_the_lint() {
    let rows = published_rows();
    assert!(rows.len() > 85, "{}", rows.len());
    for row in &rows {
        assert_eq!(messages(row), [] as [&str; 0], "{row:?}");
    }
}

#[test]
fn limits_beyond_the_hardware_are_reported() {
    let rows: [Row; 12] = [
        // What a published health check demands of a sweep that ends at 128 MiB, on two nodes.
        ("p4d", 2, Op::AllReduce, 128 * MIB, 300.0, None),
        ("p5", 2, Op::AllReduce, 128 * MIB, 800.0, None),
        ("p6-b200", 2, Op::AllReduce, 128 * MIB, 900.0, None),
        ("p5", 1, Op::AllReduce, 128 * MIB, 800.0, None),
        ("p5", 2, Op::AllReduce, 16 * GIB, 487.0, Some(Algorithm::Ring)),
        ("p5", 4, Op::AllReduce, 16 * GIB, 520.0, None),
        ("p5en", 1, Op::AllReduce, 16 * GIB, 482.3, Some(Algorithm::Ring)),
        ("p5", 2, Op::AllGather, 16 * GIB, 800.0, None),
        ("p5", 2, Op::AllToAll, 16 * GIB, 95.0, None),
        ("p5", 2, Op::Broadcast, 16 * GIB, 401.0, None),
        ("p5", 1, Op::SendRecv, 16 * GIB, 451.0, None),
        ("p4d", 1, Op::AllReduce, 16 * GIB, 301.0, None),
    ];
    for row in &rows {
        let messages = messages(row);
        assert!(
            messages.len() == 1 && messages[0].contains("is above the hardware limit of"),
            "{row:?}: {messages:?}"
        );
    }
}

#[test]
fn a_ceiling_is_what_its_derivation_says() {
    let instances = instances();
    let of = |instance: &str, op, nodes, algorithm| {
        let instance = instances.get(instance).expect("a profile");
        busbw_ceiling(op, nodes * 8, nodes, algorithm, instance)
    };
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} {b}");
    close(of("p5", Op::AllReduce, 2, None), 750.0);
    close(of("p5", Op::AllReduce, 2, Some(Algorithm::Tree)), 400.0 * 2.0 * 15.0 / 16.0);
    close(of("p5", Op::AllReduce, 2, Some(Algorithm::Ring)), 400.0);
    close(of("p5", Op::AllReduce, 1, Some(Algorithm::Nvls)), 450.0 * 1.75);
    close(of("p4de", Op::AllReduce, 2, None), 93.75);
    close(of("p4de", Op::AllReduce, 1, None), 300.0);
    close(of("p5", Op::AllToAll, 2, None), 93.75);
    close(of("p5", Op::Hypercube, 2, None), 93.75);
    close(of("p5", Op::Broadcast, 4, None), 400.0);
    close(of("p5", Op::Scatter, 1, None), 450.0);
    let p5 = instances.get("p5").expect("a profile");
    assert_eq!(busbw_ceiling(Op::AllReduce, 1, 1, None, p5), 0.0);
    assert!(algbw_ceiling(Op::AllReduce, 1, 1, None, p5).is_infinite());
}

#[test]
fn every_operation_has_its_ceiling_on_one_node_and_on_two() {
    let instances = instances();
    let p5 = instances.get("p5").expect("a profile");
    let of = |op, nodes| busbw_ceiling(op, nodes * 8, nodes, None, p5);
    for (op, one, two) in [
        (Op::AllReduce, 787.5, 750.0),
        (Op::AllGather, 450.0, 500.0),
        (Op::ReduceScatter, 450.0, 500.0),
        (Op::AllToAll, 450.0, 93.75),
        (Op::Broadcast, 450.0, 400.0),
        (Op::Reduce, 450.0, 400.0),
        (Op::Gather, 450.0, 500.0),
        (Op::Scatter, 450.0, 500.0),
        (Op::SendRecv, 450.0, 400.0),
        (Op::Hypercube, 450.0, 93.75),
    ] {
        let (alone, pair) = (of(op, 1), of(op, 2));
        assert!((alone - one).abs() < 1e-6 && (pair - two).abs() < 1e-6, "{op}: {alone} {pair}");
    }
    // An algorithm that is known can only do less than the best of all.
    for op in Op::ALL {
        for nodes in [1, 2, 4, 32] {
            let by_any = of(op, nodes);
            let by = |algorithm| busbw_ceiling(op, nodes * 8, nodes, Some(algorithm), p5);
            let most = Algorithm::ALL
                .into_iter()
                .filter(|one| !matches!(one, Algorithm::CollnetDirect | Algorithm::CollnetChain))
                .map(by)
                .fold(0.0, f64::max);
            assert!(most <= by_any + 1e-6, "{op} on {nodes}: {most} {by_any}");
        }
    }
}

#[test]
fn a_profile_that_claims_more_than_is_published_is_reported() {
    let mut p4d = instances().get("p4d").expect("a profile").clone();
    assert_eq!(lint_instance(&p4d, "x.toml"), []);
    p4d.nic_line_rate_gb_s = 25.0;
    p4d.tx_counters = vec!["rdma_write_bytes".to_owned()];
    let messages: Vec<String> = lint_instance(&p4d, "x.toml").iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        [
            "x.toml: the line rate of a NIC of p4d is 100 Gb/s, not: 200",
            "x.toml: `tx_counters` lists counter `rdma_write_bytes`, which does not count on this instance; \
             did you mean `rdma_read_resp_bytes`?",
        ]
    );
}

#[test]
fn sizes_of_nccl_tests_fit_into_the_memory_of_a_gpu() {
    let of = |instance: &str, to: &str, check: bool| {
        lint_text(&format!(
            "instance = \"{instance}\"\nabout = \"a row\"\n[[case]]\nname = \"row\"\nplacement = 2\n\
             recipes = [\"nccl_tests\"]\n\
             workload = {{ kind = \"nccl-tests\", op = \"all_reduce\", from = \"1GiB\", to = \"{to}\", check = {check} }}\n\
             assert = [{{ metric = \"nccl.busbw\", size = \"1GiB\", at_least = \"1 GB/s\" }}]\n"
        ))
    };
    assert_eq!(
        of("p4d", "16GiB", true),
        [
            "suites/x.toml:3:1: case `row`: 16GiB does not fit: nccl-tests needs it 3 times, and a GPU of p4d has 40 GiB; \
             write `to = \"8GiB\"`"
        ]
    );
    // Without a check there is no third buffer.
    for (instance, to, check) in [("p4d", "16GiB", false), ("p4d", "8GiB", true), ("p4de", "16GiB", true)] {
        assert_eq!(of(instance, to, check), [] as [&str; 0], "{instance} {to}");
    }
    assert_eq!(of("p5", "32GiB", true).len(), 1);
    assert_eq!(of("p5en", "32GiB", true), [] as [&str; 0]);
}

#[test]
fn messages_of_impossible_demands() {
    let text = r#"
instance = "p5"
about = "impossible"
[[case]]
name = "nics"
workload = { kind = "nic-pairs" }
recipes = ["nic_flows"]
assert = [{ metric = "nic.rate", per = "nic", at_least = "12.6 GB/s" }]
[[case]]
name = "small"
placement = "pairs"
workload = { kind = "nccl-tests", op = "all_reduce", from = "8", to = "1GiB" }
recipes = ["nccl_tests"]
assert = [
    { metric = "nccl.busbw", size = "1MiB", against = "baseline" },
    { metric = "nccl.time", size = "1GiB", at_most = "2000 us" },
]
[[case]]
name = "alone"
placement = "each"
workload = { kind = "nccl-tests", op = "all_reduce", from = "8", to = "1GiB" }
recipes = ["efa_traffic"]
assert = [{ metric = "nic.tx_bytes", per = "nic", at_least = 1 }]
[[case]]
name = "still"
placement = 2
workload = { kind = "nccl-tests", op = "all_reduce", from = "8", to = "1GiB", environment = { FI_EFA_USE_DEVICE_RDMA = "0" } }
recipes = ["efa_traffic"]
assert = [{ metric = "node.efa_tx", per = "node", at_least = "401 GB/s" }]
[[case]]
name = "gpu-each"
placement = "each gpu"
workload = { kind = "nccl-tests", op = "all_reduce", from = "8", to = "1GiB" }
recipes = ["nccl_tests"]
assert = [
    { metric = "nccl.algbw", size = "1GiB", per = "gpu", at_least = "1300 GB/s" },
    { metric = "nccl.busbw", size = "1GiB", per = "gpu", at_least = "1 GB/s" },
]
"#;
    insta::assert_snapshot!(lint_text(text).join("\n"));
}
