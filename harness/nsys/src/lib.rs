//! Exported reports of Nsight Systems: which files stand for a report, their tables in every export format, and what
//! the rows of one report say together. It knows no job and no metric.
//!
//! Same bytes in, same bytes out: no clock, no network, no writes.

pub mod export;
pub mod guarded;
pub mod huge_pages;
pub mod loss;
pub mod nccl;
pub mod regular_file;
pub mod report_file;
pub mod safe_parquet;
pub mod tables;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod trace;
