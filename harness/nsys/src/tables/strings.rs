//! The strings that other tables refer to by id.

use super::{ColumnType, TableSpec, required};

/// Ids and their strings.
pub const STRING_IDS: TableSpec = TableSpec {
    name: "StringIds",
    older_name: None,
    columns: &[required("id", ColumnType::Integer), required("value", ColumnType::Text)],
};
