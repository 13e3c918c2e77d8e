//! Reports of Nsight Systems as they were exported: which files stand for one, their tables in every form of export, and
//! what the rows of one report say together. It knows no job and no metric.
//!
//! Same bytes in, same bytes out: no clock, no network, no writes.

// What `testing` makes is made for the tests of other crates too, which take the same files.
#[cfg(test)]
extern crate self as nsys;

pub mod export;
pub mod guarded;
pub mod huge_pages;
pub mod loss;
pub mod nccl;
pub mod report_file;
pub mod safe_parquet;
pub mod tables;
#[cfg(test)]
pub mod testing;
pub mod trace;
