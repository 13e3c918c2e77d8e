//! By which release an export was written and in which layout, as names and values.

use super::{Kind, TableSpec, required};

pub const META_DATA_EXPORT: TableSpec = TableSpec {
    name: "META_DATA_EXPORT",
    older_name: Some("EXPORT_META_DATA"),
    columns: &[required("name", Kind::Text), required("value", Kind::Text)],
};
