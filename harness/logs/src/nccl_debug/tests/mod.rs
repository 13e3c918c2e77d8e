//! Lines as every version writes them, logs of many ranks, and logs that are broken.

mod broken;
mod checks;
mod lanes;
mod lines;
mod messages;
mod scripts;
mod tables;
mod versions;
mod wired;

use super::{EDGES, NcclLog, read};
use std::io::Cursor;

fn log(text: &str) -> NcclLog {
    read(Cursor::new(text.to_owned()), "log", &EDGES).expect("a log in memory")
}

fn codes(log: &NcclLog) -> Vec<&str> {
    log.findings.iter().map(|finding| finding.code.as_str()).collect()
}

/// A line of rank `rank` of host `a` or `b`, four to a host.
fn line(rank: u64, text: &str) -> String {
    let host = if rank < 4 { 'a' } else { 'b' };
    format!("{host}:{}:{} [{}] NCCL INFO {text}\n", 100 + rank, 200 + rank, rank % 4)
}

fn begun(rank: u64, nranks: u64) -> String {
    let setup = |stage: &str| {
        let device = rank % 4;
        let text = format!(
            "ncclCommInitRank comm 0x5{rank} rank {rank} nranks {nranks} cudaDev {device} nvmlDev {device} busId 1{rank}000 \
             commId 0xabc - Init {stage}"
        );
        line(rank, &text)
    };
    setup("START") + &setup("COMPLETE")
}

fn called(rank: u64, nranks: u64, operation: &str, count: u64, root: u64) -> String {
    let text = format!(
        "{operation}: opCount 1f sendbuff 0x7f00 recvbuff 0x7f10 count {count} datatype 7 op 0 root {root} comm 0x5{rank} \
         [nranks={nranks}] stream 0x55"
    );
    line(rank, &text)
}
