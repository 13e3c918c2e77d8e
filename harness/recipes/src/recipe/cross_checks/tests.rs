//! Two ranks on two nodes, each with its log, its report and its counters beside one table: all agree, or two of them
//! do not.

use super::*;
use crate::recipe::InputFile;
use crate::recipe::testing::{PRINTED, job, nccl_workload};
use crate::testing::Made;
use crate::testing::nccl::json;
use crate::testing::{OTHER_PROCESS, PROCESS};
use logs::efa_counters::{Capture, Clock, Device, End, Phase, Reading, Reason, render};
use metric::op::Op;
use nsys::trace::nvtx::{DOMAIN, PUSH_POP};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;
/// The number of NCCL's domain.
const NCCL: i64 = 3;

/// Each call of the table by its size: warm-up, then both placements of both rows.
fn calls() -> Vec<u64> {
    let mut calls = vec![8 * MIB, 16 * MIB];
    for bytes in [8 * MIB, 16 * MIB] {
        calls.extend([bytes; 10]);
    }
    calls
}

/// The files of a job, each by default as it is where all agree.
struct JobFiles {
    logged: Vec<u64>,
    reported: Vec<u64>,
    payloads: bool,
    /// How many of the first calls have no range: the capture began behind them.
    before: usize,
    kernel: &'static str,
    /// How many of the last calls launch no kernel.
    bare: usize,
    /// By each NIC.
    sent: Option<u64>,
    tuning: &'static str,
    second_rank: bool,
    joins: bool,
    /// Whether one report, of the first node, holds the processes of both ranks.
    together: bool,
    printed: &'static str,
}

impl JobFiles {
    fn complete() -> JobFiles {
        JobFiles {
            logged: calls(),
            reported: calls(),
            payloads: true,
            before: 0,
            kernel: "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
            bare: 0,
            // Both nodes send the message once for each call of two ranks around a ring.
            sent: Some(calls().iter().sum()),
            tuning: "RING proto SIMPLE",
            second_rank: true,
            joins: true,
            together: false,
            printed: PRINTED,
        }
    }

    fn log(&self) -> String {
        let mut text = String::new();
        for rank in (0..2).filter(|rank| *rank == 0 || self.second_rank) {
            let mut line = |said: String| {
                let host = rank + 1;
                text.push_str(&format!("{rank}: n{host}:100{host}:7 [0] NCCL INFO {said}\n"));
            };
            line(format!(
                "ncclCommInitRank comm 0x5{rank} rank {rank} nranks 2 cudaDev 0 nvmlDev 0 busId 1 commId 0xabc - Init COMPLETE"
            ));
            for (at, bytes) in self.logged.iter().enumerate() {
                let count = bytes / 4;
                line(format!(
                    "AllReduce: opCount {at:x} sendbuff 0x1 recvbuff 0x2 count {count} datatype 7 op 0 root 0 comm 0x5{rank} [nranks=2] stream 0x6"
                ));
                if rank == 0 {
                    line(format!(
                        "AllReduce: {bytes} Bytes -> Algo {} channel{{Lo..Hi}}={{0..15}}",
                        self.tuning
                    ));
                }
            }
        }
        text
    }

    fn report(&self, rank: u32) -> Made {
        let made = Made::begin();
        made.string(1, "cudaLaunchKernelExC_v11060").string(2, self.kernel).string(3, self.kernel);
        let ranks =
            if self.together { vec![(PROCESS, 0), (OTHER_PROCESS, 1)] } else { vec![(PROCESS, rank)] };
        for (process, rank) in ranks {
            self.process(&made, process, rank);
        }
        made
    }

