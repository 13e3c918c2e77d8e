//! Calls of the CUDA runtime and of the CUDA driver, on the threads that made them.

use super::{TableSpec, int, int_opt, table};

/// CUDA calls; `correlationId` joins them with the GPU work that they launched.
pub const RUNTIME: TableSpec = table(
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    &[
        int("start"),
        int("end"),
        int("nameId"),
        int_opt("globalTid"),
        int_opt("correlationId"),
        int_opt("eventClass"),
        int_opt("returnValue"),
    ],
);
