//! A table of two ranks and two sizes beside the reports of both, and every way in which they can disagree.

use super::*;
use crate::recipe::testing::{PRINTED, file_with, job, job_file, nccl_workload};
use crate::testing::Made;
use crate::testing::nccl::{call, communicator, domain, json, range};
use metric::Metric;
use metric::op::Op;
use std::path::{Path, PathBuf};

const MIB: u64 = 1 << 20;

/// The calls of a rank: each by its size, with the times of the call and of its kernel.
#[derive(Clone)]
struct RankCalls {
    /// Size, and the length of the kernel in nanoseconds.
    calls: Vec<(u64, i64)>,
    /// For so long the others wait for this rank.
    late_ns: i64,
    payloads: bool,
    /// How many kernels each call launches.
    kernels: i64,
}

impl RankCalls {
    /// As printed: the timed calls follow one another without a pause.
    fn printed() -> RankCalls {
        let mut calls = vec![(8 * MIB, 100_000), (16 * MIB, 200_000)];
        for (bytes, ns) in [(8 * MIB, 100_000), (16 * MIB, 200_000)] {
            for _placement in ["out", "in"] {
                calls.extend([(bytes, ns + 7_000), (bytes, ns), (bytes, ns), (bytes, ns), (bytes, ns * 3)]);
            }
        }
        RankCalls { calls, late_ns: 0, payloads: true, kernels: 1 }
    }

    fn made(&self, rank: u32) -> Made {
        let made = Made::begin();
        made.string(1, "cudaLaunchKernelExC_v11060").string(2, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
        domain(&made);
        communicator(&made, 0, 77, 2, rank);
        let mut now = 1_000;
        for (at, (bytes, ns)) in self.calls.iter().enumerate() {
            let id = at as i64 + 1;
            let (begin, end) = (now + 10, now + ns);
            if self.payloads && self.kernels != 1 {
                let json = json(77, *bytes);
                range(&made, (begin - 2, begin + 6), 3, "ncclAllReduce", Some(&json));
                made.call((begin, begin + 4), 3, id, 1);
                for kernel in 0..self.kernels {
                    made.kernel((begin + 10 + kernel, end), id, 2);
                }
            } else if self.payloads {
                call(&made, begin - 2, "ncclAllReduce", (77, *bytes), (begin + self.late_ns, end), id);
            } else {
                made.call((begin, begin + 4), 3, id, 1).kernel((begin + self.late_ns, end), id, 2);
            }
            now += ns;
        }
        made
    }
}

fn ran(printed: &str, profiles: &[RankCalls]) -> Output {
    let made: Vec<Made> = profiles.iter().zip(0..).map(|(profile, rank)| profile.made(rank)).collect();
    let text = file_with(printed);
    run(&JobInput {
        expected_exports: Vec::new(),
        ..input(text.path(), &made.iter().map(Made::path).collect::<Vec<_>>())
    })
}

fn input(stdout: &Path, exports: &[PathBuf]) -> JobInput {
    let workload = nccl_workload(Op::AllReduce, &[8 * MIB, 16 * MIB], Some(2));
    let mut job = job(workload, exports, |rank| format!("n{}", rank + 1), 2);
    job.files.push(job_file(FileRole::NcclTests, stdout, "stdout"));
    job
}

fn values<'a>(output: &'a Output, name: &str) -> Vec<&'a Metric> {
    output.metrics.iter().filter(|metric| &*metric.name == name).collect()
}

fn codes(output: &Output) -> Vec<&str> {
    output.findings.iter().map(|finding| finding.code.as_str()).collect()
}

#[test]
fn matching_output_and_reports_give_metrics_without_doubts() {
    let output = ran(PRINTED, &[RankCalls::printed(), RankCalls::printed()]);
    assert_eq!((codes(&output), output.doubts.len()), (vec![], 0));
    let times = values(&output, "nccl.profile_time");
    assert_eq!(times.len(), 4);
    assert!((times[0].value - 100.0).abs() < 0.1 && (times[3].value - 200.0).abs() < 0.1, "{times:?}");
    let ratios = values(&output, "nccl.profile_ratio");
    assert!(ratios.iter().all(|ratio| (ratio.value - 1.0).abs() < 0.01), "{ratios:?}");
    let busbw = values(&output, "nccl.profile_busbw");
    assert!((busbw[0].value - 83.9).abs() < 0.1, "{busbw:?}");
    assert_eq!(values(&output, "nccl.profile_ranks")[0].value, 2.0);
    assert!(values(&output, "rank.nccl_wait").iter().all(|wait| wait.value == 0.0));
}

