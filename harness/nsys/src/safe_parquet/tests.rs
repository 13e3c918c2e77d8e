//! Small files that unpack to much, and footers that claim more than they hold.

use super::*;
use polars::prelude::*;
use std::io::Cursor;

fn file(columns: Vec<Column>) -> Vec<u8> {
    let mut frame = DataFrame::new(columns[0].len(), columns).expect("a table");
    let mut bytes = Vec::new();
    ParquetWriter::new(&mut bytes)
        .with_compression(ParquetCompression::Zstd(None))
        .finish(&mut frame)
        .expect("written");
    bytes
}

fn check_all_columns(bytes: &[u8], most: u64) -> Result<(), String> {
    let mut file = Cursor::new(bytes);
    let metadata = metadata(&mut file).expect("a footer");
    check_columns(&mut file, &metadata, |_| true, most).map_err(String::from)
}

/// Of 1,000 rows with the same text of 64 KiB each.
fn dictionary() -> Vec<u8> {
    let text = "x".repeat(64 << 10);
    let ids: Vec<i64> = (0..1_000).collect();
    file(vec![Column::new("id".into(), ids), Column::new("value".into(), vec![text.as_str(); 1_000])])
}

#[test]
fn a_dictionary_of_one_long_text_is_refused_by_the_texts_that_it_stands_for() {
    let bytes = dictionary();
    assert!(bytes.len() < 20_000, "{} bytes", bytes.len());
    assert_eq!(check_all_columns(&bytes, 1 << 20), Ok(()), "packed it is small");
    let frame = ParquetReader::new(Cursor::new(bytes.as_slice())).finish().expect("read");
    assert_eq!(check_frame(&frame, 1_000 * (64 << 10)), Ok(()));
    let refused = check_frame(&frame, 32 << 20).expect_err("64 MiB");
    assert!(refused.is_too_large && refused.why.contains("more than 32 MiB"), "{refused:?}");
}

#[test]
fn rows_that_are_said_to_be_there_count_before_any_of_them_is_unpacked() {
    let bytes = file(vec![Column::new("start".into(), vec![7_i64; 1 << 20])]);
    assert!(bytes.len() < 20_000, "{} bytes", bytes.len());
    assert_eq!(check_all_columns(&bytes, 64 << 20), Ok(()));
    assert!(check_all_columns(&bytes, 8 << 20).is_err_and(|why| why.contains("more than 8 MiB")));
}

#[test]
fn a_page_that_unpacks_to_much_counts_by_its_own_head() {
    let bytes = file(vec![Column::new("value".into(), ["0".repeat(16 << 20)])]);
    assert!(bytes.len() < 20_000, "{} bytes", bytes.len());
    assert_eq!(check_all_columns(&bytes, 64 << 20), Ok(()));
    assert!(check_all_columns(&bytes, 8 << 20).is_err_and(|why| why.contains("more than 8 MiB")));
}

/// The library would allocate what a list is said to hold, and end the process where there is not so much memory.
#[test]
fn a_footer_that_claims_more_than_it_holds_is_refused_before_the_library_reads_it() {
    let whole = dictionary();
    assert!(metadata(&mut Cursor::new(&whole)).is_ok());
    // Field 4 of the footer is the list of row groups: 2^31 - 1 structs, and then nothing.
    let footer = [0x49, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07, 0x00];
    let mut bytes = b"PAR1".to_vec();
    bytes.extend(footer);
    bytes.extend((footer.len() as u32).to_le_bytes());
    bytes.extend(b"PAR1");
    let why = metadata(&mut Cursor::new(&bytes)).expect_err("no such list");
    assert!(why.contains("claims more than it holds"), "{why}");
}

#[test]
fn footers_cut_anywhere_or_nested_without_end_are_refused() {
    let whole = dictionary();
    for cut in 0..whole.len() {
        assert!(metadata(&mut Cursor::new(&whole[..cut])).is_err(), "{cut}");
    }
    let mut bytes = b"PAR1".to_vec();
    bytes.extend(vec![0x1c; 1 << 20]);
    bytes.extend((1_u32 << 20).to_le_bytes());
    bytes.extend(b"PAR1");
    assert!(metadata(&mut Cursor::new(&bytes)).is_err());
}

#[test]
fn messages() {
    let refused = |bytes: &[u8]| metadata(&mut Cursor::new(bytes)).expect_err("damaged");
    let whole = dictionary();
    let footer =
        |bytes: &[u8], length: u32| [b"PAR1".as_slice(), bytes, &length.to_le_bytes(), b"PAR1"].concat();
    let frame = ParquetReader::new(Cursor::new(whole.as_slice())).finish().expect("read");
    let messages = [
        refused(b"PAR1"),
        refused(&whole[..whole.len() - 1]),
        refused(&footer(&[0; 8], 1 << 20)),
        refused(&footer(&[0x49, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07, 0x00], 8)),
        check_frame(&frame, 32 << 20).expect_err("64 MiB").into(),
        guarded(|| panic!("damaged")).map(|()| String::new()).expect_err("a panic"),
    ];
    insta::assert_snapshot!(messages.join("\n"));
}
