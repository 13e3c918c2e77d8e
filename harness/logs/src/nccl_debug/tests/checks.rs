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
            "communicator 0xabc of 4 ranks: after 5 matching collective calls rank 2 calls {operation} of count \
             {count}, type 7, op 0, \
             root {root}, an earlier rank called AllReduce of count 4, type 7, op 0, root 0"
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
    assert!(message.contains("rank 6 made 1 collective call, others 2; furthest behind of 1"), "{message}");
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
    let expected = "communicator 0xabc of 2 ranks: rank 0 sends 2 times to rank 1, which receives 1 time";
    assert_eq!(message(&format!("{sends}{}", called(0, 2, "Send", 4, 1)), "nccl-send-unmatched"), expected);
    // What a rank did whose log is not there is not known.
    let half = begun(0, 2) + &called(0, 2, "Send", 4, 1);
    let missing =
        "ranks without a log in 1 communicator, for example communicator 0xabc of 2 ranks: 1 logged";
    assert_eq!(message(&half, "nccl-ranks-missing"), missing);
}

#[test]
fn slow_networks_are_named() {
    let slow = line(0, "Channel 00/0 : 0[0] -> 8[0] [send] via NET/AWS Libfabric/0");
    let fast = line(0, "Channel 00/0 : 1[0] -> 9[0] [send] via NET/AWS Libfabric/0/GDRDMA");
    assert_eq!(
        message(&(slow + &fast), "nccl-not-gdrdma"),
        "1 of 2 pairs of ranks use no GPUDirect RDMA (through host memory), for example rank 0 to 8 via NET/AWS Libfabric"
    );
    let tcp = line(0, "NET/OFI Selected Provider is tcp (found 2 nics)");
    assert_eq!(message(&tcp, "nccl-provider"), "provider `tcp` in 1 line, expected `efa`");
    message(&line(0, "Using network Socket"), "nccl-network-socket");
}

#[test]
fn warnings_are_reported_with_class_and_first_line() {
    let warning = "a:1:2 [0] misc/socket.cc:50 (ncclSocketConnect) NCCL WARN socketProgress: Connection closed by remote peer a<1>\n";
    let log = log(&format!("\n{warning}{}", warning.replace("<1>", "<2>")));
    assert_eq!((codes(&log), log.warnings.len()), (vec!["nccl-warning"], 1));
    let finding = &log.findings[0];
    assert_eq!((finding.line, finding.node.as_deref()), (Some(2), Some("a")));
    assert!(
        finding.message.starts_with("2 warnings (connection-lost): socketProgress"),
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
        "rank 5 timed out after 600012 ms, first of 2: call 7 of its group, ALLREDUCE; another rank never joined this call"
    );
}

#[test]
fn a_communicator_that_was_never_made_is_named() {
    let begun = begin(2);
    let torn = begun.rsplit_once("b:").map_or(begun.as_str(), |(before, _)| before);
    let lines: Vec<&str> = torn.lines().collect();
    let text = lines[..3].join("\n") + "\n";
    assert!(message(&text, "nccl-init-incomplete").contains("the first rank 1"));
}

#[test]
fn a_clock_that_goes_back_and_versions_that_differ_are_named() {
    let at = |s: u64| format!("[2025-01-31 12:00:{s:02}] {}", line(0, "Using network IB"));
    let message = message(&(at(7) + &at(8) + &at(6)), "nccl-clock-back");
    assert_eq!(message, "`a`: clock goes back to 2025-01-31 12:00:06");
    let two = "NCCL version 2.18.3+cuda12.2\nNCCL version 2.27.7+cuda13.0\n";
    assert_eq!(codes(&log(two)), ["nccl-versions-differ"]);
}

#[test]
fn the_first_rank_to_give_up_by_their_clocks_is_named_and_the_one_that_is_behind() {
    let watchdog = |rank: u64, s: u64| {
        format!(
            "[rank{rank}]:[E1121 12:34:{s:02}.000001 ProcessGroupNCCL.cpp:607] [Rank {rank}] Watchdog caught collective operation \
             timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=4, Timeout(ms)=600000) ran for 600012 milliseconds before timing \
             out.\n"
        )
    };
    let first = message(&(watchdog(5, 9) + &watchdog(3, 8)), "nccl-timed-out");
    assert!(first.starts_with("rank 3 timed out after 600012 ms, first of 2"), "{first}");
    let reached = |rank: u64, call: u64| {
        format!(
            "[PG 0 Rank {rank}] Timeout at NCCL work: 7, last enqueued NCCL work: {call}, last completed NCCL work: 6.\n"
        )
    };
    let behind = message(&(reached(0, 9) + &reached(6, 7) + &reached(1, 9)), "nccl-rank-behind");
    assert!(behind.starts_with("rank 6 had reached call 7 when it timed out, others call 9"), "{behind}");
    assert_eq!(codes(&log(&(reached(0, 9) + &reached(1, 9)))), Vec::<&str>::new());
}

