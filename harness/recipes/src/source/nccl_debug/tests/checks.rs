//! Each way in which a log is odd has its finding, with the place.

use super::{begun, called, codes, line, log};

fn message(text: &str, code: &str) -> String {
    let log = log(text);
    assert_eq!(codes(&log), [code], "{:?}", log.findings);
    log.findings[0].message.clone()
}

fn begin(nranks: u64) -> String {
    (0..nranks).map(|rank| begun(rank, nranks)).collect()
}

#[test]
fn the_first_difference_between_ranks_is_named() {
    for (operation, count, root) in [("AllReduce", 8, 0), ("Broadcast", 4, 0), ("AllReduce", 4, 1)] {
        let mut text = begin(4);
        for _ in 0..5 {
            text.extend((0..4).map(|rank| called(rank, 4, "AllReduce", 4, 0)));
        }
        text.extend((0..4).map(|rank| match rank {
            2 => called(2, 4, operation, count, root),
            _ => called(rank, 4, "AllReduce", 4, 0),
        }));
        let expected = format!(
            "communicator 0xabc of 4 ranks: 5 collective calls agree; then rank 2 calls {operation} of count {count}, type 7, op 0, \
             root {root}, where a rank before it called AllReduce of count 4, type 7, op 0, root 0"
        );
        assert_eq!(message(&text, "nccl-sequence-differs"), expected);
        assert_eq!(
            (log(&text).findings[0].line, log(&text).findings[0].node.as_deref()),
            (Some(31), Some("a"))
        );
    }
}

#[test]
fn a_rank_that_called_less_is_named() {
    let mut text = begin(8);
    text.extend((0..8).map(|rank| called(rank, 8, "AllReduce", 4, 0)));
    text.extend((0..8).filter(|rank| *rank != 6).map(|rank| called(rank, 8, "AllReduce", 4, 0)));
    let message = message(&text, "nccl-sequence-short");
    assert!(
        message.contains("rank 6 made 1 collective calls where others made 2, the furthest behind of 1"),
        "{message}"
    );
    assert_eq!(log(&text).findings[0].node.as_deref(), Some("b"));
}

#[test]
fn behind_a_call_that_cannot_be_read_nothing_is_compared() {
    let mut text = begin(2) + &called(0, 2, "AllReduce", 4, 0) + &called(1, 2, "AllReduce", 4, 0);
    text += &called(0, 2, "AllReduce", 8, 0).replace("count 8", "count ?");
    text +=
        &(called(1, 2, "AllReduce", 8, 0) + &called(0, 2, "Reduce", 4, 0) + &called(1, 2, "Reduce", 4, 0));
    assert_eq!(codes(&log(&text)), ["nccl-garbled", "nccl-sequence-not-compared"]);
}

#[test]
fn a_send_without_receive_is_named() {
    let sends = begin(2) + &called(0, 2, "Send", 4, 1) + &called(1, 2, "Recv", 4, 0);
    assert_eq!(codes(&log(&sends)), Vec::<&str>::new());
    let expected = "communicator 0xabc of 2 ranks: rank 0 sends 2 times to rank 1, which receives 1 times";
    assert_eq!(message(&format!("{sends}{}", called(0, 2, "Send", 4, 1)), "nccl-send-unmatched"), expected);
    // What a rank did whose log is not there is not known.
    let half = begun(0, 2) + &called(0, 2, "Send", 4, 1);
    let missing = "1 communicators lack ranks in these logs, of which nothing is known, such as communicator 0xabc of 2 ranks: 1 are \
                   there";
    assert_eq!(message(&half, "nccl-ranks-missing"), missing);
}

#[test]
fn slow_networks_are_named() {
    let slow = line(0, "Channel 00/0 : 0[0] -> 8[0] [send] via NET/AWS Libfabric/0");
    let fast = line(0, "Channel 00/0 : 1[0] -> 9[0] [send] via NET/AWS Libfabric/0/GDRDMA");
    assert_eq!(
        message(&(slow + &fast), "nccl-not-gdrdma"),
        "1 of 2 pairs of ranks go through host memory, without GPUDirect RDMA, such as rank 0 to 8 via NET/AWS Libfabric"
    );
    let tcp = line(0, "NET/OFI Selected Provider is tcp (found 2 nics)");
    assert_eq!(message(&tcp, "nccl-provider"), "1 lines tell of a provider other than `efa`: `tcp`");
    message(&line(0, "Using network Socket"), "nccl-network-socket");
}

#[test]
fn warnings_are_told_with_their_class_and_first_line() {
    let warning = "a:1:2 [0] misc/socket.cc:50 (ncclSocketConnect) NCCL WARN socketProgress: Connection closed by remote peer a<1>\n";
    let log = log(&format!("\n{warning}{}", warning.replace("<1>", "<2>")));
    assert_eq!((codes(&log), log.warnings.len()), (vec!["nccl-warning"], 1));
    let finding = &log.findings[0];
    assert_eq!((finding.line, finding.node.as_deref()), (Some(2), Some("a")));
    assert!(
        finding.message.starts_with("2 lines warn (connection-lost): socketProgress"),
        "{}",
        finding.message
    );
}

#[test]
fn the_first_rank_to_give_up_is_named() {
    let watchdog = |rank: u64| {
        format!(
            "[Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=4, \
             Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n"
        )
    };
    let message = message(&(watchdog(5) + &watchdog(3)), "nccl-timed-out");
    assert_eq!(
        message,
        "rank 5 was the first of 2 to give up after 600012 ms: call 7 of its group, ALLREDUCE"
    );
}

#[test]
fn a_communicator_that_was_never_made_is_named() {
    let begun = begin(2);
    let torn = begun.rsplit_once("b:").map_or(begun.as_str(), |(before, _)| before);
    let lines: Vec<&str> = torn.lines().collect();
    let text = lines[..3].join("\n") + "\n";
    assert!(message(&text, "nccl-init-incomplete").contains("the first of them rank 1"));
}

#[test]
fn a_clock_that_goes_back_and_versions_that_differ_are_named() {
    let at = |s: u64| format!("[2025-01-31 12:00:{s:02}] {}", line(0, "Using network IB"));
    let message = message(&(at(7) + &at(8) + &at(6)), "nccl-clock-back");
    assert_eq!(message, "the clock of `a` goes back, to 2025-01-31 12:00:06");
    let two = "NCCL version 2.18.3+cuda12.2\nNCCL version 2.27.7+cuda13.0\n";
    assert_eq!(codes(&log(two)), ["nccl-versions-differ"]);
}
