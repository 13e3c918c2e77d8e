//! The GPUs of a node, and graphs that ran on them as a whole.

use super::{TableSpec, int, int_opt, table, text_opt};

/// `id` is the profiler's number of a GPU, `cuDevice` that of CUDA: they differ at times.
pub const TARGET_INFO_GPU: TableSpec =
    table("TARGET_INFO_GPU", &[int("id"), text_opt("name"), int_opt("cuDevice"), text_opt("uuid")]);

/// CUDA graphs that were traced as a whole, one row per launch.
pub const GRAPH_TRACE: TableSpec = table(
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    &[
        int("start"),
        int("end"),
        int("deviceId"),
        int_opt("contextId"),
        int_opt("greenContextId"),
        int_opt("streamId"),
        int_opt("correlationId"),
        int_opt("globalPid"),
        int_opt("graphId"),
    ],
);
