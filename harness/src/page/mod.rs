//! One recipe's outcome as one self-contained file of HTML: interactive charts, sortable tables, and what was left out.
//! `script/` draws them; the caller chooses where the page is written.

mod about;
mod charts;
mod index;
pub(crate) mod limits;
mod markup;
mod numbers;
mod policy;
mod run_frame;
mod script;
mod tables;
mod thin;

#[cfg(test)]
mod tests;

pub(crate) use index::address;
pub use index::{NAME as INDEX_NAME, index};
pub(crate) use markup::with_code;
pub(crate) use run_frame::{live_foot, live_head, run_foot, run_head, site_foot, site_head};

use recipes::recipe::of_reports::Outcome;
use recipes::result_table::{Look, ResultTable, Values};
use serde::Serialize;
use std::io::{self, Write};

/// What a page is made of.
pub struct Page<'a> {
    /// Title of the recipe, as plain text.
    pub title: &'a str,
    /// What the recipe shows, to be read behind the word `Shows`.
    pub about: &'a str,
    /// How its figures are computed.
    pub definition: &'a str,
    /// The arguments as written, with the filter; empty where none was given.
    pub asked: String,
    /// Its tables, charts and notes.
    pub outcome: &'a Outcome,
    /// Headings of columns, and the unit of times.
    pub look: Look,
    /// The formats of the complete tables beside the page.
    pub beside: &'a [&'a str],
}

/// The limit of the size of a page.
pub const MOST_BYTES: usize = 5_000_000;

/// What its scripts read.
#[derive(Serialize)]
struct Data<'a> {
    reports: &'a [Report],
    charts: Vec<charts::PageFigure>,
    tables: Vec<tables::PageTable>,
}

/// Which rank is which report.
#[derive(Debug, Serialize)]
struct Report {
    rank: Option<i64>,
    file: String,
    host: Option<String>,
}

/// Writes the page as one HTML file.
pub fn write(page: &Page, out: &mut dyn Write) -> io::Result<()> {
    let reports = reports(page.outcome);
    let charts = charts::page_figures(&page.outcome.charts);
    let tables = tables::page_tables(page.outcome, page.look);
    let data = Data { reports: &reports, charts, tables };
    markup::page(page, &data, out)
}

/// As the table of the reports has them.
fn reports(outcome: &Outcome) -> Vec<Report> {
    let Some((_, files)) = outcome.tables.iter().find(|(name, _)| *name == "files") else {
        return Vec::new();
    };
    (0..files.height())
        .map(|row| Report {
            rank: match files.column("Rank").map(|column| &column.values) {
                Some(Values::Integers(ranks)) => ranks.get(row),
                _ => None,
            },
            file: text(files, "File", row).unwrap_or_default(),
            host: text(files, "Host", row),
        })
        .collect()
}

fn text(result_table: &ResultTable, column: &str, row: usize) -> Option<String> {
    match &result_table.column(column)?.values {
        Values::Texts(all) => all.get(row).map(|text| recipes::result_table::visible(text).into_owned()),
        _ => None,
    }
}
