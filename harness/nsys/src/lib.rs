//! Reports of Nsight Systems as they were exported: which files stand for one, their tables in every form of export, and
//! what the rows of one report say together. It knows no job and no metric.
//!
//! Same bytes in, same bytes out: no clock, no network, no writes.

pub mod export;
pub mod guarded;
pub mod huge_pages;
pub mod loss;
pub mod nccl;
pub mod report_file;
pub mod safe_parquet;
pub mod tables;
pub mod trace;

// Tests of other crates make the same exports: they take the same files, by path.
#[cfg(test)]
extern crate self as nsys;
#[cfg(test)]
pub mod testing;
