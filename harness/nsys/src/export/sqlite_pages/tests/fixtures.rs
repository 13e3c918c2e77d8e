//! Files with one fault each, and the message for it.

use super::*;
use std::fs;

/// The page of a table's root in a file of these pages.
fn root(path: &Path, name: &str) -> usize {
    pages(path).schema.called(name).next().and_then(|table| table.root).expect("a root") as usize
}

/// The error for table `t` after the file was changed by `change`, which is given the place where its root begins.
fn why(page_size: usize, statements: &str, change: impl Fn(&mut Vec<u8>, usize)) -> String {
    let (_folder, path) = database(page_size as u32, statements);
    let at = (root(&path, "t") - 1) * page_size;
    let mut bytes = fs::read(&path).expect("read");
    change(&mut bytes, at);
    fs::write(&path, bytes).expect("written");
    let pages = match open(&path) {
        Ok(Opened::Plain(pages)) => pages,
        Ok(Opened::NotPlain(why)) => return format!("not plain: {why}"),
        Err(why) => return why,
    };
    let columns = [column("a", ColumnType::Integer, true), column("b", ColumnType::Text, true)];
    with_message(pages.table("t", &columns))
        .map(|frame| frame.map(|frame| frame.height()))
        .expect_err("damaged")
}

fn put(bytes: &mut [u8], at: usize, what: &[u8]) {
    bytes[at..at + what.len()].copy_from_slice(what);
}

/// Where the first cell of the page that begins here lies.
fn first_cell(bytes: &[u8], page: usize) -> usize {
    page + usize::from(u16::from_be_bytes([bytes[page + 8], bytes[page + 9]]))
}

#[test]
fn a_page_that_leads_to_itself_or_to_another_one_twice_is_damage() {
    let twice = |number: u32| move |bytes: &mut Vec<u8>, at: usize| put(bytes, at + 8, &number.to_be_bytes());
    assert_eq!(why(512, &counted(1000, 40), twice(2)), "page 2 is referenced twice");
    assert_eq!(why(512, &counted(1000, 40), twice(3)), "page 3 is referenced twice");
    assert_eq!(why(512, &counted(1000, 40), twice(0)), "page 0 is beyond the end of the file");
    let beyond = why(512, &counted(1000, 40), twice(u32::MAX));
    assert_eq!(beyond, "page 4294967295 is beyond the end of the file");
}

#[test]
fn a_record_that_is_longer_than_the_file_is_damage() {
    let error = why(4096, &counted(3, 3), |bytes, at| {
        let cell = first_cell(bytes, at);
        put(bytes, cell, &[0xff, 0xff, 0xff, 0x7f]);
    });
    assert_eq!(error, "row 1: record is longer than the file: 268435455 bytes");
}

#[test]
fn a_truncated_file_is_reported_with_its_pages() {
    let error = why(512, &counted(1000, 40), |bytes, _| bytes.truncate(512 * 11 + 100));
    assert!(error.starts_with("truncated: 11 of 1"), "{error}");
    let error = why(512, &counted(3, 4), |bytes, _| bytes.truncate(99));
    assert_eq!(error, "truncated: 99 of 100 header bytes");
    let error = why(512, &counted(3, 4), |bytes, _| {
        put(bytes, 28, &[0; 4]);
        bytes.truncate(300);
    });
    assert_eq!(error, "truncated: 300 of 512 bytes of the first page");
}

#[test]
fn a_file_that_shrinks_while_it_is_open_is_an_error() {
    let (_folder, path) = database(512, &counted(1000, 40));
    let pages = pages(&path);
    fs::OpenOptions::new().write(true).open(&path).and_then(|file| file.set_len(512 * 9)).expect("cut");
    let why = with_message(pages.table("t", &numbers(&["a"]))).map(|_| ()).expect_err("cut");
    assert!(why.starts_with("truncated while reading: page "), "{why}");
}

