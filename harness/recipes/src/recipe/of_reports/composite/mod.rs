//! Tables that other recipes and people's own tools begin with: rows of several tables of a report together, with names
//! in place of ids and processes and threads separate. Their names and columns are the published ones.

pub(super) mod aws_ofi_nccl;
pub(super) mod calls;
pub(super) mod gpu;
pub(super) mod joined;
pub(super) mod nccl;
pub(super) mod sampled;

use crate::result_table::{Column, Quantity};

/// A column that is filled row by row.
struct Numbers {
    name: &'static str,
    values: Vec<Option<i64>>,
}

impl Numbers {
    fn new<const N: usize>(names: [&'static str; N]) -> [Numbers; N] {
        names.map(|name| Numbers { name, values: Vec::new() })
    }

    fn column(self) -> Column {
        Column::maybe_integers(self.name, Quantity::Plain, self.values)
    }
}

const WHOLE: &str = "every row of the report, sorted by start; times are the report's own, in nanoseconds";
