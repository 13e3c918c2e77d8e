//! Tables that the survey itself makes: figures of groups, rows of several reports below each other, and the rank of
//! each report.

use super::{RecipeExtract, Report, ReportRecipe, Survey};
use crate::figures::Stats;
use crate::result_table::{Column, Quantity, ResultTable};
use std::collections::BTreeMap;

/// Largest totals first, then by words; ranks, where rows are of ranks, in their order before that.
pub(in super::super) fn result_table(
    recipe: &ReportRecipe<'_>,
    quantity: Quantity,
    words: &[&str],
    mut rows: Vec<(Option<i64>, Vec<String>, Stats)>,
) -> ResultTable {
    rows.sort_by(|a, b| (a.0, b.2.total, &a.1).cmp(&(b.0, a.2.total, &b.1)));
    let mut totals: BTreeMap<Option<i64>, u128> = BTreeMap::new();
    for (rank, _, stats) in &rows {
        *totals.entry(*rank).or_default() += stats.total;
    }
    let mut columns = Vec::new();
    if rows.iter().any(|(rank, ..)| rank.is_some()) {
        columns.push(Column::maybe_integers("Rank", Quantity::Plain, rows.iter().map(|(rank, ..)| *rank)));
    }
    let share = |rank: &Option<i64>, total: u128| match totals.get(rank) {
        Some(all) if *all > 0 => 100.0 * total as f64 / *all as f64,
        _ => 0.0,
    };
    let of = |value: fn(&Stats) -> f64| rows.iter().map(move |(.., stats)| value(stats)).collect::<Vec<_>>();
    let head = if quantity == Quantity::Nanoseconds { "Time" } else { "Share" };
    columns.push(Column::decimals(
        head,
        Quantity::Percent,
        rows.iter().map(|(rank, _, stats)| share(rank, stats.total)),
    ));
    columns.push(Column::maybe_integers(
        "Total",
        quantity,
        rows.iter().map(|(.., stats)| i64::try_from(stats.total).ok()),
    ));
    columns.push(Column::integers(
        "Count",
        Quantity::Plain,
        rows.iter().map(|(.., stats)| stats.count as i64),
    ));
    columns.push(Column::decimals("Avg", quantity, of(|stats| stats.mean)));
    columns.push(Column::decimals("Med", quantity, of(|stats| stats.median)));
    columns.push(Column::decimals("Q1", quantity, of(|stats| stats.q1)));
    columns.push(Column::decimals("Q3", quantity, of(|stats| stats.q3)));
    let whole = |value: u64| i64::try_from(value).ok();
    columns.push(Column::maybe_integers("Min", quantity, rows.iter().map(|(.., stats)| whole(stats.min))));
    columns.push(Column::maybe_integers("Max", quantity, rows.iter().map(|(.., stats)| whole(stats.max))));
    columns.push(Column::decimals("StdDev", quantity, of(|stats| stats.stddev)));
    for (at, name) in words.iter().enumerate() {
        columns.push(Column::texts(name, rows.iter().map(|(_, words, _)| words[at].clone())));
    }
    ResultTable::new(recipe.name.to_owned(), recipe.title.to_owned(), columns)
}

/// Tables of several reports as one, behind the rank of each row's report; a column that a report lacks is empty there.
pub(in super::super) fn below_each_other(result_tables: &[(i64, &ResultTable)]) -> Option<ResultTable> {
    let (_, first) = result_tables.first()?;
    let mut names: Vec<&Column> = Vec::new();
    for column in result_tables.iter().flat_map(|(_, result_table)| &result_table.columns) {
        if !names.iter().any(|known| known.name == column.name) {
            names.push(column);
        }
    }
    let ranks = result_tables
        .iter()
        .flat_map(|(rank, result_table)| std::iter::repeat_n(*rank, result_table.height()));
    let mut columns = vec![Column::integers("Rank", Quantity::Plain, ranks)];
    for named in names {
        let mut values = named.values.none();
        for (_, result_table) in result_tables {
            match result_table.column(&named.name) {
                Some(column) => values.append(&column.values),
                None => values.append_empty(result_table.height()),
            }
        }
        columns.push(Column { name: named.name.clone(), quantity: named.quantity, values });
    }
    Some(ResultTable::new(first.name.clone(), first.title.clone(), columns))
}

/// Which report is which rank, and what it had.
pub(super) fn files(
    survey: &Survey,
    recipe: &ReportRecipe<'_>,
    reports: &[Report],
    at: usize,
    ranks: &[i64],
    from: &str,
) -> ResultTable {
    let status = |report: &Report| match &report.extracts[at].0 {
        RecipeExtract::Groups { .. } | RecipeExtract::ResultTable(_) | RecipeExtract::Part { .. } => {
            "ok".to_owned()
        }
        RecipeExtract::FoundNone { rows, .. } => format!("looked at {rows} rows, found none"),
        RecipeExtract::Nothing { .. } => "no data".to_owned(),
        RecipeExtract::Unreadable(why) => format!("unreadable: {why}"),
    };
    let columns = vec![
        Column::integers("Rank", Quantity::Plain, ranks.iter().copied()),
        Column::texts("Rank from", reports.iter().map(|_| from)),
        Column::texts("File", survey.inputs.iter().map(|input| input.shown.as_str())),
        Column::maybe_texts("Host", reports.iter().map(|report| report.host.clone())),
        Column::maybe_texts("nsys", reports.iter().map(|report| report.product.clone())),
        Column::maybe_texts("Schema", reports.iter().map(|report| report.schema.clone())),
        Column::integers(
            "Rows",
            Quantity::Plain,
            reports.iter().map(|report| report.extracts[at].0.rows() as i64),
        ),
        Column::texts("Status", reports.iter().map(status)),
    ];
    ResultTable::new(recipe.name.to_owned(), "Reports", columns)
}
