//! Sound files of every sort: the page reader gives what SQLite gives.

use super::*;
use proptest::prelude::*;
use rusqlite::types::Value;

const PAGE_SIZES: [u32; 8] = [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];
const DECLARED: [&str; 10] = [
    "INTEGER",
    "INTEGER NOT NULL",
    "TEXT",
    "REAL",
    "BLOB",
    "",
    "NUMERIC",
    "DOUBLE PRECISION",
    "VARCHAR(20) DEFAULT NULL",
    "INTEGER PRIMARY KEY",
];

#[derive(Debug, Clone, Copy)]
enum Content {
    Integers,
    Reals,
    Texts,
    Anything,
}

#[derive(Debug, Clone)]
struct Table {
    page_size: u32,
    vacuum: u8,
    columns: Vec<(&'static str, Content)>,
    rows: Vec<Vec<Value>>,
    repeats: usize,
    /// Every so many rows one is deleted.
    deleted: Option<i64>,
    added: bool,
    index: bool,
    wanted: Vec<(usize, ColumnType)>,
}

fn integer() -> impl Strategy<Value = i64> {
    prop_oneof![
        Just(0),
        Just(1),
        -130i64..130,
        any::<i16>().prop_map(i64::from),
        any::<i32>().prop_map(i64::from),
        (-1i64 << 23)..(1 << 23),
        (-1i64 << 47)..(1 << 47),
        any::<i64>(),
    ]
}

fn real() -> impl Strategy<Value = f64> {
    prop_oneof![any::<f64>(), integer().prop_map(|number| number as f64), Just(-0.0), Just(f64::INFINITY)]
}

/// Mostly short, at times longer than several pages.
fn length() -> impl Strategy<Value = usize> {
    prop_oneof![8 => 0usize..40, 2 => 0usize..600, 1 => 400usize..9000]
}

fn value(content: Content) -> BoxedStrategy<Value> {
    let integers = integer().prop_map(Value::Integer).boxed();
    let reals = real().prop_map(Value::Real).boxed();
    let texts = (length(), any::<char>()).prop_map(|(length, c)| {
        Value::Text(c.to_string().repeat(length / c.len_utf8()) + if length % 2 == 0 { "x" } else { "" })
    });
    let texts = texts.boxed();
    let blobs = (length(), any::<u8>()).prop_map(|(length, byte)| Value::Blob(vec![byte; length])).boxed();
    let of = match content {
        Content::Integers => integers,
        Content::Reals => prop_oneof![reals, integers].boxed(),
        Content::Texts => texts,
        Content::Anything => prop_oneof![integers, reals, texts, blobs].boxed(),
    };
    prop_oneof![6 => of, 1 => Just(Value::Null)].boxed()
}

fn table() -> impl Strategy<Value = Table> {
    let content = prop::sample::select(vec![
        Content::Integers,
        Content::Integers,
        Content::Reals,
        Content::Texts,
        Content::Anything,
    ]);
    let columns = prop::collection::vec((prop::sample::select(DECLARED.to_vec()), content), 1..7);
    columns.prop_flat_map(|mut columns| {
        // A table has one key.
        let mut keys = 0;
        columns.retain(|(declared, _)| {
            keys += usize::from(declared.contains("KEY"));
            !declared.contains("KEY") || keys == 1
        });
        let row: Vec<_> = columns.iter().map(|(_, content)| value(*content)).collect();
        let kind = |content: Content| match content {
            Content::Integers => ColumnType::Integer,
            Content::Reals => ColumnType::Real,
            Content::Texts | Content::Anything => ColumnType::Text,
        };
        let usual: Vec<ColumnType> = columns.iter().map(|(_, content)| kind(*content)).collect();
        let kinds = prop::sample::select(vec![ColumnType::Integer, ColumnType::Real, ColumnType::Text]);
        // Two more than there are: one that may be added, one that is not there.
        let wanted = prop::collection::vec((0..columns.len() + 2, kinds, 0u8..8), 1..8);
        let wanted = wanted.prop_map(move |wanted| {
            let mut wanted: Vec<(usize, ColumnType)> = wanted
                .into_iter()
                .map(|(at, any, odd)| {
                    (at, if odd == 0 { any } else { usual.get(at).copied().unwrap_or(any) })
                })
                .collect();
            wanted.sort_by_key(|(at, _)| *at);
            wanted.dedup_by_key(|(at, _)| *at);
            wanted
        });
        let how = (
            prop::sample::select(PAGE_SIZES.to_vec()),
            0u8..3,
            prop_oneof![4 => 0usize..4, 1 => 10usize..60],
            prop::option::of(2i64..9),
            any::<bool>(),
            any::<bool>(),
        );
        (Just(columns), prop::collection::vec(row, 0..40), how, wanted).prop_map(
            |(columns, rows, (page_size, vacuum, repeats, deleted, added, index), wanted)| Table {
                page_size,
                vacuum,
                columns,
                rows,
                repeats,
                deleted,
                added,
                index,
                wanted,
            },
        )
    })
}

impl Table {
    /// Rows that the table does not allow are left out.
    fn write(&self, path: &Path) -> rusqlite::Result<()> {
        let db = Connection::open(path)?;
        let (page_size, vacuum) = (self.page_size, self.vacuum);
        db.execute_batch(&format!("PRAGMA page_size={page_size}; PRAGMA auto_vacuum={vacuum}; BEGIN;"))?;
        let columns = self.columns.iter().enumerate();
        let columns: Vec<String> = columns.map(|(at, (declared, _))| format!("c{at} {declared}")).collect();
        db.execute_batch(&format!("CREATE TABLE other(x); CREATE TABLE t({})", columns.join(", ")))?;
        if self.index {
            db.execute_batch("CREATE INDEX i ON t(c0)")?;
        }
        let places = vec!["?"; self.columns.len()].join(", ");
        let mut insert = db.prepare(&format!("INSERT OR IGNORE INTO t VALUES ({places})"))?;
        // A key that is no number is refused, and its row is missing; so be it.
        let mut put = |times: usize| {
            for row in (0..times).flat_map(|_| &self.rows) {
                let _ = insert.execute(rusqlite::params_from_iter(row));
            }
        };
        put(self.repeats);
        if let Some(every) = self.deleted {
            db.execute("DELETE FROM t WHERE rowid % ?1 = 0", [every])?;
        }
        if self.added {
            db.execute_batch(&format!("ALTER TABLE t ADD COLUMN c{} TEXT", self.columns.len()))?;
        }
        put(1);
        db.execute_batch("COMMIT")
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn whole_frames_are_equal(table in table()) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("r.sqlite");
        table.write(&path).expect("written");
        let wanted: Vec<_> =
            table.wanted.iter().map(|(at, kind)| column(&format!("c{at}"), *kind, false)).collect();
        let _ = both(&path, "t", &wanted);
        let _ = both(&path, "other", &numbers(&["x"]));
    }
}

#[test]
fn a_deep_tree_keeps_the_order_of_its_rows() {
    let (_folder, path) = database(512, &(counted(30_000, 90) + "; DELETE FROM t WHERE a % 7 = 0"));
    let pages = pages(&path);
    let visited = file::VisitedPages::new(&pages.file);
    let root = pages.schema.called("t").next().and_then(|table| table.root).expect("a root");
    let leaves = tree::leaves(&pages.file, root, &visited).expect("a tree");
    assert!(leaves.len() > 62 * 62, "more than two levels can hold: {}", leaves.len());
    let frame =
        both(&path, "t", &[column("a", ColumnType::Integer, true), column("b", ColumnType::Text, true)]);
    assert_eq!(frame.expect("read").expect("there").height(), 30_000 - 30_000 / 7);
}

#[test]
fn a_table_may_have_more_shapes_of_records_than_are_kept() {
    let names: Vec<String> = (0..12).map(|at| format!("c{at}")).collect();
    // Each number has a width of its own, up to all of its bytes.
    let values: Vec<String> =
        (0..12).map(|at| format!("(i * {} + {at}) << (i * {at} % 64)", 7 * at + 1)).collect();
    let (_folder, path) = database(
        4096,
        &format!(
            "CREATE TABLE t({}); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) \
             INSERT INTO t SELECT {} FROM n",
            names.join(","),
            values.join(",")
        ),
    );
    let wanted = numbers(&names.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(both(&path, "t", &wanted).expect("read").expect("there").height(), 20_000);
}

#[test]
fn pages_of_two_tables_lie_between_each_other() {
    let mut statements = "CREATE TABLE t(a INTEGER); CREATE TABLE u(a INTEGER, b TEXT);".to_owned();
    for row in 0..4000 {
        statements += &format!("INSERT INTO t VALUES({row}); INSERT INTO u VALUES({row}, '{row:0100}');");
    }
    let (_folder, path) = database(1024, &statements);
    let rows = |name| both(&path, name, &numbers(&["a"])).expect("read").expect("there").height();
    assert_eq!((rows("t"), rows("u")), (4000, 4000));
}

#[test]
fn texts_that_are_no_utf_8_and_blobs_are_texts_as_far_as_they_can_be() {
    let values = "INSERT INTO t VALUES (CAST(x'61ff62' AS TEXT)), (x'6162'), (7), (1.5), (NULL), ('')";
    let (_folder, path) = database(512, &format!("CREATE TABLE t(a); {values}"));
    let frame = both(&path, "t", &[column("a", ColumnType::Text, true)]).expect("read").expect("there");
    let texts = frame.column("a").expect("there").str().expect("texts").clone();
    let expected = [Some("a\u{fffd}b"), Some("ab"), Some("7"), Some("1.5"), None, Some("")];
    assert_eq!(texts.iter().collect::<Vec<_>>(), expected);
}

#[test]
fn a_value_of_another_type_is_reported_with_its_row() {
    let insert = "; INSERT INTO t(a) VALUES ('x'), (1.5), (x'00')";
    for (skipped, kind) in [(0, "Text"), (1, "Real"), (2, "Blob")] {
        let (_folder, path) = database(512, &(counted(20_000, 9) + insert));
        let db = Connection::open(&path).expect("opens");
        db.execute("DELETE FROM t WHERE a IN ('x', 1.5) AND rowid <= 20000 + ?1", [skipped])
            .expect("deleted");
        drop(db);
        let why = both(&path, "t", &numbers(&["a"])).expect_err("not a number");
        assert_eq!(why, format!("row 20001, column `a`: unexpected type {kind}"));
    }
}

#[test]
fn tables_with_rules_of_their_own_are_left_to_the_engine() {
    let (_folder, path) = database(
        4096,
        "CREATE TABLE t(a INTEGER PRIMARY KEY, b INTEGER) WITHOUT ROWID; INSERT INTO t VALUES (2, 3), (1, 4);\
         CREATE TABLE d(a INTEGER); INSERT INTO d VALUES (1); ALTER TABLE d ADD COLUMN b INTEGER DEFAULT 5;\
         CREATE TABLE g(a INTEGER, b INTEGER AS (a + 1) STORED); INSERT INTO g VALUES (1);\
         CREATE TABLE s(a INTEGER, b INTEGER) STRICT; INSERT INTO s VALUES (1, 2);\
         CREATE VIEW v AS SELECT 1 AS a, 2 AS b",
    );
    for (name, b) in [("t", Some(4)), ("d", Some(5)), ("s", Some(2)), ("v", None)] {
        let frame = both(&path, name, &numbers(&["a", "b"])).expect("read");
        let first = frame.and_then(|frame| frame.column("b").ok()?.i64().ok()?.get(0));
        assert_eq!(first, b, "{name}");
    }
    // The engine's list of columns has no computed one either.
    let why = both(&path, "g", &numbers(&["a", "b"])).expect_err("no such column");
    assert_eq!(why, "no column: b");
}

#[test]
fn files_that_are_not_plain_are_left_to_the_engine_with_a_reason() {
    let why = |path: &Path| match open(path).expect("opens") {
        Opened::NotPlain(why) => why,
        Opened::Plain(_) => panic!("plain"),
    };
    let (_folder, path) = database(4096, &counted(3, 3));
    let beside = path.with_extension("sqlite-wal");
    std::fs::write(&beside, "").expect("written");
    assert!(matches!(open(&path), Ok(Opened::Plain(_))), "an empty log is none");
    std::fs::write(&beside, "x").expect("written");
    assert_eq!(why(&path), "a `-wal` file lies beside it");
    std::fs::remove_file(beside).expect("removed");
    std::fs::write(path.with_extension("sqlite-journal"), "x").expect("written");
    assert_eq!(why(&path), "a `-journal` file lies beside it");
    let (_folder, path) = database(4096, "PRAGMA encoding='UTF-16'; CREATE TABLE t(a)");
    Connection::open(&path).expect("opens").execute_batch("PRAGMA journal_mode=WAL").expect("changed");
    assert_eq!(why(&path), "it has a write-ahead log or a newer format");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("wide.sqlite");
    let db = Connection::open(&path).expect("made");
    db.execute_batch(
        "PRAGMA encoding='UTF-16'; CREATE TABLE StringIds(value TEXT); INSERT INTO StringIds VALUES ('x')",
    )
    .expect("made");
    drop(db);
    assert_eq!(why(&path), "its text encoding is not UTF-8");
    let export = super::super::super::Export::open(&path).expect("opens");
    assert!(matches!(export.form, super::super::super::Form::Sqlite(_)));
}

#[test]
fn a_large_record_flows_over_many_pages() {
    let large = "CREATE TABLE t(a INTEGER, b TEXT, c INTEGER, d BLOB);\
        INSERT INTO t VALUES (1, substr(hex(zeroblob(600000)), 1, 1000001), 2, zeroblob(300000));\
        INSERT INTO t VALUES (3, 'short', 4, zeroblob(300000))";
    for page_size in PAGE_SIZES {
        let (_folder, path) = database(page_size, large);
        let columns = [column("b", ColumnType::Text, true), column("c", ColumnType::Integer, true)];
        let frame = both(&path, "t", &columns).expect("read").expect("there");
        let texts = frame.column("b").expect("there").str().expect("texts").clone();
        assert_eq!(texts.get(0).map(str::len), Some(1_000_001), "{page_size}");
    }
}

#[test]
fn a_header_that_is_longer_than_its_page_is_gathered_too() {
    let names: Vec<String> = (0..700).map(|at| format!("c{at} TEXT")).collect();
    let values: Vec<String> = (0..700).map(|at| format!("'{at:0100}'")).collect();
    let (_folder, path) = database(
        512,
        &format!("CREATE TABLE t({}); INSERT INTO t VALUES ({})", names.join(","), values.join(",")),
    );
    let columns = ["c3", "c699", "c350"].map(|name| column(name, ColumnType::Text, true));
    let frame = both(&path, "t", &columns).expect("read").expect("there");
    let last = frame.column("c699").expect("there").str().expect("texts").clone();
    assert_eq!(last.get(0), Some(format!("{:0100}", 699).as_str()));
}
