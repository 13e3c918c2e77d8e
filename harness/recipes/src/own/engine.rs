//! Runs one query over small tables and returns its result. Input and output are bytes, so that another process, with
//! limits and a timeout, may run it.

use super::sql::Prepared;
use super::{Columns, frames};
use polars::prelude::*;
use polars::sql::SQLContext;
use serde::{Deserialize, Serialize};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// What a query may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Of all tables that it reads of one report together.
    pub rows_in: u64,
    /// Of its result; of all reports together too.
    pub rows_out: u64,
    /// Bytes that the process of a query may take; 2 GiB by default.
    pub memory: u64,
    /// Seconds until the process of a query is ended; 60 by default.
    pub seconds: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { rows_in: 20_000_000, rows_out: 100_000, memory: 2 << 30, seconds: 60 }
    }
}

/// Who runs queries. The question and its answer are made and read here alone.
pub trait Engine: Sync {
    /// Gives what the function `answer` gives for these bytes; fails with a message for the user.
    fn answer(&self, question: Vec<u8>, limits: &Limits) -> Result<Vec<u8>, String>;
}

/// In this very process, where nothing holds a query to its limits of memory and time: for tests.
pub struct Here;

impl Engine for Here {
    fn answer(&self, question: Vec<u8>, _: &Limits) -> Result<Vec<u8>, String> {
        answer(&question)
    }
}

#[derive(Serialize, Deserialize)]
struct Head {
    query: Prepared,
    rows_out: u64,
    /// Name and size, one behind the other.
    tables: Vec<(String, usize)>,
}

/// Asks for the result of a query over these tables.
pub(super) fn ask(
    engine: &dyn Engine,
    query: &Prepared,
    tables: Vec<(String, DataFrame)>,
    limits: &Limits,
) -> Result<DataFrame, String> {
    let rows: u64 = tables.iter().map(|(_, table)| table.height() as u64).sum();
    if rows > limits.rows_in {
        return Err(format!(
            "the tables have more rows than `limits.rows_in` allows: {rows} > {}",
            limits.rows_in
        ));
    }
    let mut head = Head { query: query.clone(), rows_out: limits.rows_out, tables: Vec::new() };
    let mut bodies = Vec::new();
    for (name, table) in tables {
        let body = frames::to_bytes(table)?;
        head.tables.push((name, body.len()));
        bodies.push(body);
    }
    let head = serde_json::to_vec(&head).map_err(|error| error.to_string())?;
    let mut question = (head.len() as u64).to_le_bytes().to_vec();
    question.extend(head);
    bodies.into_iter().for_each(|body| question.extend(body));
    frames::from_bytes(engine.answer(question, limits)?)
}

/// The result of what a question asks.
pub fn answer(question: &[u8]) -> Result<Vec<u8>, String> {
    let cut = || "truncated query request".to_owned();
    let (length, rest) = question.split_first_chunk::<8>().ok_or_else(cut)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| cut())?;
    let (head, mut rest) = rest.split_at_checked(length).ok_or_else(cut)?;
    let head: Head = serde_json::from_slice(head).map_err(|error| error.to_string())?;
    let mut tables = Vec::new();
    for (name, length) in head.tables {
        let (body, behind) = rest.split_at_checked(length).ok_or_else(cut)?;
        tables.push((name, frames::from_bytes(body.to_vec())?));
        rest = behind;
    }
    let result = run(&head.query, tables)?;
    let rows = result.height() as u64;
    if rows > head.rows_out {
        return Err(format!(
            "the result has more rows than `limits.rows_out` allows: {rows} > {}",
            head.rows_out
        ));
    }
    frames::to_bytes(result)
}

/// The columns that a query gives, by running it over tables without a row.
pub(super) fn columns(query: &Prepared, tables: &[(String, Columns)]) -> Result<Columns, String> {
    // Whether it is ordered by its own columns is checked later, once these are known.
    let query = &Prepared { order: Vec::new(), ..query.clone() };
    let empty = tables.iter().map(|(name, columns)| (name.clone(), frames::empty(columns))).collect();
    // A slip in a query may meet what its engine has not thought of.
    let result = catch_unwind(AssertUnwindSafe(|| run(query, empty)))
        .unwrap_or_else(|_| Err("the engine cannot run this query".to_owned()))?;
    frames::columns_of(&result)
}

/// The engine goes down an expression by calling itself: room for the longest that a query may have.
const STACK: usize = 64 << 20;

fn run(query: &Prepared, tables: Vec<(String, DataFrame)>) -> Result<DataFrame, String> {
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().stack_size(STACK);
        let thread = builder.spawn_scoped(scope, || execute(query, tables));
        let thread = thread.map_err(|error| format!("no thread for the query: {error}"))?;
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// The order of the rows does not depend on how they were computed.
fn execute(query: &Prepared, tables: Vec<(String, DataFrame)>) -> Result<DataFrame, String> {
    let mut context = SQLContext::new();
    for (name, table) in tables {
        context.register(&name, table.lazy());
    }
    let message = |error: PolarsError| first_line(&error.to_string());
    let found = context.execute(&query.sql).and_then(LazyFrame::collect).map_err(message)?;
    let found = frames::plain(found)?;
    let names: Vec<PlSmallStr> = found.get_column_names_owned();
    if names.is_empty() {
        return Err("the query returns no column".to_owned());
    }
    let sorted = |frame: &DataFrame, by: Vec<PlSmallStr>, down: Vec<bool>| {
        let how = SortMultipleOptions::default()
            .with_maintain_order(true)
            .with_nulls_last(true)
            .with_order_descending_multi(down);
        frame.sort(by, how).map_err(message)
    };
    let up = vec![false; names.len()];
    let mut rows = sorted(&found, names, up)?;
    // Stable: what the wanted order leaves equal keeps the order of all columns.
    if !query.order.is_empty() {
        let by = query.order.iter().map(|(name, _)| name.as_str().into()).collect();
        rows = sorted(&rows, by, query.order.iter().map(|(_, down)| *down).collect())?;
    }
    Ok(match query.limit {
        Some(limit) => rows.head(Some(usize::try_from(limit).unwrap_or(usize::MAX))),
        None => rows,
    })
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}
