//! Exports that are sound, truncated, damaged, of other schemas, or no exports.

use super::*;
use crate::tables::{KERNEL, STRING_IDS};
use crate::testing::exports as testing;
use std::fs;

const KERNELS: [testing::Kernel; 3] = [(0, 10, "a"), (20, 25, "b"), (30, 41, "a")];

#[test]
fn both_forms_give_the_same_tables() {
    let folder = tempfile::tempdir().expect("a folder");
    let parquet = Export::open(&testing::parquet(folder.path(), &KERNELS, &[])).expect("opens");
    let sqlite = Export::open(&testing::sqlite(folder.path(), &KERNELS, &[], false)).expect("opens");
    for column in ["start", "end", "shortName", "deviceId"] {
        let of = |export: &Export| {
            export.table(&KERNEL).expect("read").expect("there").ints(column).expect("numbers").to_vec()
        };
        assert_eq!(of(&parquet), of(&sqlite), "{column}");
    }
    let names = |export: &Export| {
        let rows = export.table(&STRING_IDS).expect("read").expect("there");
        rows.texts("value").expect("texts").iter().map(|text| text.map(str::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(names(&parquet), names(&sqlite));
    assert_eq!(parquet.written_by(), sqlite.written_by());
    assert_eq!(parquet.written_by().map(|written| written.schema_major()), Ok(Some(3)));
}

#[test]
fn a_table_that_is_not_there_and_one_without_a_row_are_alike() {
    let folder = tempfile::tempdir().expect("a folder");
    let parquet = Export::open(&testing::parquet(folder.path(), &[], &[])).expect("opens");
    let sqlite = Export::open(&testing::sqlite(folder.path(), &[], &[], false)).expect("opens");
    assert!(parquet.table(&KERNEL).expect("no error").is_none());
    assert!(sqlite.table(&KERNEL).expect("no error").is_none());
}

#[test]
fn a_file_that_was_not_fetched_or_not_unpacked_is_called_what_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let lfs = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n";
    for (name, bytes, why) in
        [("a.sqlite", lfs.as_bytes(), "`git lfs pull`"), ("b.sqlite", b"\x28\xb5\x2f\xfd...", "a zstd file")]
    {
        let path = folder.path().join(name);
        fs::write(&path, bytes).expect("written");
        let Err(error) = Export::open(&path) else { panic!("{name} was opened") };
        assert!(error.to_string().contains(why), "{error}");
    }
    for path in ["/dev/zero", "/dev/null"] {
        let Err(error) = Export::open(Path::new(path)) else { panic!("{path} was opened") };
        assert!(error.to_string().ends_with("not a regular file"), "{error}");
    }
}

#[test]
fn the_older_layout_s_name_of_a_table_is_known() {
    let folder = tempfile::tempdir().expect("a folder");
    let old = Export::open(&testing::sqlite(folder.path(), &KERNELS, &[], true)).expect("opens");
    assert_eq!(old.written_by().expect("read").schema.as_deref(), Some("2.9.1"));
}

#[test]
fn a_missing_column_is_reported_with_the_schema_version() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = testing::sqlite(folder.path(), &KERNELS, &[], false);
    let db = rusqlite::Connection::open(&path).expect("opens");
    db.execute_batch("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME COLUMN shortName TO shorterName")
        .expect("renamed");
    drop(db);
    let error = Export::open(&path).expect("opens").table(&KERNEL).expect_err("no column").to_string();
    assert_eq!(error, "table `CUPTI_ACTIVITY_KIND_KERNEL` has no column `shortName` (export schema 3.20.0)");
}

#[test]
fn whatever_is_cut_off_or_damaged_is_an_error_and_never_a_panic() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = testing::sqlite(folder.path(), &KERNELS, &[], false);
    let whole = fs::read(&path).expect("there");
    for length in [0, 10, 100, 4096, whole.len() / 2, whole.len() - 4096] {
        fs::write(&path, &whole[..length]).expect("cut");
        let read = Export::open(&path)
            .and_then(|export| export.table(&KERNEL).map(|rows| rows.map(|rows| rows.len())));
        assert!(!matches!(read, Ok(Some(rows)) if rows != 3), "cut to {length}: {read:?}");
    }
    let export = testing::parquet(folder.path(), &KERNELS, &[]);
    let table = export.join("CUPTI_ACTIVITY_KIND_KERNEL.parquet");
    let whole = fs::read(&table).expect("there");
    for length in 0..whole.len() {
        fs::write(&table, &whole[..length]).expect("cut");
        let read = Export::open(&export).expect("opens").table(&KERNEL);
        assert!(read.is_err(), "cut to {length} of {}", whole.len());
    }
}

