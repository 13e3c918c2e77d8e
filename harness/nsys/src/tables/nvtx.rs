//! Ranges and marks that programs write into a trace, and the names of their domains.

use super::{TableSpec, bytes_opt, int, int_opt, table, text_opt};

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
        bytes_opt("binaryData"),
    ],
);

/// How payloads are laid out. Each process has its own, under numbers that another may use for another one.
pub const NVTX_PAYLOAD_SCHEMAS: TableSpec = table(
    "NVTX_PAYLOAD_SCHEMAS",
    &[int_opt("domainId"), int_opt("schemaId"), text_opt("name"), int_opt("payloadSize")],
);

/// The fields of a layout. The offset of the first one may be left out.
pub const NVTX_PAYLOAD_SCHEMA_ENTRIES: TableSpec = table(
    "NVTX_PAYLOAD_SCHEMA_ENTRIES",
    &[int("domainId"), int("schemaId"), int("idx"), int_opt("type"), text_opt("name"), int_opt("offset")],
);

/// Enumerations that fields of payloads may have as type; `size` is in bytes.
pub const NVTX_PAYLOAD_ENUMS: TableSpec = table(
    "NVTX_PAYLOAD_ENUMS",
    &[int_opt("domainId"), int_opt("schemaId"), text_opt("name"), int_opt("size")],
);

/// What the numbers of a field stand for.
pub const NVTX_PAYLOAD_ENUM_ENTRIES: TableSpec = table(
    "NVTX_PAYLOAD_ENUM_ENTRIES",
    &[int("domainId"), int("schemaId"), int("idx"), text_opt("name"), int_opt("value")],
);
