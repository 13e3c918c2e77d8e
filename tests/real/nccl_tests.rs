//! nccl-tests logs of real programs: each is read with all its figures recomputed, or refused.

use crate::corpus;
use crate::fact::Fact;
use logs::nccl_tests::{read, recompute};

pub(crate) const FACTS: &[Fact] =
    &[("real_logs_are_read_or_refused_with_a_reason", real_logs_are_read_or_refused_with_a_reason)];

fn real_logs_are_read_or_refused_with_a_reason() {
    let mut disagreeing = Vec::new();
    let mut recomputed = 0;
    for path in corpus::files("nccl-tests") {
        let name = corpus::name(&path);
        let bytes = std::fs::read(&path).expect("a file");
        match read(&bytes, &name) {
            Err(error) => assert!(!error.to_string().is_empty(), "{name}"),
            Ok(read) => {
                recomputed += read.runs.iter().map(|run| run.rows.len()).sum::<usize>();
                let off: usize = read.runs.iter().map(|run| recompute(run, None).len()).sum();
                if off > 0 {
                    disagreeing.push(name.clone());
                }
            }
        }
    }
    assert!(recomputed > 0, "no row was recomputed");
    assert!(disagreeing.is_empty(), "figures that do not follow from each other: {disagreeing:?}");
}