/// Each byte of the footer in turn: some of these files have the library panic.
#[test]
fn a_parquet_file_with_a_damaged_footer_is_an_error_and_never_a_panic() {
    let folder = tempfile::tempdir().expect("a folder");
    let export = testing::parquet(folder.path(), &KERNELS, &[]);
    let table = export.join("CUPTI_ACTIVITY_KIND_KERNEL.parquet");
    let whole = fs::read(&table).expect("there");
    let footer = u32::from_le_bytes(whole[whole.len() - 8..whole.len() - 4].try_into().expect("4 bytes"));
    let mut refused = 0;
    for at in whole.len() - 8 - footer as usize..whole.len() - 8 {
        for spoilt in [0x15, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = spoilt;
            fs::write(&table, &bytes).expect("written");
            let read = Export::open(&export).expect("opens").table(&KERNEL);
            refused += usize::from(read.is_err_and(|error| error.to_string().contains("damaged Parquet")));
        }
    }
    assert!(refused > 0, "no such file has the library panic any more: guard and test may go");
}

#[test]
fn a_file_that_is_no_export_is_refused_with_the_command_to_export_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = folder.path().join("r.nsys-rep");
    fs::write(&report, "NSYS something else").expect("written");
    let why = |path: &Path| Export::open(path).err().expect("refused").to_string();
    assert!(why(&report).contains("nsys export --type=parquetdir"), "{}", why(&report));
    assert!(why(folder.path()).contains("the folder has no .parquet or .arrow file"));
    assert!(why(&folder.path().join("nowhere")).contains("No such file"));
    fs::write(&report, "").expect("written");
    assert!(why(&report).contains("the file is empty"));
}

/// The folder may be shared with others, who would have every reader of it wait without end.
#[test]
fn a_pipe_in_the_place_of_a_table_is_refused_and_not_waited_for() {
    for ending in ["parquet", "arrow"] {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join(format!("StringIds.{ending}"));
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        let read = Export::open(folder.path()).expect("opens").table(&STRING_IDS);
        let why = read.map(|_| ()).expect_err("a pipe").to_string();
        assert!(why.contains("not a regular file"), "{why}");
    }
}

#[test]
fn numbers_of_any_width_are_widened() {
    let folder = tempfile::tempdir().expect("a folder");
    let export = testing::parquet(folder.path(), &KERNELS, &[]);
    let narrow = df!["id" => [1u32, 2], "value" => ["a", "b"]].expect("a frame");
    let mut narrow = narrow;
    let file = fs::File::create(export.join("StringIds.parquet")).expect("made");
    ParquetWriter::new(file).finish(&mut narrow).expect("written");
    let rows = Export::open(&export).expect("opens").table(&STRING_IDS).expect("read").expect("there");
    assert_eq!(rows.ints("id").expect("numbers"), [1, 2]);
}

#[test]
fn a_missing_number_is_reported_with_its_row() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = testing::sqlite(folder.path(), &KERNELS, &[], false);
    let db = rusqlite::Connection::open(&path).expect("opens");
    db.execute_batch("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = NULL WHERE start = 20").expect("changed");
    drop(db);
    let rows = Export::open(&path).expect("opens").columns(&KERNEL, &["start", "end"]).expect("read");
    let rows = rows.expect("there");
    assert_eq!(rows.maybe_ints("end").expect("read").get(1), None);
    let error = rows.ints("end").expect_err("a hole").to_string();
    assert_eq!(error, "table `CUPTI_ACTIVITY_KIND_KERNEL` cannot be read: row 2 has no `end`");
}

