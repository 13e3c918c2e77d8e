//! Ranges and marks that programs write into a trace, and the names of their domains.

use super::{TableSpec, int, int_opt, table, text_opt};

/// The name is `text`, else the string of `textId`. A range without an end was open when the capture ended.
pub const NVTX_EVENTS: TableSpec = table(
    "NVTX_EVENTS",
    &[
        int("start"),
        int_opt("end"),
        int("eventType"),
        text_opt("text"),
        int_opt("textId"),
        int_opt("globalTid"),
        int_opt("endGlobalTid"),
        int_opt("domainId"),
        int_opt("eventId"),
        text_opt("jsonText"),
        int_opt("jsonTextId"),
    ],
);
