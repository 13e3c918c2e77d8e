//! Kernels that ran on GPUs: one row each, in nanoseconds since the start of the session.

use super::{ColumnType, TableSpec, optional, required};

/// Columns of names hold ids of `STRING_IDS`.
pub const KERNEL: TableSpec = TableSpec {
    name: "CUPTI_ACTIVITY_KIND_KERNEL",
    older_name: None,
    columns: &[
        required("start", ColumnType::Integer),
        required("end", ColumnType::Integer),
        required("deviceId", ColumnType::Integer),
        required("streamId", ColumnType::Integer),
        required("demangledName", ColumnType::Integer),
        required("shortName", ColumnType::Integer),
        optional("contextId", ColumnType::Integer),
        optional("correlationId", ColumnType::Integer),
        optional("globalPid", ColumnType::Integer),
        optional("mangledName", ColumnType::Integer),
        optional("greenContextId", ColumnType::Integer),
        optional("graphNodeId", ColumnType::Integer),
        optional("graphId", ColumnType::Integer),
        optional("gridX", ColumnType::Integer),
        optional("gridY", ColumnType::Integer),
        optional("gridZ", ColumnType::Integer),
        optional("blockX", ColumnType::Integer),
        optional("blockY", ColumnType::Integer),
        optional("blockZ", ColumnType::Integer),
        optional("registersPerThread", ColumnType::Integer),
        optional("staticSharedMemory", ColumnType::Integer),
        optional("dynamicSharedMemory", ColumnType::Integer),
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
