//! Logs that are empty, binary, torn, mixed or too many: each has a stated outcome, and memory stays bounded.

use super::super::tables::Counted;
use super::super::{Compat, EDGES, Explain, Script, read};
use super::{begun, called, codes, line, log};
use proptest::prelude::*;
use std::io::Cursor;

proptest! {
    /// A byte that is another one, or a log that ends early: no call comes of it that was not there, and each that is
    /// lost is accounted for.
    #[test]
    fn no_change_of_a_log_makes_it_panic_or_makes_up_a_call(at in 0..2000_usize, byte in any::<u8>(), cuts in any::<bool>()) {
        let calls = |rank: u64| called(rank, 2, "AllReduce", 4, 0) + &called(rank, 2, "Send", 4, 1 - rank);
        let mut bytes = (begun(0, 2) + &begun(1, 2) + &calls(0) + &calls(1)).into_bytes();
        let at = at % bytes.len();
        if cuts {
            bytes.truncate(at);
        } else {
            bytes[at] = byte;
        }
        let log = read(Cursor::new(bytes), "log", &EDGES).expect("a log in memory");
        let calls: u64 = log.operations.iter().map(|it| it.calls).sum();
        prop_assert!(calls + log.garbled_calls + log.unknown_calls <= 4);
        prop_assert!(cuts || calls >= 3, "one byte harms one call: {calls}");
        prop_assert!(log.understood <= log.of_nccl);
        if calls < 4 && !cuts {
            let lost_sight_of = log.of_nccl < 8 || log.understood < log.of_nccl;
            prop_assert!(lost_sight_of || !log.findings.is_empty(), "{log:?}");
        }
    }
}

proptest! {
    /// The same of the scripts' lines: what is printed is of lines that are there.
    #[test]
    fn no_change_of_a_log_makes_scripts_panic_or_print_more_than_was_called(at in 0..2000_usize, byte in any::<u8>()) {
        let step = "Training epoch 0, iteration 46/99 | lr: 0.1 | train_step_timing in s: 2.5\n";
        let mut bytes = (called(0, 2, "AllReduce", 4, 0) + step + &called(1, 2, "AllGather", 4, 0)).into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        for script in [Script::SeparateSteps, Script::Comm, Script::PerOp, Script::Histogram, Script::Aggregate] {
            let (mut compat, mut out) = (Compat::new(script), Vec::new());
            compat.read(Cursor::new(&bytes), &mut out).expect("in memory");
            prop_assert!(compat.finish(&mut out).expect("in memory") <= 3);
        }
        let mut explain = Explain::default();
        explain.read(Cursor::new(&bytes)).expect("in memory");
        prop_assert!(explain.finish().iter().all(|wrong| wrong.lines <= 4 && wrong.line <= 4));
    }
}

#[test]
fn an_empty_log_a_binary_one_and_one_of_others_report_nothing() {
    for text in ["", "\n\n", "\u{0}\u{1}NCCL \u{fffd}\n", "loss 2.5\nsee NCCL INFO for more\n"] {
        let log = log(text);
        assert_eq!((log.of_nccl, log.operations.len(), log.findings.len()), (0, 0, 0), "{text:?}");
    }
}

#[test]
fn half_a_line_at_the_end_counts_for_nothing() {
    let whole = called(0, 2, "AllReduce", 123, 0);
    let cut = whole.split_once("23 datatype").expect("a field").0;
    let log = log(&format!("{whole}{cut}"));
    assert_eq!((log.operations[0].calls, log.garbled_calls, codes(&log)), (1, 1, vec!["nccl-garbled"]));
    assert!(log.findings[0].message.ends_with("cannot read `datatype`; the file ends mid-line"));
    assert_eq!(log.findings[0].line, Some(2));
}

#[test]
fn lines_that_broke_into_each_other_are_parted() {
    let (a, b) = (called(0, 2, "AllReduce", 4, 0), called(1, 2, "AllReduce", 4, 0));
    let begun = begun(0, 2) + &begun(1, 2);
    // The end of the first line is missing alone: both calls are whole.
    let log_a = log(&format!("{begun}{}{b}", a.trim_end()));
    assert_eq!((log_a.operations[0].calls, log_a.garbled_calls), (2, 0));
    assert_eq!((codes(&log_a), log_a.hosts.len()), (Vec::<&str>::new(), 1));
    // The first line is torn within: it counts for nothing, the second one does.
    let torn = a.split_once(" datatype").expect("a field").0;
    let log_b = log(&format!("{begun}{torn}{b}"));
    assert_eq!((log_b.operations[0].calls, log_b.garbled_calls), (1, 1));
    assert_eq!(codes(&log_b), ["nccl-garbled", "nccl-sequence-not-compared"]);
}

