//! The list of tables that an SQLite file opens with: for each its first page and the statement that made it.

use super::super::Fault;
use super::file::PageFile;
use super::scan::{self, From, Wanted};
use crate::tables::ColumnType;

pub(super) struct Schema {
    tables: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub name: String,
    /// `None` for a table that has no pages of its own.
    pub root: Option<u32>,
    pub statement: String,
}

impl Schema {
    pub(super) fn read(file: &PageFile) -> Result<Schema, String> {
        let field = |name, kind, at| Wanted { name, kind, from: From::Field { at, real: false } };
        let wanted = [
            field("type", ColumnType::Text, 0),
            field("name", ColumnType::Text, 1),
            field("rootpage", ColumnType::Integer, 3),
            field("sql", ColumnType::Text, 4),
        ];
        let read = scan::table(file, 1, &wanted);
        let frame = read.map_err(|fault| match fault {
            Fault::Broken(why) => why,
            Fault::NoColumn(column) => format!("no `{column}`"),
        })?;
        let text = |name: &str| frame.column(name).and_then(|column| column.str());
        let message = |error: polars::error::PolarsError| error.to_string();
        let roots = frame.column("rootpage").and_then(|column| column.i64()).map_err(message)?;
        let (kinds, names) = (text("type").map_err(message)?, text("name").map_err(message)?);
        let rows = kinds.iter().zip(names.iter()).zip(roots.iter()).zip(text("sql").map_err(message)?.iter());
        let tables = rows.filter(|(((kind, _), _), _)| *kind == Some("table"));
        let tables = tables.map(|(((_, name), root), statement)| Entry {
            name: name.unwrap_or_default().to_owned(),
            root: root.and_then(|root| u32::try_from(root).ok()).filter(|root| *root > 0),
            statement: statement.unwrap_or_default().to_owned(),
        });
        Ok(Schema { tables: tables.collect() })
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.tables.iter().map(|table| table.name.as_str())
    }

    /// All tables of this name: more than one is damage, which the caller reports.
    pub(super) fn called<'s>(&'s self, name: &str) -> impl Iterator<Item = &'s Entry> {
        self.tables.iter().filter(move |table| table.name == name)
    }
}
