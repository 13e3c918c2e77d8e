//! Files with one thing wrong each, and the message for it.

use super::*;
use std::fs;

/// The page of a table's root in a file of these pages.
fn root(path: &Path, name: &str) -> usize {
    pages(path).schema.called(name).next().and_then(|table| table.root).expect("a root") as usize
}

/// What is told of table `t` after the file was changed by `change`, which is given the place where its root begins.
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
    let columns = [column("a", Kind::Integer, true), column("b", Kind::Text, true)];
    told(pages.table("t", &columns)).map(|frame| frame.map(|frame| frame.height())).expect_err("damaged")
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
    assert_eq!(why(512, &counted(1000, 40), twice(2)), "a page is led to twice: 2");
    assert_eq!(why(512, &counted(1000, 40), twice(3)), "a page is led to twice: 3");
    assert_eq!(why(512, &counted(1000, 40), twice(0)), "a page beyond the end of the file: 0");
    let beyond = why(512, &counted(1000, 40), twice(u32::MAX));
    assert_eq!(beyond, "a page beyond the end of the file: 4294967295");
}

#[test]
fn a_record_that_is_longer_than_the_file_is_damage() {
    let told = why(4096, &counted(3, 3), |bytes, at| {
        let cell = first_cell(bytes, at);
        put(bytes, cell, &[0xff, 0xff, 0xff, 0x7f]);
    });
    assert_eq!(told, "row 1: its record is longer than the file: 268435455 bytes");
}

#[test]
fn a_file_that_is_cut_off_is_told_with_its_pages() {
    let told = why(512, &counted(1000, 40), |bytes, _| bytes.truncate(512 * 11 + 100));
    assert!(told.starts_with("cut off: 11 pages of 1"), "{told}");
    let told = why(512, &counted(3, 4), |bytes, _| bytes.truncate(99));
    assert_eq!(told, "cut off: 99 bytes of a head of 100");
    let told = why(512, &counted(3, 4), |bytes, _| {
        put(bytes, 28, &[0; 4]);
        bytes.truncate(300);
    });
    assert_eq!(told, "cut off: 300 bytes of a first page of 512");
}

#[test]
fn a_file_that_shrinks_while_it_is_open_is_an_error() {
    let (_folder, path) = database(512, &counted(1000, 40));
    let pages = pages(&path);
    fs::OpenOptions::new().write(true).open(&path).and_then(|file| file.set_len(512 * 9)).expect("cut");
    let why = told(pages.table("t", &numbers(&["a"]))).map(|_| ()).expect_err("cut");
    assert!(why.starts_with("cut off while it was read: page "), "{why}");
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
    let told = why(512, &long, |bytes, _| put(bytes, chain, &first.to_be_bytes()));
    assert_eq!(told, format!("a page is led to twice: {first}"));
    let told = why(512, &long, |bytes, _| put(bytes, chain, &[0; 4]));
    assert_eq!(told, "a page beyond the end of the file: 0");
    let told = why(512, &long, |bytes, at| put(bytes, at + 508, &2u32.to_be_bytes()));
    assert_eq!(told, "a page is led to twice: 2");
}

#[test]
fn two_rows_that_flow_into_one_page_are_damage() {
    // Long enough that little of either lies on the page that both begin on.
    let rows = counted(2, 12_765);
    let told = why(4096, &rows, |bytes, at| {
        let first = first_cell(bytes, at);
        // The first row lies at the page's end, and each link at its row's end.
        bytes.copy_within(at + 4092..at + 4096, first - 4);
    });
    assert!(told.starts_with("a page is led to twice: "), "{told}");
}

#[test]
fn cells_that_lie_outside_their_page_or_upon_each_other_are_damage() {
    let told = why(512, &counted(3, 3), |bytes, at| put(bytes, at + 8, &[0xff, 0xff]));
    assert_eq!(told, "row 1: its cell lies outside its page");
    let told = why(512, &counted(3, 3), |bytes, at| put(bytes, at + 3, &[0xff, 0xff]));
    assert_eq!(told, "page 2 has more cells than fit: 65535");
    let long_and_short = counted(1, 300) + "; INSERT INTO t VALUES (2, 'x')";
    let told = why(512, &long_and_short, |bytes, at| {
        // Both pointers to the long one.
        bytes.copy_within(at + 8..at + 10, at + 10);
    });
    assert_eq!(told, "page 2 has cells that overlap");
    let told = why(512, &counted(1000, 40), |bytes, at| put(bytes, at + 12, &[0xff, 0xff]));
    assert_eq!(told, "page 2 has a cell outside itself: 65535");
}

#[test]
fn a_record_whose_header_is_none_is_damage() {
    // A cell of these rows: length, row number, length of the header, types.
    for (at, what, expected) in [
        (3, 10, "row 1: its record has a type that none has"),
        (3, 11, "row 1: its record has a type that none has"),
        (4, 127, "row 1: its record ends before its values"),
        (2, 120, "row 1: its record has a type that none has"),
        (2, 0, "row 1: the header of its record is cut off"),
    ] {
        let told = why(512, &counted(1, 3), |bytes, page| {
            let cell = first_cell(bytes, page);
            bytes[cell + at] = what;
        });
        assert!(told == expected || (at == 2 && told.starts_with("row 1: ")), "{at}, {what}: {told}");
    }
}

#[test]
fn pages_of_another_kind_are_damage() {
    let told = why(512, &counted(3, 3), |bytes, at| bytes[at] = 0x0a);
    assert_eq!(told, "page 2 is none of a table: 10");
    let told = why(512, &counted(1000, 40), |bytes, at| {
        // Pointers come after a longer head here.
        let child = first_cell(bytes, at + 4) - 4;
        let child = u32::from_be_bytes(bytes[child..child + 4].try_into().expect("four bytes"));
        bytes[(child as usize - 1) * 512] = 0x0a;
    });
    assert!(told.starts_with("page ") && told.ends_with("is none of a table: 10"), "{told}");
}

#[test]
fn a_tree_that_is_deeper_than_any_is_damage() {
    let told = why(512, &counted(4000, 90), |bytes, at| {
        // From the root on, each page leads to the next alone.
        for page in at / 512..at / 512 + 40 {
            put(bytes, page * 512, &[0x05, 0, 0, 0, 0, 0, 0, 0]);
            put(bytes, page * 512 + 8, &(page as u32 + 2).to_be_bytes());
        }
    });
    assert_eq!(told, "its pages lie deeper than those of any table: 20");
}

#[test]
fn a_head_that_is_none_is_told() {
    let told = why(512, &counted(3, 3), |bytes, _| put(bytes, 16, &[0x02, 0x01]));
    assert_eq!(told, "its pages have a size that none has: 513");
    for (at, what, expected) in [
        (18, 3, "it has a write-ahead log, or is of a later format"),
        (20, 8, "its pages reserve bytes for an extension"),
        (21, 60, "its pages are filled by other rules"),
        (47, 5, "its schema is of a later format"),
        (59, 3, "its texts are not UTF-8"),
    ] {
        let told = why(512, &counted(3, 3), |bytes, _| bytes[at] = what);
        assert_eq!(told, format!("not plain: {expected}"));
    }
    let told = why(512, &counted(3, 3), |bytes, _| bytes[100] = 7);
    assert_eq!(told, "its list of tables cannot be read: page 1 is none of a table: 7");
}
