//! Each number of the log with what makes it bad, and what leaves it out.

use super::*;
use crate::recipe::{Workload, testing};

/// A job on two nodes whose output is that text.
fn ran(text: &str) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("stdout");
    std::fs::write(&path, text).expect("a file");
    let mut job = testing::job(Workload::Command, &[], |rank| format!("n{rank}.cluster"), 0);
    job.nodes = vec!["n0.cluster".to_owned(), "n1.cluster".to_owned()];
    job.nics = (0..4).map(|nic| format!("rdmap{nic}s0")).collect();
    job.files.push(InputFile {
        role: FileRole::Stdout,
        path,
        shown: "raw/j/stdout".to_owned(),
        node: None,
        part: None,
        rank: None,
    });
    run(&job)
}

fn line(rank: u64, text: &str) -> String {
    format!("n{rank}:{}:1 [0] NCCL INFO {text}\n", 100 + rank)
}

/// The log of both ranks of a healthy job.
fn healthy() -> String {
    let one = |rank: u64| {
        let setup = format!(
            "ncclCommInitRank comm 0x5{rank} rank {rank} nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0xabc"
        );
        [
            line(rank, "NET/OFI Selected provider is efa, fabric is efa (found 4 nics)"),
            line(rank, "Using network Libfabric"),
            line(rank, &format!("{setup} - Init START")),
            line(rank, "NVLS multicast support is available on dev 0"),
            line(
                rank,
                &format!("Channel 00/0 : {rank}[0] -> {}[0] [send] via NET/Libfabric/0/GDRDMA", 1 - rank),
            ),
            line(
                rank,
                &format!("Init timings - ncclCommInitRank: rank {rank} nranks 2 total 1.{rank}0 (rest 0.50)"),
            ),
            line(rank, &format!("{setup} - Init COMPLETE")),
        ]
        .concat()
    };
    one(0) + &one(1)
}

fn call(rank: u64, operation: &str, root: u64) -> String {
    let text = format!(
        "{operation}: opCount 0 sendbuff 0x1 recvbuff 0x2 count 1024 datatype 7 op 0 root {root} comm 0x5{rank} [nranks=2] stream 0x5"
    );
    line(rank, &text)
}

fn value(output: &Output, metric: &str) -> Option<f64> {
    let rows: Vec<_> = output.metrics.iter().filter(|row| &*row.name == metric).collect();
    assert!(rows.len() < 2, "{metric} has {} rows", rows.len());
    rows.first().map(|row| row.value)
}

fn node_value(output: &Output, metric: &str, node: &str) -> Option<f64> {
    let is = |row: &&metric::Metric| &*row.name == metric && row.dims.word(Dim::Node) == Some(node);
    output.metrics.iter().find(is).map(|row| row.value)
}

fn codes(output: &Output) -> Vec<&str> {
    output.findings.iter().map(|finding| finding.code.as_str()).collect()
}

#[test]
fn a_healthy_job_gives_every_number_that_is_declared() {
    let calls =
        call(0, "AllReduce", 0) + &call(1, "AllReduce", 0) + &call(0, "Send", 1) + &call(1, "Recv", 0);
    let output = ran(&(healthy() + &calls));
    assert_eq!(codes(&output), Vec::<&str>::new(), "{:?}", output.findings);
    for metric in SPEC.metrics {
        let rows = output.metrics.iter().filter(|row| *row.name == metric.name).count();
        assert_eq!(rows, if metric.dims.is_empty() { 1 } else { 2 }, "{}", metric.name);
    }
    let of = |metric: &str| value(&output, metric).expect(metric);
    assert_eq!((of("nccl_log.collectives"), of("nccl_log.messages")), (2.0, 2.0));
    assert_eq!((of("nccl_log.bytes"), of("nccl_log.wire_bytes")), (4.0 * 4096.0, 3.0 * 4096.0));
    assert_eq!((of("nccl_log.worlds"), of("nccl_log.processes"), of("nccl_log.init_time")), (1.0, 2.0, 1.1));
    for (metric, expected) in [
        ("nccl_log.nics", 4.0),
        ("nccl_log.provider_efa", 1.0),
        ("nccl_log.not_gdrdma", 0.0),
        ("nccl_log.nvls", 1.0),
        ("nccl_log.warnings", 0.0),
    ] {
        assert_eq!(node_value(&output, metric, "n1.cluster"), Some(expected), "{metric}");
    }
    for metric in ["nccl_log.sequence_mismatches", "nccl_log.sends_unmatched", "nccl_log.timed_out"] {
        assert_eq!(of(metric), 0.0, "{metric}");
    }
    assert_eq!(of("nccl_log.lines_not_understood"), 0.0);
}

