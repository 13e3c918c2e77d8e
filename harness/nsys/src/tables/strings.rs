//! The strings that other tables refer to by id.

use super::{Kind, TableSpec, required};

/// Ids and their strings.
pub const STRING_IDS: TableSpec = TableSpec {
    name: "StringIds",
    older_name: None,
    columns: &[required("id", Kind::Integer), required("value", Kind::Text)],
};
