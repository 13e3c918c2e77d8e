//! What a measurement means: the recipes that turn logs, counters and reports into numbers (`recipe`) and tables
//! (`report`). It knows no cluster, no launcher and no verdict.
//!
//! Same bytes in, same bytes out: no clock, no network, no writes but the metrics file that the caller names.

pub mod busy;
pub mod figures;
pub mod kernel_class;
mod known;
pub mod own;
pub mod parquet;
pub mod picture;
pub mod recipe;
mod registered;
pub mod report;
pub mod sheet;
pub mod spans;
pub mod steps;
pub mod stragglers;
#[cfg(test)]
#[path = "../../nsys/src/testing/mod.rs"]
pub mod testing;
