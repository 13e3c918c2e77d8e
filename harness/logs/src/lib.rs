//! Readers of texts in which measurements come home: logs, counters and flows, one file or folder per form. None of them
//! judges, and none knows a report of a profiler.
//!
//! Same bytes in, same bytes out: no clock, no network, no writes.

pub mod efa_counters;
pub mod encoding;
pub mod flight_recorder;
pub mod flow_log;
pub mod inspector;
pub mod lttng;
pub mod mpi_log;
pub mod nccl_debug;
mod nccl_prefix;
pub mod nccl_tests;
pub mod node_tools;
mod range;
pub mod ras;
pub mod slurmstepd;
pub mod stream;
mod text;
pub mod torch_failure;
pub mod training_log;
mod watchdog;
pub mod window_mark;
pub mod xid;
