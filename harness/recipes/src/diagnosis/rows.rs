//! The tables of the recipes as rules read them: by column and row. What is absent has no number.

use super::outcome;
use crate::recipe::of_reports::Outcome;
use crate::result_table::{ResultTable, Values};

/// What all recipes gave.
pub(super) struct Tables<'a> {
    pub outcomes: &'a [Outcome],
}

/// One row of a table.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    table: &'a ResultTable,
    at: usize,
}

impl<'a> Tables<'a> {
    /// No rows where the recipe has no such table.
    pub(super) fn rows(&self, recipe: &str, table: &str) -> Vec<Row<'a>> {
        let found = outcome(self.outcomes, recipe)
            .and_then(|outcome| outcome.tables.iter().find(|(name, _)| *name == table));
        found.map_or_else(Vec::new, |(_, table)| (0..table.height()).map(|at| Row { table, at }).collect())
    }

    /// One row for each GPU of a process.
    pub(super) fn gpus(&self) -> Vec<Row<'a>> {
        self.rows("breakdown", "gpus")
    }

    /// `p5-002 GPU 3 (report 1)`: a row's `Rank` is the number of its report, and no rank of the job.
    pub(super) fn gpu(&self, row: &Row<'_>) -> String {
        self.place(row, self.host(row), &format!("GPU {}", row.word("Device")))
    }

    /// The part of a node that a row is of, with its report; the report first where no node is known.
    pub(super) fn place(&self, row: &Row<'_>, node: Option<&str>, part: &str) -> String {
        let report = row.number("Rank").map(|report| format!("report {report}"));
        match (node, report) {
            (Some(node), Some(report)) => format!("{node} {part} ({report})"),
            (Some(node), None) => format!("{node} {part}"),
            (None, Some(report)) => format!("{report} {part}"),
            (None, None) => part.to_owned(),
        }
    }

    /// The host that the row's report names.
    pub(super) fn host(&self, row: &Row<'_>) -> Option<&'a str> {
        let report = row.number("Rank");
        let files = self.rows("breakdown", "files");
        let of_row = files.into_iter().find(|file| file.number("Rank") == report)?;
        of_row.text("Host").filter(|host| !host.is_empty())
    }

    /// The windows of all GPUs together.
    pub(super) fn window_ns(&self) -> f64 {
        sum(&self.gpus(), "Window")
    }

    /// A time of all GPUs together as a part of their windows.
    pub(super) fn share_of_window(&self, ns: f64) -> f64 {
        match self.window_ns() {
            window if window > 0.0 => ns / window,
            _ => 0.0,
        }
    }
}

impl<'a> Row<'a> {
    pub(super) fn number(&self, column: &str) -> Option<f64> {
        match &self.table.column(column)?.values {
            Values::Integers(integers) => integers.get(self.at).map(|value| value as f64),
            Values::Decimals(decimals) => decimals.get(self.at).copied().flatten(),
            Values::Texts(_) | Values::Lists(_) => None,
        }
    }

    pub(super) fn text(&self, column: &str) -> Option<&'a str> {
        match &self.table.column(column)?.values {
            Values::Texts(texts) => texts.get(self.at),
            _ => None,
        }
    }

    /// A whole number or a word, as it is shown.
    pub(super) fn word(&self, column: &str) -> String {
        let number = self.number(column).map(|number| number.to_string());
        number.or_else(|| self.text(column).map(str::to_owned)).unwrap_or_else(|| "?".to_owned())
    }
}

/// What rows without a number add is nothing.
pub(super) fn sum(rows: &[Row<'_>], column: &str) -> f64 {
    // The sum of no number would be -0.
    rows.iter().filter_map(|row| row.number(column)).fold(0.0, |sum, number| sum + number)
}

/// The row with the largest number.
pub(super) fn largest<'a>(rows: &[Row<'a>], of: impl Fn(&Row<'a>) -> Option<f64>) -> Option<(Row<'a>, f64)> {
    rows.iter().filter_map(|row| Some((*row, of(row)?))).max_by(|a, b| a.1.total_cmp(&b.1))
}

/// `5.7 %` of 0.057.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
