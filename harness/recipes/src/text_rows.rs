//! A table of texts as a Parquet file: any tool can query it, and equal texts are stored once.

use nsys::safe_parquet::{self, check_columns, check_frame, guarded, unpacked_limit};
use polars::prelude::*;
use std::io::Cursor;
use std::sync::Arc;

/// Rows of as many cells as there are columns; a row of another length is an error.
pub fn to_parquet(columns: &[&str], rows: &[Vec<&str>]) -> Result<Vec<u8>, String> {
    if let Some(at) = rows.iter().position(|row| row.len() != columns.len()) {
        return Err(format!("row {at} has not one cell for each column"));
    }
    let column = |(nth, name): (usize, &&str)| {
        let cells: Vec<&str> = rows.iter().filter_map(|row| row.get(nth).copied()).collect();
        Column::new((*name).into(), cells)
    };
    let mut bytes = Vec::new();
    DataFrame::new(rows.len(), columns.iter().enumerate().map(column).collect())
        .and_then(|mut frame| {
            ParquetWriter::new(&mut bytes).with_compression(ParquetCompression::Snappy).finish(&mut frame)
        })
        .map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// Gives each row of what `to_parquet` wrote, in its order; a damaged or hostile file is an error. Rows before the damage
/// may have been given.
pub fn from_parquet(bytes: &[u8], columns: &[&str], take: &mut dyn FnMut(&[&str])) -> Result<(), String> {
    let frame = guarded(|| read(bytes)).unwrap_or_else(Err)?;
    let texts = columns.iter().map(|name| frame.column(name)?.str()).collect::<PolarsResult<Vec<_>>>();
    let texts = texts.map_err(|error| error.to_string())?;
    let mut cells = Vec::with_capacity(columns.len());
    for at in 0..frame.height() {
        cells.clear();
        for text in &texts {
            cells.push(text.get(at).ok_or_else(|| format!("row {at} has an empty cell"))?);
        }
        take(&cells);
    }
    Ok(())
}

fn read(bytes: &[u8]) -> Result<DataFrame, String> {
    let most = unpacked_limit(bytes.len() as u64);
    let mut file = Cursor::new(bytes);
    let metadata = safe_parquet::metadata(&mut file)?;
    check_columns(&mut file, &metadata, |_| true, most)?;
    let mut reader = ParquetReader::new(file);
    reader.set_metadata(Arc::new(metadata));
    let frame = reader.finish().map_err(|error| error.to_string())?;
    check_frame(&frame, most)?;
    Ok(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_they_went_and_a_damaged_or_other_file_is_an_error() {
        let columns = ["kind", "text"];
        let long = "x".repeat(100_000);
        let rows = [vec!["run", "é"], vec!["", ""], vec!["run", &long]];
        let bytes = to_parquet(&columns, &rows).expect("written");
        let read = |bytes: &[u8], columns: &[&str]| {
            let mut all = Vec::new();
            let end = from_parquet(bytes, columns, &mut |row| {
                all.push(row.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>());
            });
            end.map(|()| all)
        };
        assert_eq!(read(&bytes, &columns).expect("read"), rows);
        assert!(read(&bytes, &["kind", "other"]).is_err());
        assert!(read(&bytes[..bytes.len() / 2], &columns).is_err());
        assert!(read(b"", &columns).is_err());
        assert!(to_parquet(&columns, &[vec!["one"]]).is_err());
        let none = to_parquet(&columns, &[]).expect("written");
        assert_eq!(read(&none, &columns).expect("read"), Vec::<Vec<String>>::new());
    }
}