    fn process(&self, made: &Made, process: i64, rank: u32) {
        let own = |kind: i64, text: &str, span: (i64, i64), json: Option<String>| {
            let mut row = vec![
                ("globalTid", (process | 3).into()),
                ("domainId", NCCL.into()),
                ("text", text.to_owned().into()),
            ];
            row.extend([("start", span.0.into()), ("end", span.1.into())]);
            row.extend(json.map(|json| ("jsonText", json.into())));
            made.event(kind, 3, &row);
        };
        own(DOMAIN, "NCCL", (0, 0), None);
        let joins =
            format!(r#"{{"NCCL communicator ID":77,"No. of ranks":2,"Rank":{rank},"CUDA device":0}}"#);
        if self.joins {
            own(PUSH_POP, "ncclCommInitRank", (0, 1), Some(joins));
        }
        for (at, bytes) in self.reported.iter().enumerate() {
            let begin = 1_000 * (at as i64 + 1);
            let id = at as i64 + 1;
            if at >= self.before {
                own(PUSH_POP, "ncclAllReduce", (begin, begin + 8), self.payloads.then(|| json(77, *bytes)));
            }
            if at + self.bare < self.reported.len() {
                made.call_of(process, (begin + 2, begin + 6), 3, id, 1);
                made.kernel_of(process, (begin + 10, begin + 500), id, 2);
            }
        }
    }

    fn capture(&self, node: &str, sent: u64) -> String {
        let columns = ["tx_bytes", "rx_bytes", "rdma_write_bytes", "rdma_write_recv_bytes"];
        let readings = [(Phase::Before, 1000, 0), (Phase::Before, 1020, 0), (Phase::During, 1120, sent / 2)]
            .into_iter()
            .chain([(Phase::After, 1220, sent), (Phase::After, 1240, sent)]);
        let clock = |cs: u64| Clock { wall_us: 1_700_000_000_000_000 + cs * 10_000, uptime_cs: cs };
        render(&Capture {
            file: String::new(),
            node: node.to_owned(),
            root: "/sys".to_owned(),
            interval_cs: 100,
            columns: columns.map(str::to_owned).to_vec(),
            begin: clock(990),
            devices: vec![Device { name: "d0".to_owned(), lifespan_ms: Some(12) }],
            unreadable: Vec::new(),
            missing: Vec::new(),
            bad: Vec::new(),
            not_quiet: Vec::new(),
            readings: readings
                .map(|(phase, uptime_cs, moved)| Reading {
                    phase,
                    uptime_cs,
                    device: 0,
                    values: vec![Some(moved + 5); 4],
                })
                .collect(),
            end: Some(End { clock: clock(1250), cost_ms: 108, reason: Reason::Stop }),
        })
    }

    fn output(&self) -> Output {
        let folder = TempDir::new().expect("a folder");
        let reports: Vec<Made> =
            (0..if self.together { 1 } else { 2 }).map(|rank| self.report(rank)).collect();
        let paths: Vec<_> = reports.iter().map(Made::path).collect();
        let workload = nccl_workload(Op::AllReduce, &[8 * MIB, 16 * MIB], Some(2));
        let mut job = job(workload, &paths, |rank| format!("n{}", rank + 1), 2);
        job.nodes = vec!["n1".to_owned(), "n2".to_owned()];
        job.nics = vec!["d0".to_owned()];
        job.tx_counters = vec!["rdma_write_bytes".to_owned()];
        job.rx_counters = vec!["rdma_write_recv_bytes".to_owned()];
        let mut put = |name: &str, role: FileRole, text: String, node: Option<&str>| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            let shown = format!("raw/j/{name}");
            job.files.push(InputFile {
                role,
                path,
                shown,
                node: node.map(str::to_owned),
                part: None,
                rank: None,
            });
        };
        put("stdout", FileRole::NcclTests, format!("{}{}", self.log(), self.printed), None);
        if let Some(sent) = self.sent {
            for node in ["n1", "n2"] {
                put(
                    &format!("counters.{node}.txt"),
                    FileRole::Counters,
                    self.capture(node, sent),
                    Some(node),
                );
            }
        }
        run(&job)
    }
}

fn values(output: &Output, name: &str) -> Vec<f64> {
    output.metrics.iter().filter(|metric| &*metric.name == name).map(|metric| metric.value).collect()
}

fn codes(output: &Output) -> Vec<&str> {
    output.findings.iter().map(|finding| finding.code.as_str()).collect()
}