#[test]
fn texts_that_a_parquet_file_declares_as_mere_bytes_are_read_as_far_as_they_are_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let export = testing::parquet(folder.path(), &KERNELS, &[]);
    let bytes: Vec<&[u8]> = vec![b"gemm", b"a\xffb"];
    let value = BinaryChunked::from_slice("value".into(), &bytes).into_column();
    let mut frame = DataFrame::new(2, vec![Column::new("id".into(), [1i64, 2]), value]).expect("a frame");
    let file = fs::File::create(export.join("StringIds.parquet")).expect("made");
    ParquetWriter::new(file).finish(&mut frame).expect("written");
    let rows = Export::open(&export).expect("opens").table(&STRING_IDS).expect("read").expect("there");
    let texts: Vec<Option<&str>> = rows.texts("value").expect("texts").iter().collect();
    assert_eq!(texts, [Some("gemm"), Some("a\u{fffd}b")]);
}

#[test]
fn numbers_of_64_bits_without_a_sign_have_the_bits_that_sqlite_has() {
    let folder = tempfile::tempdir().expect("a folder");
    let export = testing::parquet(folder.path(), &KERNELS, &[]);
    let mut frame = df!["id" => [1u64, u64::MAX], "value" => ["a", "b"]].expect("a frame");
    let file = fs::File::create(export.join("StringIds.parquet")).expect("made");
    ParquetWriter::new(file).finish(&mut frame).expect("written");
    let rows = Export::open(&export).expect("opens").table(&STRING_IDS).expect("read").expect("there");
    assert_eq!(rows.ints("id").expect("numbers"), [1, -1]);
}

#[test]
fn what_stands_only_in_the_log_beside_an_export_is_read_or_refused_and_never_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = testing::sqlite(folder.path(), &KERNELS, &[], false);
    let db = rusqlite::Connection::open(&path).expect("opens");
    db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).expect("changed");
    db.execute_batch("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (50, 60, 0, 7, 1, 1, 1)").expect("put");
    // As it lies there when whoever writes it is ended: the row is in the log alone.
    let left = folder.path().join("left.sqlite");
    fs::copy(&path, &left).expect("copied");
    fs::copy(folder.path().join("r.sqlite-wal"), folder.path().join("left.sqlite-wal")).expect("copied");
    drop(db);
    let read = |path: &Path| {
        Export::open(path)
            .and_then(|export| export.table(&KERNEL))
            .map(|rows| rows.map_or(0, |rows| rows.len()))
    };
    assert_eq!(read(&left), Ok(4));
    // A change that was begun and not ended is undone by a writer alone.
    let begun = testing::sqlite(&tempfile::tempdir().expect("a folder").keep(), &KERNELS, &[], false);
    let db = rusqlite::Connection::open(&begun).expect("opens");
    db.execute_batch("PRAGMA cache_size = 1; BEGIN; UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = 99")
        .expect("begun");
    let half = folder.path().join("half.sqlite");
    fs::copy(&begun, &half).expect("copied");
    let mut journal = begun.as_os_str().to_owned();
    journal.push("-journal");
    fs::copy(journal, folder.path().join("half.sqlite-journal")).expect("copied");
    drop(db);
    fs::remove_dir_all(begun.parent().expect("a folder")).expect("removed");
    let half = read(&half);
    assert!(half.is_err() || half == Ok(3), "{half:?}");
}

/// An export of which one table is made by these commands.
fn made_by(folder: &Path, commands: &str) -> PathBuf {
    let path = testing::sqlite(folder, &KERNELS, &[], false);
    let db = rusqlite::Connection::open(&path).expect("opens");
    db.execute_batch(commands).expect("made");
    path
}

