//! Tables as the scripts of a page read them: cells as every format writes them, and as many of the first rows as fit.

use recipes::recipe::of_reports::Outcome;
use recipes::result_table::{Cell, Look, ResultTable, Shown as ShownTable, visible};
use serde::Serialize;
use std::collections::HashMap;

/// All tables of a page together take about this.
const MOST_BYTES: usize = 800_000;
/// More rows than this are not shown.
const MOST_ROWS: usize = 50_000;
/// The number of rows that are measured to estimate the size of a row.
const LOOKED_AT: usize = 200;

#[derive(Debug, Serialize)]
pub(super) struct PageTable {
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

/// Small tables completely, and the first rows of large ones, with equal shares of the remaining bytes.
pub(super) fn page_tables(outcome: &Outcome, look: Look) -> Vec<PageTable> {
    let result_tables: Vec<&(&'static str, ResultTable)> =
        outcome.tables.iter().filter(|(_, result_table)| result_table.lines().is_none()).collect();
    let sizes: Vec<usize> =
        result_tables.iter().map(|(_, result_table)| row_bytes(&result_table.render(look))).collect();
    let mut order: Vec<usize> = (0..result_tables.len()).collect();
    order.sort_by_key(|at| (sizes[*at].saturating_mul(result_tables[*at].1.height()), *at));
    let mut left = MOST_BYTES;
    let mut shown: Vec<Option<PageTable>> = result_tables.iter().map(|_| None).collect();
    for (done, at) in order.iter().enumerate() {
        let (name, result_table) = result_tables[*at];
        let share = left / (result_tables.len() - done);
        let result_table = result_table.render(look);
        let mut rows = result_table.height.min(MOST_ROWS).min(share / sizes[*at].max(1));
        let mut table = table(name, &result_table, rows);
        while table.bytes() > share && rows > 0 {
            rows = rows * 3 / 4;
            table = self::table(name, &result_table, rows);
        }
        left = left.saturating_sub(table.bytes());
        shown[*at] = Some(table);
    }
    shown.into_iter().flatten().collect()
}

/// About how many bytes a row takes.
fn row_bytes(result_table: &ShownTable) -> usize {
    let rows = result_table.height.min(LOOKED_AT);
    table("", result_table, rows).bytes().checked_div(rows).unwrap_or_default()
}

fn table(name: &str, result_table: &ShownTable, rows: usize) -> PageTable {
    let columns = result_table.columns.iter().map(|column| {
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
    PageTable {
        name: name.to_owned(),
        title: result_table.title.to_owned(),
        rows,
        of: result_table.height,
        columns: columns.collect(),
    }
}

impl PageTable {
    fn bytes(&self) -> usize {
        serde_json::to_string(self).map_or(0, |text| text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recipes::result_table::{Column as TableColumn, Quantity};
    use serde_json::{Value, json};

    fn outcome(tables: Vec<(&'static str, ResultTable)>) -> Outcome {
        super::super::tests::outcome(tables, vec![])
    }

    fn wire(tables: &[PageTable]) -> Value {
        serde_json::to_value(tables).expect("json")
    }

    #[test]
    fn cells_are_the_digits_of_every_form_and_words_stand_once() {
        let columns = vec![
            TableColumn::maybe_integers("Total", Quantity::Nanoseconds, [Some(i64::MAX), None, Some(0)]),
            TableColumn::maybe_texts("Name", [Some("a,\"</script>\x1b"), None, Some("a,\"</script>\x1b")]),
        ];
        let result_table = ResultTable::new("x", "X", columns);
        let text = ResultTable::from_lines("t", "T", vec!["no table".to_owned()]);
        let tables = wire(&page_tables(&outcome(vec![("x", result_table), ("t", text)]), Look::default()));
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
        let result_table = |rows: i64| {
            let columns = vec![
                TableColumn::integers("a", Quantity::Plain, (0..rows).map(|row| row + 1_000_000_000)),
                TableColumn::texts("b", (0..rows).map(|row| format!("a name of its own: {row}"))),
            ];
            ResultTable::new("x", "X", columns)
        };
        let tables =
            vec![("large", result_table(100_000)), ("small", result_table(100)), ("none", result_table(0))];
        let tables = page_tables(&outcome(tables), Look::default());
        let sizes: Vec<(usize, usize)> = tables.iter().map(|table| (table.rows, table.of)).collect();
        assert_eq!((sizes[1], sizes[2], sizes[0].1), ((100, 100), (0, 0), 100_000));
        assert!(sizes[0].0 > 10_000 && sizes[0].0 < 50_000, "{sizes:?}");
        assert!(wire(&tables).to_string().len() <= MOST_BYTES + 1_000);
        let numbers = wire(&tables)[0]["columns"][0]["numbers"].as_str().expect("digits").to_owned();
        assert!(numbers.starts_with("1000000000,1000000001,"));
    }

    #[test]
    fn one_giant_cell_does_not_burst_a_page() {
        let result_table = ResultTable {
            name: "x".into(),
            title: "X".into(),
            columns: vec![TableColumn::texts("a", ["x".repeat(2_000_000)])],
        };
        let tables = page_tables(&outcome(vec![("x", result_table)]), Look::default());
        assert_eq!((tables[0].rows, tables[0].of), (0, 1));
    }
}
