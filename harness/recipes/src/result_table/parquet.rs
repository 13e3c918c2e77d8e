//! A table as Parquet: plain numbers, unrounded, each column's unit in the file's metadata under `unit.<column>`.

use super::{List, Quantity, ResultTable, Values};
use polars::prelude::*;

/// The same table gives the same bytes.
pub fn bytes(result_table: &ResultTable) -> Result<Vec<u8>, String> {
    let columns = result_table.columns.iter().map(|column| {
        let name = PlSmallStr::from_str(&column.name);
        match &column.values {
            Values::Integers(all) => Int64Chunked::from_iter_options(name, all.iter()).into_column(),
            Values::Decimals(all) => Column::new(name, all),
            Values::Texts(all) => StringChunked::from_iter_options(name, all.iter()).into_column(),
            Values::Lists(all) => lists(name, all),
        }
    });
    let units = result_table.columns.iter().filter_map(|column| {
        let unit = match column.quantity {
            Quantity::Plain | Quantity::Fraction | Quantity::Verbatim => return None,
            Quantity::Nanoseconds | Quantity::BareNanoseconds => "ns",
            Quantity::Bytes => "B",
            Quantity::BytesPerSecond => "B/s",
            Quantity::Percent => "%",
        };
        Some((format!("unit.{}", column.name), unit.to_owned()))
    });
    let write = || -> PolarsResult<Vec<u8>> {
        let mut frame = DataFrame::new(result_table.height(), columns.collect())?;
        let mut bytes = Vec::new();
        ParquetWriter::new(&mut bytes)
            .with_compression(ParquetCompression::Snappy)
            .with_key_value_metadata(Some(KeyValueMetadata::from_static(units.collect())))
            .finish(&mut frame)?;
        Ok(bytes)
    };
    write().map_err(|error| error.to_string())
}

fn lists(name: PlSmallStr, all: &[Option<List>]) -> Column {
    let numbers = all.iter().flatten().map(|list| list.numbers().len()).sum();
    let mut built = ListPrimitiveChunkedBuilder::<Int64Type>::new(name, all.len(), numbers, DataType::Int64);
    for list in all {
        match list {
            Some(list) => built.append_slice(list.numbers()),
            None => built.append_null(),
        }
    }
    built.finish().into_column()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result_table::Column as TableColumn;
    use std::io::Cursor;

    #[test]
    fn numbers_stand_there_unrounded_and_an_empty_cell_is_no_zero() {
        let result_table = ResultTable {
            name: "n".into(),
            title: "t".into(),
            columns: vec![
                TableColumn::decimals("Avg", Quantity::Nanoseconds, [1.0 / 3.0, 2.0]),
                TableColumn::maybe_integers("Min", Quantity::Plain, [None, Some(5)]),
                TableColumn::texts("Name", ["a,\"b\"", "\u{1b}[31m"]),
                TableColumn::maybe_lists("Stack", [None, Some(vec![6, 7])]),
            ],
        };
        let written = bytes(&result_table).expect("written");
        assert_eq!(written, bytes(&result_table).expect("written"));
        let mut reader = ParquetReader::new(Cursor::new(written));
        let metadata =
            reader.get_metadata().expect("metadata").key_value_metadata().clone().unwrap_or_default();
        assert!(metadata.iter().any(|pair| pair.key == "unit.Avg" && pair.value.as_deref() == Some("ns")));
        let frame = reader.finish().expect("read");
        assert_eq!(frame.column("Avg").expect("there").f64().expect("numbers").get(0), Some(1.0 / 3.0));
        assert_eq!(frame.column("Min").expect("there").i64().expect("numbers").get(0), None);
        let stacks = frame.column("Stack").expect("there").list().expect("lists").clone();
        assert!(stacks.get_as_series(0).is_none());
        let stack = stacks.get_as_series(1).expect("a list");
        assert_eq!(stack.i64().expect("numbers").to_vec(), [Some(6), Some(7)]);
        assert_eq!(frame.column("Name").expect("there").str().expect("texts").get(1), Some("\u{1b}[31m"));
    }
}
