//! Kernels that ran on GPUs: one row each, in nanoseconds since the start of the session.

use super::{Kind, TableSpec, optional, required};

/// Columns of names hold ids of `STRING_IDS`.
pub const KERNEL: TableSpec = TableSpec {
    name: "CUPTI_ACTIVITY_KIND_KERNEL",
    older_name: None,
    columns: &[
        required("start", Kind::Integer),
        required("end", Kind::Integer),
        required("deviceId", Kind::Integer),
        required("streamId", Kind::Integer),
        required("demangledName", Kind::Integer),
        required("shortName", Kind::Integer),
        optional("contextId", Kind::Integer),
        optional("correlationId", Kind::Integer),
        optional("globalPid", Kind::Integer),
        optional("mangledName", Kind::Integer),
        optional("greenContextId", Kind::Integer),
        optional("graphNodeId", Kind::Integer),
        optional("graphId", Kind::Integer),
        optional("gridX", Kind::Integer),
        optional("gridY", Kind::Integer),
        optional("gridZ", Kind::Integer),
        optional("blockX", Kind::Integer),
        optional("blockY", Kind::Integer),
        optional("blockZ", Kind::Integer),
        optional("registersPerThread", Kind::Integer),
        optional("staticSharedMemory", Kind::Integer),
        optional("dynamicSharedMemory", Kind::Integer),
    ],
};

/// One row, as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelRow {
    /// Nanoseconds since the start of the session.
    pub start: i64,
    /// Nanoseconds since the start of the session.
    pub end: i64,
    /// Number of the GPU in the report.
    pub device_id: i64,
    /// CUDA context on that GPU.
    pub context_id: i64,
    /// CUDA stream of that context.
    pub stream_id: i64,
    /// The same as in the row of the launching CUDA call.
    pub correlation_id: Option<i64>,
    /// Process that it ran for, as `process_of` gives it.
    pub global_pid: Option<i64>,
    /// Ids of strings.
    pub short_name: i64,
    /// Id of the name with its signature.
    pub demangled_name: i64,
}
