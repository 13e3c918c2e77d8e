//! Every message of this reader, each from a log that has the anomaly.

use super::{begun, called, line, log};
use crate::nccl_debug::KINDS;

fn begin(nranks: u64) -> String {
    (0..nranks).map(|rank| begun(rank, nranks)).collect()
}

/// Calls of all ranks of a communicator, which are the same.
fn reduced(nranks: u64) -> String {
    (0..nranks).map(|rank| called(rank, nranks, "AllReduce", 4, 0)).collect()
}

fn watchdog(rank: u64) -> String {
    format!(
        "[Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=4, \
         Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n"
    )
}

fn reached(rank: u64, call: u64) -> String {
    format!(
        "[PG 0 Rank {rank}] Timeout at NCCL work: 7, last enqueued NCCL work: {call}, last completed NCCL work: 6.\n"
    )
}

fn logs() -> Vec<String> {
    let at = |s: u64| format!("[2025-01-31 12:00:{s:02}] {}", line(0, "Using network IB"));
    let half = called(0, 2, "AllReduce", 123, 0);
    let garbled = called(0, 2, "AllReduce", 8, 0).replace("count 8", "count ?");
    let nvls = |host: &str, not: &str| {
        format!("{host}:1:2 [0] NCCL INFO NVLS multicast support is {not}available on dev 0\n")
    };
    let nics = |pid: u64, nics: u64| {
        format!(
            "a:{pid}:1 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa (found {nics} nics)\n"
        )
    };
    let warning = |text: &str| format!("a:1:2 [0] misc/socket.cc:50 NCCL WARN {text}\n");
    vec![
        begin(2) + &reduced(2) + &called(0, 2, "Reduce", 4, 0) + &called(1, 2, "AllReduce", 8, 0),
        begin(4) + &reduced(4) + &called(0, 4, "AllReduce", 4, 0),
        begin(2) + &called(0, 2, "Send", 4, 1),
        begun(0, 2),
        begun(0, 2).replace(" - Init COMPLETE", " - Init"),
        begin(4) + &begin(2).replace("0xabc", "0xdef").replace("a:10", "b:90"),
        begin(2) + &reduced(2) + &garbled.repeat(4),
        half.split_once("23 datatype").map(|(before, _)| before.to_owned()).unwrap_or_default(),
        called(0, 2, "AllShuffle", 4, 0),
        called(0, 2, "AllReduce", 4, 0).replace("datatype 7", "datatype 12"),
        at(7) + &at(6),
        (0..5).map(|s| at(9 - s)).collect(),
        "NCCL version 2.18.3+cuda12.2\nNCCL version 2.27.7+cuda13.0\n".to_owned(),
        watchdog(5) + &watchdog(3),
        reached(0, 9) + &reached(6, 7),
        warning("Connect to 10.0.0.2<4> failed : Connection refused"),
        warning("An unheard warning").repeat(2),
        line(0, "Channel 00/0 : 0[0] -> 8[0] [send] via NET/AWS Libfabric/0"),
        line(0, "NET/OFI Selected Provider is tcp (found 2 nics)"),
        line(0, "Using network Socket"),
        nvls("a", "") + &nvls("b", "not "),
        nics(1, 32) + &nics(2, 31),
    ]
}

#[test]
fn messages() {
    let all = logs().into_iter().flat_map(|text| log(&text).findings);
    let lines: Vec<String> = all.map(|finding| format!("{}: {}", finding.code, finding.message)).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn causes_and_advice() {
    let lines: Vec<String> =
        KINDS.iter().map(|kind| format!("{}: {}; {}", kind.code, kind.cause, kind.advice)).collect();
    insta::assert_snapshot!(lines.join("\n"));
}