#[test]
fn values_by_default_take_no_more_memory_than_a_file_has_room_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let read = |default: &str| {
        let ids =
            "WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n LIMIT 2000) SELECT id FROM n";
        let commands = format!(
            "DROP TABLE StringIds; CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY); \
             INSERT INTO StringIds (id) {ids}; ALTER TABLE StringIds ADD COLUMN value TEXT DEFAULT '{default}'"
        );
        let export = Export::open(&made_by(folder.path(), &commands)).expect("opens");
        export.table(&STRING_IDS).map(|rows| rows.map_or(0, |rows| rows.len()))
    };
    assert_eq!(read("short"), Ok(2000));
    let why = read(&"k".repeat(20_000)).expect_err("a bomb").to_string();
    assert!(why.contains("more than 4 times its"), "{why}");
}

#[test]
fn a_page_that_others_lead_to_often_makes_no_more_rows_than_a_file_has_room_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows = "WITH RECURSIVE n (at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM n LIMIT 1000) \
                SELECT at, at + 1, 1, 1, 1, 1 FROM n";
    // A value by default, which the pages' own reader leaves to the engine.
    let commands = format!(
        "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL; CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT DEFAULT 1, \
         \"end\" INT, deviceId INT, streamId INT, demangledName INT, shortName INT); \
         INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL {rows}"
    );
    let path = made_by(folder.path(), &commands);
    let read = || {
        let export = Export::open(&path).expect("opens");
        export.table(&KERNEL).map(|rows| rows.map_or(0, |rows| rows.len()))
    };
    assert_eq!(read(), Ok(1000));
    let db = rusqlite::Connection::open(&path).expect("opens");
    let root = "SELECT rootpage FROM sqlite_master WHERE name = 'CUPTI_ACTIVITY_KIND_KERNEL'";
    let root: i64 = db.query_row(root, [], |row| row.get(0)).expect("there");
    drop(db);
    let mut bytes = fs::read(&path).expect("there");
    let size = usize::from(u16::from_be_bytes([bytes[16], bytes[17]]));
    let page = &mut bytes[(root as usize - 1) * size..][..size];
    assert_eq!(page[0], 5, "the root leads to other pages");
    let cell = usize::from(u16::from_be_bytes([page[12], page[13]]));
    let leaf = page[cell..cell + 4].to_vec();
    // 400 cells, each of which leads to the same page.
    let cells = 400;
    page.fill(0);
    page[0] = 5;
    page[3..5].copy_from_slice(&(cells as u16).to_be_bytes());
    page[5..7].copy_from_slice(&((size - 5 * cells) as u16).to_be_bytes());
    page[8..12].copy_from_slice(&leaf);
    for at in 0..cells {
        let place = size - 5 * (at + 1);
        page[12 + 2 * at..14 + 2 * at].copy_from_slice(&(place as u16).to_be_bytes());
        page[place..place + 4].copy_from_slice(&leaf);
        page[place + 4] = 1;
    }
    fs::write(&path, bytes).expect("written");
    let why = read().expect_err("a bomb").to_string();
    assert!(why.contains("more rows than fit into"), "{why}");
}

