//! What a recorded name stands for, and what the ranks of a group must have in common when they call it.

use super::dump::{Entry, Tensors};

/// Names by what they contain: the longer ones first, since some contain others.
const OPERATIONS: [(&str, &str); 14] = [
    ("reduce_scatter", "reduce_scatter"),
    ("all_gather", "all_gather"),
    ("allgather", "all_gather"),
    ("all_reduce", "all_reduce"),
    ("allreduce", "all_reduce"),
    ("all_to_all", "all_to_all"),
    ("alltoall", "all_to_all"),
    ("broadcast", "broadcast"),
    ("barrier", "barrier"),
    ("gather", "gather"),
    ("scatter", "scatter"),
    ("coalesced", "coalesced"),
    ("reduce", "reduce"),
    ("send", "send"),
];

/// `nccl:_all_gather_base` is `all_gather`; what is not known stays as it is.
pub(super) fn operation(name: &str) -> &str {
    let bare = name.split_once(':').map_or(name, |(_, bare)| bare);
    OPERATIONS.iter().find(|(part, _)| bare.contains(part)).map_or(bare, |(_, operation)| operation)
}

/// The side whose number of elements must be the same on all ranks; none where ranks may differ or it is not known.
pub(super) fn common_side<'a>(operation: &str, entry: &'a Entry) -> Option<&'a Tensors> {
    match operation {
        "all_reduce" | "all_gather" | "reduce_scatter" | "broadcast" | "reduce" | "gather" => {
            Some(&entry.input)
        }
        "scatter" => Some(&entry.output),
        _ => None,
    }
}

/// Whether no rank can complete it before all have entered: the root of a broadcast may.
pub(super) fn needs_all(operation: &str) -> bool {
    matches!(operation, "all_reduce" | "all_gather" | "reduce_scatter" | "all_to_all" | "barrier")
}

/// Gloo has no events: an entry that its watchdog let go of is done. Of others it may have timed out.
pub(super) fn is_pending(entry: &Entry) -> bool {
    let is_gloo = entry.name.starts_with("gloo:");
    !(entry.is_part || entry.is_completed || (entry.is_retired && is_gloo))
}
