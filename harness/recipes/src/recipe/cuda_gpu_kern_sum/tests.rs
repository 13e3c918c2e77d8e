//! Shares of small exports: of one rank, of several, and every way in which there are none.

use super::*;
use crate::testing::exports::{self as testing, Kernel};
use metric::op::Op;
use std::path::{Path, PathBuf};

const NCCL: &str = "ncclDevKernel_SendRecv";

fn job(paths: &[PathBuf], expected: u32) -> JobInput {
    let workload = crate::recipe::testing::nccl_workload(Op::Scatter, &[], None);
    crate::recipe::testing::job(workload, paths, |rank| format!("n{rank}"), expected)
}

fn export(folder: &Path, rank: u32, kernels: &[Kernel], diagnostics: &[(i64, &str)]) -> PathBuf {
    testing::parquet(&folder.join(rank.to_string()), kernels, diagnostics)
}

fn value(output: &Output, metric: &str, dim: Dim, of: &str) -> Option<f64> {
    let row = output.metrics.iter().find(|row| &*row.name == metric && row.dims.word(dim) == Some(of))?;
    Some(row.value)
}

fn codes(output: &Output) -> Vec<&str> {
    output.findings.iter().map(|finding| finding.code.as_str()).collect()
}

#[test]
fn shares_are_of_all_kernel_time_without_the_checking_kernels() {
    let folder = tempfile::tempdir().expect("a folder");
    let kernels = [
        (0, 90, NCCL),
        (100, 105, "vectorized_elementwise_kernel"),
        (110, 115, "gemm_kernel"),
        (200, 900, "verifyPrepared"),
    ];
    let output = run(&job(&[export(folder.path(), 0, &kernels, &[])], 1));
    assert_eq!(value(&output, "kernel.share", Dim::Kernel, NCCL), Some(0.9));
    assert_eq!(value(&output, "kernel.class_share", Dim::Class, "nccl"), Some(0.9));
    assert_eq!(value(&output, "kernel.class_share", Dim::Class, "gemm"), Some(0.05));
    assert_eq!(value(&output, "kernel.class_share", Dim::Class, "attention"), Some(0.0));
    assert_eq!(value(&output, "kernel.time", Dim::Kernel, NCCL), Some(90.0));
    assert_eq!(value(&output, "kernel.share", Dim::Kernel, "verifyPrepared"), None);
    let all: f64 =
        output.metrics.iter().filter(|row| &*row.name == "kernel.share").map(|row| row.value).sum();
    assert!((all - 1.0).abs() < 1e-12);
    assert_eq!(codes(&output), [] as [&str; 0]);
}

#[test]
fn ranks_are_merged_event_by_event() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = export(folder.path(), 0, &[(0, 10, NCCL), (20, 30, "x")], &[]);
    let second = testing::sqlite(folder.path(), &[(0, 30, NCCL), (40, 90, NCCL)], &[], false);
    let output = run(&job(&[first, second], 2));
    assert_eq!(value(&output, "kernel.share", Dim::Kernel, NCCL), Some(0.9));
    assert_eq!(value(&output, "kernel.count", Dim::Kernel, NCCL), Some(3.0));
    assert_eq!(value(&output, "kernel.median", Dim::Kernel, NCCL), Some(30.0));
    let of_rank = |rank: u64| {
        let mut rows = output.metrics.iter().filter(|row| &*row.name == "rank.kernel_class_share");
        rows.find(|row| row.dims.number(Dim::Rank) == Some(rank) && row.dims.word(Dim::Class) == Some("nccl"))
            .map(|row| row.value)
    };
    assert_eq!((of_rank(0), of_rank(1)), (Some(0.5), Some(1.0)));
}

#[test]
fn a_report_that_lacks_events_gives_no_share_of_the_job() {
    let folder = tempfile::tempdir().expect("a folder");
    for (rank, (severity, text, code)) in [
        (3, "4096 events were dropped", "events-dropped"),
        (2, "Not all CUDA events might have been collected.", "events-dropped"),
        (3, "CUPTI: error 999 on the target", "target-error"),
    ]
    .into_iter()
    .enumerate()
    {
        let whole = export(folder.path(), 10, &[(0, 10, NCCL)], &[(1, "Profiling has started.")]);
        let lossy = export(folder.path(), rank as u32, &[(0, 10, NCCL)], &[(severity, text)]);
        let output = run(&job(&[whole, lossy], 2));
        assert_eq!(codes(&output), [code], "{text}");
        assert_eq!(output.findings[0].node.as_deref(), Some("n1"));
        assert_eq!(value(&output, "kernel.share", Dim::Kernel, NCCL), None, "{text}");
        assert!(
            output.metrics.iter().all(|row| &*row.name == "rank.kernel_class_share"),
            "the whole rank alone"
        );
        assert!(SPEC.is_cause(code));
    }
}

#[test]
fn without_kernels_there_is_no_share_instead_of_0() {
    let folder = tempfile::tempdir().expect("a folder");
    for kernels in [&[][..], &[(0, 10, "verifyPrepared")][..], &[(5, 5, NCCL)][..]] {
        let output = run(&job(&[export(folder.path(), 0, kernels, &[])], 1));
        assert_eq!((codes(&output), output.metrics.len()), (vec!["no-kernels"], 0));
    }
}

#[test]
fn a_missing_report_leaves_the_job_without_shares() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(&job(&[export(folder.path(), 0, &[(0, 10, NCCL)], &[])], 2));
    assert_eq!(value(&output, "kernel.share", Dim::Kernel, NCCL), None);
    assert_eq!(run(&job(&[], 0)).metrics.len(), 0);
}

#[test]
fn a_broken_table_is_reported_with_its_rank_and_node() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = export(folder.path(), 0, &[(0, 10, NCCL)], &[]);
    std::fs::write(path.join("StringIds.parquet"), "PAR1").expect("broken");
    let output = run(&job(&[path], 1));
    assert_eq!((codes(&output), output.metrics.len()), (vec!["report-unreadable"], 0));
    assert!(
        output.findings[0].message.starts_with("rank 0: table `StringIds`"),
        "{}",
        output.findings[0].message
    );
}

#[test]
fn messages() {
    let folder = tempfile::tempdir().expect("a folder");
    let many: Vec<String> = (0..203).map(|at| format!("kernel{at:03}")).collect();
    let many: Vec<Kernel> =
        (0..).zip(&many).map(|(at, name)| (at * 10, at * 10 + 5, name.as_str())).collect();
    let outputs = [
        run(&job(&[export(folder.path(), 0, &[], &[])], 1)),
        run(&job(&[export(folder.path(), 1, &[(0, 10, NCCL)], &[(3, "4096 events were dropped")])], 1)),
        run(&job(&[export(folder.path(), 2, &[(0, 10, NCCL), (10, 3, NCCL)], &[])], 1)),
        run(&job(&[export(folder.path(), 3, &many, &[])], 1)),
    ];
    insta::assert_snapshot!(crate::recipe::testing::messages(&outputs));
}
