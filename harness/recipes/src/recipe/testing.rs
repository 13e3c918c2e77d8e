//! Jobs as recipes of suites see them, for their tests: files that lie somewhere, and ranks that must have left some.

use super::{FileRole, InputFile, JobInput, Output, Workload};
use metric::op::Op;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// One exported report for each of the first ranks; `expected` ranks should have one.
pub(crate) fn job(
    workload: Workload,
    exports: &[PathBuf],
    node_of: impl Fn(u32) -> String,
    expected: u32,
) -> JobInput {
    let file = |(rank, path): (u32, &PathBuf)| InputFile {
        role: FileRole::NsysExport,
        path: path.clone(),
        shown: format!("raw/j/{rank}"),
        node: Some(node_of(rank)),
        part: None,
        rank: Some(rank),
    };
    JobInput {
        case: "c".into(),
        job: "j".into(),
        round: 0,
        nodes: vec![node_of(0)],
        nics: Vec::new(),
        tx_counters: Vec::new(),
        rx_counters: Vec::new(),
        conservation_shown: false,
        workload,
        exit_code: Some(0),
        seconds: None,
        files: (0..).zip(exports).map(file).collect(),
        expected_exports: (0..expected).map(|rank| (rank, node_of(rank))).collect(),
        window: None,
        gpu_places: Default::default(),
        host_names: Default::default(),
        kept: Default::default(),
    }
}

/// A sweep of a collective by nccl-tests, checked.
pub(crate) fn nccl_workload(op: Op, sizes: &[u64], ranks: Option<u32>) -> Workload {
    Workload::NcclTests {
        op,
        sizes: sizes.to_vec(),
        ranks_per_communicator: ranks,
        checked: true,
        by_torch: false,
        sweep: None,
    }
}

/// A file that holds this text, as long as it is kept.
pub(crate) fn file_with(text: &str) -> NamedTempFile {
    let file = NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), text).expect("written");
    file
}

/// A file of a whole job: of no node, part or rank.
pub(crate) fn job_file(role: FileRole, path: &Path, name: &str) -> InputFile {
    let (path, shown) = (path.to_owned(), format!("raw/j/{name}"));
    InputFile { role, path, shown, node: None, part: None, rank: None }
}

/// All that an output says to a person, a line each, for snapshots.
pub(crate) fn messages(outputs: &[Output]) -> String {
    let of_one = |output: &Output| {
        let findings = output.findings.iter().map(|it| format!("{}: {}", it.code, it.message));
        let failure = output.failure.iter().map(|it| format!("failure {}: {}", it.cause, it.evidence));
        let other =
            output.not_comparable.iter().map(|it| format!("not comparable, {}: {}", it.cause, it.why));
        findings.chain(failure).chain(other).collect::<Vec<_>>()
    };
    outputs.iter().flat_map(of_one).collect::<Vec<_>>().join("\n")
}

/// Two ranks on two nodes, two sizes, both placements, all well: as nccl-tests prints it.
pub(crate) const PRINTED: &str = "\
# nccl-tests version 2.17.6 nccl-headers=22809 nccl-library=22809
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 8388608 maxBytes 16777216 step: 2(factor) warmup iters: 1 iters: 3 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   1001 on         n1 device  0 [0000:17:00] NVIDIA Test GPU
#  Rank  1 Group  0 Pid   1002 on         n2 device  0 [0000:17:00] NVIDIA Test GPU
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
     8388608       2097152     float     sum      -1   100.00   83.89   83.89       0   100.00   83.89   83.89       0
    16777216       4194304     float     sum      -1   200.00   83.89   83.89       0   200.00   83.89   83.89       0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 83.8861
#
# Collective test concluded: all_reduce_perf
#
";
