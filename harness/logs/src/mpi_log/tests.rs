//! Logs of MPI messages, written by hand and at random, whole and broken.

use super::line::{Call, CallLine, OPERATIONS, Operation, Peer, Said, parse};
use super::{MpiLog, Reader};
use proptest::prelude::*;

const EDGES: [u64; 3] = [64 << 10, 1 << 20, 16 << 20];

fn log(text: &str) -> MpiLog {
    let mut reader = Reader::new(&EDGES);
    reader.read(text.as_bytes(), "a.log").expect("a reader in memory");
    reader.finish()
}

fn codes(log: &MpiLog) -> Vec<&str> {
    log.findings.iter().map(|finding| finding.code.as_str()).collect()
}

/// As the logger writes it.
fn rendered(line: &CallLine) -> String {
    let world = line.world_rank.map_or(-1, |rank| rank as i64);
    let Said::Call(call) = &line.said else {
        let name = if line.said == Said::Begin { "Init" } else { "Finalize" };
        return format!("[{:.6}] MPI_{name}: world_rank={world}\n", line.seconds);
    };
    let size = call.comm_size.map_or_else(String::new, |size| format!(" comm_size={size}"));
    let root = call.root.map_or_else(String::new, |root| format!(" root={root}"));
    let (to, from) =
        (call.to.unwrap_or(Peer { rank: 0, tag: 0 }), call.from.unwrap_or(Peer { rank: 0, tag: 0 }));
    let (bytes, room) = (call.bytes, call.receive_bytes.unwrap_or_default());
    let fields = match call.operation {
        Operation::Send => format!("-> dest={} tag={} bytes={bytes}", to.rank, to.tag),
        Operation::Recv => format!("<- source={} tag={} bytes={bytes}", from.rank, from.tag),
        Operation::Sendrecv => format!(
            "send-> dest={} tag={} send_bytes={bytes} ; recv<- source={} tag={} recv_bytes={room}",
            to.rank, to.tag, from.rank, from.tag
        ),
        Operation::Allgather => format!("send_bytes={bytes} recv_bytes={room}"),
        _ => format!("bytes={bytes}"),
    };
    let name = call.operation.name();
    let rank = call.comm_rank;
    format!(
        "[{:.6}] MPI_{name}: world_rank={world} comm_rank={rank}{size}{root} {fields} comm=0x7ffe01\n",
        line.seconds
    )
}

fn call(operation: Operation, rank: u64, peer: i64, bytes: u64) -> CallLine {
    let peer = Peer { rank: peer, tag: 5 };
    let is_rooted = matches!(operation, Operation::Bcast | Operation::Reduce);
    let said = Said::Call(Call {
        operation,
        comm_rank: rank as i64,
        comm_size: operation.is_collective().then_some(2),
        to: matches!(operation, Operation::Send | Operation::Sendrecv).then_some(peer),
        from: matches!(operation, Operation::Recv | Operation::Sendrecv).then_some(peer),
        root: is_rooted.then_some(0),
        bytes,
        receive_bytes: matches!(operation, Operation::Sendrecv | Operation::Allgather).then_some(bytes * 2),
    });
    CallLine { seconds: 1.5, world_rank: Some(rank), said }
}

/// One rank of two, which sends, receives and calls everything once.
fn rank(rank: u64) -> String {
    let other = 1 - rank as i64;
    let begin = CallLine { seconds: 1.0, world_rank: Some(rank), said: Said::Begin };
    let end = CallLine { seconds: 9.0, world_rank: Some(rank), said: Said::End };
    let calls = OPERATIONS.map(|operation| call(operation, rank, other, 3 << 30));
    std::iter::once(begin).chain(calls).chain([end]).map(|line| rendered(&line)).collect()
}

#[test]
fn the_tables_hold_every_call_with_its_exact_bytes() {
    let log = log(&format!("some program's line\n{}{}", rank(0), rank(1)));
    assert_eq!((log.lines, log.of_mpi, log.understood, log.garbled), (19, 18, 18, 0));
    assert_eq!((codes(&log).len(), log.largest_communicator), (0, Some(2)), "{:?}", log.findings);
    let send = log.operations.iter().find(|it| it.operation == Operation::Send).expect("there");
    assert_eq!((send.calls, send.total_bytes, send.receive_bytes), (2, Some(6 << 30), None));
    let gather = log.operations.iter().find(|it| it.operation == Operation::Allgather).expect("there");
    assert_eq!((gather.total_bytes, gather.receive_bytes), (Some(6 << 30), Some(12 << 30)));
    assert_eq!((log.histogram[0].from_bytes, log.histogram[0].below_bytes), (16 << 20, None));
    assert_eq!((log.calls.len(), log.calls[0].bytes, log.calls[0].calls), (7, 3 << 30, 2));
    assert_eq!((log.ranks.len(), log.ranks[7].rank, log.ranks[7].bytes), (14, 1, Some(3 << 30)));
}

