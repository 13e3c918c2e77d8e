//! The lines of the plugin in their form of v4.2: a marker for each writing, then a line for each call.

use metric::op::Op;
use std::fmt::Write;

/// A rank of a communicator.
pub(super) struct Member<'a> {
    pub id: u64,
    pub rank: u32,
    pub ranks: u32,
    pub nodes: u32,
    pub host: &'a str,
    pub pid: u64,
}

/// A call that is over.
pub(super) struct Call {
    pub coll: &'static str,
    pub op: Op,
    pub number: u64,
    /// As the caller counts them: of some operations the share of one rank.
    pub bytes: u64,
    /// Of its kernel: whole microseconds.
    pub us: u64,
}

fn head(text: &mut String, member: &Member<'_>, at_us: u64) {
    let Member { id, rank, ranks, nodes, host, pid } = member;
    // Infallible, here and below: writing to a string.
    let _ = write!(
        text,
        "{{\"header\":{{\"id\":\"0x{id:x}\",\"comm_name\":\"unknown\",\"rank\":{rank},\"n_ranks\":{ranks},\
         \"nnodes\":{nodes}}},\"metadata\":{{\"inspector_output_format_version\":\"v4.2\",\"git_rev\":\"\",\
         \"rec_mechanism\":\"nccl_profiler_interface\",\"dump_timestamp_us\":{at_us},\"hostname\":\"{host}\",\
         \"pid\":{pid}}},"
    );
}

/// What stands before the calls of one writing; `dropped` in all, and since the writing before.
pub(super) fn marker(
    text: &mut String,
    member: &Member<'_>,
    at_us: u64,
    records: usize,
    (dropped, since): (u64, u64),
) {
    head(text, member, at_us);
    let _ = writeln!(
        text,
        "\"dump_stats\":{{\"coll_records\":{records},\"coll_dropped_total\":{dropped},\
         \"coll_dropped_since_last_dump\":{since},\"p2p_records\":0,\"p2p_dropped_total\":0,\
         \"p2p_dropped_since_last_dump\":0}}}}"
    );
}

pub(super) fn call(text: &mut String, member: &Member<'_>, at_us: u64, call: &Call) {
    head(text, member, at_us);
    let Call { coll, op, number, bytes, us } = call;
    let ranks = f64::from(member.ranks);
    let (traffic, factor) = match op {
        Op::AllGather | Op::ReduceScatter => (*bytes as f64 * ranks, (ranks - 1.0) / ranks),
        Op::AllReduce => (*bytes as f64, 2.0 * (ranks - 1.0) / ranks),
        _ => (*bytes as f64, 1.0),
    };
    let algbw = if *us == 0 { 0.0 } else { traffic / *us as f64 / 1e3 };
    let busbw = algbw * factor;
    let _ = writeln!(
        text,
        "\"coll_perf\":{{\"coll\":\"{coll}\",\"coll_algo\":\"RING\",\"coll_proto\":\"SIMPLE\",\"coll_sn\":{number},\
         \"coll_msg_size_bytes\":{bytes},\"coll_exec_time_us\":{us},\"coll_timing_source\":\"kernel_gpu\",\
         \"coll_algobw_gbs\":{algbw:.6},\"coll_busbw_gbs\":{busbw:.6}}}}}"
    );
}