#[test]
fn a_list_of_tables_without_an_end_is_not_read_for_ever() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("r.sqlite");
    let db = rusqlite::Connection::open(&path).expect("made");
    db.execute_batch(
        "PRAGMA page_size = 512; CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT UNIQUE, \"end\" INT, \
         deviceId INT, streamId INT, demangledName INT, shortName INT); \
         CREATE TABLE StringIds (id INT UNIQUE, value TEXT)",
    )
    .expect("made");
    drop(db);
    let mut bytes = fs::read(&path).expect("there");
    let size = 512;
    let page = |kind: u8, cells: &[Vec<u8>], last: u32| {
        let head = if kind == 5 { 12 } else { 8 };
        let mut page = vec![0; size];
        page[0] = kind;
        let mut place = size;
        for (at, cell) in cells.iter().enumerate() {
            place -= cell.len();
            page[place..place + cell.len()].copy_from_slice(cell);
            page[head + 2 * at..head + 2 * at + 2].copy_from_slice(&(place as u16).to_be_bytes());
        }
        page[3..5].copy_from_slice(&(cells.len() as u16).to_be_bytes());
        page[5..7].copy_from_slice(&(place as u16).to_be_bytes());
        if kind == 5 {
            page[8..12].copy_from_slice(&last.to_be_bytes());
        }
        page
    };
    // The row of an index without a statement, which may stand there twice.
    let texts = ["index", "sqlite_autoindex_StringIds_1", "StringIds"];
    let mut record = vec![6];
    record.extend(texts.iter().map(|text| 13 + 2 * text.len() as u8));
    record.extend([1, 0]);
    record.extend(texts.concat().bytes());
    record.push(5);
    let row = [vec![record.len() as u8, 9], record].concat();
    let mut pages = (bytes.len() / size) as u32;
    let mut add = |page: Vec<u8>| {
        bytes.extend(page);
        pages += 1;
        pages
    };
    let mut child = add(page(13, &[row], 0));
    for _ in 0..6 {
        let cells: Vec<Vec<u8>> =
            (0..60).map(|at| [child.to_be_bytes().to_vec(), vec![10 + at]].concat()).collect();
        child = add(page(5, &cells, child));
    }
    // The first page has one child, which has the tables: a second one is added behind it.
    assert_eq!((bytes[100], &bytes[103..105]), (5, [0, 0].as_slice()));
    let tables = bytes[108..112].to_vec();
    bytes[507..511].copy_from_slice(&tables);
    bytes[511] = 8;
    bytes[103..105].copy_from_slice(&1_u16.to_be_bytes());
    bytes[105..107].copy_from_slice(&507_u16.to_be_bytes());
    bytes[108..112].copy_from_slice(&child.to_be_bytes());
    bytes[112..114].copy_from_slice(&507_u16.to_be_bytes());
    bytes[28..32].copy_from_slice(&pages.to_be_bytes());
    fs::write(&path, bytes).expect("written");
    // The pages' own reader sees that they are no tree, and with a log beside them the engine is asked.
    assert!(Export::open(&path).is_err());
    fs::write(folder.path().join("r.sqlite-wal"), "x").expect("written");
    let why = Export::open(&path).err().expect("refused").to_string();
    assert!(why.contains("interrupted"), "{why}");
}

#[test]
fn messages() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let opened = |path: &Path| Export::open(path).err().expect("refused").to_string();
    fs::create_dir(at("folder")).expect("made");
    let mut messages = vec![opened(&at("nowhere")), opened(&at("folder"))];
    for (name, text) in
        [("empty", ""), ("r.nsys-rep", "NSYS something else"), ("short.sqlite", "SQLite format 3\0")]
    {
        fs::write(at(name), text).expect("written");
        messages.push(opened(&at(name)));
    }
    let foreign = rusqlite::Connection::open(at("foreign.sqlite")).expect("made");
    foreign.execute_batch("CREATE TABLE profiles (id INTEGER)").expect("made");
    messages.push(opened(&at("foreign.sqlite")));
    for change in [
        "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = NULL WHERE start = 20",
        "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = 'x' WHERE start = 20",
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME COLUMN shortName TO shorterName",
    ] {
        let path = testing::sqlite(folder.path(), &KERNELS, &[], false);
        let db = rusqlite::Connection::open(&path).expect("opens");
        db.execute_batch(change).expect("changed");
        drop(db);
        let read = Export::open(&path).and_then(|export| export.table(&KERNEL));
        let read = read.map(|rows| rows.expect("there").ints("end").map(<[i64]>::len));
        messages.push(read.and_then(|ends| ends).expect_err(change).to_string());
    }
    let parquet = testing::parquet(folder.path(), &KERNELS, &[]);
    let table = parquet.join("CUPTI_ACTIVITY_KIND_KERNEL.parquet");
    let whole = fs::read(&table).expect("there");
    for bytes in [b"PAR1".as_slice(), &whole[..whole.len() - 1]] {
        fs::write(&table, bytes).expect("written");
        let read = Export::open(&parquet).and_then(|export| export.table(&KERNEL));
        messages.push(read.expect_err("damaged").to_string());
    }
    insta::assert_snapshot!(messages.join("\n"));
}
