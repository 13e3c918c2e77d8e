//! What a measurement means: readers of logs and counters (`source`), the recipes that turn them into numbers
//! (`recipe`), and the table of metrics. It knows no cluster, no launcher and no verdict, and it alone knows polars.
//!
//! Same bytes in, same bytes out: no clock, no network, no writes but the metrics file that the caller names.

pub mod busy;
pub mod figures;
pub mod finding;
pub mod guarded;
pub mod huge_pages;
pub mod kernel_class;
mod known;
pub mod loss;
pub mod metric;
pub mod nccl;
pub mod op;
pub mod own;
pub mod parquet;
pub mod picture;
pub mod quantile;
pub mod recipe;
mod registered;
pub mod report;
pub mod sheet;
pub mod slope;
pub mod source;
pub mod spans;
pub mod steps;
pub mod stragglers;
pub mod tables;
#[cfg(test)]
mod testing;
pub mod trace;
pub mod unit;
pub mod warmup;
