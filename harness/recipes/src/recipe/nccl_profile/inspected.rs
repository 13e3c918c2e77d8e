//! The rows by records of NCCL's Inspector. Calls are known by their numbers, since some have no record: the end of each
//! communicator is never written.

use super::compared::{RankKernels, differs, transfer};
use super::printed::{Printed, Row};
use super::{ProfileFinding, RANKS};
use crate::recipe::inspector::{InspectorFinding, RankTimes, times_of_ranks};
use crate::recipe::{InputFile, JobInput, Output};
use metric::finding::Finding;
use nsys::nccl::sequence::{CallPosition, Difference, Part, Placement, Plan, assign};
use std::collections::BTreeMap;

/// Calls that a run may have planned.
const MOST_CALLS: u64 = 1 << 24;

pub(super) fn rows(job: &JobInput, printed: &Printed, file: &InputFile, output: &mut Output) {
    let mut find = |code: &str, why: String| output.findings.push(Finding::new(code, why).file(&file.shown));
    if printed.aggregated > 1 {
        let why = "several operations are one call of nccl-tests, and records are of each";
        return find(ProfileFinding::NotCompared.code(), why.to_owned());
    }
    let ranks = match times_of_ranks(job, file, printed.op) {
        Ok(ranks) => ranks,
        Err(why) => return find(ProfileFinding::NotCompared.code(), why),
    };
    let places = match places(&ranks, printed) {
        Ok(places) => places,
        Err((rank, difference)) => return differs(file, format!("rank {rank}: {difference}"), output),
    };
    output.metrics.push(RANKS.of(job.dims(), ranks.len() as f64));
    let calls = calls(&ranks, &places);
    for row in &printed.rows {
        let placement = if row.place == "in" { Placement::InPlace } else { Placement::OutOfPlace };
        let numbers = calls.get(&(row.number, placement)).map(Vec::as_slice).unwrap_or_default();
        // A mean of few calls is not that of the row.
        if (numbers.len() as u64) * 2 < printed.timed {
            output.findings.push(partial(printed, row, placement, numbers.len()).file(&file.shown));
            continue;
        }
        let kernels = ranks.iter().map(|rank| RankKernels {
            rank: Some(rank.rank),
            node: rank.node.clone(),
            kernels_ns: numbers.iter().filter_map(|number| ns(rank, *number)).collect(),
        });
        transfer(job, printed, row, &kernels.collect::<Vec<_>>(), output);
    }
    let why = "records of NCCL's Inspector do not say when calls were launched: no `nccl.profile_time` and \
               `nccl.profile_ratio`";
    output.findings.push(Finding::new(ProfileFinding::NoLaunches.code(), why).file(&file.shown));
}

fn partial(printed: &Printed, row: &Row, placement: Placement, calls: usize) -> Finding {
    let of = format!("{} of {} bytes, {}", printed.op, row.size_bytes, placement.name());
    let why = format!("{of}: {calls} of {} timed calls have a record of each rank", printed.timed);
    Finding::new(InspectorFinding::Partial.code(), why)
}

fn ns(rank: &RankTimes, number: u64) -> Option<u64> {
    rank.calls.get(&number).and_then(|(_, ns)| *ns)
}

/// The numbers of the timed calls of each row that all ranks have times of.
fn calls(ranks: &[RankTimes], places: &[CallPosition]) -> BTreeMap<(u32, Placement), Vec<u64>> {
    let mut calls: BTreeMap<(u32, Placement), Vec<u64>> = BTreeMap::new();
    for (number, place) in (0..).zip(places) {
        let (Part::Timed { .. }, Some(placement)) = (place.part, place.placement) else { continue };
        if ranks.iter().all(|rank| ns(rank, number).is_some()) {
            calls.entry((place.row, placement)).or_default().push(number);
        }
    }
    calls
}

