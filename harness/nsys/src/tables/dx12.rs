//! Calls of DirectX 12 and what they did to memory.

use super::{TableSpec, int, int_opt, table};

/// DirectX 12 calls; `DX12_MEMORY_OPERATION` refers to their `id`.
pub const DX12_API: TableSpec =
    table("DX12_API", &[int("id"), int("start"), int("end"), int("nameId"), int_opt("globalTid")]);

/// `rangeStart` and `rangeEnd` are bytes of the memory; `traceEventId` is the call.
pub const DX12_MEMORY_OPERATION: TableSpec = table(
    "DX12_MEMORY_OPERATION",
    &[
        int("traceEventId"),
        int_opt("gpu"),
        int_opt("rangeStart"),
        int_opt("rangeEnd"),
        int_opt("heapType"),
        int_opt("heapFlags"),
        int_opt("cpuPageProperty"),
    ],
);