#[test]
fn sources_that_agree_give_metrics_without_findings() {
    let output = JobFiles::complete().output();
    assert_eq!(codes(&output), [] as [&str; 0], "{:?}", output.findings);
    assert_eq!(values(&output, "crosscheck.accounts"), [3.0, 3.0]);
    assert_eq!(values(&output, "crosscheck.calls_compared"), [22.0, 22.0]);
    assert_eq!(values(&output, "crosscheck.sizes_disagree"), [0.0, 0.0]);
    let share = values(&output, "crosscheck.efa_share_of_least");
    assert!(share.len() == 1 && (share[0] - 1.0).abs() < 1e-9, "{share:?}");
    for kernels in ["kernels_without_calls", "calls_without_kernels", "kernels_of_another"] {
        assert_eq!(values(&output, &format!("crosscheck.{kernels}")), [0.0, 0.0], "{kernels}");
    }
}

#[test]
fn processes_of_one_report_are_compared_each_with_its_own_rank() {
    let output = JobFiles { together: true, ..JobFiles::complete() }.output();
    assert_eq!(codes(&output), [] as [&str; 0], "{:?}", output.findings);
    assert_eq!(values(&output, "crosscheck.accounts"), [3.0, 3.0]);
    assert_eq!(values(&output, "crosscheck.calls_compared"), [22.0, 22.0]);
    assert_eq!(values(&output, "crosscheck.sizes_disagree"), [0.0, 0.0]);
    assert_eq!(values(&output, "crosscheck.kernels_without_calls"), [0.0, 0.0]);
    // Without NCCL's ranges at its start a report does not say which of its processes is which.
    let output = JobFiles { together: true, payloads: false, joins: false, ..JobFiles::complete() }.output();
    assert!(codes(&output).contains(&"crosscheck-not-compared"), "{:?}", output.findings);
    assert!(values(&output, "crosscheck.calls_compared").is_empty());
}

#[test]
fn a_size_that_differs_from_the_log_is_reported_with_both_values() {
    let mut logged = calls();
    logged[12] = 4 * MIB;
    let output = JobFiles { logged, sent: None, ..JobFiles::complete() }.output();
    let expected = ["crosscheck-log-and-report", "crosscheck-log-and-print"];
    assert_eq!(
        codes(&output),
        [expected[0], expected[1], expected[0], expected[1], "crosscheck-no-counters"]
    );
    let expected = "rank 0: 1 of 22 calls differ between report and NCCL's log: call 13 of the report is ncclAllReduce of \
                16777216 bytes, call 13 of the log ncclAllReduce of 4194304 bytes";
    assert_eq!(output.findings[0].message, expected);
    assert_eq!(output.findings[0].node.as_deref(), Some("n1"));
    assert_eq!(values(&output, "crosscheck.sizes_disagree"), [2.0, 2.0]);
}

#[test]
fn calls_that_one_source_lacks_are_reported() {
    let mut reported = calls();
    reported.push(16 * MIB);
    let output = JobFiles { reported, ..JobFiles::complete() }.output();
    assert_eq!(codes(&output)[..2], ["crosscheck-log-and-report", "crosscheck-report-and-print"]);
    assert!(
        output.findings[0].message.ends_with("the report has 23 calls, the log 22"),
        "{:?}",
        output.findings[0]
    );
}

#[test]
fn a_capture_that_began_later_is_located_in_the_log() {
    let output = JobFiles { before: 2, ..JobFiles::complete() }.output();
    assert_eq!(values(&output, "crosscheck.calls_compared"), [20.0, 20.0]);
    assert_eq!(values(&output, "crosscheck.kernels_without_calls"), [2.0, 2.0]);
    let expected = codes(&output);
    assert!(
        expected.contains(&"crosscheck-kernels-without-calls")
            && expected.contains(&"crosscheck-report-and-print"),
        "{expected:?}"
    );
    assert!(!expected.contains(&"crosscheck-log-and-report"), "{expected:?}");
}

