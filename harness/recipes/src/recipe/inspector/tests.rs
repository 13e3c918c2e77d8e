//! What becomes of records that are whole, lost, filtered, cut, or of too few ranks.

use super::*;
use crate::recipe::JobInput;
use crate::recipe::testing;

const MIB: u64 = 1 << 20;

/// Calls of one rank of four on two nodes, in the form of v4.0, with the times that give these bandwidths.
fn records(rank: u32, coll: &str, bytes: u64, busbw: &[f64]) -> String {
    let host = ["n1", "n1", "n2", "n2"][rank as usize];
    let (traffic, factor) = if coll == "AllReduce" { (bytes, 1.5) } else { (4 * bytes, 0.75) };
    let line = |(number, busbw): (usize, &f64)| {
        let algbw = busbw / factor;
        let us = traffic as f64 / algbw / 1e3;
        format!(
            "{{\"header\":{{\"id\":\"0x1\",\"rank\":{rank},\"n_ranks\":4,\"nnodes\":2}},\"metadata\":{{\"hostname\":\"{host}\",\
             \"pid\":{rank}}},\"coll_perf\":{{\"coll\":\"{coll}\",\"coll_sn\":{number},\"coll_msg_size_bytes\":{bytes},\
             \"coll_exec_time_us\":{us},\"coll_timing_source\":\"kernel_gpu\",\"coll_algobw_gbs\":{algbw},\"coll_busbw_gbs\":{busbw}}}}}\n"
        )
    };
    busbw.iter().enumerate().map(line).collect()
}

fn gathered(files: &[String], end: &str) -> String {
    let mut text = "harness-inspector 1\n== set NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES=8192\n".to_owned();
    for (at, file) in files.iter().enumerate() {
        text.push_str(&format!("== file n-pid{at}.log {} {}\n{file}\n", file.len(), file.len()));
    }
    text + end
}

fn output(op: Op, text: &str) -> Output {
    let file = testing::file_with(text);
    let workload = testing::nccl_workload(op, &[4096, MIB], Some(4));
    let input = testing::job_file(FileRole::Inspector, file.path(), "inspector.txt");
    let job = testing::job(workload, &[], |_| "n1".to_owned(), 0);
    run(&JobInput { nodes: vec!["n1".into(), "n2".into()], files: vec![input], ..job })
}

fn values(output: &Output, name: &str) -> Vec<f64> {
    output.metrics.iter().filter(|metric| *metric.name == *name).map(|metric| metric.value).collect()
}

fn codes(output: &Output) -> Vec<&str> {
    output.findings.iter().map(|finding| finding.code.as_str()).collect()
}

const END: &str = "== end\n";

#[test]
fn the_median_and_the_lowest_rank_are_given_by_size_as_nccl_tests_prints_it() {
    let rates = [[10.0, 12.0], [20.0, 20.0], [30.0, 30.0], [40.0, 40.0]];
    let files: Vec<String> =
        (0..).zip(&rates).map(|(rank, rates)| records(rank, "AllGather", MIB / 4, rates)).collect();
    let output = output(Op::AllGather, &gathered(&files, END));
    assert_eq!(values(&output, "inspector.busbw"), [25.0]);
    assert_eq!(values(&output, "inspector.busbw_lowest"), [11.0]);
    assert_eq!(values(&output, "inspector.calls"), [2.0; 4]);
    // v4.0 counts no loss: it is unknown, and not 0.
    assert_eq!(values(&output, "inspector.calls_lost"), [0.0; 0]);
    let size = output
        .metrics
        .iter()
        .find(|it| *it.name == *"inspector.busbw")
        .and_then(|it| it.dims.get(Dim::SizeBytes).cloned());
    assert_eq!(size, Some(MIB.into()));
    let filtered: Vec<&Finding> =
        output.findings.iter().filter(|it| it.code == "inspector-filtered").collect();
    assert_eq!(filtered.len(), 1);
    assert!(filtered[0].message.contains("1 of 2 sizes, up to 4096 B"), "{}", filtered[0].message);
}

#[test]
fn a_rank_without_a_file_is_named_and_no_bandwidth_is_given() {
    let files: Vec<String> = (0..3).map(|rank| records(rank, "AllReduce", MIB, &[10.0])).collect();
    let output = output(Op::AllReduce, &gathered(&files, END));
    assert!(output.metrics.is_empty());
    let missing = output.findings.iter().find(|it| it.code == "inspector-rank-missing").expect("a finding");
    assert_eq!(missing.message, "rank 3 (n2 GPU 1) left no record");
    assert_eq!(missing.node, None);
}