#[test]
fn unknown_operations_are_counted_and_named() {
    let log = log(&called(0, 2, "AllShuffle", 4, 0).repeat(3));
    assert_eq!((log.unknown_calls, log.understood, log.operations.len()), (3, 0, 0));
    assert_eq!(log.unknown_operations, [Counted { text: "AllShuffle".to_owned(), lines: 3 }]);
    assert_eq!(codes(&log), ["nccl-unknown-operation"]);
}

#[test]
fn unknown_types_are_calls_without_bytes() {
    let log = log(&(called(0, 2, "AllReduce", 4, 0)
        + &called(0, 2, "AllReduce", 4, 0).replace("datatype 7", "datatype 12")));
    let it = &log.operations[0];
    assert_eq!((it.calls, it.unsized_calls, it.total_bytes), (2, 1, Some(16)));
    assert_eq!(codes(&log), ["nccl-unsized"]);
    let log = super::log(&called(0, 2, "AllReduce", u64::MAX, 0));
    assert_eq!((log.operations[0].total_bytes, codes(&log)), (None, vec!["nccl-unsized"]));
}

#[test]
fn lines_of_a_version_to_come_are_counted_by_how_they_look() {
    let log = log(&(line(0, "Warp drive 7 engaged")
        + &line(1, "Warp drive 12 engaged")
        + &line(0, "Using network IB")));
    assert_eq!((log.of_nccl, log.understood), (3, 1));
    assert_eq!(log.unknown, [Counted { text: "Warp drive # engaged".to_owned(), lines: 2 }]);
}

#[test]
fn a_line_that_was_cut_at_its_length_is_counted() {
    let long = format!("Setting affinity for GPU 0 to {}", "0,".repeat(600));
    let log = log(&line(0, &long[..1000]));
    assert_eq!((log.cut, log.understood), (1, 1));
}

#[test]
fn a_rank_in_a_row_of_a_table_is_no_host() {
    let text = format!("  8388608  2097152  float  sum  -1{}", called(0, 2, "AllReduce", 4, 0));
    let log = log(&text);
    assert_eq!((log.hosts.as_slice(), log.operations[0].calls), (["a".to_owned()].as_slice(), 1));
}

#[test]
fn communicators_beyond_the_limit_are_counted_and_reported() {
    let mut text = String::new();
    for id in 0..6000 {
        let life = |what: &str| {
            let text = format!(
                "ncclCommInitRank comm 0x5{id:x} rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 1 commId 0x{id:x} - {what} COMPLETE"
            );
            line(0, &text)
        };
        text += &(life("Init") + &called(0, 1, "AllReduce", 4, 0).replace("0x50", &format!("0x5{id:x}")));
        if id % 2 == 0 {
            text += &life("Destroy");
        }
    }
    let log = log(&text);
    assert_eq!(
        (log.communicators.len(), log.communicators_beyond, log.operations[0].calls),
        (4096, 1904, 6000)
    );
    assert_eq!(codes(&log), ["nccl-left-out"]);
}

