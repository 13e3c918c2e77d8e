//! Calls into the C library.

use super::{TableSpec, int, int_opt, table};

/// One row per call; `nameId` is an id of `STRING_IDS`.
pub const OSRT_API: TableSpec = table(
    "OSRT_API",
    &[int("start"), int("end"), int("nameId"), int_opt("eventClass"), int_opt("globalTid")],
);
