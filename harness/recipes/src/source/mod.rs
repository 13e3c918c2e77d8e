//! The forms in which measurements come home, one file or folder per form. None of them judges.

pub mod efa_counters;
pub mod encoding;
pub mod flow_log;
pub mod lttng;
pub mod mpi_log;
pub mod nccl_debug;
mod nccl_prefix;
pub mod nccl_tests;
pub mod nsys_export;
pub mod report_file;
pub(crate) mod safe_parquet;
pub mod stream;
mod text;
pub mod torch_failure;
pub mod training_log;
