//! Jobs as recipes of suites see them, for their tests: files that lie somewhere, and ranks that must have left some.

use super::{FileRole, InputFile, JobInput, Workload};
use std::path::PathBuf;

/// One exported report for each of the first ranks; of so many ranks it is expected.
pub fn job(
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
        kept: Default::default(),
    }
}