#[test]
fn calls_of_different_process_groups_are_not_compared() {
    let reached = |rank: u64, group: &str, call: u64| {
        format!(
            "[rank{rank}]:[E323 05:14:22.969036376 ProcessGroupNCCL.cpp:1664] [PG ID 1 PG GUID {group} Rank {}] Exception (either an \
             error or timeout) detected by watchdog at work: 40, last enqueued NCCL work: {call}, last completed NCCL work: 39.\n",
            rank % 8
        )
    };
    let two = reached(0, "1(DP)", 811) + &reached(9, "41(TENSOR)", 42);
    assert_eq!(codes(&log(&two)), Vec::<&str>::new());
    let behind = message(&(two + &reached(8, "41(TENSOR)", 40)), "nccl-rank-behind");
    assert!(behind.starts_with("rank 8 had reached call 40 when it timed out, others call 42"), "{behind}");
}

#[test]
fn cards_that_are_fewer_than_the_instance_has_are_named() {
    let found = |pid: u64, nics: u64| {
        format!(
            "a:{pid}:1 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa (found {nics} nics)\n"
        )
    };
    let read = |text: &str, nics: Option<u64>| {
        let mut reader = super::super::Reader::new(&[]);
        if let Some(nics) = nics {
            reader.expect_nics(nics);
        }
        reader.read(std::io::Cursor::new(text.to_owned()), "log").expect("a log in memory");
        reader.finish().findings
    };
    assert_eq!(read(&(found(1, 32) + &found(2, 32)), Some(32)), []);
    let fewer = read(&(found(1, 31) + &found(2, 31)), Some(32));
    assert_eq!(
        (fewer.len(), fewer[0].code.as_str(), fewer[0].node.as_deref()),
        (1, "nccl-nics-missing", Some("a"))
    );
    assert_eq!(fewer[0].message, "a process found 31 network cards of `efa`, the instance type has 32");
    // Without a word of the instance, one process that finds fewer than another is odd all the same.
    assert_eq!(read(&(found(1, 31) + &found(2, 31)), None), []);
    let odd = read(&(found(1, 32) + &found(2, 31)), None);
    assert_eq!(odd[0].message, "a process found 31 network cards of `efa`, another process on it found 32");
}

#[test]
fn groups_of_processes_that_no_communicator_joins_are_named() {
    let other = begin(2).replace("0xabc", "0xdef").replace("a:10", "b:90");
    let why = message(&(begin(4) + &other), "nccl-worlds-apart");
    assert!(why.starts_with("2 groups of processes share no communicator (4, and 2 on `b`)"), "{why}");
    assert_eq!(log(&(begin(4) + &other)).worlds, [4, 2]);
    assert_eq!(log(&begin(4)).worlds, [4]);
}

#[test]
fn a_warning_is_reported_with_cause_and_advice() {
    let said = |text: &str| {
        let log = log(&format!("a:1:2 [0] misc/socket.cc:50 NCCL WARN {text}\n"));
        assert_eq!(codes(&log), ["nccl-warning"]);
        log.findings[0].message.clone()
    };
    let refused = said("Connect to 10.0.0.2<4> failed : Connection refused");
    let expected = "warning (connection-refused): Connect to 10.0.0.2<4> failed : Connection refused: the peer does not listen: the other rank has ended, or a firewall blocks the port; look for the rank that ended \
                    first; check `NCCL_SOCKET_IFNAME` and the security group";
    assert_eq!(refused, expected);
    assert!(said("An unheard warning").contains("unknown warning"));
}

#[test]
fn nvls_on_some_gpus_alone_is_named() {
    let one = |host: &str, not: &str| {
        format!("{host}:1:2 [0] NCCL INFO NVLS multicast support is {not}available on dev 0\n")
    };
    let why = message(&(one("a", "") + &one("b", "not ")), "nccl-nvls-differs");
    assert_eq!(why, "NVLS is not available on some GPUs, for example on `b`, and is on others");
    assert_eq!(codes(&log(&(one("a", "not ") + &one("b", "not ")))), Vec::<&str>::new());
}

#[test]
fn what_was_compared_is_counted_and_what_was_not_is_no_zero() {
    let calls =
        |ranks: u64| -> String { (0..ranks).map(|rank| called(rank, 4, "AllReduce", 4, 0)).collect() };
    let checks = |text: &str| log(text).checks;
    assert_eq!((checks(&begin(4)).compared, checks(&begin(4)).not_compared), (0, 0), "no calls");
    let whole = checks(&(begin(4) + &calls(4)));
    assert_eq!((whole.compared, whole.not_compared, whole.mismatches), (1, 0, 0));
    let short = checks(&(begin(4) + &calls(4) + &calls(3)));
    assert_eq!((short.compared, short.not_compared, short.mismatches), (1, 0, 1));
    let lacking = checks(&((0..2).map(|rank| begun(rank, 4)).collect::<String>() + &calls(2)));
    assert_eq!((lacking.compared, lacking.not_compared, lacking.mismatches), (0, 1, 0));
}
