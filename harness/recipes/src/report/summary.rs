//! The columns that all summaries of times have in common, over groups of rows: the largest first.

use crate::figures::{Grouped, Stats};
use crate::result_table::{Column, Quantity, ResultTable};
use nsys::export::ExportError;
use nsys::trace::NO_GROUP;

/// Rows in groups: of each row its group and its value, of each group the words that name it.
#[derive(Debug, Default)]
pub struct Groups {
    /// Index of each row's group in `labels`, or `NO_GROUP`.
    pub of_row: Vec<u32>,
    /// One per row: nanoseconds, bytes or whatever is summed.
    pub values: Vec<u64>,
    /// One list per group: a word for each column that names it.
    pub labels: Vec<Vec<String>>,
}

impl Groups {
    /// Groups with one word each.
    pub(crate) fn named(of_row: Vec<u32>, values: Vec<u64>, labels: Vec<String>) -> Groups {
        Groups { of_row, values, labels: labels.into_iter().map(|label| vec![label]).collect() }
    }

    /// Nothing where no row is in a group.
    pub(crate) fn any(self) -> Option<Groups> {
        self.of_row.iter().any(|group| *group != NO_GROUP).then_some(self)
    }
}

/// Groups with their figures and the words that name them.
pub(super) struct Summary {
    rows: Vec<(Stats, Vec<String>)>,
}

impl Summary {
    /// Groups without a row are none.
    pub(super) fn new(groups: Groups) -> Summary {
        let stats = Grouped::new(&groups.of_row, &groups.values, groups.labels.len()).stats();
        let named = stats.into_iter().zip(groups.labels);
        let mut rows: Vec<(Stats, Vec<String>)> =
            named.filter_map(|(stats, words)| Some((stats?, words))).collect();
        // Equal totals in the order of their words, whatever the order of the rows was.
        rows.sort_by(|a, b| b.0.total.cmp(&a.0.total).then_with(|| a.1.cmp(&b.1)));
        Summary { rows }
    }

    /// `Time (%)`, `Total Time`, the count under its name, the figures, the words.
    pub(super) fn time_table(
        &self,
        name: &'static str,
        title: &'static str,
        count: &str,
        words: &[&str],
    ) -> Result<ResultTable, ExportError> {
        let all: u128 = self.rows.iter().map(|(stats, _)| stats.total).sum();
        // Where nothing took any time, nothing had a part of it.
        let share = |total: u128| if all == 0 { 0.0 } else { 100.0 * total as f64 / all as f64 };
        let mut columns = vec![Column::decimals(
            "Time",
            Quantity::Percent,
            self.rows.iter().map(|(stats, _)| share(stats.total)),
        )];
        columns.push(self.totals(name, "Total Time", Quantity::Nanoseconds)?);
        columns.push(self.counts(count));
        columns.extend(self.figures(Quantity::Nanoseconds));
        columns.extend(self.key_columns(words));
        Ok(ResultTable::new(name, title, columns))
    }

    /// The sum of each group.
    pub(super) fn totals(
        &self,
        report: &'static str,
        name: &str,
        quantity: Quantity,
    ) -> Result<Column, ExportError> {
        let totals: Result<Vec<i64>, _> =
            self.rows.iter().map(|(stats, _)| fitting(report, stats.total)).collect();
        Ok(Column::integers(name, quantity, totals?))
    }

    pub(super) fn counts(&self, name: &str) -> Column {
        Column::integers(name, Quantity::Plain, self.rows.iter().map(|(stats, _)| stats.count as i64))
    }

    /// Mean, median, least, most, deviation.
    pub(super) fn figures(&self, quantity: Quantity) -> Vec<Column> {
        let of = |value: fn(&Stats) -> f64| self.rows.iter().map(move |(stats, _)| value(stats));
        // A value that does not fit makes a sum that does not, which is refused.
        let whole = |value: fn(&Stats) -> u64| self.rows.iter().map(move |(stats, _)| value(stats) as i64);
        vec![
            Column::decimals("Avg", quantity, of(|stats| stats.mean)),
            Column::decimals("Med", quantity, of(|stats| stats.median)),
            Column::integers("Min", quantity, whole(|stats| stats.min)),
            Column::integers("Max", quantity, whole(|stats| stats.max)),
            Column::decimals("StdDev", quantity, of(|stats| stats.stddev)),
        ]
    }

    pub(super) fn key_columns(&self, names: &[&str]) -> Vec<Column> {
        let column = |at: usize, name: &&str| {
            Column::texts(name, self.rows.iter().map(|(_, words)| words[at].clone()))
        };
        names.iter().enumerate().map(|(at, name)| column(at, name)).collect()
    }
}

/// A time or a sum of times as it is shown.
pub(super) fn fitting(report: &'static str, value: impl TryInto<i64>) -> Result<i64, ExportError> {
    let why = "a sum does not fit into 64 bits; some rows must be damaged";
    value.try_into().map_err(|_| ExportError::Broken { table: report, why: why.to_owned() })
}
