//! Each rank's calls by records of NCCL's Inspector. They are compared by their numbers: some calls have no record.

use super::super::nccl_profile::inspected::places_of;
use super::super::nccl_profile::printed::Printed;
use super::CrossFinding;
use super::logged::Logged;
use crate::recipe::inspector::{RankTimes, times_of_ranks};
use crate::recipe::{FileRole, JobInput, Output, Workload};
use metric::finding::Finding;
use metric::op::Op;
use nsys::nccl::Function;
use nsys::nccl::sequence::Difference;

/// The calls of one rank of the operation that is tested.
pub(super) struct Recorded {
    op: Op,
    calls: RankTimes,
}

/// By rank, with its node where that is known; of a job that has no report.
pub(super) fn ranks(job: &JobInput, output: &mut Output) -> Vec<(u64, Option<String>, Recorded)> {
    let Workload::NcclTests { op, .. } = &job.workload else { return Vec::new() };
    let Some(file) = job.files_of(FileRole::Inspector).next() else { return Vec::new() };
    if job.files_of(FileRole::NsysExport).next().is_some() {
        return Vec::new();
    }
    let mut find = |code: &str, why: String| output.findings.push(Finding::new(code, why).file(&file.shown));
    match times_of_ranks(job, file, *op) {
        Ok(ranks) => {
            let why = "records of NCCL's Inspector have no kernels: which calls launched them is not checked";
            find(CrossFinding::NoKernels.code(), why.to_owned());
            let ranks = ranks.into_iter();
            ranks
                .map(|calls| (u64::from(calls.rank), calls.node.clone(), Recorded { op: *op, calls }))
                .collect()
        }
        Err(why) => {
            find(CrossFinding::NotCompared.code(), format!("not compared: {why}"));
            Vec::new()
        }
    }
}

impl Recorded {
    /// Calls that are in both, how many of them differ in size, and the first of these. The log has all calls.
    pub(super) fn with_log(&self, logged: &[Logged]) -> (u64, u64, Option<String>) {
        let is_op = |call: &&Logged| call.function().and_then(Function::op) == Some(self.op);
        let logged: Vec<Option<u64>> = logged.iter().filter(is_op).map(|call| call.bytes).collect();
        let (mut calls, mut disagree, mut first) = (0, 0, None);
        for (number, (bytes, _)) in &self.calls.calls {
            calls += 1;
            let of_log = usize::try_from(*number).ok().and_then(|number| logged.get(number));
            let why = match of_log {
                None => format!("the records have call {number}, the log {} calls", logged.len()),
                Some(Some(size)) if size != bytes => {
                    format!("call {number} has {bytes} bytes by its record, {size} by the log")
                }
                Some(_) => continue,
            };
            disagree += 1;
            first.get_or_insert(why);
        }
        (calls, disagree, first)
    }

    /// Whether they can be calls that nccl-tests made for what it printed, by today's way of warming up or the older one.
    pub(super) fn with_print(&self, printed: &Printed) -> Result<(), Difference> {
        let [today, older] = &printed.plans;
        places_of(&self.calls, today)
            .or_else(|today| places_of(&self.calls, older).map_err(|_| today))
            .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logs::nccl_debug::Operation;
    use std::collections::BTreeMap;

    fn recorded(calls: &[(u64, u64)]) -> Recorded {
        let calls: BTreeMap<u64, (u64, Option<u64>)> =
            calls.iter().map(|(number, bytes)| (*number, (*bytes, None))).collect();
        Recorded { op: Op::AllReduce, calls: RankTimes { rank: 0, node: None, gpu: None, calls } }
    }

    #[test]
    fn records_are_compared_with_the_log_by_the_numbers_of_their_calls() {
        let call = |operation, bytes| Logged { operation, bytes: Some(bytes), comm: 1, op_count: 0, root: 0 };
        // Each operation has numbers of its own.
        let log = [
            call(Operation::AllReduce, 8),
            call(Operation::Broadcast, 1),
            call(Operation::AllReduce, 16),
            call(Operation::AllReduce, 32),
        ];
        assert_eq!(recorded(&[(0, 8), (2, 32)]).with_log(&log), (2, 0, None));
        let first = "call 1 has 4 bytes by its record, 16 by the log".to_owned();
        assert_eq!(recorded(&[(0, 8), (1, 4), (2, 31)]).with_log(&log), (3, 2, Some(first)));
        let first = "the records have call 3, the log 3 calls".to_owned();
        assert_eq!(recorded(&[(3, 8)]).with_log(&log), (1, 1, Some(first)));
    }
}
