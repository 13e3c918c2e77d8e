//! The profiler's diagnostics of its own work: among others, that events were lost.

use super::{ColumnType, TableSpec, int, int_opt, optional, required, table};

/// Messages of nsys; `severity` 1 is information, 2 a warning, 3 an error.
pub const DIAGNOSTIC_EVENT: TableSpec = TableSpec {
    name: "DIAGNOSTIC_EVENT",
    older_name: None,
    columns: &[
        required("text", ColumnType::Text),
        optional("severity", ColumnType::Integer),
        optional("source", ColumnType::Integer),
    ],
};

/// What the profiler's own work cost the threads that did it.
pub const PROFILER_OVERHEAD: TableSpec =
    table("PROFILER_OVERHEAD", &[int("start"), int("end"), int_opt("globalTid")]);
