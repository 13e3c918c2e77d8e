//! Limits the unpacked size of a table: by its footer and page headers before anything is unpacked, and by its texts
//! before any is copied. A few kilobytes can unpack to gigabytes.

use super::thrift::Walk;
use polars::prelude::*;
use polars_parquet::parquet::metadata::{ColumnChunkMetadata, FileMetadata};
use polars_parquet::parquet::schema::types::PhysicalType;
use std::io::{Read, Seek, SeekFrom};

/// So many bytes of one table at most. A process without memory is ended with all that it knew of other nodes.
pub const UNPACKED: u64 = 4 << 30;

/// What any table may unpack to, however small its file, and how many times its file beyond that. Tables of nsys unpack
/// to about 50 times their files: each row has a time of its own.
const FREE: u64 = 256 << 20;
const TIMES: u64 = 1_000;

/// So many bytes of a table at most whose file is so long.
pub fn unpacked_limit(length: u64) -> u64 {
    UNPACKED.min(FREE.saturating_add(length.saturating_mul(TIMES)))
}

/// An encoding in which each text says how much of the one before it begins with.
const DELTA_BYTE_ARRAY: i64 = 7;

/// Why a table is not read.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    /// For a person.
    pub why: String,
    /// It may be sound, and is larger than the limit.
    pub is_too_large: bool,
}

impl From<String> for Refused {
    fn from(why: String) -> Refused {
        Refused { why, is_too_large: false }
    }
}

impl From<Refused> for String {
    fn from(refused: Refused) -> String {
        refused.why
    }
}

/// These columns, as they are going to be read.
pub fn check_columns(
    file: &mut (impl Read + Seek),
    metadata: &FileMetadata,
    wanted: impl Fn(&str) -> bool,
    most: u64,
) -> Result<(), Refused> {
    let length = file.seek(SeekFrom::End(0)).map_err(|error| error.to_string())?;
    let mut taken = 0;
    for group in &metadata.row_groups {
        // A column that is not there is as long as the others.
        taken = bounded(taken, (group.num_rows() as u64).saturating_mul(8), most)?;
        for column in group.parquet_columns() {
            let name = column.descriptor().path_in_schema.first();
            if !name.is_some_and(|name| wanted(name)) {
                continue;
            }
            let rows = (group.num_rows() as u64).max(u64::try_from(column.num_values()).unwrap_or(u64::MAX));
            taken = bounded(taken, rows.saturating_mul(width(column)), most)?;
            taken = pages(file, length, column, taken, most)?;
        }
    }
    Ok(())
}

/// A table that was read: polars leaves columns of a damaged file as long as they are, and a row beyond the end of one ends
/// the program. Texts share what the file holds once, and are copied one by one from there.
pub fn check_frame(frame: &DataFrame, most: u64) -> Result<(), Refused> {
    if frame.columns().iter().any(|column| column.len() != frame.height()) {
        return Err("damaged Parquet: columns of different lengths; fetch or export it again"
            .to_owned()
            .into());
    }
    let mut taken = 0;
    for column in frame.columns() {
        let lengths: u64 = match column.dtype() {
            DataType::String => sum(column.str().map(|texts| texts.iter().flatten().map(str::len).sum())),
            DataType::Binary => sum(column.binary().map(|all| all.iter().flatten().map(<[u8]>::len).sum())),
            _ => continue,
        };
        taken = bounded(taken, lengths, most)?;
    }
    Ok(())
}

fn sum(lengths: PolarsResult<usize>) -> u64 {
    lengths.map_or(0, |length| length as u64)
}

