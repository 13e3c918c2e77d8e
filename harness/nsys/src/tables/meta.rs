//! Release and schema version of an export, and the options of its capture, as names and values.

use super::{ColumnType, TableSpec, required, table, text, text_opt};

/// Holds `EXPORT_PRODUCT_VERSION` and `EXPORT_SCHEMA_VERSION`, among others.
pub const META_DATA_EXPORT: TableSpec = TableSpec {
    name: "META_DATA_EXPORT",
    older_name: Some("EXPORT_META_DATA"),
    columns: &[required("name", ColumnType::Text), required("value", ColumnType::Text)],
};

/// Options of the capture.
pub const META_DATA_CAPTURE: TableSpec = table("META_DATA_CAPTURE", &[text("name"), text_opt("value")]);
