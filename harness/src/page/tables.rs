//! Tables as the scripts of a page read them: cells as every form has them, as many of the first rows as fit.

use recipes::recipe::of_reports::Outcome;
use recipes::sheet::{Cell, Look, Sheet, Shown as ShownSheet, visible};
use serde::Serialize;
use std::collections::HashMap;

/// All tables of a page together take about this.
const MOST_BYTES: usize = 800_000;
/// No person goes through more rows than this.
const MOST_ROWS: usize = 50_000;
/// From so many rows it is told how large a row is.
const LOOKED_AT: usize = 200;

#[derive(Debug, Serialize)]
pub(super) struct Shown {
    pub name: String,
    pub title: String,
    /// Here, of how many.
    pub rows: usize,
    pub of: usize,
    pub columns: Vec<Column>,
}

#[derive(Debug, Serialize)]
pub(super) struct Column {
    heading: String,
    #[serde(flatten)]
    cells: Cells,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Cells {
    /// Digits between commas, which no number has; nothing where there is no value.
    Numbers(String),
    /// Each word once, and which one stands in each row.
    Texts { words: Vec<String>, rows: String },
}

/// Small tables whole, and of large ones the first rows, in equal parts of what is left.
pub(super) fn shown(outcome: &Outcome, look: Look) -> Vec<Shown> {
    let sheets: Vec<&(&'static str, Sheet)> =
        outcome.tables.iter().filter(|(_, sheet)| sheet.lines().is_none()).collect();
    let sizes: Vec<usize> = sheets.iter().map(|(_, sheet)| row_bytes(&sheet.shown(look))).collect();
    let mut order: Vec<usize> = (0..sheets.len()).collect();
    order.sort_by_key(|at| (sizes[*at].saturating_mul(sheets[*at].1.height()), *at));
    let mut left = MOST_BYTES;
    let mut shown: Vec<Option<Shown>> = sheets.iter().map(|_| None).collect();
    for (done, at) in order.iter().enumerate() {
        let (name, sheet) = sheets[*at];
        let share = left / (sheets.len() - done);
        let sheet = sheet.shown(look);
        let mut rows = sheet.height.min(MOST_ROWS).min(share / sizes[*at].max(1));
        let mut table = table(name, &sheet, rows);
        while table.bytes() > share && rows > 0 {
            rows = rows * 3 / 4;
            table = self::table(name, &sheet, rows);
        }
        left = left.saturating_sub(table.bytes());
        shown[*at] = Some(table);
    }
    shown.into_iter().flatten().collect()
}

/// About how many bytes a row takes.
fn row_bytes(sheet: &ShownSheet) -> usize {
    let rows = sheet.height.min(LOOKED_AT);
    table("", sheet, rows).bytes().checked_div(rows).unwrap_or_default()
}

fn table(name: &str, sheet: &ShownSheet, rows: usize) -> Shown {
    let columns = sheet.columns.iter().map(|column| {
        let cells = if column.is_text() {
            let (mut words, mut known, mut places) = (Vec::new(), HashMap::new(), Vec::with_capacity(rows));
            for row in 0..rows {
                places.push(match column.cell(row) {
                    Cell::Text(text) => {
                        let next = words.len();
                        let place = *known.entry(text).or_insert(next);
                        if place == next {
                            words.push(visible(text).into_owned());
                        }
                        place.to_string()
                    }
                    Cell::Empty | Cell::Number(_) => String::new(),
                });
            }
            Cells::Texts { words, rows: places.join(",") }
        } else {
            let digits = (0..rows).map(|row| match column.cell(row) {
                Cell::Number(digits) => digits,
                Cell::Empty | Cell::Text(_) => String::new(),
            });
            Cells::Numbers(digits.collect::<Vec<_>>().join(","))
        };
        Column { heading: visible(&column.heading).into_owned(), cells }
    });
    Shown {
        name: name.to_owned(),
        title: sheet.title.to_owned(),
        rows,
        of: sheet.height,
        columns: columns.collect(),
    }
}

impl Shown {
    fn bytes(&self) -> usize {
        serde_json::to_string(self).map_or(0, |text| text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recipes::sheet::{Column as SheetColumn, Quantity};
    use serde_json::{Value, json};

    fn outcome(tables: Vec<(&'static str, Sheet)>) -> Outcome {
        super::super::tests::outcome(tables, vec![])
    }

    fn wire(tables: &[Shown]) -> Value {
        serde_json::to_value(tables).expect("json")
    }

    #[test]
    fn cells_are_the_digits_of_every_form_and_words_stand_once() {
        let columns = vec![
            SheetColumn::maybe_integers("Total", Quantity::Nanoseconds, [Some(i64::MAX), None, Some(0)]),
            SheetColumn::maybe_texts("Name", [Some("a,\"</script>\x1b"), None, Some("a,\"</script>\x1b")]),
        ];
        let sheet = Sheet { name: "x", title: "X", columns };
        let text = Sheet::of_lines("t", "T", vec!["no table".to_owned()]);
        let tables = wire(&shown(&outcome(vec![("x", sheet), ("t", text)]), Look::default()));
        assert_eq!(
            tables,
            json!([{"name": "x", "title": "X", "rows": 3, "of": 3, "columns": [
                {"heading": "Total (ns)", "numbers": "9223372036854775807,,0"},
                {"heading": "Name", "texts": {"words": ["a,\"</script>\\x1b"], "rows": "0,,0"}},
            ]}])
        );
    }

    #[test]
    fn large_tables_share_what_small_ones_leave_and_begin_with_their_first_row() {
        let sheet = |rows: i64| {
            let columns = vec![
                SheetColumn::integers("a", Quantity::Plain, (0..rows).map(|row| row + 1_000_000_000)),
                SheetColumn::texts("b", (0..rows).map(|row| format!("a name of its own: {row}"))),
            ];
            Sheet { name: "x", title: "X", columns }
        };
        let tables = vec![("large", sheet(100_000)), ("small", sheet(100)), ("none", sheet(0))];
        let tables = shown(&outcome(tables), Look::default());
        let sizes: Vec<(usize, usize)> = tables.iter().map(|table| (table.rows, table.of)).collect();
        assert_eq!((sizes[1], sizes[2], sizes[0].1), ((100, 100), (0, 0), 100_000));
        assert!(sizes[0].0 > 10_000 && sizes[0].0 < 50_000, "{sizes:?}");
        assert!(wire(&tables).to_string().len() <= MOST_BYTES + 1_000);
        let numbers = wire(&tables)[0]["columns"][0]["numbers"].as_str().expect("digits").to_owned();
        assert!(numbers.starts_with("1000000000,1000000001,"));
    }

    #[test]
    fn one_giant_cell_does_not_burst_a_page() {
        let sheet =
            Sheet { name: "x", title: "X", columns: vec![SheetColumn::texts("a", ["x".repeat(2_000_000)])] };
        let tables = shown(&outcome(vec![("x", sheet)]), Look::default());
        assert_eq!((tables[0].rows, tables[0].of), (0, 1));
    }
}
