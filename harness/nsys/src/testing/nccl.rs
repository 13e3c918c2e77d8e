//! Calls of NCCL in small exports that tests put together: one process, payloads as JSON.

use super::Made;
use crate::trace::nvtx::{DOMAIN, PUSH_POP};

/// The number of the domain.
pub(crate) const NCCL: i64 = 3;

/// Names the domain, for the first process.
pub fn domain(made: &Made) {
    made.event(DOMAIN, 0, &[("domainId", NCCL.into()), ("text", "NCCL".to_owned().into())]);
}

/// A range of the domain, by the thread of this number.
pub fn range(made: &Made, (start, end): (i64, i64), thread: i64, name: &str, json: Option<&str>) {
    let mut own = vec![
        ("start", start.into()),
        ("end", end.into()),
        ("domainId", NCCL.into()),
        ("text", name.to_owned().into()),
    ];
    if let Some(json) = json {
        own.push(("jsonText", json.to_owned().into()));
    }
    made.event(PUSH_POP, thread, &own);
}

/// What a call since 2.25 says of itself.
pub fn json(communicator: u64, bytes: u64) -> String {
    format!(r#"{{"NCCL communicator ID":{communicator},"Message size [bytes]":{bytes}}}"#)
}

/// A communicator of so many ranks of which this process is one.
pub fn communicator(made: &Made, at: i64, id: u64, ranks: u32, rank: u32) {
    let json =
        format!(r#"{{"NCCL communicator ID":{id},"No. of ranks":{ranks},"Rank":{rank},"CUDA device":0}}"#);
    range(made, (at, at + 1), 3, "ncclCommInitRank", Some(&json));
}

/// A call with the kernel that it launched, from the call's range on; all of one thread.
pub fn call(made: &Made, at: i64, name: &str, (id, bytes): (u64, u64), kernel: (i64, i64), number: i64) {
    range(made, (at, at + 8), 3, name, Some(&json(id, bytes)));
    made.call((at + 2, at + 6), 3, number, 1).kernel(kernel, number, 2);
}