fn pages(
    file: &mut (impl Read + Seek),
    length: u64,
    column: &ColumnChunkMetadata,
    mut taken: u64,
    most: u64,
) -> Result<u64, Refused> {
    let range = column.byte_range();
    if range.end > length {
        let why = "damaged Parquet: footer points beyond the end of the file; fetch or export it again";
        return Err(why.to_owned().into());
    }
    taken = bounded(taken, range.end - range.start, most)?;
    file.seek(SeekFrom::Start(range.start)).map_err(|error| error.to_string())?;
    let mut chunk = Vec::new();
    file.take(range.end - range.start).read_to_end(&mut chunk).map_err(|error| error.to_string())?;
    let mut walk = Walk::over(&chunk);
    let mut values = 0;
    while values < column.num_values() && !walk.is_at_end() {
        let page =
            page(&mut walk).ok_or_else(|| "damaged page header: fetch or export it again".to_owned())?;
        if page.encoding == DELTA_BYTE_ARRAY {
            return Err("unsupported text encoding DELTA_BYTE_ARRAY, which nsys does not write: export it again with \
                        `nsys export --type=parquetdir`"
                .to_owned()
                .into());
        }
        taken = bounded(taken, page.unpacked, most)?;
        values += page.values;
    }
    Ok(taken)
}

#[derive(Default)]
struct Page {
    values: i64,
    /// Of a dictionary.
    entries: i64,
    unpacked: u64,
    encoding: i64,
}

/// Reads the head of a page, and goes on to the next.
fn page(walk: &mut Walk<'_>) -> Option<Page> {
    let (mut page, mut unpacked, mut packed) = (Page::default(), None, None);
    walk.message(&|_| None, &mut |within, field, number| match (within, field) {
        (0, 2) => unpacked = Some(number),
        (0, 3) => packed = Some(number),
        // Of a page of values, in either version of the format.
        (5 | 8, 1) => page.values = number,
        (5, 2) | (8, 4) => page.encoding = number,
        (7, 1) => page.entries = number,
        _ => {}
    })?;
    page.unpacked = u64::try_from(unpacked?).ok()?;
    walk.skip(u64::try_from(packed?).ok()?)?;
    // The library makes room for all that a dictionary is said to hold. None of it takes less than a byte.
    let entries = u64::try_from(page.entries).ok()?;
    (page.values >= 0 && entries <= page.unpacked).then_some(page)
}

/// Of one value, as it stands in memory.
fn width(column: &ColumnChunkMetadata) -> u64 {
    match column.physical_type() {
        PhysicalType::ByteArray | PhysicalType::Int96 => 16,
        PhysicalType::FixedLenByteArray(length) => length as u64,
        _ => 8,
    }
}

pub(super) fn bounded(taken: u64, more: u64, most: u64) -> Result<u64, Refused> {
    let all = taken.saturating_add(more);
    if all > most {
        let why = format!("unpacks to more than {} MiB, the limit of one table: export it again", most >> 20);
        return Err(Refused { why, is_too_large: true });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page of 8 bytes, and how many entries of a dictionary it is said to hold.
    fn dictionary(entries: &[u8]) -> Vec<u8> {
        let head = [0x15, 4, 0x15, 16, 0x15, 16, 0x4c, 0x15];
        [head.as_slice(), entries, &[0x15, 0, 0, 0], &[0; 8]].concat()
    }

    #[test]
    fn a_dictionary_that_claims_more_entries_than_bytes_is_damaged() {
        let cases: [(&[u8], bool); 4] =
            [(&[16], true), (&[18], false), (&[1], false), (&[0xfe, 0xff, 0xff, 0xff, 0x0f], false)];
        for (entries, is_sound) in cases {
            let bytes = dictionary(entries);
            assert_eq!(page(&mut Walk::over(&bytes)).is_some(), is_sound, "{entries:?}");
        }
    }

    #[test]
    fn a_small_file_may_not_unpack_to_as_much_as_a_large_one() {
        assert_eq!(unpacked_limit(0), 256 << 20);
        assert_eq!(unpacked_limit(1_274), (256 << 20) + 1_274_000);
        assert_eq!(unpacked_limit(100 << 20), UNPACKED);
        assert_eq!(unpacked_limit(u64::MAX), UNPACKED);
    }
}
