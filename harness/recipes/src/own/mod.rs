//! Recipes that users write: tables of a report, a query over them, a query over the results of all reports, and what the
//! results give as metrics and pictures. How such a file is read is told in the harness; what bounds a query in memory and
//! time is an `Engine` of the harness too, for nothing here starts a process.

mod engine;
mod frames;
mod jobs;
mod operands;
mod pictures;
mod registry;
mod reports;
mod sql;
mod steps;
mod tables;
#[cfg(test)]
mod tests;

pub use engine::{Engine, Here, Limits, answer};
pub use pictures::{PictureSpec, Shape};
pub use registry::{all, find, register};
pub use sql::{Parsed, Wrong, expression, parse};
pub use steps::Steps;
pub use tables::{columns_of, names};

use crate::sheet::Quantity;
use metric::unit::{Better, Unit};
use metric::{Blames, Dim};
use nsys::tables::Kind;

/// Names of columns with what they hold, in order.
pub type Columns = Vec<(String, Kind)>;

/// The result of all reports below each other, and of the query over it.
pub const ROWS: &str = "rows";
pub const ACROSS: &str = "across";

/// Columns that stand before those of each report's result.
pub const RANK: &str = "Rank";
pub const HOST: &str = "Host";

/// A recipe as its file declares it, checked: what is wrong in a file is told before one of these is made.
pub struct Declaration {
    pub name: String,
    /// The file, as it is spoken of.
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
    pub pictures: Vec<PictureSpec>,
    pub limits: Limits,
}

/// A table that a query reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub name: String,
    /// A report without it is still looked at: the table stands empty then.
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
    /// Nobody, unless the file says otherwise.
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

    /// Which results there are, the one that says most first.
    pub fn results(&self) -> &'static [&'static str] {
        if self.across.is_some() { &[ACROSS, ROWS] } else { &[ROWS] }
    }
}

/// The query with the columns that it gives, tried upon tables without a row; or what speaks against it.
pub fn check(
    query: Parsed,
    tables: &[(String, Columns)],
    parameters: &[Parameter],
) -> Result<Checked, Vec<Wrong>> {
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
