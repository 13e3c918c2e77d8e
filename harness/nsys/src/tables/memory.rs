//! Copies and fills of memory by GPUs.

use super::{TableSpec, int, int_opt, table};

/// Copies; `bytes` each, between the kinds of memory `srcKind` and `dstKind`.
pub const MEMCPY: TableSpec = table(
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    &[
        int("start"),
        int("end"),
        int("bytes"),
        int("copyKind"),
        int("deviceId"),
        int_opt("contextId"),
        int_opt("greenContextId"),
        int_opt("streamId"),
        int_opt("correlationId"),
        int_opt("globalPid"),
        int_opt("srcKind"),
        int_opt("dstKind"),
        int_opt("graphNodeId"),
    ],
);

/// Fills; `bytes` each.
pub const MEMSET: TableSpec = table(
    "CUPTI_ACTIVITY_KIND_MEMSET",
    &[
        int("start"),
        int("end"),
        int("bytes"),
        int("deviceId"),
        int_opt("contextId"),
        int_opt("greenContextId"),
        int_opt("streamId"),
        int_opt("correlationId"),
        int_opt("globalPid"),
        int_opt("memKind"),
        int_opt("graphNodeId"),
    ],
);