#[test]
fn torn_lines_make_no_hosts_and_no_processes() {
    let torn = "node-a:100:100 [0] NCCL INFO cudaDriverVersion 12020\nnodnode-a:101:101 [1] NCCL INFO cudaDriverVersion 12020\n\
                e-a:102:102 [2] NCCL INFO cudaDriverVersion 12020\n";
    let found = log(torn);
    assert_eq!((found.processes, found.hosts.as_slice()), (1, &["node-a".to_owned()][..]));
    assert_eq!(codes(&found), ["nccl-torn"]);
    let why = "torn host name at the start of 2 lines, for example `e-a` for `node-a`; set NCCL_DEBUG_FILE=/path/%h.%p for one file per process";
    assert_eq!(found.findings[0].message, why);

    // Eight ranks on two hosts whose names are alike, with lines that another one broke into.
    let begun = |rank: u64| begun(rank, 8).replace("a:10", "node1:10").replace("b:10", "node11:10");
    let called = |rank: u64| {
        called(rank, 8, "AllReduce", 4, 0).replace("a:10", "node1:10").replace("b:10", "node11:10").repeat(20)
    };
    let whole: String = (0..8).map(|rank| begun(rank) + &called(rank)).collect();
    let clean = log(&whole);
    assert_eq!((clean.processes, clean.hosts.len(), codes(&clean)), (8, 2, vec![]));
    let mut torn = whole.clone();
    for (prefix, rank) in
        [("nodnode1", 0), ("de1", 1), ("1", 2), ("node1node11", 5), ("de11", 6), ("nnoodde", 7)]
    {
        let line = if rank < 4 { "node1" } else { "node11" };
        let init = begun(rank).lines().next().expect("a line").replacen(line, prefix, 1);
        torn += &format!("{prefix}:{0}:{0} [1] NCCL INFO Connected all trees\n", 100 + rank);
        torn += &if prefix == "nnoodde" { String::new() } else { init + "\n" };
        torn += &format!("{prefix}:{0}:{0} [1] NCCL INFO NET/IB : Using [0]x:1/RoCE\n", 100 + rank)
            .repeat((prefix == "de1").into());
    }
    let found = log(&torn);
    assert_eq!((found.processes, found.hosts.as_slice()), (8, clean.hosts.as_slice()));
    assert!(codes(&found).contains(&"nccl-torn"), "{:?}", found.findings);
    assert!(
        found.communicators.iter().all(|it| it.hosts.iter().all(|host| clean.hosts.contains(host))),
        "{found:?}"
    );
    assert!(
        found.nics.iter().all(|it| clean.hosts.contains(&it.host))
            && found.gpus.iter().all(|it| clean.hosts.contains(&it.host))
    );

    let warned = log(&(whole + "node2:9:9 [0] NCCL WARN Cuda failure 'out of memory'\n"));
    assert_eq!(warned.hosts.len(), 3, "who warns is there");
}

#[test]
fn a_host_whose_name_goes_on_with_a_digit_is_no_torn_one() {
    let lines = "node-1:9:9 [0] NCCL INFO cudaDriverVersion 12020\n".repeat(100);
    for line in ["NCCL INFO cudaDriverVersion 12020", "NCCL WARN Cuda failure 'out of memory'"] {
        let found = log(&format!("{lines}node-10:9:9 [0] {line}\n"));
        assert_eq!(found.hosts, ["node-1", "node-10"], "{line}");
        assert!(!codes(&found).contains(&"nccl-torn"), "{line}");
    }
    let found = log(&format!("{lines}node-2node-1:9:9 [0] NCCL WARN Cuda failure 'out of memory'\n"));
    assert!(found.hosts.iter().any(|host| host == "node-2node-1"), "who warns is there: {:?}", found.hosts);
}

#[test]
fn a_name_that_initialised_no_communicator_is_no_host() {
    let whole: String = (0..8).map(|rank| begun(rank, 8) + &called(rank, 8, "AllReduce", 4, 0)).collect();
    let clean = log(&whole);
    for lines in [1, 2, 40] {
        let other = "q7:9:9 [0] NCCL INFO cudaDriverVersion 12020\nq7:9:10 [0] NCCL INFO Using network IB\n";
        let other: String = other.lines().cycle().take(lines).map(|line| format!("{line}\n")).collect();
        let found = log(&(other + &whole));
        assert_eq!((found.processes, &found.hosts), (8, &clean.hosts), "{lines} lines");
        assert_eq!(codes(&found), ["nccl-torn"], "{lines} lines");
    }
    // Where no host has begun, the log may begin later: all names count.
    let late =
        log("a:1:1 [0] NCCL INFO cudaDriverVersion 12020\nb:2:2 [0] NCCL INFO cudaDriverVersion 12020\n");
    assert_eq!(late.hosts, ["a", "b"]);
}

/// `UMEM` of the first line stands behind the second.
#[test]
fn a_line_that_another_one_broke_into_names_nothing_by_a_name_that_is_cut() {
    let cut = line(0, "Channel 01/0 : 0[0] -> 1[1] via P2P/C");
    let text = line(0, "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM")
        + cut.trim_end()
        + &line(1, "Channel 00/0 : 1[1] -> 0[0] via P2P/CUMEM")
        + "UMEM\n";
    let found = log(&text);
    let rows: Vec<_> =
        found.connections.iter().map(|it| (it.from, it.to, it.transport.as_str(), it.lines)).collect();
    assert_eq!(rows, [(0, 1, "P2P/CUMEM", 1), (1, 0, "P2P/CUMEM", 1)]);
    assert_eq!((found.of_nccl, found.understood), (3, 2));
}

