//! Recipes that users write: tables of a report, a query over them, a query over the results of all reports, and the
//! metrics and charts of the results. The harness reads such files and runs the queries through an `Engine` with
//! limits of memory and time; nothing here starts a process.

mod charts;
mod engine;
mod frames;
mod jobs;
mod operands;
mod registry;
mod reports;
mod sql;
mod steps;
mod tables;
#[cfg(test)]
mod tests;

pub use charts::{ChartSpec, Shape};
pub use engine::{Engine, Here, Limits, answer};
pub use registry::{all, find, register};
pub use sql::{Parsed, SqlError, expression, parse};
pub use steps::Steps;
pub use tables::{columns_of, names};

use crate::result_table::Quantity;
use metric::unit::{Better, Unit};
use metric::{Blames, Dim};
use nsys::tables::Kind;

/// Names of columns with what they hold, in order.
pub type Columns = Vec<(String, Kind)>;

/// The results of all reports below each other, as `of` in a recipe's file names them.
pub const ROWS: &str = "rows";
pub const ACROSS: &str = "across";

/// The column before those of each report's result: the rank of the report.
pub const RANK: &str = "Rank";
pub const HOST: &str = "Host";

/// A recipe as its file declares it, checked: errors in a file are reported before one of these is made.
pub struct Declaration {
    pub name: String,
    /// The name of the file, for messages.
    pub file: String,
    /// The whole file: what a plan carries, so that a replay needs no file.
    pub text: String,
    pub title: String,
    pub about: String,
    pub tables: Vec<Source>,
    pub rows: Checked,
    pub across: Option<Checked>,
    pub parameters: Vec<Parameter>,
    /// What the numbers of columns are, beside plain numbers.
    pub quantities: Vec<(String, Quantity)>,
    pub metrics: Vec<MetricColumn>,
    pub charts: Vec<ChartSpec>,
    pub limits: Limits,
}

/// A table that a query reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub name: String,
    /// A report without it is still read: the table is empty then.
    pub optional: bool,
}

/// A query that is known to run, and the columns that it gives.
#[derive(Debug, Clone)]
pub struct Checked {
    pub query: Parsed,
    pub columns: Columns,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    pub name: String,
    pub about: String,
    pub default: Literal,
}

/// A value that stands in a query in the place of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    Whole(u64),
    Number(f64),
    Text(String),
    /// False where it is not asked for.
    Flag(bool),
}

/// A metric that a column of a result gives, one number per row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricColumn {
    pub name: String,
    pub about: String,
    pub of: &'static str,
    pub value: String,
    pub unit: Unit,
    pub better: Better,
    /// No component, unless the file says otherwise.
    pub blames: Blames,
    pub dims: Vec<(Dim, String)>,
}

impl Declaration {
    /// A result's columns by the result's name.
    pub fn columns(&self, of: &str) -> Option<&Columns> {
        match of {
            ROWS => Some(&self.rows.columns),
            _ => self.across.as_ref().map(|across| &across.columns),
        }
    }

    /// The results that exist, the most informative first.
    pub fn results(&self) -> &'static [&'static str] {
        if self.across.is_some() { &[ACROSS, ROWS] } else { &[ROWS] }
    }
}

/// The query with the columns that it gives, tried upon tables without a row; or its errors.
pub fn check(
    query: Parsed,
    tables: &[(String, Columns)],
    parameters: &[Parameter],
) -> Result<Checked, Vec<SqlError>> {
    let mut wrong = query.against(tables, parameters);
    if wrong.is_empty() {
        let defaults: Vec<(String, Literal)> =
            parameters.iter().map(|one| (one.name.clone(), one.default.clone())).collect();
        match query.prepared(&defaults).and_then(|prepared| engine::columns(&prepared, tables)) {
            Ok(columns) => {
                wrong.extend(query.against_result(&columns));
                if wrong.is_empty() {
                    return Ok(Checked { query, columns });
                }
            }
            Err(why) => wrong.push(query.place(&why)),
        }
    }
    Err(wrong)
}

/// The columns of the results of all reports, as the query over them sees them.
pub fn seen_across(rows: &Columns) -> Columns {
    let mut columns = vec![(RANK.to_owned(), Kind::Integer), (HOST.to_owned(), Kind::Text)];
    columns.extend(rows.iter().cloned());
    columns
}
