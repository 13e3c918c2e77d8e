//! Samples over time: of GPUs, and of whatever a plugin writes as generic events.

use super::{TableSpec, int, int_opt, real_opt, table, text_opt};

/// Samples of GPUs: one value of one metric at a time.
pub const GPU_METRICS: TableSpec =
    table("GPU_METRICS", &[int("timestamp"), int("typeId"), int("metricId"), int("value")]);

/// Names of the metrics of `GPU_METRICS`, by `typeId` and `metricId`.
pub const TARGET_INFO_GPU_METRICS: TableSpec =
    table("TARGET_INFO_GPU_METRICS", &[int("typeId"), int("metricId"), text_opt("metricName")]);

/// Older exports have no `genericEventId` and hold everything in `data`, as JSON.
pub const GENERIC_EVENTS: TableSpec =
    table("GENERIC_EVENTS", &[int("timestamp"), int("typeId"), int_opt("genericEventId"), text_opt("data")]);

/// Names of what wrote generic events.
pub const GENERIC_EVENT_SOURCES: TableSpec =
    table("GENERIC_EVENT_SOURCES", &[int("sourceId"), int_opt("nameId"), text_opt("data")]);

/// Names of the types of generic events, and the source of each.
pub const GENERIC_EVENT_TYPES: TableSpec =
    table("GENERIC_EVENT_TYPES", &[int("typeId"), int("sourceId"), int_opt("nameId"), text_opt("data")]);

/// Names of the fields of each type of generic event.
pub const GENERIC_EVENT_TYPE_FIELDS: TableSpec =
    table("GENERIC_EVENT_TYPE_FIELDS", &[int("typeId"), int("fieldIdx"), int("fieldNameId")]);

/// Numbers of generic events: one row per field of an event.
pub const GENERIC_EVENT_DATA: TableSpec = table(
    "GENERIC_EVENT_DATA",
    &[
        int("genericEventId"),
        int("fieldIdx"),
        int_opt("intVal"),
        int_opt("uintVal"),
        real_opt("floatVal"),
        real_opt("doubleVal"),
    ],
);