#[test]
fn a_rank_is_not_behind_by_calls_that_torn_lines_may_have_lost() {
    let call = called(1, 2, "AllReduce", 4, 0);
    let (front, rest) = call.split_at_checked("a:1".len()).expect("longer");
    let torn = front.to_owned() + &line(0, "Connected all rings") + rest;
    let made = |calls: usize| {
        log(&(begun(0, 2)
            + &begun(1, 2)
            + &called(0, 2, "AllReduce", 4, 0).repeat(5)
            + &torn
            + &call.repeat(calls)))
    };
    assert_eq!(codes(&made(4)), ["nccl-torn", "nccl-sequence-not-compared"]);
    assert_eq!(codes(&made(1)), ["nccl-torn", "nccl-sequence-short"], "more than were lost");
}

#[test]
fn a_torn_line_leaves_communicators_of_other_processes_compared() {
    // Ranks 0 and 1 are one communicator, the next two processes another: its second rank makes another call.
    let of_others =
        |text: String| text.replace("a:100:", "a:102:").replace("a:101:", "a:103:").replace("0xabc", "0xdef");
    let (ours, theirs) = (called(0, 2, "AllReduce", 4, 0), called(1, 2, "AllReduce", 4, 0));
    let whole = begun(0, 2) + &begun(1, 2) + &ours + &theirs;
    let differs = begun(0, 2) + &begun(1, 2) + &ours + &called(1, 2, "AllGather", 4, 0);
    // A call that another process breaks into, and one behind a torn name of the host.
    let (front, rest) = ours.split_at_checked("a:100:200 [0] NCCL INFO AllRed".len()).expect("longer");
    let broken = front.to_owned() + &line(1, "Connected all rings") + rest;
    let host = |text: String| text.replace("a:10", "node-a:10");
    let torn_name = host(ours.clone()).replacen("node-a", "e-a", 1);
    for torn in [host(broken), torn_name] {
        let found = log(&(host(whole.clone() + &of_others(differs.clone())) + &torn));
        let differing: Vec<_> =
            found.findings.iter().filter(|it| it.code == "nccl-sequence-differs").collect();
        assert_eq!(differing.len(), 1, "{torn}: {:?}", found.findings);
        assert!(differing[0].message.contains("0xdef"), "{}", differing[0].message);
    }
    // Of the process whose line was torn nothing is compared.
    let torn_name = host(theirs).replacen("node-a", "e-a", 1);
    let found = log(&(host(differs) + &torn_name));
    assert_eq!(codes(&found), ["nccl-torn", "nccl-sequence-not-compared"]);
}

/// The second rank lacks a call, or a message, and a torn line of the first one makes them look equal.
#[test]
fn a_torn_line_does_not_hide_that_a_rank_made_fewer_calls() {
    let call = called(0, 2, "AllReduce", 4, 0);
    let (_, rest) = call.split_once(":200 ").expect("a process");
    let torn = format!("00 {rest}");
    let equal = |calls: [&str; 2]| begun(0, 2) + &begun(1, 2) + calls[0] + calls[1] + &torn;
    let calls = [0, 1].map(|rank| called(rank, 2, "AllReduce", 4, 0));
    let found = log(&equal([&calls[0], &calls[1]]));
    assert_eq!((found.checks.compared, found.checks.not_compared), (0, 1));
    assert_eq!(codes(&found), ["nccl-sequence-not-compared"]);
    let messages = [called(0, 2, "Send", 4, 1), called(1, 2, "Recv", 4, 0)];
    let found = log(&equal([&messages[0], &messages[1]]));
    assert_eq!((found.checks.pairs, found.checks.pairs_not_compared, found.checks.unmatched), (0, 1, 0));
}

#[test]
fn a_line_that_was_torn_may_be_the_one_that_says_that_a_rank_is_complete() {
    let begun_late = begun(1, 2);
    let (front, rest) = begun_late.split_at_checked(begun_late.len() - "LETE\n".len()).expect("longer");
    let found = log(&(begun(0, 2) + front + &line(0, "Connected all rings") + rest));
    assert_eq!(codes(&found), ["nccl-init-incomplete"]);
    let why = &found.findings[0].message;
    assert!(
        why.ends_with("no line says that 1 rank completed initialization; lost to torn lines: up to 1"),
        "{why}"
    );
}

#[test]
fn a_line_that_thousands_broke_into_is_read_in_part() {
    let found = log(&("a:1:2 [0] NCCL INFO x ".repeat(2900) + "\n"));
    assert_eq!((found.of_nccl, found.understood), (64, 0));
}