#[test]
fn a_file_that_is_written_after_it_was_opened_is_an_error() {
    let (_folder, path) = database(512, &counted(1000, 40));
    let pages = pages(&path);
    let file = fs::OpenOptions::new().write(true).open(&path).expect("opens");
    file.set_modified(std::time::UNIX_EPOCH).expect("set");
    let why = with_message(pages.table("t", &numbers(&["a"]))).map(|_| ()).expect_err("written");
    assert_eq!(why, "the file changed while it was read");
}

#[test]
fn an_overflow_chain_that_leads_into_itself_or_nowhere_is_damage() {
    let long = counted(1, 5000);
    let (_folder, path) = database(512, &long);
    let at = (root(&path, "t") - 1) * 512;
    let bytes = fs::read(&path).expect("read");
    let cell = first_cell(&bytes, at);
    // The link stands at the cell's end, which is the page's.
    let first = u32::from_be_bytes(bytes[at + 508..at + 512].try_into().expect("four bytes"));
    assert!(cell < at + 508);
    let chain = (first as usize - 1) * 512;
    let error = why(512, &long, |bytes, _| put(bytes, chain, &first.to_be_bytes()));
    assert_eq!(error, format!("page {first} is referenced twice"));
    let error = why(512, &long, |bytes, _| put(bytes, chain, &[0; 4]));
    assert_eq!(error, "page 0 is beyond the end of the file");
    let error = why(512, &long, |bytes, at| put(bytes, at + 508, &2u32.to_be_bytes()));
    assert_eq!(error, "page 2 is referenced twice");
}

#[test]
fn two_rows_that_flow_into_one_page_are_damage() {
    // Long enough that little of either lies on the page that both begin on.
    let rows = counted(2, 12_765);
    let error = why(4096, &rows, |bytes, at| {
        let first = first_cell(bytes, at);
        // The first row lies at the page's end, and each link at its row's end.
        bytes.copy_within(at + 4092..at + 4096, first - 4);
    });
    assert!(error.starts_with("page ") && error.ends_with(" is referenced twice"), "{error}");
}

#[test]
fn cells_that_lie_outside_their_page_or_upon_each_other_are_damage() {
    let error = why(512, &counted(3, 3), |bytes, at| put(bytes, at + 8, &[0xff, 0xff]));
    assert_eq!(error, "row 1: cell lies outside its page");
    let error = why(512, &counted(3, 3), |bytes, at| put(bytes, at + 3, &[0xff, 0xff]));
    assert_eq!(error, "page 2 has more cells than fit: 65535");
    let long_and_short = counted(1, 300) + "; INSERT INTO t VALUES (2, 'x')";
    let error = why(512, &long_and_short, |bytes, at| {
        // Both pointers to the long one.
        bytes.copy_within(at + 8..at + 10, at + 10);
    });
    assert_eq!(error, "page 2 has overlapping cells");
    let error = why(512, &counted(1000, 40), |bytes, at| put(bytes, at + 12, &[0xff, 0xff]));
    assert_eq!(error, "page 2 has a cell outside itself, at byte 65535");
}

#[test]
fn a_record_whose_header_is_none_is_damage() {
    // A cell of these rows: length, row number, length of the header, types.
    for (at, what, expected) in [
        (3, 10, "row 1: record has an invalid type"),
        (3, 11, "row 1: record has an invalid type"),
        (4, 127, "row 1: record ends before its values"),
        (2, 120, "row 1: record has an invalid type"),
        (2, 0, "row 1: record header is truncated"),
    ] {
        let error = why(512, &counted(1, 3), |bytes, page| {
            let cell = first_cell(bytes, page);
            bytes[cell + at] = what;
        });
        assert!(error == expected || (at == 2 && error.starts_with("row 1: ")), "{at}, {what}: {error}");
    }
}

