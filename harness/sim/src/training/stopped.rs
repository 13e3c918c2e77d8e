//! What ranks say that waited for one who no longer calls: nothing for ten minutes, then all of them at once.

use super::Training;
use std::fmt::Write;

/// After so long a call that does not end is given up.
pub(crate) const WATCHDOG_S: f64 = 600.0;

/// The lines of all ranks, or of those of one node.
pub fn waited(training: &Training, silent: u32, node: Option<usize>) -> String {
    let per_node = training.ranks_per_node;
    let mut text = String::new();
    for rank in (0..training.ranks()).filter(|rank| *rank != silent) {
        if node.is_some_and(|node| node != (rank / per_node) as usize) {
            continue;
        }
        // Infallible: writing to a string.
        let _ = writeln!(
            text,
            "[rank{rank}]:[E1122 01:02:03.123456789 ProcessGroupNCCL.cpp:629] [Rank {}] Watchdog caught collective \
             operation timeout: WorkNCCL(SeqNum=413, OpType=_ALLGATHER_BASE, NumelIn=25296896, NumelOut=202375168, \
             Timeout(ms)=600000) ran for 600012 milliseconds before timing out.",
            rank % per_node
        );
    }
    text
}