#[test]
fn waiting_ranks_are_measured_and_the_transfer_is_that_of_the_fastest() {
    // The second rank comes 40 us late to each call, and the first waits for it in its kernel.
    let late = RankCalls { late_ns: 40_000, ..RankCalls::printed() };
    let output = ran(PRINTED, &[RankCalls::printed(), late]);
    assert_eq!(output.doubts, [], "{:?}", output.findings);
    let waits = values(&output, "rank.nccl_wait");
    assert_eq!(waits.len(), 8);
    for wait in waits {
        let expected = if wait.dims.number(Dim::Rank) == Some(0) { 40.0 } else { 0.0 };
        assert!((wait.value - expected).abs() < 0.001, "{wait:?}");
    }
    // 60 us of 100 were the transfer.
    let busbw = values(&output, "nccl.profile_busbw");
    assert!((busbw[0].value - 139.9).abs() < 0.2, "{busbw:?}");
}

#[test]
fn a_printed_time_that_the_reports_contradict_is_untrustworthy_and_both_values_are_given() {
    // 150 us were printed for what took 100 us, and the bandwidth with it.
    let printed = PRINTED.replacen("100.00   83.89   83.89", "150.00   55.92   55.92", 1);
    let output = ran(&printed, &[RankCalls::printed(), RankCalls::printed()]);
    assert_eq!(codes(&output), ["profile-time-disagrees"]);
    let [uncertain] = output.doubts.as_slice() else { panic!("{:?}", output.doubts) };
    assert!(
        uncertain.why.contains("150.00 us printed") && uncertain.why.contains("100.00 us"),
        "{}",
        uncertain.why
    );
    assert_eq!(uncertain.dims.number(Dim::SizeBytes), Some(8 * MIB));
    assert_eq!(uncertain.dims.word(Dim::Place), Some("out"));
    // 5 us and a twentieth apart is agreement.
    for (text, agrees) in [("109.90   76.33   76.33", true), ("110.70   75.78   75.78", false)] {
        let printed = PRINTED.replacen("100.00   83.89   83.89", text, 1);
        let output = ran(&printed, &[RankCalls::printed(), RankCalls::printed()]);
        assert_eq!(output.doubts.is_empty(), agrees, "{text}: {:?}", output.doubts);
    }
}

#[test]
fn missing_surplus_or_differing_calls_make_all_rows_untrustworthy() {
    let mut fewer = RankCalls::printed();
    fewer.calls.remove(4);
    let mut more = RankCalls::printed();
    more.calls.push((16 * MIB, 200_000));
    let mut other = RankCalls::printed();
    other.calls[4].0 = 4 * MIB;
    for (profile, expected) in [
        (fewer, "expected 22 NCCL calls, the report has 21"),
        (more, "expected 22 NCCL calls, the report has 23"),
        (other, "call 5: 4194304 bytes, expected 8388608"),
    ] {
        let output = ran(PRINTED, &[RankCalls::printed(), profile]);
        assert_eq!(codes(&output), ["profile-calls-disagree"], "{expected}");
        assert!(output.findings[0].message.contains(expected), "{:?}", output.findings);
        assert_eq!(output.findings[0].node.as_deref(), Some("n2"));
        assert!(output.doubts[0].dims.iter().next().is_none(), "all rows");
    }
}

#[test]
fn calls_without_a_kernel_or_with_several_contradict_the_output() {
    for (kernels, expected) in [
        (0, "12 timed calls launched no kernel in the report"),
        (2, "12 timed calls launched several kernels each"),
    ] {
        let odd = RankCalls { kernels, ..RankCalls::printed() };
        let output = ran(PRINTED, &[RankCalls::printed(), odd]);
        assert_eq!((codes(&output), output.doubts.len()), (vec!["profile-calls-disagree"], 1));
        assert!(output.findings[0].message.contains(expected), "{:?}", output.findings);
    }
}