#[test]
fn pages_of_another_kind_are_damage() {
    let error = why(512, &counted(3, 3), |bytes, at| bytes[at] = 0x0a);
    assert_eq!(error, "page 2 is not a table page: type 10");
    let error = why(512, &counted(1000, 40), |bytes, at| {
        // Pointers come after a longer head here.
        let child = first_cell(bytes, at + 4) - 4;
        let child = u32::from_be_bytes(bytes[child..child + 4].try_into().expect("four bytes"));
        bytes[(child as usize - 1) * 512] = 0x0a;
    });
    assert!(error.starts_with("page ") && error.ends_with("is not a table page: type 10"), "{error}");
}

#[test]
fn a_tree_that_is_deeper_than_any_is_damage() {
    let error = why(512, &counted(4000, 90), |bytes, at| {
        // From the root on, each page leads to the next alone.
        for page in at / 512..at / 512 + 40 {
            put(bytes, page * 512, &[0x05, 0, 0, 0, 0, 0, 0, 0]);
            put(bytes, page * 512 + 8, &(page as u32 + 2).to_be_bytes());
        }
    });
    assert_eq!(error, "page tree is deeper than 20 levels");
}

#[test]
fn a_bad_file_header_is_reported() {
    let error = why(512, &counted(3, 3), |bytes, _| put(bytes, 16, &[0x02, 0x01]));
    assert_eq!(error, "invalid page size: 513");
    for (at, what, expected) in [
        (18, 3, "it has a write-ahead log or a newer format"),
        (20, 8, "its pages reserve bytes for an extension"),
        (21, 60, "its payload fractions are not the standard ones"),
        (47, 5, "its schema has a newer format"),
        (59, 3, "its text encoding is not UTF-8"),
    ] {
        let error = why(512, &counted(3, 3), |bytes, _| bytes[at] = what);
        assert_eq!(error, format!("not plain: {expected}"));
    }
    let error = why(512, &counted(3, 3), |bytes, _| bytes[100] = 7);
    assert_eq!(error, "cannot read the list of tables: page 1 is not a table page: type 7");
}

#[test]
fn messages() {
    let (few, many, long) = (counted(3, 3), counted(1000, 40), counted(1, 5000));
    let byte = |at: usize, what: u8| move |bytes: &mut Vec<u8>, _: usize| bytes[at] = what;
    let in_cell = |at: usize, what: u8| {
        move |bytes: &mut Vec<u8>, page: usize| {
            let cell = first_cell(bytes, page);
            bytes[cell + at] = what;
        }
    };
    let messages = [
        why(512, &few, |bytes, _| bytes.truncate(99)),
        why(512, &many, |bytes, _| bytes.truncate(512 * 9))
            .split(" of ")
            .next()
            .unwrap_or_default()
            .to_owned(),
        why(512, &few, |bytes, _| put(bytes, 16, &[0x02, 0x01])),
        why(512, &few, byte(18, 3)),
        why(512, &few, byte(20, 8)),
        why(512, &few, byte(21, 60)),
        why(512, &few, byte(47, 5)),
        why(512, &few, byte(59, 3)),
        why(512, &few, byte(100, 7)),
        why(512, &few, |bytes, at| bytes[at] = 0x0a),
        why(512, &few, |bytes, at| put(bytes, at + 3, &[0xff, 0xff])),
        why(512, &few, |bytes, at| put(bytes, at + 8, &[0xff, 0xff])),
        why(512, &many, |bytes, at| put(bytes, at + 8, &2u32.to_be_bytes())),
        why(512, &many, |bytes, at| put(bytes, at + 8, &u32::MAX.to_be_bytes())),
        why(512, &many, |bytes, at| put(bytes, at + 12, &[0xff, 0xff])),
        why(512, &long, |bytes, at| put(bytes, at + 508, &2u32.to_be_bytes())),
        why(512, &counted(1, 3), in_cell(3, 10)),
        why(512, &counted(1, 3), in_cell(4, 127)),
        why(512, &counted(1, 3), in_cell(2, 0)),
    ];
    insta::assert_snapshot!(messages.join("\n"));
}
