//! A summary of one set of reports beside the same of another: what takes longer now than before.

use super::{RecipeKind, ReportRecipe, find, summaries::named};
use crate::figures::{Stats, Tally};
use crate::report::Arguments;
use crate::result_table::{Column, Quantity, ResultTable};
use std::collections::BTreeMap;

pub(super) const DIFF: ReportRecipe = ReportRecipe {
    name: "diff",
    title: "Difference of Two Summaries",
    about: "a summary of the first input beside that of the second",
    definition: "each input's reports together; the largest difference of totals first; a group that one side lacks \
                 is empty there, and its difference is the other's whole total",
    arguments: &[
        named("cuda_gpu_kern_sum"),
        named("cuda_api_sum"),
        named("cuda_gpu_mem_time_sum"),
        named("cuda_gpu_mem_size_sum"),
        named("nvtx_sum"),
        named("osrt_sum"),
        named("mpi_sum"),
    ],
    tables: &[],
    kind: RecipeKind::Diff,
};

pub(super) const COLUMNS: &[&str] = &[
    "Difference: the second total without the first",
    "Second of First: the second total as a share of the first",
    "First Total: the sum in the first input",
    "First Count: how many the first input has",
    "First Med: the median in the first input",
    "Second Total: the sum in the second input",
    "Second Count: how many the second input has",
    "Second Med: the median in the second input",
];

/// Those of the summaries that it compares by.
pub(super) const WORDS: &[&str] = &["Name", "Operation", "Style", "Range", "Source"];

/// The summary of a recipe: its own, or the one that `diff` compares by.
pub(super) fn summary_of<'a>(recipe: ReportRecipe<'a>, arguments: &Arguments) -> ReportRecipe<'a> {
    if !matches!(recipe.kind, RecipeKind::Diff) {
        return recipe;
    }
    let asked = recipe.arguments.iter().find(|argument| arguments.has(&argument.name));
    let name = asked.or(recipe.arguments.first()).map_or("", |argument| &*argument.name);
    find(name).unwrap_or(recipe)
}

pub(super) fn result_table(
    recipe: ReportRecipe<'_>,
    arguments: &Arguments,
    all: BTreeMap<(usize, Vec<String>), Tally>,
) -> ResultTable {
    let summary = summary_of(recipe, arguments);
    let (quantity, words) = match &summary.kind {
        RecipeKind::Summary { quantity, words, .. } => (*quantity, *words),
        _ => (Quantity::Plain, &[][..]),
    };
    let mut pairs: BTreeMap<Vec<String>, [Option<Stats>; 2]> = BTreeMap::new();
    for ((side, words), mut tally) in all {
        if let Some(place) = pairs.entry(words).or_default().get_mut(side) {
            *place = tally.stats();
        }
    }
    let total = |stats: &Option<Stats>| stats.as_ref().map_or(0, |stats| stats.total as i128);
    let mut rows: Vec<(Vec<String>, [Option<Stats>; 2], i128)> = pairs
        .into_iter()
        .map(|(words, sides)| {
            let difference = total(&sides[1]) - total(&sides[0]);
            (words, sides, difference)
        })
        .collect();
    rows.sort_by(|a, b| b.2.unsigned_abs().cmp(&a.2.unsigned_abs()).then_with(|| a.0.cmp(&b.0)));
    let narrow = |value: i128| i64::try_from(value).ok();
    let mut columns =
        vec![Column::maybe_integers("Difference", quantity, rows.iter().map(|row| narrow(row.2)))];
    let ratio = |sides: &[Option<Stats>; 2]| {
        let before = sides[0].as_ref().filter(|stats| stats.total > 0)?;
        Some(100.0 * sides[1].as_ref()?.total as f64 / before.total as f64)
    };
    columns.push(Column::maybe_decimals(
        "Second of First",
        Quantity::Percent,
        rows.iter().map(|row| ratio(&row.1)),
    ));
    for (side, name) in ["First", "Second"].into_iter().enumerate() {
        let of = |value: &dyn Fn(&Stats) -> Option<i64>| {
            rows.iter().map(|row| row.1[side].as_ref().and_then(value)).collect::<Vec<_>>()
        };
        let stats = |value: fn(&Stats) -> f64| rows.iter().map(move |row| row.1[side].as_ref().map(value));
        columns.push(Column::maybe_integers(
            &format!("{name} Total"),
            quantity,
            of(&|s| i64::try_from(s.total).ok()),
        ));
        columns.push(Column::maybe_integers(
            &format!("{name} Count"),
            Quantity::Plain,
            of(&|s| Some(s.count as i64)),
        ));
        columns.push(Column::maybe_decimals(&format!("{name} Med"), quantity, stats(|s| s.median)));
    }
    for (at, name) in words.iter().enumerate() {
        columns.push(Column::texts(name, rows.iter().map(|row| row.0[at].clone())));
    }
    ResultTable::new(recipe.name.to_owned(), recipe.title.to_owned(), columns)
}