#[test]
fn what_breaks_off_or_is_of_another_size_of_communicator_gives_no_number() {
    let files: Vec<String> = (0..4).map(|rank| records(rank, "AllReduce", MIB, &[10.0])).collect();
    let cut = output(Op::AllReduce, &gathered(&files, ""));
    assert!(cut.metrics.is_empty() && codes(&cut).contains(&"inspector-incomplete"));
    let none = output(Op::AllReduce, &gathered(&[], END));
    assert!(none.metrics.is_empty() && codes(&none).contains(&"inspector-no-records"));
    let other: Vec<String> = files.iter().map(|it| it.replace("\"n_ranks\":4", "\"n_ranks\":8")).collect();
    let other = output(Op::AllReduce, &gathered(&other, END));
    assert!(other.metrics.is_empty() && codes(&other).contains(&"inspector-rank-missing"));
}

#[test]
fn calls_of_a_file_that_is_cut_are_not_counted() {
    let mut files: Vec<String> = (0..4).map(|rank| records(rank, "AllReduce", MIB, &[10.0; 2])).collect();
    let whole = files[3].clone();
    // At its end, and at its beginning.
    for cut in [&whole[..whole.len() - 20], &whole[20..]] {
        cut.clone_into(&mut files[3]);
        let output = output(Op::AllReduce, &gathered(&files, END));
        assert_eq!(values(&output, "inspector.busbw"), [10.0]);
        assert_eq!(values(&output, "inspector.calls"), [0.0; 0]);
        let found = codes(&output);
        assert!(found.contains(&"inspector-cut") || found.contains(&"inspector-garbled"), "{found:?}");
    }
}

#[test]
fn a_size_of_which_one_rank_lost_all_records_has_no_bandwidth() {
    let mut files: Vec<String> = (0..4).map(|rank| records(rank, "AllReduce", MIB, &[10.0])).collect();
    files[2] = records(2, "AllReduce", 2 * MIB, &[10.0]);
    let output = output(Op::AllReduce, &gathered(&files, END));
    assert!(values(&output, "inspector.busbw").is_empty() && values(&output, "inspector.calls").len() == 4);
    assert!(codes(&output).contains(&"inspector-partial"));
}

#[test]
fn bandwidths_that_contradict_bytes_and_time_are_not_judged() {
    let mut files: Vec<String> = (0..4).map(|rank| records(rank, "AllReduce", MIB, &[10.0])).collect();
    files[3] = files[3].replace("\"coll_busbw_gbs\":10", "\"coll_busbw_gbs\":20");
    let output = output(Op::AllReduce, &gathered(&files, END));
    assert!(output.metrics.is_empty() && codes(&output).contains(&"inspector-disagrees"));
}

#[test]
fn records_of_an_earlier_run_or_given_twice_are_no_bandwidth() {
    let files: Vec<String> =
        (0..4).map(|rank| records(rank, "AllReduce", MIB, &[10.0, 12.0, 14.0])).collect();
    let stale = |text: &String| text.replace("\"0x1\"", "\"0x2\"").replace("\"pid\":", "\"pid\":90");
    let mixed: Vec<String> = files.iter().cloned().chain(files.iter().map(stale)).collect();
    let mixed = output(Op::AllReduce, &gathered(&mixed, END));
    assert!(mixed.metrics.is_empty() && codes(&mixed).contains(&"inspector-processes"));
    // Communicators that the same processes make are of one run.
    let second = |text: &String| text.replace("\"0x1\"", "\"0x2\"");
    let both: Vec<String> = files.iter().cloned().chain(files.iter().map(second)).collect();
    assert_eq!(values(&output(Op::AllReduce, &gathered(&both, END)), "inspector.busbw").len(), 1);
    // The record of a slow call was lost, and a quick one stands twice: as many as the numbers say.
    let mut twice = files.clone();
    let lines: Vec<&str> = files[1].lines().collect();
    twice[1] = [lines[0], lines[2], lines[2], ""].join("\n");
    let twice = output(Op::AllReduce, &gathered(&twice, END));
    assert!(twice.metrics.is_empty() && codes(&twice).contains(&"inspector-copies"), "{:?}", twice.findings);
}

#[test]
fn times_of_the_host_are_no_bandwidth() {
    let host = |rank| records(rank, "AllReduce", MIB, &[10.0]).replace("kernel_gpu", "kernel_cpu");
    let files: Vec<String> = (0..4).map(host).collect();
    let output = output(Op::AllReduce, &gathered(&files, END));
    assert!(values(&output, "inspector.busbw").is_empty());
    assert!(codes(&output).contains(&"inspector-host-times"));
}