#[test]
fn kernels_of_another_operation_than_their_call_are_reported() {
    let bare = JobFiles { bare: 3, ..JobFiles::complete() }.output();
    assert_eq!(values(&bare, "crosscheck.calls_without_kernels"), [3.0, 3.0]);
    assert_eq!(codes(&bare), ["crosscheck-calls-without-kernels"; 2]);
    let other = JobFiles { kernel: "ncclDevKernel_AllGather_RING_LL", ..JobFiles::complete() }.output();
    assert_eq!(values(&other, "crosscheck.kernels_of_another"), [22.0, 22.0]);
    assert!(
        other.findings[0].message.ends_with("`ncclAllReduce` launched `ncclDevKernel_AllGather_RING_LL`"),
        "{:?}",
        other.findings[0]
    );
}

#[test]
fn efa_bytes_below_or_far_above_the_least_are_reported() {
    let all: u64 = calls().iter().sum();
    let less = JobFiles { sent: Some(all / 2), ..JobFiles::complete() }.output();
    assert_eq!(
        (codes(&less), values(&less, "crosscheck.efa_share_of_least")),
        (vec!["crosscheck-efa-too-little"], vec![0.5])
    );
    let expected = format!(
        "all NICs sent {all} bytes; the logged calls need at least {} between nodes (by RING SIMPLE); the rest",
        2 * all
    );
    assert!(less.findings[0].message.starts_with(&expected), "{:?}", less.findings[0]);
    let more = JobFiles { sent: Some(all * 4), ..JobFiles::complete() }.output();
    assert_eq!(codes(&more), ["crosscheck-efa-unexplained"]);
    let tree = JobFiles { tuning: "TREE proto LL", ..JobFiles::complete() }.output();
    assert_eq!(values(&tree, "crosscheck.efa_share_of_least"), [1.0]);
}

#[test]
fn missing_sources_give_a_finding_and_no_metric() {
    let no_log = JobFiles { logged: Vec::new(), ..JobFiles::complete() }.output();
    assert_eq!(codes(&no_log), ["crosscheck-no-log"]);
    assert_eq!(values(&no_log, "crosscheck.accounts"), [2.0, 2.0]);
    assert_eq!(values(&no_log, "crosscheck.efa_share_of_least"), [] as [f64; 0]);
    let no_counters = JobFiles { sent: None, ..JobFiles::complete() }.output();
    assert_eq!(codes(&no_counters), ["crosscheck-no-counters"]);
    let one_rank = JobFiles { second_rank: false, ..JobFiles::complete() }.output();
    assert_eq!(codes(&one_rank), ["crosscheck-not-compared"], "{:?}", one_rank.findings);
    assert_eq!(values(&one_rank, "crosscheck.efa_share_of_least"), [] as [f64; 0]);
    let no_sizes = JobFiles { payloads: false, ..JobFiles::complete() }.output();
    assert_eq!(codes(&no_sizes), ["crosscheck-no-sizes"; 2], "{:?}", no_sizes.findings);
    let no_print = JobFiles { printed: "", ..JobFiles::complete() }.output();
    assert_eq!(
        (codes(&no_print), values(&no_print, "crosscheck.accounts")),
        (vec!["crosscheck-no-print"], vec![2.0, 2.0])
    );
    for output in [no_log, no_counters, one_rank, no_print] {
        assert!(output.findings.iter().all(|finding| SPEC.is_cause(&finding.code)));
    }
}

#[test]
fn messages() {
    let all: u64 = calls().iter().sum();
    let mut logged = calls();
    logged[12] = 4 * MIB;
    let mut reported = calls();
    reported.push(16 * MIB);
    let complete = JobFiles::complete;
    let outputs = [
        JobFiles { logged, sent: None, ..complete() },
        JobFiles { reported, ..complete() },
        JobFiles { before: 2, ..complete() },
        JobFiles { bare: 3, ..complete() },
        JobFiles { kernel: "ncclDevKernel_AllGather_RING_LL", ..complete() },
        JobFiles { sent: Some(all / 2), ..complete() },
        JobFiles { sent: Some(all * 4), ..complete() },
        JobFiles { logged: Vec::new(), ..complete() },
        JobFiles { second_rank: false, ..complete() },
        JobFiles { payloads: false, ..complete() },
        JobFiles { printed: "", ..complete() },
    ];
    insta::assert_snapshot!(crate::recipe::testing::messages(&outputs.map(|left| left.output())));
}
