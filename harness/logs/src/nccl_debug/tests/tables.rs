//! What lines add up to: calls with exact bytes, by operation, size, GPU and communicator.

use super::super::{NcclLog, Operation, Reader, read};
use super::{begun, called, codes, line, log};
use std::io::Cursor;

fn eight() -> String {
    let mut text: String = (0..8).map(|rank| begun(rank, 8)).collect();
    for count in [1_u64 << 30, 0, 16_384, 4_194_304] {
        text.extend((0..8).map(|rank| called(rank, 8, "AllReduce", count, 0)));
    }
    text.extend((0..8).map(|rank| called(rank, 8, "AllGather", 16_383, 0)));
    text
}

#[test]
fn calls_are_counted_with_exact_bytes() {
    let log = log(&eight());
    assert_eq!(codes(&log), Vec::<&str>::new());
    let [gather, reduce] = log.operations.as_slice() else { panic!("two operations: {:?}", log.operations) };
    assert_eq!(
        (gather.operation, gather.calls, gather.total_bytes),
        (Operation::AllGather, 8, Some(8 * 65_532))
    );
    assert_eq!(gather.message_bytes, Some(64 * 65_532), "each line is the part of one rank");
    let total = 8 * ((4 << 30) + 65_536 + 16_777_216);
    assert_eq!((reduce.calls, reduce.empty, reduce.total_bytes), (32, 8, Some(total)));
    assert_eq!((reduce.min_bytes, reduce.max_bytes), (Some(0), Some(4 << 30)));
    assert_eq!(reduce.mean_bytes, Some(total as f64 / 32.0));
    let kinds: Vec<(u64, Option<u64>, u64)> =
        log.calls.iter().map(|it| (it.count, it.bytes, it.calls)).collect();
    assert_eq!(
        kinds,
        [
            (16_383, Some(65_532), 8),
            (0, Some(0), 8),
            (16_384, Some(65_536), 8),
            (4_194_304, Some(16_777_216), 8),
            (1 << 30, Some(4 << 30), 8)
        ]
    );
}

#[test]
fn a_bucket_holds_its_lower_edge_and_not_its_upper_one() {
    let buckets = |log: &NcclLog| -> Vec<(Operation, u64, Option<u64>, u64)> {
        log.histogram.iter().map(|it| (it.operation, it.from_bytes, it.below_bytes, it.calls)).collect()
    };
    let (gather, reduce) = (Operation::AllGather, Operation::AllReduce);
    assert_eq!(
        buckets(&log(&eight())),
        [
            (gather, 0, Some(65_536), 8),
            (reduce, 0, Some(65_536), 8),
            (reduce, 65_536, Some(1 << 20), 8),
            (reduce, 16 << 20, None, 16)
        ]
    );
    let edges = [16_777_217, 0, 65_532, 65_532];
    let other = read(Cursor::new(eight()), "log", &edges).expect("a log in memory");
    let reduced: Vec<_> = buckets(&other).into_iter().filter(|it| it.0 == reduce).collect();
    let expected = [(0, Some(65_532), 8), (65_532, Some(16_777_217), 16), (16_777_217, None, 8)];
    assert_eq!(reduced, expected.map(|(from, below, calls)| (reduce, from, below, calls)));
}

#[test]
fn gpus_and_communicators_are_kept_apart() {
    let log = log(&eight());
    assert_eq!((log.hosts.as_slice(), log.processes), (["a".to_owned(), "b".to_owned()].as_slice(), 8));
    let reduced: Vec<_> = log.gpus.iter().filter(|it| it.operation == Operation::AllReduce).collect();
    assert_eq!(reduced.len(), 8);
    assert!(reduced.iter().all(|it| it.calls == 4));
    let [it] = log.communicators.as_slice() else { panic!("one communicator: {:?}", log.communicators) };
    assert_eq!((it.id.as_deref(), it.nranks, it.ranks_seen, it.ranks_complete), (Some("0xabc"), 8, 8, 8));
    assert_eq!((it.hosts.join(" "), it.fewest_calls, it.most_calls), ("a b".to_owned(), 5, 5));
}

#[test]
fn the_device_of_a_call_is_that_of_its_communicator() {
    let one = |rank: u64| {
        format!(
            "a:1:1 [1] NCCL INFO comm 0x5{rank} rank {rank} nranks 2 cudaDev {rank} busId 1 - Init COMPLETE\n"
        )
    };
    let call = called(0, 2, "AllReduce", 4, 0).replace("a:100:200 [0]", "a:1:1 [1]");
    let log = log(&format!("{}{}{call}{}", one(0), one(1), call.replace("comm 0x50", "comm 0x51")));
    let devices: Vec<_> = log.gpus.iter().map(|it| (it.device, it.calls)).collect();
    assert_eq!(devices, [(Some(0), 1), (Some(1), 1)]);
    assert_eq!(log.communicators.len(), 1, "without an id, ranks that fit are of one communicator");
}

#[test]
fn many_files_make_one_report() {
    let mut reader = Reader::new(&[]);
    for rank in 0..8 {
        let text = begun(rank, 8) + &called(rank, 8, "AllReduce", 4, 0);
        reader.read(Cursor::new(text), &format!("rank{rank}.log")).expect("a log in memory");
    }
    let log = reader.finish();
    assert_eq!((log.communicators.len(), log.operations[0].calls, log.lines), (1, 8, 24));
    assert_eq!(codes(&log), Vec::<&str>::new());
}

#[test]
fn versions_networks_connections_and_choices_are_counted() {
    let text = [
        "NCCL version 2.27.7+cuda13.0\n".to_owned(),
        line(0, "cudaDriverVersion 13000"),
        line(0, "Using network AWS Libfabric"),
        line(0, "NET/OFI Selected provider is efa, fabric is efa-direct (found 32 nics)"),
        line(0, "NET/OFI Initializing aws-ofi-nccl 1.14.0"),
        line(0, "NCCL_PROTO set by environment to simple."),
        line(0, "Channel 00/0 : 0[0] -> 8[0] [send] via NET/AWS Libfabric/0/GDRDMA"),
        line(0, "Channel 01/0 : 0[0] -> 8[0] [send] via NET/AWS Libfabric/1/GDRDMA/Shared"),
        line(0, "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read"),
        line(0, "1024 Bytes -> Algo 1 proto 0 time 12.5"),
        line(0, "AllReduce: 4096 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}"),
        line(0, "AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}"),
    ];
    let log = log(&text.concat());
    assert_eq!((log.of_nccl, log.understood), (12, 12));
    assert_eq!(log.providers[0].text, "efa, fabric efa-direct, 32 NICs");
    assert_eq!(
        (log.variables[0].text.as_str(), log.drivers[0].text.as_str()),
        ("NCCL_PROTO=simple", "13000")
    );
    let net = &log.connections[1];
    assert_eq!((net.transport.as_str(), net.gdrdma, net.lines), ("NET/AWS Libfabric", true, 2));
    let choices: Vec<_> = log.choices.iter().map(|it| (it.by.as_str(), it.lines, it.min_bytes)).collect();
    assert_eq!(choices, [("RING LL", 1, 1024), ("RING LL", 2, 1024)]);
    assert_eq!(codes(&log), Vec::<&str>::new());
}
