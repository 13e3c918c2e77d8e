//! The calls of one operation by each rank of a job, for recipes that otherwise read them from reports of a profiler.

use super::ranks::Ranks;
use super::{op_of, untrusted};
use crate::recipe::{InputFile, JobInput, Output, read_stream};
use logs::inspector::RankCall;
use logs::inspector::gathered::{self, Gathered};
use metric::op::Op;
use std::collections::BTreeMap;

/// The calls of one rank that have a record.
pub(crate) struct RankTimes {
    /// In the job.
    pub rank: u32,
    /// Where it is known.
    pub node: Option<String>,
    /// On that node, where it is known.
    pub gpu: Option<u64>,
    /// By their numbers, from 0: bytes as the caller gave them, and nanoseconds by the GPU's clock where it has them.
    pub calls: BTreeMap<u64, (u64, Option<u64>)>,
}

/// Of all ranks of the job, in their order; or why there are none. The findings about the file are those of recipe
/// `inspector`.
pub(crate) fn times_of_ranks(job: &JobInput, file: &InputFile, op: Op) -> Result<Vec<RankTimes>, String> {
    let read = read_stream(file, &mut Output::default(), gathered::read_calls).flatten();
    let read = read.ok_or("the records of NCCL's Inspector cannot be read")?;
    let ranks = Ranks::new(job, &read.log);
    if let Some(why) = lack(&read, &ranks) {
        return Err(why);
    }
    let mut all: BTreeMap<u64, (usize, RankTimes)> = BTreeMap::new();
    for (at, member) in ranks.members() {
        let (node, gpu) = ranks.place(member).map(|(node, gpu)| (node.to_owned(), gpu)).unzip();
        let rank = u32::try_from(member.rank).map_err(|_| format!("rank {} is out of range", member.rank))?;
        let times = RankTimes { rank, node, gpu, calls: BTreeMap::new() };
        if all.insert(member.rank, (at, times)).is_some() {
            return Err(format!("several communicators have records of a rank {rank}"));
        }
    }
    let mut calls: BTreeMap<usize, Vec<&RankCall>> = BTreeMap::new();
    for call in &read.log.calls {
        let operation = read.log.operations.get(call.operation);
        if operation.and_then(|name| op_of(name)) == Some(op) {
            calls.entry(call.member).or_default().push(call);
        }
    }
    for (at, times) in all.values_mut() {
        for call in calls.remove(&*at).unwrap_or_default() {
            let ns = call.gpu_us.map(|us| (us * 1e3).round() as u64);
            let known = times.calls.insert(call.number, (call.bytes, ns));
            if known.is_some_and(|known| known != (call.bytes, ns)) {
                return Err(format!("rank {}: call {} has two records that differ", times.rank, call.number));
            }
        }
    }
    Ok(all.into_values().map(|(_, times)| times).collect())
}

/// Why the records are not those of all ranks.
fn lack(read: &Gathered, ranks: &Ranks<'_>) -> Option<String> {
    if !read.is_complete {
        return Some("the records of NCCL's Inspector break off".to_owned());
    }
    if read.log.records == 0 {
        return Some("no rank left a record of NCCL's Inspector".to_owned());
    }
    ranks
        .missing()
        .or_else(|| ranks.mixed())
        .or_else(|| untrusted(&read.log).map(|finding| finding.message.clone()))
}