#[test]
fn problems_are_reported_for_their_node() {
    let bad = [
        ("nccl_log.nics", 3.0, "found 4 nics", "found 3 nics", "nccl-nics-missing"),
        ("nccl_log.provider_efa", 0.0, "provider is efa,", "provider is tcp,", "nccl-provider"),
        ("nccl_log.provider_efa", 0.0, "network Libfabric", "network Socket", "nccl-network-socket"),
        ("nccl_log.not_gdrdma", 1.0, "/GDRDMA", "", "nccl-not-gdrdma"),
        ("nccl_log.nvls", 0.0, "is available", "is not available", "nccl-nvls-differs"),
    ];
    for (metric, expected, from, to, code) in bad {
        let whole = healthy();
        let (first, second) = whole.split_at(whole.find("n1:").expect("a second node"));
        let output = ran(&(first.to_owned() + &second.replace(from, to)));
        assert_eq!(node_value(&output, metric, "n1.cluster"), Some(expected), "{metric}");
        assert_ne!(node_value(&output, metric, "n0.cluster"), Some(expected), "{metric}");
        assert_eq!(codes(&output), [code]);
    }
    let warned = healthy() + "n1:101:1 [0] misc/socket.cc:50 NCCL WARN Connection refused\n";
    let output = ran(&warned);
    assert_eq!(node_value(&output, "nccl_log.warnings", "n1.cluster"), Some(1.0));
    assert_eq!(
        (codes(&output), output.findings[0].node.as_deref()),
        (vec!["nccl-warning"], Some("n1.cluster"))
    );
}

#[test]
fn ranks_with_different_calls_are_counted() {
    let table = [
        (
            call(0, "AllReduce", 0) + &call(1, "Broadcast", 0),
            "nccl_log.sequence_mismatches",
            "nccl-sequence-differs",
        ),
        (call(0, "AllReduce", 0), "nccl_log.sequence_mismatches", "nccl-sequence-short"),
        (
            call(0, "Send", 1) + &call(0, "Send", 1) + &call(1, "Recv", 0),
            "nccl_log.sends_unmatched",
            "nccl-send-unmatched",
        ),
    ];
    for (calls, metric, code) in table {
        let output = ran(&(healthy() + &calls));
        assert_eq!((value(&output, metric), codes(&output)), (Some(1.0), vec![code]));
    }
    let gave_up = "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=4, \
                   Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n";
    let output = ran(&(healthy() + gave_up));
    assert_eq!((value(&output, "nccl_log.timed_out"), codes(&output)), (Some(1.0), vec!["nccl-timed-out"]));
    let apart = healthy().replace("commId 0xabc", "commId 0xdef").replace("nranks 2", "nranks 1");
    let output = ran(&(healthy() + &apart.replace(":10", ":90")));
    assert_eq!((value(&output, "nccl_log.worlds"), codes(&output)), (Some(2.0), vec!["nccl-worlds-apart"]));
}

#[test]
fn values_that_are_not_logged_give_no_metric() {
    let nothing = ran("loss 2.5\n");
    assert_eq!((nothing.metrics.len(), codes(&nothing)), (0, vec!["no-nccl-log"]));
    let no_calls = ran(&healthy());
    for metric in
        ["nccl_log.collectives", "nccl_log.bytes", "nccl_log.sequence_mismatches", "nccl_log.sends_unmatched"]
    {
        assert_eq!(value(&no_calls, metric), None, "{metric}");
    }
    // Of one rank nothing can be compared; of one node nothing crosses the network.
    let whole = healthy();
    let (first, _) = whole.split_at(whole.find("n1:").expect("a second node"));
    let half = ran(&(first.to_owned() + &call(0, "AllReduce", 0)));
    assert_eq!(
        (value(&half, "nccl_log.sequence_mismatches"), codes(&half)),
        (None, vec!["nccl-ranks-missing"])
    );
    assert_eq!(node_value(&half, "nccl_log.warnings", "n1.cluster"), None);
    let torn = ran(&(healthy()
        + &call(0, "AllReduce", 0)
        + &call(1, "AllReduce", 0).replace("count 1024", "count ?")));
    assert_eq!(
        (value(&torn, "nccl_log.bytes"), value(&torn, "nccl_log.lines_not_understood")),
        (None, Some(1.0))
    );
    assert_eq!(codes(&torn), ["nccl-garbled", "nccl-sequence-not-compared"]);
    let elsewhere = ran(&healthy().replace("n1:", "login:"));
    assert_eq!(codes(&elsewhere), ["nccl-host-unknown"]);
    assert_eq!(node_value(&elsewhere, "nccl_log.nics", "n1.cluster"), None);
}