#[test]
fn outputs_that_cannot_be_compared_give_a_reason_and_no_metric() {
    let profile = RankCalls::printed();
    let silent = RankCalls { payloads: false, ..profile.clone() };
    let output = ran(PRINTED, &[silent.clone(), silent]);
    assert_eq!(codes(&output), ["no-nccl-calls", "no-nccl-calls"]);
    assert!(output.metrics.is_empty());
    let graphs = PRINTED.replace("graph: 0", "graph: 5");
    let cpu = PRINTED.replace("    time   algbw", " cputime   algbw");
    let mute: String =
        PRINTED.lines().filter(|line| !line.contains("nThread")).map(|line| format!("{line}\n")).collect();
    let twice = format!("{PRINTED}{PRINTED}");
    for (text, why) in [
        (graphs.as_str(), "launched CUDA graphs"),
        (cpu.as_str(), "printed CPU times"),
        (mute.as_str(), "lacks the parameters of nccl-tests"),
        (twice.as_str(), "2 tables of nccl-tests, expected 1"),
        ("nothing of it\n", "raw/j/stdout"),
    ] {
        let output = ran(text, &[profile.clone(), profile.clone()]);
        assert_eq!(codes(&output), ["profile-not-compared"], "{why}");
        assert!(output.findings[0].message.contains(why), "{why}: {:?}", output.findings);
        assert!(output.metrics.is_empty() && output.doubts.is_empty());
    }
    // No finding without a report: the collector reports missing ones.
    assert_eq!(ran(PRINTED, &[]).findings, []);
}

#[test]
fn incomplete_ranks_give_no_metric_but_still_contradict() {
    let lying = PRINTED.replacen("100.00   83.89   83.89", "150.00   55.92   55.92", 1);
    for (printed, doubts) in [(PRINTED, 0), (lying.as_str(), 1)] {
        // The second rank's report is missing, or is no report.
        for (broken, expected) in [(None, None), (Some("no report"), Some("report-unreadable"))] {
            let output = run_two_ranks(printed, broken);
            assert_eq!((output.metrics.len(), output.doubts.len()), (0, doubts), "{broken:?}");
            assert_eq!(codes(&output).first().copied().filter(|_| broken.is_some()), expected);
        }
    }
}

/// Of the first rank's report and what stands for the second one's.
fn run_two_ranks(printed: &str, second: Option<&str>) -> Output {
    let (made, folder) = (RankCalls::printed().made(0), tempfile::tempdir().expect("a folder"));
    let (stdout, report) = (folder.path().join("stdout"), folder.path().join("r.sqlite"));
    std::fs::write(&stdout, printed).expect("written");
    let mut exports = vec![made.path()];
    if let Some(text) = second {
        std::fs::write(&report, text).expect("written");
        exports.push(report);
    }
    run(&input(&stdout, &exports))
}

#[test]
fn every_table_that_is_read_is_declared() {
    for table in nsys::nccl::TABLES {
        assert!(SPEC.tables.iter().any(|asked| asked.name == table.name), "{}", table.name);
    }
}

#[test]
fn messages() {
    let profile = RankCalls::printed();
    let mut fewer = profile.clone();
    fewer.calls.remove(4);
    let mut other = profile.clone();
    other.calls[4].0 = 4 * MIB;
    let lying = PRINTED.replacen("100.00   83.89   83.89", "150.00   55.92   55.92", 1);
    let with = |text: &str, profile: &RankCalls| ran(text, &[RankCalls::printed(), profile.clone()]);
    let outputs = [
        with(PRINTED, &fewer),
        with(PRINTED, &other),
        with(PRINTED, &RankCalls { kernels: 0, ..profile.clone() }),
        with(PRINTED, &RankCalls { kernels: 2, ..profile.clone() }),
        with(PRINTED, &RankCalls { payloads: false, ..profile.clone() }),
        with(&lying, &profile),
        with(&PRINTED.replace("graph: 0", "graph: 5"), &profile),
        with(&PRINTED.replace("    time   algbw", " cputime   algbw"), &profile),
        with(&format!("{PRINTED}{PRINTED}"), &profile),
        with("nothing of it\n", &profile),
    ];
    insta::assert_snapshot!(crate::recipe::testing::messages(&outputs));
}