#[test]
fn buckets_hold_their_lower_edge_and_not_their_upper_one() {
    let sizes = [0, (64 << 10) - 1, 64 << 10, (1 << 20) - 1, 1 << 20, 16 << 20];
    let text: String = sizes.iter().map(|bytes| rendered(&call(Operation::Send, 0, 1, *bytes))).collect();
    let counts: Vec<(u64, u64)> = log(&text).histogram.iter().map(|it| (it.from_bytes, it.calls)).collect();
    assert_eq!(counts, [(0, 2), (64 << 10, 2), (1 << 20, 1), (16 << 20, 1)]);
    assert_eq!(log(&text).operations[0].empty, 1);
}

#[test]
fn labels_and_colours_may_stand_before_a_line() {
    for before in ["3: ", "[1,0]<stderr>:", "\x1b[31m", "2025-01-01 [pid 7] "] {
        let log = log(&format!("{before}{}", rendered(&call(Operation::Bcast, 0, 1, 8))));
        assert_eq!((log.understood, log.garbled), (1, 0), "{before}");
    }
}

/// What is wrong, the text, and the codes that are reported.
fn table() -> Vec<(&'static str, String, &'static [&'static str])> {
    let both = format!("{}{}", rank(0), rank(1));
    let line = rendered(&call(Operation::Send, 0, 1, 4096));
    vec![
        ("one rank overwrote the other", rank(0), &["mpi-ranks-missing"]),
        ("half a line at the end", format!("{both}{}", &line[..60]), &["mpi-garbled"]),
        ("a line within a line", format!("{both}{}{line}", &line[..40]), &["mpi-garbled"]),
        ("another call", format!("{both}[1.0] MPI_Isend: world_rank=0 bytes=8\n"), &["mpi-unknown"]),
        (
            "no end of a rank",
            both.replace("[9.000000] MPI_Finalize: world_rank=1\n", ""),
            &["mpi-not-finalised"],
        ),
        (
            "a clock that goes back",
            format!("{both}{}", rank(0)),
            &["mpi-clock-back", "mpi-calls-differ", "mpi-unpaired"],
        ),
        (
            "a message without a receiver",
            both.replacen("MPI_Recv: world_rank=1", "MPI_Other: world_rank=1", 1),
            &["mpi-unknown", "mpi-unpaired"],
        ),
        (
            "a rank that called less",
            both.replacen("[1.500000] MPI_Bcast: world_rank=1", "gone", 1),
            &["mpi-calls-differ"],
        ),
        (
            "a call before MPI was begun",
            format!("{both}{}", line.replace("world_rank=0", "world_rank=-1")),
            &["mpi-no-rank"],
        ),
    ]
}

#[test]
fn messages() {
    let all = table().into_iter().flat_map(|(_, text, _)| log(&text).findings);
    let lines: Vec<String> = all.map(|finding| format!("{}: {}", finding.code, finding.message)).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn each_bad_log_has_its_outcome() {
    for (what, text, expected) in table() {
        let log = log(&text);
        assert_eq!(codes(&log), expected, "{what}: {:?}", log.findings);
    }
    for nothing in
        ["", "\n\n", "prose [1.0] about MPI_Send:\n", "\0\u{7f}ELF\n", "[x] MPI_Send: world_rank=0\n"]
    {
        assert_eq!((log(nothing).of_mpi, log(nothing).operations.len()), (0, 0), "{nothing:?}");
    }
}

#[test]
fn a_receive_from_any_rank_leaves_pairs_uncompared() {
    let any = rank(1).replace("<- source=0", "<- source=-2");
    assert_eq!(codes(&log(&format!("{}{any}", rank(0)))), [] as [&str; 0]);
}

proptest! {
    #[test]
    fn what_is_rendered_is_read_back(at in 0..OPERATIONS.len(), rank in 0..4096u64, peer in -2..4096i64, bytes: u64, seconds in 0..1_000_000u64) {
        let line = CallLine { seconds: seconds as f64, ..call(OPERATIONS[at], rank, peer, bytes / 2) };
        prop_assert_eq!(parse(&rendered(&line)), Some(Ok(line)));
    }

    /// Whatever a byte is changed to, the other lines stand as they were, and no line counts twice.
    #[test]
    fn a_changed_byte_changes_its_own_line_alone(at in 0..OPERATIONS.len(), place in 0..4096usize, byte: u8, cut: bool) {
        let line = rendered(&call(OPERATIONS[at], 0, 1, 4096));
        let mut middle = line.clone().into_bytes();
        let place = place % (middle.len() - 1);
        if cut { middle.truncate(place); middle.push(b'\n') } else { middle[place] = byte }
        let mut reader = Reader::new(&EDGES);
        let text = [line.as_bytes(), &middle, line.as_bytes()].concat();
        reader.read(text.as_slice(), "a.log").expect("a reader in memory");
        let log = reader.finish();
        let of_it = log.operations.iter().find(|it| it.operation == OPERATIONS[at]).expect("two");
        prop_assert!((2..=3).contains(&of_it.calls), "{:?}", log);
        let counted = log.garbled + log.understood + log.unknown.values().sum::<u64>();
        prop_assert_eq!(counted, log.of_mpi);
    }
}
