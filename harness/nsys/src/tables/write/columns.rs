//! Writes any declared table column by column, as an export into a Parquet folder has it. What is not declared cannot
//! be written, and what every row must have cannot be left out: a simulated profiler and the recipes cannot drift apart.

use super::table;
use crate::tables::{ColumnType, TableSpec};
use polars::prelude::Column;

/// A table that is being written.
pub struct Columns {
    spec: &'static TableSpec,
    height: usize,
    columns: Vec<Column>,
    diagnostic: Option<String>,
}

impl Columns {
    /// An empty table; each column must then have `height` values.
    pub fn new(spec: &'static TableSpec, height: usize) -> Columns {
        Columns { spec, height, columns: Vec::new(), diagnostic: None }
    }

    /// A column of whole numbers, empty where a row has none.
    pub fn integers(mut self, name: &'static str, values: impl Iterator<Item = Option<i64>>) -> Columns {
        self.check(name, ColumnType::Integer);
        self.columns.push(super::integers(name, values));
        self
    }

    /// The same, where every row has one.
    pub fn numbers(self, name: &'static str, values: impl Iterator<Item = i64>) -> Columns {
        self.integers(name, values.map(Some))
    }

    /// A column of strings, empty where a row has none.
    pub fn texts<T: AsRef<str>>(
        mut self,
        name: &'static str,
        values: impl Iterator<Item = Option<T>>,
    ) -> Columns {
        self.check(name, ColumnType::Text);
        let values: Vec<Option<T>> = values.collect();
        self.columns.push(Column::new(
            name.into(),
            values.iter().map(|value| value.as_ref().map(T::as_ref)).collect::<Vec<Option<&str>>>(),
        ));
        self
    }

    /// A column of bytes, whatever they hold.
    pub fn blobs(mut self, name: &'static str, values: impl Iterator<Item = Option<Vec<u8>>>) -> Columns {
        self.check(name, ColumnType::Bytes);
        let values: Vec<Option<Vec<u8>>> = values.collect();
        let values: Vec<Option<&[u8]>> = values.iter().map(Option::as_deref).collect();
        self.columns.push(Column::new(name.into(), values));
        self
    }

    /// The bytes of the table's file. The same rows give the same bytes.
    pub fn bytes(self) -> Result<Vec<u8>, String> {
        let missing = self.spec.columns.iter().find(|column| {
            column.required && !self.columns.iter().any(|written| written.name() == column.name)
        });
        match (self.diagnostic, missing) {
            (Some(diagnostic), _) => Err(diagnostic),
            (None, Some(column)) => Err(format!(
                "`{}` is written without a column that it must have: `{}`",
                self.spec.name, column.name
            )),
            (None, None) => table(self.height, self.columns),
        }
    }

    fn check(&mut self, name: &str, kind: ColumnType) {
        let declared = self.spec.columns.iter().any(|column| column.name == name && column.kind == kind);
        if !declared {
            let table = self.spec.name;
            self.diagnostic.get_or_insert(format!("`{table}` has no such column of this kind: `{name}`"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{PROCESSES, STRING_IDS};

    #[test]
    fn what_is_not_declared_and_what_lacks_a_column_is_refused() {
        let one = || std::iter::once(Some(1));
        let undeclared = Columns::new(&STRING_IDS, 1).integers("id", one()).integers("length", one()).bytes();
        assert!(undeclared.is_err_and(|why| why.contains("`length`")));
        let of_another_kind =
            Columns::new(&STRING_IDS, 1).integers("id", one()).integers("value", one()).bytes();
        assert!(of_another_kind.is_err_and(|why| why.contains("`value`")));
        let lacking = Columns::new(&STRING_IDS, 1).integers("id", one()).bytes();
        assert!(lacking.is_err_and(|why| why.contains("must have: `value`")));
        assert!(Columns::new(&PROCESSES, 1).integers("pid", one()).bytes().is_ok());
    }
}
