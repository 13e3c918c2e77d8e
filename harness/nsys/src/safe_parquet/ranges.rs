//! Which bytes of a Parquet file must be there to read some of its columns: the footer, and the pages of these columns.

use super::{footer, metadata};
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

/// Behind the footer.
pub const TAIL: u64 = footer::TAIL;

/// Where the footer begins, by the last bytes of a file of that length.
pub fn footer_start(tail: [u8; TAIL as usize], length: u64) -> Result<u64, String> {
    footer::start(tail, length)
}

/// The bytes of these columns, as the footer has them, in their order.
pub fn column_ranges(
    file: &mut (impl Read + Seek),
    wanted: impl Fn(&str) -> bool,
) -> Result<Vec<Range<u64>>, String> {
    let metadata = metadata(file)?;
    let length = file.seek(SeekFrom::End(0)).map_err(|error| error.to_string())?;
    let mut ranges = Vec::new();
    for column in metadata.row_groups.iter().flat_map(|group| group.parquet_columns()) {
        let name = column.descriptor().path_in_schema.first();
        if !name.is_some_and(|name| wanted(name)) {
            continue;
        }
        let range = column.byte_range();
        if range.start > range.end || range.end > length {
            return Err("damaged Parquet: footer points beyond the end of the file".to_owned());
        }
        ranges.push(range);
    }
    ranges.sort_by_key(|range| (range.start, range.end));
    Ok(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;
    use polars::prelude::*;
    use std::io::Cursor;

    fn table() -> Vec<u8> {
        let numbers: Vec<i64> = (0..10_000).map(|n| n * 7919 % 10_007).collect();
        let columns = vec![
            Column::new("start".into(), numbers.clone()),
            Column::new("end".into(), numbers.clone()),
            Column::new("name".into(), vec!["kernel"; numbers.len()]),
        ];
        let mut frame = DataFrame::new(numbers.len(), columns).expect("a table");
        let mut bytes = Vec::new();
        ParquetWriter::new(&mut bytes).finish(&mut frame).expect("written");
        bytes
    }

    #[test]
    fn only_the_pages_of_the_columns_that_are_read_and_the_footer_need_be_there() {
        let whole = table();
        let length = whole.len() as u64;
        let tail = whole[whole.len() - TAIL as usize..].try_into().expect("eight bytes");
        let footer = footer_start(tail, length).expect("a footer") as usize;
        let mut sparse = vec![0; whole.len()];
        sparse[footer..].copy_from_slice(&whole[footer..]);
        let ranges = column_ranges(&mut Cursor::new(&sparse), |name| name == "end").expect("ranges");
        assert_eq!(ranges.len(), 1);
        for range in ranges {
            let range = range.start as usize..range.end as usize;
            sparse[range.clone()].copy_from_slice(&whole[range]);
        }
        let read = |bytes: Vec<u8>| {
            let reader = ParquetReader::new(Cursor::new(bytes));
            reader.with_columns(Some(vec!["end".to_owned()])).finish().expect("read")
        };
        assert!(read(sparse.clone()).equals(&read(whole)));
        let there = sparse.iter().filter(|byte| **byte != 0).count();
        assert!(there < sparse.len() * 2 / 3, "{there} of {}", sparse.len());
    }

    #[test]
    fn a_footer_that_claims_more_than_the_file_is_an_error() {
        let long = [255, 255, 255, 0, b'P', b'A', b'R', b'1'];
        assert!(footer_start(long, 1_000).is_err());
        assert!(footer_start([8, 0, 0, 0, b'P', b'A', b'R', b'2'], 1_000).is_err());
        assert!(footer_start([0; 8], 4).is_err());
        assert_eq!(footer_start([8, 0, 0, 0, b'P', b'A', b'R', b'1'], 1_000), Ok(984));
        assert!(column_ranges(&mut Cursor::new(b"not Parquet at all"), |_| true).is_err());
    }
}
