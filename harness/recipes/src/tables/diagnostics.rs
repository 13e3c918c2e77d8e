//! What the profiler says of its own work: among much else, that it lost something.

use super::{Kind, TableSpec, optional, required};

pub const DIAGNOSTIC_EVENT: TableSpec = TableSpec {
    name: "DIAGNOSTIC_EVENT",
    older_name: None,
    columns: &[
        required("text", Kind::Text),
        optional("severity", Kind::Integer),
        optional("source", Kind::Integer),
    ],
};
