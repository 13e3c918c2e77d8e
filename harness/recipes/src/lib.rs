//! What a measurement means: the recipes that turn logs, counters and reports into numbers (`recipe`) and tables
//! (`report`). It knows no cluster, no launcher and no verdict.
//!
//! Same bytes in, same bytes out: no clock, no network, no writes but the metrics file that the caller names.

pub mod busy;
pub mod catalogue;
pub mod chart;
pub mod diagnosis;
mod duration;
pub mod excerpt;
pub mod figures;
pub mod kernel_class;
pub mod own;
pub mod parquet;
pub mod recipe;
pub mod report;
pub mod result_table;
pub mod spans;
pub mod steps;
pub mod stragglers;
pub mod text_rows;

#[cfg(test)]
pub use nsys::testing;
