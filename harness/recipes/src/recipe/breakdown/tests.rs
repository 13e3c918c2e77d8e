//! Parts of the time of small exports, and every way in which there are none.

use super::*;
use crate::testing::exports::{self as testing, Kernel};
use crate::testing::{Made, PROCESS};
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

fn values(output: &Output, metric: &str) -> Vec<f64> {
    output.metrics.iter().filter(|row| &*row.name == metric).map(|row| row.value).collect()
}

fn codes(output: &Output) -> Vec<&str> {
    output.findings.iter().map(|finding| finding.code.as_str()).collect()
}

/// No number at all, and one finding that says why; the judge takes it for the cause.
fn assert_nothing(output: &Output, code: &str) {
    assert_eq!((codes(output), output.metrics.len()), (vec![code], 0));
    assert!(SPEC.is_cause(code), "{code}");
}

#[test]
fn parts_are_of_the_time_of_all_ranks_together() {
    let folder = tempfile::tempdir().expect("a folder");
    // Communication from 0 to 40 of which 10 beside computation, idle from 60 to 90.
    let one = export(folder.path(), 0, &[(0, 40, NCCL), (30, 60, "gemm"), (90, 100, "gemm")], &[]);
    let two = export(folder.path(), 1, &[(0, 300, "gemm")], &[]);
    let output = run(&job(&[one, two], 2));
    assert_eq!(codes(&output), [] as [&str; 0]);
    assert_eq!(values(&output, "gpu.exposed_comm_share"), [30.0 / 400.0]);
    assert_eq!(values(&output, "gpu.idle_share"), [30.0 / 400.0]);
    assert_eq!(values(&output, "gpu.compute_share"), [340.0 / 400.0]);
    assert_eq!(values(&output, "rank.exposed_comm_share"), [0.3, 0.0]);
    assert_eq!(values(&output, "rank.idle_share"), [0.3, 0.0]);
    assert_eq!(values(&output, "rank.compute_share"), [0.4, 1.0]);
    let declared = SPEC.metrics.iter().all(|spec| !values(&output, &spec.name).is_empty());
    assert!(declared && output.metrics.len() == 9);
}

#[test]
fn without_kernels_there_is_a_finding_and_no_number() {
    let folder = tempfile::tempdir().expect("a folder");
    for kernels in [&[][..], &[(5, 5, NCCL)][..]] {
        assert_nothing(&run(&job(&[export(folder.path(), 0, kernels, &[])], 1)), "no-kernels");
    }
    let made = Made::begin();
    made.fill((0, 10), 1);
    assert_nothing(&run(&job(&[made.path()], 1)), "no-kernels");
}

#[test]
fn incomplete_or_garbled_reports_give_no_metric() {
    let folder = tempfile::tempdir().expect("a folder");
    let lossy = export(folder.path(), 0, &[(0, 10, NCCL)], &[(3, "4096 events were dropped")]);
    assert_nothing(&run(&job(&[lossy], 1)), "events-dropped");
    let backwards = export(folder.path(), 1, &[(0, 10, NCCL), (10, 3, NCCL)], &[]);
    assert_nothing(&run(&job(&[backwards], 1)), "report-garbled");
    let broken = export(folder.path(), 2, &[(0, 10, NCCL)], &[]);
    std::fs::write(broken.join("CUPTI_ACTIVITY_KIND_KERNEL.parquet"), "PAR1").expect("broken");
    assert_nothing(&run(&job(&[broken], 1)), "report-unreadable");
    assert_nothing(&run(&job(&[folder.path().join("nowhere")], 1)), "report-unreadable");
    let made = Made::begin();
    made.string(1, NCCL).string(2, NCCL).kernel((0, 10), 1, 1);
    let graph = [("start", 5), ("end", 30), ("deviceId", 0), ("globalPid", PROCESS)];
    let graph: Vec<_> = graph.iter().map(|(name, value)| (*name, (*value).into())).collect();
    made.put(&GRAPH_TRACE, &graph);
    assert_nothing(&run(&job(&[made.path()], 1)), "graphs-whole");
}

#[test]
fn a_rank_without_data_leaves_the_job_without_metrics() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = export(folder.path(), 0, &[(0, 10, NCCL)], &[]);
    let empty = export(folder.path(), 1, &[], &[]);
    let output = run(&job(&[whole.clone(), empty], 2));
    assert_eq!((codes(&output), output.findings[0].node.as_deref()), (vec!["no-kernels"], Some("n1")));
    assert_eq!((values(&output, "gpu.idle_share").len(), values(&output, "rank.idle_share").len()), (0, 1));
    let output = run(&job(&[whole], 2));
    assert_eq!((values(&output, "gpu.idle_share").len(), output.findings.len()), (0, 0));
    assert_eq!(run(&job(&[], 0)).metrics.len(), 0);
}

#[test]
fn messages() {
    let folder = tempfile::tempdir().expect("a folder");
    let graphs = Made::begin();
    graphs.string(1, NCCL).string(2, NCCL).kernel((0, 10), 1, 1);
    let graph = [("start", 5), ("end", 30), ("deviceId", 0), ("globalPid", PROCESS)];
    let graph: Vec<_> = graph.iter().map(|(name, value)| (*name, (*value).into())).collect();
    graphs.put(&GRAPH_TRACE, &graph);
    let outputs = [
        run(&job(&[export(folder.path(), 0, &[], &[])], 1)),
        run(&job(&[export(folder.path(), 1, &[(0, 10, NCCL)], &[(3, "4096 events were dropped")])], 1)),
        run(&job(&[export(folder.path(), 2, &[(0, 10, NCCL), (10, 3, NCCL)], &[])], 1)),
        run(&job(&[graphs.path()], 1)),
    ];
    insta::assert_snapshot!(crate::recipe::testing::messages(&outputs));
}
