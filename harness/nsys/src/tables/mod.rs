//! The tables of a profiler report as exports hold them: names, columns and which of them are required. Add one by its
//! declaration in the file of its kind and its line in `LIST`. `export` opens exports; recipes interpret the rows.

mod api;
mod diagnostics;
mod dx12;
mod enums;
mod gpu;
mod kernels;
mod memory;
mod meta;
mod metrics;
mod mpi;
mod network;
mod nvtx;
mod os;
mod strings;
mod target;
pub mod write;

pub use api::RUNTIME;
pub use diagnostics::{DIAGNOSTIC_EVENT, PROFILER_OVERHEAD};
pub use dx12::{DX12_API, DX12_MEMORY_OPERATION};
pub use enums::{MEM_KIND, MEMCPY_OPER};
pub use gpu::{GRAPH_TRACE, TARGET_INFO_GPU};
pub use kernels::{KERNEL, KernelRow};
pub use memory::{MEMCPY, MEMSET};
pub use meta::{META_DATA_CAPTURE, META_DATA_EXPORT};
pub use metrics::{
    GENERIC_EVENT_DATA, GENERIC_EVENT_SOURCES, GENERIC_EVENT_TYPE_FIELDS, GENERIC_EVENT_TYPES,
    GENERIC_EVENTS, GPU_METRICS, TARGET_INFO_GPU_METRICS,
};
pub use mpi::{
    MPI_COLLECTIVES, MPI_OTHER, MPI_P2P, MPI_RANKS, MPI_START_WAIT, UCP, UCP_PROGRESS, UCP_SUBMIT,
};
pub use network::{
    NET_IB_SWITCH_METRIC, NET_NIC_METRIC, NIC_ID_MAP, TARGET_INFO_NETWORK_METRICS, TARGET_INFO_NIC_INFO,
};
pub use nvtx::{
    NVTX_EVENTS, NVTX_PAYLOAD_ENUM_ENTRIES, NVTX_PAYLOAD_ENUMS, NVTX_PAYLOAD_SCHEMA_ENTRIES,
    NVTX_PAYLOAD_SCHEMAS,
};
pub use os::OSRT_API;
pub use strings::STRING_IDS;
pub use target::{ANALYSIS_DETAILS, PROCESSES, SESSION_START, SIMULATED, SYSTEM_ENV, THREAD_NAMES};

/// One table, as a recipe declares that it reads it.
#[derive(Debug, PartialEq, Eq)]
pub struct TableSpec {
    /// As current exports name it, such as `StringIds`.
    pub name: &'static str,
    /// What exports of an older layout call it.
    pub older_name: Option<&'static str>,
    /// All that can be read of it; an export may have others.
    pub columns: &'static [ColumnSpec],
}

/// A column that can be read, if an export has it.
#[derive(Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// As exports name it, such as `deviceId`.
    pub name: &'static str,
    /// What its values are read as.
    pub kind: ColumnType,
    /// An export without it cannot be read; one that is not required is empty where it is absent.
    pub required: bool,
}

/// Numbers are widened to 64 bits, whatever width an export has them in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// Read as `i64`.
    Integer,
    /// Read as `f64`.
    Real,
    /// Read as strings.
    Text,
    /// As they stand, whatever they hold.
    Bytes,
}

/// Every table that some recipe or report reads.
pub const LIST: [&TableSpec; 46] = [
    &KERNEL,
    &MEMCPY,
    &MEMSET,
    &GRAPH_TRACE,
    &RUNTIME,
    &STRING_IDS,
    &MEMCPY_OPER,
    &MEM_KIND,
    &NVTX_EVENTS,
    &NVTX_PAYLOAD_SCHEMAS,
    &NVTX_PAYLOAD_SCHEMA_ENTRIES,
    &NVTX_PAYLOAD_ENUMS,
    &NVTX_PAYLOAD_ENUM_ENTRIES,
    &OSRT_API,
    &MPI_P2P,
    &MPI_COLLECTIVES,
    &MPI_START_WAIT,
    &MPI_OTHER,
    &MPI_RANKS,
    &UCP,
    &UCP_SUBMIT,
    &UCP_PROGRESS,
    &NET_NIC_METRIC,
    &NET_IB_SWITCH_METRIC,
    &NIC_ID_MAP,
    &TARGET_INFO_NIC_INFO,
    &TARGET_INFO_NETWORK_METRICS,
    &GPU_METRICS,
    &TARGET_INFO_GPU_METRICS,
    &GENERIC_EVENTS,
    &GENERIC_EVENT_SOURCES,
    &GENERIC_EVENT_TYPES,
    &GENERIC_EVENT_TYPE_FIELDS,
    &GENERIC_EVENT_DATA,
    &TARGET_INFO_GPU,
    &PROCESSES,
    &THREAD_NAMES,
    &SESSION_START,
    &SYSTEM_ENV,
    &ANALYSIS_DETAILS,
    &DIAGNOSTIC_EVENT,
    &PROFILER_OVERHEAD,
    &DX12_API,
    &DX12_MEMORY_OPERATION,
    &META_DATA_EXPORT,
    &META_DATA_CAPTURE,
];

const fn table(name: &'static str, columns: &'static [ColumnSpec]) -> TableSpec {
    TableSpec { name, older_name: None, columns }
}

const fn required(name: &'static str, kind: ColumnType) -> ColumnSpec {
    ColumnSpec { name, kind, required: true }
}

const fn optional(name: &'static str, kind: ColumnType) -> ColumnSpec {
    ColumnSpec { name, kind, required: false }
}

/// A number that every row has.
const fn int(name: &'static str) -> ColumnSpec {
    required(name, ColumnType::Integer)
}

/// A number that a row, or a whole export, may lack.
const fn int_opt(name: &'static str) -> ColumnSpec {
    optional(name, ColumnType::Integer)
}

const fn text(name: &'static str) -> ColumnSpec {
    required(name, ColumnType::Text)
}

const fn text_opt(name: &'static str) -> ColumnSpec {
    optional(name, ColumnType::Text)
}

const fn bytes_opt(name: &'static str) -> ColumnSpec {
    optional(name, ColumnType::Bytes)
}

const fn real_opt(name: &'static str) -> ColumnSpec {
    optional(name, ColumnType::Real)
}
