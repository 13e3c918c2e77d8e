//! Recipes that users write: tables of a report, a query over them, a query over the results of all reports, and the
//! metrics and charts of the results. The harness reads such files and runs the queries through an `Engine` with
//! limits of memory and time; nothing here starts a process.

mod charts;
mod engine;
mod frames;
mod jobs;
mod operands;
mod reports;
mod sql;
mod steps;
mod tables;
#[cfg(test)]
mod tests;
mod user_recipe;

pub use charts::{ChartSpec, Shape};
pub use engine::{Engine, Here, Limits, answer};
pub use sql::{Parsed, SqlError, expression, parse};
pub use steps::Steps;
pub use tables::{columns_of, names};
pub use user_recipe::UserRecipe;

use crate::result_table::Quantity;
use metric::unit::{Better, Unit};
use metric::{Blames, Dim};
use nsys::tables::ColumnType;

/// Names of columns with what they hold, in order.
pub type Columns = Vec<(String, ColumnType)>;

/// The results of all reports below each other, as `of` in a recipe's file names them.
pub const ROWS: &str = "rows";
/// The result of the query over `ROWS`, named there in the same way.
pub const ACROSS: &str = "across";

/// The column before those of each report's result: the rank of the report.
pub const RANK: &str = "Rank";
/// The column after `RANK`: the host of that report.
pub const HOST: &str = "Host";

/// A recipe as its file declares it, checked: errors in a file are reported before one of these is made.
pub struct Declaration {
    /// The stem of its file: `kernel_times` for `kernel_times.toml`.
    pub name: String,
    /// The name of the file, for messages.
    pub file: String,
    /// The whole file: what a plan carries, so that a replay needs no file.
    pub text: String,
    /// `title` in the file; the name where it has none.
    pub title: String,
    /// `about` in the file: one line for lists of recipes.
    pub about: String,
    /// `tables` in the file, then `optional_tables`.
    pub tables: Vec<Source>,
    /// The query over the tables of one report.
    pub rows: Checked,
    /// The query over the results of all reports; `None` where the file has no `[across]`.
    pub across: Option<Checked>,
    /// `[parameters]` in the file.
    pub parameters: Vec<Parameter>,
    /// What the numbers of columns are, beside plain numbers.
    pub quantities: Vec<(String, Quantity)>,
    /// `[[metric]]` in the file.
    pub metrics: Vec<MetricColumn>,
    /// `[[chart]]` in the file.
    pub charts: Vec<ChartSpec>,
    /// `[limits]` in the file; the default where a key is absent.
    pub limits: Limits,
}

/// A table that a query reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// One of `names()`, such as `CUDA_GPU`.
    pub name: String,
    /// A report without it is still read: the table is empty then.
    pub optional: bool,
}

/// A query that is known to run, and the columns that it gives.
#[derive(Debug, Clone)]
pub struct Checked {
    /// Its parameters get their values each time before it is run.
    pub query: Parsed,
    /// The columns of its result.
    pub columns: Columns,
}

/// An argument of the recipe; suites run it with the default.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// As queries write it, without the `$`.
    pub name: String,
    /// One line for the recipe's help.
    pub about: String,
    /// Its variant is the type of the parameter.
    pub default: Literal,
}

/// A value that stands in a query in the place of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// A whole number, never negative.
    Whole(u64),
    /// A TOML float; written into the query with a point.
    Number(f64),
    /// Written into the query as a quoted string.
    Text(String),
    /// False where it is not asked for.
    Flag(bool),
}

/// A metric that a column of a result gives, one number per row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricColumn {
    /// The recipe's name, a dot and a name: `kernel_times.share`.
    pub name: String,
    /// `about` in the file: one line.
    pub about: String,
    /// The result that has the columns: `ROWS` or `ACROSS`.
    pub of: &'static str,
    /// The column of its numbers.
    pub value: String,
    /// The unit that the column's numbers are in; none is converted.
    pub unit: Unit,
    /// `better` in the file.
    pub better: Better,
    /// No component, unless the file says otherwise.
    pub blames: Blames,
    /// Each dimension with the column that it is taken from.
    pub dims: Vec<(Dim, String)>,
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
    let mut columns = vec![(RANK.to_owned(), ColumnType::Integer), (HOST.to_owned(), ColumnType::Text)];
    columns.extend(rows.iter().cloned());
    columns
}
