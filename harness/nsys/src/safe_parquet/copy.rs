//! The packed bytes of some columns, copied before they are checked and decoded. The library maps a file: one that another
//! process cuts meanwhile ends this process by a signal, and what is decoded need not be what was checked.

use super::sizes::{Refused, bounded};
use polars::io::mmap::MmapBytesReader;
use polars_parquet::parquet::metadata::FileMetadata;
use std::fs::File;
use std::io::{Cursor, ErrorKind};
use std::os::unix::fs::FileExt;

/// Longer files are mapped: with huge pages the gaps between some columns take memory, too.
const LONGEST: u64 = 1 << 30;

/// These columns at their places in a file of that length.
pub(crate) fn copy_columns(
    file: &File,
    length: u64,
    metadata: &FileMetadata,
    wanted: impl Fn(&str) -> bool,
    most: u64,
) -> Result<Box<dyn MmapBytesReader>, Refused> {
    if length > LONGEST {
        return Ok(Box::new(file.try_clone().map_err(|error| error.to_string())?));
    }
    let mut bytes = vec![0; length as usize];
    let mut taken = 0;
    for column in metadata.row_groups.iter().flat_map(|group| group.parquet_columns()) {
        let name = column.descriptor().path_in_schema.first();
        if !name.is_some_and(|name| wanted(name)) {
            continue;
        }
        let range = column.byte_range();
        taken = bounded(taken, range.end.saturating_sub(range.start), most)?;
        // One that ends beyond the file is refused where columns are checked.
        if let Some(into) = bytes.get_mut(range.start as usize..range.end as usize) {
            file.read_exact_at(into, range.start).map_err(|error| match error.kind() {
                ErrorKind::UnexpectedEof => {
                    "truncated while it was read: fetch or export it again".to_owned()
                }
                _ => error.to_string(),
            })?;
        }
    }
    Ok(Box::new(Cursor::new(bytes)))
}

#[cfg(test)]
mod tests {
    use super::super::{check_columns, metadata};
    use super::*;
    use polars::prelude::*;
    use std::io::Write;

    fn table() -> (File, u64) {
        let numbers: Vec<i64> = (0..10_000).map(|n| n * 7919 % 10_007).collect();
        let columns = ["start", "end"].map(|name| Column::new(name.into(), numbers.clone()));
        let mut frame = DataFrame::new(numbers.len(), columns.into()).expect("a table");
        let mut bytes = Vec::new();
        ParquetWriter::new(&mut bytes).finish(&mut frame).expect("written");
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&bytes).expect("written");
        (file, bytes.len() as u64)
    }

    #[test]
    fn a_table_is_decoded_from_the_copy_also_where_its_file_is_cut_behind_it() {
        let (mut file, length) = table();
        let metadata = metadata(&mut file).expect("a footer");
        let wanted = |name: &str| name == "end";
        let mut copied = copy_columns(&file, length, &metadata, wanted, 1 << 20).expect("copied");
        file.set_len(0).expect("cut");
        assert_eq!(check_columns(&mut copied, &metadata, wanted, 1 << 20), Ok(()));
        let mut reader = ParquetReader::new(copied).with_columns(Some(vec!["end".to_owned()]));
        reader.set_metadata(std::sync::Arc::new(metadata));
        let frame = reader.finish().expect("read");
        let ends = frame.column("end").expect("there").i64().expect("numbers");
        assert_eq!(
            (ends.len(), ends.get(1), ends.get(9_999)),
            (10_000, Some(7919), Some(9_999 * 7919 % 10_007))
        );
    }

    #[test]
    fn a_file_that_is_cut_before_it_was_copied_or_takes_more_than_the_limit_is_an_error() {
        let (mut file, length) = table();
        let metadata = metadata(&mut file).expect("a footer");
        let copy = |most: u64| copy_columns(&file, length, &metadata, |_| true, most).map(|_| ());
        let refused = copy(1 << 10).expect_err("too large");
        assert!(refused.is_too_large, "{refused:?}");
        file.set_len(length / 2).expect("cut");
        let refused = copy(1 << 20).expect_err("cut");
        assert!(refused.why.starts_with("truncated while it was read"), "{refused:?}");
    }

    #[test]
    fn a_file_that_is_longer_than_the_copy_may_be_is_read_where_it_lies() {
        let (mut file, length) = table();
        let metadata = metadata(&mut file).expect("a footer");
        let is_mapped = |length: u64| {
            let read = copy_columns(&file, length, &metadata, |_| true, 1 << 20).expect("opened");
            read.to_file().is_some()
        };
        assert!(!is_mapped(length) && is_mapped(LONGEST + 1));
    }
}
