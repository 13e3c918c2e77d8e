//! NCCL's RAS in a job: where it listens, and the files that a node leaves of what it reports while the job stalls.

/// Where each rank listens, unless a variable says otherwise.
pub const PORT: u16 = 28028;
/// So many nodes of a job are asked: each reports of all ranks, and the first may be the one that hangs.
pub const ASKED: usize = 2;
/// What a person may set of it: who did is not asked.
pub const OWN: [&str; 2] = ["NCCL_RAS_ENABLE", "NCCL_RAS_ADDR"];

/// What a node leaves: its addresses, and what RAS reports there.
pub fn file(node: &str) -> String {
    format!("ras.{node}.txt")
}
