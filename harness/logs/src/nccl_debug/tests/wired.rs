//! How ranks are wired, how long they took to begin, and what was called in which step: each a table.

use super::super::Operation;
use super::super::tables::{OfChannels, OfNics, OfNvls, OfRing, OfStep, OfTimings};
use super::{called, line, log};

#[test]
fn rings_trees_channels_and_nvls_are_tables() {
    let text = [
        line(0, "Channel 00/02 :    0   1   2   3"),
        line(0, "Channel 01/02 :    0   3   2   1"),
        line(1, "Trees [0] 2/-1/-1->1->0 [1] -1/-1/-1->1->2"),
        line(1, "Tree 0 : 0 -> 1 -> 2/-1/-1"),
        line(1, "NVLS Trees : [0] 2/-1/-1->1->0"),
        line(
            0,
            "24 coll channels, 0 collnet channels, 16 nvls channels, 32 p2p channels, 2 p2p channels per peer",
        ),
        line(
            1,
            "24 coll channels, 0 collnet channels, 16 nvls channels, 32 p2p channels, 2 p2p channels per peer",
        ),
        line(0, "NVLS multicast support is available on dev 0"),
        line(4, "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>"),
        line(4, "NET/Socket : Using [0]eth0:10.0.0.1<0>"),
        line(0, "Bootstrap: Using eth0:10.0.0.1<0>"),
    ];
    let log = log(&text.concat());
    assert_eq!((log.of_nccl, log.understood), (11, 11));
    let ring = |channel: u64, ranks: [u64; 4]| OfRing { channel, ranks: ranks.to_vec(), lines: 1 };
    assert_eq!(log.rings, [ring(0, [0, 1, 2, 3]), ring(1, [0, 3, 2, 1])]);
    let trees: Vec<_> = log
        .trees
        .iter()
        .map(|it| (it.nvls, it.channel, it.rank, it.above.as_slice(), it.below.as_slice(), it.lines))
        .collect();
    let below: &[i64] = &[2, -1, -1];
    assert_eq!(
        trees,
        [
            (false, 0, 1, [0].as_slice(), below, 2),
            (false, 1, 1, [2].as_slice(), [-1, -1, -1].as_slice(), 1),
            (true, 0, 1, [0].as_slice(), below, 1)
        ],
        "both lines of the tree of channel 0 agree"
    );
    let channels = OfChannels { coll: 24, collnet: Some(0), nvls: Some(16), p2p: 32, per_peer: 2, lines: 2 };
    assert_eq!(log.channels, [channels]);
    assert_eq!(log.nvls, [OfNvls { host: "a".to_owned(), available: 1, not_available: 0 }]);
    let nics =
        |by: &str, nics: u64| OfNics { host: "b".to_owned(), by: by.to_owned(), least: nics, most: nics };
    assert_eq!(log.nics, [nics("NET/IB", 2), nics("NET/Socket", 1)]);
    assert_eq!(log.bootstraps[0].text, "eth0");
}

#[test]
fn the_slowest_initialization_is_listed_by_phase() {
    let took = |rank: u64, total: f64, bootstrap: f64| {
        let text = format!(
            "Init timings - ncclCommInitRank: rank {rank} nranks 8 total {total:.2} (kernels 0.25, bootstrap {bootstrap:.2}, rest 0.50)"
        );
        line(rank, &text)
    };
    let log = log(&(took(0, 2.0, 1.0) + &took(5, 6.0, 5.0) + &took(1, 4.0, 3.0)));
    let parts = [("bootstrap", 5.0), ("rest", 0.5), ("kernels", 0.25)];
    let expected = OfTimings {
        function: Some("ncclCommInitRank".to_owned()),
        nranks: 8,
        lines: 3,
        mean_s: 4.0,
        slowest_s: 6.0,
        slowest_rank: 5,
        slowest_host: "b".to_owned(),
        longest_parts_s: parts.map(|(name, seconds)| (name.to_owned(), seconds)).to_vec(),
    };
    assert_eq!(log.timings, [expected]);
}

#[test]
fn calls_belong_to_the_step_whose_line_follows_them() {
    let step =
        |at: u64| format!("Training epoch 0, iteration {at}/99 | lr: 0.1 | train_step_timing in s: 2.5\n");
    let calls = |n: u64| -> String { (0..n).map(|_| called(0, 8, "AllReduce", 4, 0)).collect() };
    let gather = called(0, 8, "AllGather", 16, 0);
    // Another rank logs the same step again; what follows the last line belongs to no step.
    let text = calls(3) + &step(0) + &calls(2) + &step(0) + &gather + &step(1) + &calls(9);
    let row = |step: u64, line: u64, operation, calls: u64, bytes: u64| OfStep {
        step,
        line,
        operation,
        calls,
        bytes: Some(bytes),
    };
    let expected = [
        row(0, 4, Operation::AllReduce, 3, 48),
        row(1, 9, Operation::AllGather, 1, 64),
        row(1, 9, Operation::AllReduce, 2, 32),
    ];
    assert_eq!(log(&text).steps, expected);
    let other = "Epoch 0 Batch 7 Steps 7 Loss: 2.50000, Speed: 10.00 samples/sec, lr: 0.000100\n";
    assert_eq!(log(&(calls(1) + other)).steps, [row(7, 2, Operation::AllReduce, 1, 16)]);
    // The Trainer of Hugging Face prints the number in its bar, and ends the step with the line behind it.
    let trainer = |at: u64| {
        format!(
            "\r 12%|#2   | {at}/60 [00:01<00:02, 2.00it/s]\n{{'loss': 3.1, 'grad_norm': 1.0, 'epoch': 0.03}}\n"
        )
    };
    let unnumbered = "{'loss': 3.1, 'grad_norm': 1.0, 'epoch': 0.03}\n";
    assert!(log(&(calls(2) + unnumbered + &calls(1) + unnumbered)).steps.is_empty());
    let text = calls(2) + &trainer(1) + &calls(1) + &trainer(2) + &calls(5);
    let expected = [row(1, 4, Operation::AllReduce, 2, 32), row(2, 7, Operation::AllReduce, 1, 16)];
    assert_eq!(log(&text).steps, expected);
    assert_eq!(log(&calls(3)).steps, [], "a log without steps");
}

#[test]
fn bytes_of_lines_of_calls_and_of_wires_stand_side_by_side() {
    let ranks =
        |operation: &str| -> String { (0..8).map(|rank| called(rank, 8, operation, 1 << 30, 0)).collect() };
    let log = log(&(ranks("AllGather") + &ranks("AllReduce")));
    let gib = 1_u64 << 30;
    let all: Vec<_> =
        log.operations.iter().map(|it| (it.total_bytes, it.message_bytes, it.wire_bytes)).collect();
    // Each rank gives its 4 GiB to seven others; of a sum of 4 GiB each gives and gets seven eighths, twice.
    assert_eq!(
        all,
        [
            (Some(32 * gib), Some(256 * gib), Some(8 * 7 * 4 * gib)),
            (Some(32 * gib), Some(32 * gib), Some(14 * 4 * gib))
        ]
    );
}