/// The place of each call by its number. Where the older warm-up fits as well, what is a timed call by one of them alone is
/// taken for a warm-up.
fn places(ranks: &[RankTimes], printed: &Printed) -> Result<Vec<CallPosition>, (u32, Difference)> {
    let [today, older] = printed.plans.each_ref().map(|plan| places_by(ranks, plan));
    match (today, older) {
        (Err(difference), Err(_)) => Err(difference),
        (Ok(places), Err(_)) | (Err(_), Ok(places)) => Ok(places),
        (Ok(mut places), Ok(older)) => {
            let warm_up = CallPosition { part: Part::WarmUp, row: 0, placement: None, cycle: 0 };
            for (at, place) in places.iter_mut().enumerate() {
                let is_same = older.get(at).is_some_and(|other| {
                    (other.row, other.placement, is_timed(other))
                        == (place.row, place.placement, is_timed(place))
                });
                if !is_same {
                    *place = warm_up;
                }
            }
            Ok(places)
        }
    }
}

fn is_timed(place: &CallPosition) -> bool {
    matches!(place.part, Part::Timed { .. })
}

fn places_by(ranks: &[RankTimes], plan: &Plan) -> Result<Vec<CallPosition>, (u32, Difference)> {
    let mut places = Vec::new();
    for rank in ranks {
        places = places_of(rank, plan).map_err(|difference| (rank.rank, difference))?;
    }
    Ok(places)
}

/// The place of each call that one rank must have made, where its records do not contradict the plan.
pub(crate) fn places_of(rank: &RankTimes, plan: &Plan) -> Result<Vec<CallPosition>, Difference> {
    let planned = plan.calls();
    let warmups = plan.warmup_rows.len() as u64 * u64::from(plan.warmup);
    let last = rank.calls.keys().last().copied().unwrap_or_default();
    if last >= planned || planned > MOST_CALLS {
        return Err(Difference::Count { expected: planned, seen: last.saturating_add(1) });
    }
    // A call without a record is taken to be as planned; of the warm-up only the number of sizes is known.
    let mut sizes = vec![None; planned as usize];
    for (number, (bytes, _)) in rank.calls.range(warmups..) {
        sizes[*number as usize] = Some(*bytes);
    }
    assign(&sizes, plan)
}

#[cfg(test)]
mod tests {
    use super::super::run;
    use super::*;
    use crate::recipe::testing::{PRINTED, job};
    use crate::recipe::{FileRole, Workload};
    use metric::op::Op;
    use metric::{Dim, Metric};

    const MIB: u64 = 1 << 20;

    /// The calls of the printed run: bytes, and how long the kernel takes.
    fn planned() -> Vec<(u64, u64)> {
        let mut calls = vec![(8 * MIB, 100), (16 * MIB, 200)];
        for (bytes, us) in [(8 * MIB, 100), (16 * MIB, 200)] {
            for _placement in ["out", "in"] {
                calls.extend([(bytes, us + 7), (bytes, us), (bytes, us), (bytes, us), (bytes, us * 3)]);
            }
        }
        calls
    }

    /// As one rank leaves them, by their numbers.
    fn records(rank: u32, calls: &[(u64, u64)]) -> String {
        let line = |(number, (bytes, us)): (usize, &(u64, u64))| {
            format!(
                "{{\"header\":{{\"id\":\"0x1\",\"rank\":{rank},\"n_ranks\":2,\"nnodes\":2}},\"metadata\":{{\"hostname\":\"n{}\",\
                 \"pid\":{rank}}},\"coll_perf\":{{\"coll\":\"AllReduce\",\"coll_sn\":{number},\"coll_msg_size_bytes\":{bytes},\
                 \"coll_exec_time_us\":{us},\"coll_timing_source\":\"kernel_gpu\"}}}}\n",
                rank + 1
            )
        };
        calls.iter().enumerate().map(line).collect()
    }

