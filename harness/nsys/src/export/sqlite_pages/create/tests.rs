//! Statements as profilers write them, as others may, and those that are left to SQLite.

use super::*;

fn made(statement: &str) -> Option<Vec<String>> {
    let marked = |column: ColumnDef| {
        let marks = [(column.row_number, "#"), (column.real, "~"), (column.default, "=")];
        let marks: String = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark).collect();
        format!("{}{marks}", column.name)
    };
    Some(columns(statement)?.into_iter().map(marked).collect())
}

#[test]
fn columns_are_found_between_comments_and_constraints() {
    let statement = "CREATE TABLE STRINGS (\n    -- Consolidated, not \"quoted\" (here).\n\n\
        id     INTEGER   NOT NULL   PRIMARY KEY,      -- ID, of a value\n\
        value  TEXT      NOT NULL,  /* a , b */\n\
        end    INTEGER   REFERENCES OTHER(id) ON DELETE SET NULL, -- or REFERENCES C(id)\n\
        ratio  DOUBLE PRECISION, plain, size VARCHAR(10, 2) COLLATE NOCASE DEFAULT NULL,\n\
        PRIMARY KEY (value, end), FOREIGN KEY (end) REFERENCES OTHER(id), UNIQUE (plain) ON CONFLICT FAIL\n)";
    let expected = ["id#", "value", "end", "ratio~", "plain", "size"].map(str::to_owned);
    assert_eq!(made(statement), Some(expected.to_vec()));
}

#[test]
fn names_may_be_quoted_in_each_way() {
    let statement = "CREATE TABLE \"a\"\"b\"(\"x\"\"y\" INTEGER, [p q] REAL, `r``s` TEXT, \u{e4}_1$ FLOAT)";
    let expected = ["x\"y", "p q~", "r`s", "\u{e4}_1$~"].map(str::to_owned);
    assert_eq!(made(statement), Some(expected.to_vec()));
}

#[test]
fn only_a_key_of_exactly_this_type_is_the_number_of_the_row() {
    for (columns, expected) in [
        ("a INTEGER PRIMARY KEY", "a#"),
        ("a integer CONSTRAINT c PRIMARY KEY ASC ON CONFLICT ABORT AUTOINCREMENT", "a#"),
        ("a INTEGER PRIMARY KEY DESC", "a"),
        ("a INT PRIMARY KEY", "a"),
        ("a INTEGER(4) PRIMARY KEY", "a"),
        ("a UNSIGNED INTEGER PRIMARY KEY", "a"),
        ("a INTEGER, PRIMARY KEY (A)", "a#"),
        ("a INTEGER, CONSTRAINT k PRIMARY KEY (a DESC)", "a#"),
        ("a TEXT, PRIMARY KEY (a)", "a"),
        ("a INTEGER UNIQUE", "a"),
        ("a FLOATING POINT", "a"),
        ("a BLOB REAL", "a"),
        ("a REAL NOT NULL CHECK (a > (0)) DEFAULT -1.5", "a~="),
        ("a DEFAULT ('x')", "a="),
        ("a DEFAULT CURRENT_TIME", "a="),
    ] {
        assert_eq!(made(&format!("CREATE TABLE t({columns})")), Some(vec![expected.to_owned()]), "{columns}");
    }
}

#[test]
fn what_is_not_known_for_sure_is_left_to_sqlite() {
    for statement in [
        "",
        "CREATE VIEW v AS SELECT 1",
        "CREATE VIRTUAL TABLE t USING fts5(a)",
        "CREATE TABLE t(a INTEGER PRIMARY KEY) WITHOUT ROWID",
        "CREATE TABLE t(a INTEGER) STRICT",
        "CREATE TABLE t(a, b AS (a + 1))",
        "CREATE TABLE t(a, b INTEGER GENERATED ALWAYS AS (a) STORED)",
        "CREATE TABLE t(a \"INTEGER\" PRIMARY KEY)",
        "CREATE TABLE t(a /* INT */ FLOAT /* INT */ X)",
        "CREATE TABLE t(a INTEGER, PRIMARY KEY (a COLLATE NOCASE))",
        "CREATE TABLE t(a INTEGER, PRIMARY KEY (b))",
        "CREATE TABLE t(a INTEGER",
        "CREATE TABLE t(a, 'b')",
        "CREATE TABLE t(a DEFAULT 'open)",
        "CREATE TABLE t(a /* open)",
        "CREATE TABLE t(a;)",
        "CREATE TABLE t()",
    ] {
        assert_eq!(made(statement), None, "{statement}");
    }
}
