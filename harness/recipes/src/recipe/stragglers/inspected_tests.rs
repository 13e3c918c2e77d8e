//! Late ranks by records of NCCL's Inspector: four ranks on two nodes, and everything that leaves none to be blamed.

use super::run;
use crate::recipe::testing::{file_with, job, job_file, nccl_workload};
use crate::recipe::{FileRole, JobInput, Output};
use metric::Dim;
use metric::op::Op;

const CALLS: u64 = 40;

/// The calls of one rank of four. Each takes 5 ms and a little; a rank that comes late waits less.
fn records(rank: u64, late_us: u64, more: &str) -> String {
    let call = |number: u64| {
        let us = 5000 + (number * 7 + rank * 3) % 11 - late_us;
        let line = format!(
            "{{\"header\":{{\"id\":\"0x1\",\"rank\":{rank},\"n_ranks\":4,\"nnodes\":2}},\"metadata\":{{\"hostname\":\"n{}\",\
             \"pid\":{rank}}},\"coll_perf\":{{\"coll\":\"AllReduce\",\"coll_sn\":{number},\"coll_msg_size_bytes\":1048576,\
             \"coll_exec_time_us\":{us},\"coll_timing_source\":\"kernel_gpu\"}}}}\n",
            rank / 2 + 1
        );
        let other = if more.is_empty() { String::new() } else { line.replace("0x1", more) };
        line + &other
    };
    (0..CALLS).map(call).collect()
}

fn ran(op: Op, ranks: &[String]) -> Output {
    let files = ranks.iter().enumerate();
    let files: String =
        files.map(|(at, records)| format!("== file n-pid{at}.log 0 0\n{records}\n")).collect();
    let gathered = file_with(&format!("harness-inspector 1\n{files}== end\n"));
    let file = job_file(FileRole::Inspector, gathered.path(), "inspector.txt");
    let workload = nccl_workload(op, &[1 << 20], Some(4));
    let nodes = vec!["n1".to_owned(), "n2".to_owned()];
    run(&JobInput { nodes, files: vec![file], ..job(workload, &[], |_| "n1".to_owned(), 0) })
}

fn with_late(late_us: [u64; 4]) -> Vec<String> {
    (0..).zip(late_us).map(|(rank, late)| records(rank, late, "")).collect()
}

fn said(output: &Output) -> Vec<(&str, &str)> {
    output.findings.iter().map(|finding| (finding.code.as_str(), finding.message.as_str())).collect()
}

/// By their ranks.
fn values(output: &Output, name: &str) -> Vec<(u64, f64)> {
    let rows = output.metrics.iter().filter(|metric| &*metric.name == name);
    rows.map(|metric| (metric.dims.number(Dim::Rank).expect("a rank"), metric.value)).collect()
}

#[test]
fn the_rank_with_the_shorter_kernels_is_named_and_no_clock_is_needed() {
    let output = ran(Op::AllReduce, &with_late([0, 0, 0, 1000]));
    let [clocks, late] = output.findings.as_slice() else { panic!("{:?}", said(&output)) };
    assert_eq!((clocks.code.as_str(), late.code.as_str()), ("stragglers-no-times", "straggler"));
    assert_eq!((late.node.as_deref(), late.part.as_deref()), (Some("n2"), Some("gpu1")));
    assert!(late.message.starts_with("rank 3 keeps the others waiting"), "{}", late.message);
    assert!(late.message.ends_with("collective ends are taken to agree"), "{}", late.message);
    let late = values(&output, "straggler.late");
    assert_eq!(late.iter().map(|(rank, _)| *rank).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert!(
        late.iter().all(|(rank, us)| (us - if *rank == 3 { 1000.0 } else { 0.0 }).abs() < 15.0),
        "{late:?}"
    );
    let waits = values(&output, "straggler.wait");
    assert!(waits.iter().all(|(rank, us)| (*us > 900.0) == (*rank != 3)), "{waits:?}");
    assert!(output.metrics.iter().all(|metric| !metric.name.starts_with("clock.")));
}

#[test]
fn a_rank_that_is_late_by_less_than_a_twentieth_of_a_call_is_not_named() {
    let output = ran(Op::AllReduce, &with_late([0, 0, 0, 230]));
    assert!(output.findings.iter().all(|finding| finding.code != "straggler"), "{:?}", said(&output));
    assert_eq!(values(&output, "straggler.late").len(), 4);
}

#[test]
fn what_records_cannot_show_is_unknown_and_blames_none() {
    let late = with_late([0, 0, 0, 1000]);
    let few: Vec<String> =
        late.iter().map(|text| text.lines().take(12).collect::<Vec<_>>().join("\n")).collect();
    let two: Vec<String> = (0..4).map(|rank| records(rank, 1000 * (rank / 3), "0x2")).collect();
    let host: Vec<String> = late.iter().map(|text| text.replace("kernel_gpu", "kernel_cpu")).collect();
    let root: Vec<String> = late.iter().map(|text| text.replace("AllReduce", "Broadcast")).collect();
    for (op, ranks, why) in [
        (Op::AllReduce, &late[..3], "rank 3 (n2 GPU 1) left no record"),
        (Op::AllReduce, &two[..], "several communicators have records of a rank 0"),
        (Op::AllReduce, &few[..], "11 rounds, at least 16 needed"),
        (Op::AllReduce, &host[..], "no collective was recorded by all its ranks"),
        (Op::Broadcast, &root[..], "`broadcast` does not hold each rank until the last one has come"),
    ] {
        let output = ran(op, ranks);
        let [("stragglers-no-times", message)] = said(&output)[..] else { panic!("{:?}", said(&output)) };
        assert!(message.starts_with("stragglers unknown: ") && message.contains(why), "{message}");
        assert!(output.metrics.is_empty(), "{why}");
    }
}