    fn ran(ranks: &[String]) -> Output {
        let mut text = "harness-inspector 1\n".to_owned();
        for (at, records) in ranks.iter().enumerate() {
            text.push_str(&format!("== file n-pid{at}.log 0 0\n{records}\n"));
        }
        text.push_str("== end\n");
        let folder = tempfile::tempdir().expect("a folder");
        let file = |role, name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            InputFile { role, path, shown: format!("raw/j/{name}"), node: None, part: None, rank: None }
        };
        let files = vec![
            file(FileRole::NcclTests, "stdout", PRINTED),
            file(FileRole::Inspector, "inspector.txt", &text),
        ];
        let workload = Workload::NcclTests {
            op: Op::AllReduce,
            sizes: vec![8 * MIB, 16 * MIB],
            ranks_per_communicator: Some(2),
            checked: true,
            by_torch: false,
            sweep: None,
        };
        let nodes = vec!["n1".to_owned(), "n2".to_owned()];
        run(&JobInput { nodes, files, ..job(workload, &[], |_| "n1".to_owned(), 0) })
    }

    fn values<'a>(output: &'a Output, name: &str) -> Vec<&'a Metric> {
        output.metrics.iter().filter(|metric| &*metric.name == name).collect()
    }

    fn codes(output: &Output) -> Vec<&str> {
        output.findings.iter().map(|finding| finding.code.as_str()).collect()
    }

    /// The second rank comes 40 us late to each call: its kernels are so much shorter.
    fn late() -> Vec<(u64, u64)> {
        planned().into_iter().map(|(bytes, us)| (bytes, us - 40)).collect()
    }

    #[test]
    fn waiting_and_transfer_are_those_that_reports_give_and_what_has_no_record_has_no_number() {
        // The end of a communicator is never written: all of the last placement is lost.
        let output = ran(&[records(0, &planned()[..18]), records(1, &late()[..17])]);
        assert_eq!(codes(&output), ["inspector-partial", "profile-no-launches"], "{:?}", output.findings);
        let partial = "all_reduce of 16777216 bytes, in place: 0 of 3 timed calls have a record of each rank";
        assert_eq!(output.findings[0].message, partial);
        let waits = values(&output, "rank.nccl_wait");
        assert_eq!(waits.len(), 6);
        for wait in waits {
            let (expected, node) = match wait.dims.number(Dim::Rank) {
                Some(0) => (40.0, "n1"),
                _ => (0.0, "n2"),
            };
            assert!(
                (wait.value - expected).abs() < 1e-9 && wait.dims.word(Dim::Node) == Some(node),
                "{wait:?}"
            );
        }
        // 60 us of 100 were the transfer.
        let busbw = values(&output, "nccl.profile_busbw");
        assert!(busbw.len() == 3 && (busbw[0].value - 139.81).abs() < 0.01, "{busbw:?}");
        assert_eq!(values(&output, "nccl.profile_ranks")[0].value, 2.0);
        let absent = ["nccl.profile_time", "nccl.profile_ratio"].map(|name| values(&output, name).len());
        assert_eq!(absent, [0, 0]);
    }

    #[test]
    fn records_of_other_calls_than_were_printed_make_the_output_untrustworthy() {
        let mut other = planned();
        other[4].0 = 4 * MIB;
        let output = ran(&[records(0, &planned()), records(1, &other)]);
        assert_eq!((codes(&output), output.doubts.len()), (vec!["profile-calls-disagree"], 1));
        assert!(output.metrics.is_empty() && output.findings[0].message.starts_with("rank 1: "));
        let more: Vec<(u64, u64)> = planned().into_iter().chain([(MIB, 1)]).collect();
        assert_eq!(codes(&ran(&[records(0, &more), records(1, &planned())])), ["profile-calls-disagree"]);
    }

    #[test]
    fn a_rank_without_records_leaves_no_number_of_the_others() {
        let output = ran(&[records(0, &planned())]);
        assert_eq!(codes(&output), ["profile-not-compared"]);
        assert!(output.metrics.is_empty());
        assert_eq!(output.findings[0].message, "rank 1 (n2 GPU 0) left no record");
        let twice = ran(&[records(0, &planned()) + &records(0, &late()), records(1, &planned())]);
        assert!(
            twice.metrics.is_empty() && codes(&twice) == ["profile-not-compared"],
            "{:?}",
            twice.findings
        );
    }
}
