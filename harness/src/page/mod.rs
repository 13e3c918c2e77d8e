//! One recipe's outcome as one file of HTML that needs nothing else: pictures to look into, tables to sort, and what was
//! left out. What is drawn is told in `script/`; where pages lie, by who writes them.

mod about;
mod index;
mod markup;
mod numbers;
mod pictures;
mod policy;
mod script;
mod tables;
mod thin;

#[cfg(test)]
mod tests;

pub use index::{NAME as INDEX_NAME, index};

use recipes::recipe::of_reports::Outcome;
use recipes::sheet::{Look, Sheet, Values};
use serde::Serialize;
use std::io::{self, Write};

/// What a page is made of.
pub struct Page<'a> {
    pub title: &'a str,
    pub about: &'a str,
    /// How its figures come about.
    pub definition: &'a str,
    /// As a person wrote them, with the filter; nothing where none was given.
    pub asked: String,
    pub outcome: &'a Outcome,
    pub look: Look,
    /// The forms in which the tables lie beside the page, whole.
    pub beside: &'a [&'a str],
}

/// No page is larger than this, whatever was measured.
pub const MOST_BYTES: usize = 5_000_000;

/// What its scripts read.
#[derive(Serialize)]
struct Data<'a> {
    reports: &'a [Report],
    pictures: Vec<pictures::Drawn>,
    tables: Vec<tables::Shown>,
}

/// Which rank is which report.
#[derive(Debug, Serialize)]
struct Report {
    rank: Option<i64>,
    file: String,
    host: Option<String>,
}

pub fn write(page: &Page, out: &mut dyn Write) -> io::Result<()> {
    let reports = reports(page.outcome);
    let pictures = pictures::drawn(&page.outcome.pictures);
    let tables = tables::shown(page.outcome, page.look);
    let data = Data { reports: &reports, pictures, tables };
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

fn text(sheet: &Sheet, column: &str, row: usize) -> Option<String> {
    match &sheet.column(column)?.values {
        Values::Texts(all) => all.get(row).map(|text| recipes::sheet::visible(text).into_owned()),
        _ => None,
    }
}
