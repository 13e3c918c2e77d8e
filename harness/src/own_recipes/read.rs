//! Reads a recipe that a user wrote, and reports all errors in it: unknown keys, tables and columns, queries that do
//! not run, metrics and charts of missing columns. Queries are tried on tables without rows.

use super::columns::{self, Results};
use super::form;
use super::query::{self, QueryScope};
use config::diagnostic::Diagnostics;
use config::toml_reader::quantity::size_of;
use config::toml_reader::value::Scalar;
use config::toml_reader::{self, Table, Value};
use recipes::catalogue::is_built_in;
use recipes::own::{self, Columns, Declaration, HOST, Limits, Literal, Parameter, RANK, ROWS, Source};
use std::collections::BTreeSet;

pub(crate) fn read(text: &str, file: &str) -> Result<Declaration, Diagnostics> {
    toml_reader::read(text, file, |table| {
        let name = name(table, file);
        let about = table.need("about").and_then(|value| value.non_empty_text());
        let title = table.get("title").map(|value| value.non_empty_text());
        let (sources, seen, mut complete) = tables(table);
        let parameters =
            table.get("parameters").and_then(|value| value.table()).map(|table| parameters(&table));
        let (parameters, all_read) = parameters.unwrap_or_else(|| (Vec::new(), true));
        complete &= all_read;
        let of_parameters: Vec<Parameter> =
            parameters.iter().map(|(parameter, _)| parameter.clone()).collect();
        let (rows, mut named) =
            query::read(table, &QueryScope { tables: &seen, parameters: &of_parameters, complete }, None);
        let across_value = table.get("across");
        let across = across_value.as_ref().map(|value| {
            let table = value.table()?;
            let columns = rows.as_ref().map(|rows| own::seen_across(&rows.columns));
            let (across, more) = match columns {
                Some(columns) => {
                    let seen = [(ROWS.to_owned(), columns)];
                    query::read(
                        &table,
                        &QueryScope { tables: &seen, parameters: &of_parameters, complete },
                        Some(ROWS),
                    )
                }
                // Without the first result the second query cannot be checked.
                None => return None,
            };
            table.close(form::query);
            named.extend(more);
            Some(across)
        });
        let results = Results {
            rows: rows.as_ref().map(|rows| rows.columns.clone()),
            has_across: across.is_some(),
            across: across
                .as_ref()
                .and_then(|across| across.as_ref()?.as_ref().map(|across| across.columns.clone())),
        };
        own_columns(table, &results);
        let quantities = table.get("columns").and_then(|value| value.table());
        let quantities = quantities.map(|table| columns::quantities(&table, &results)).unwrap_or_default();
        let list = |key: &'static str| {
            let values = table.get(key).and_then(|value| value.list()).unwrap_or_default();
            values.iter().filter_map(Value::table).collect::<Vec<Table<'_>>>()
        };
        let metrics = columns::metrics(&list("metric"), name.as_deref().unwrap_or_default(), &results);
        let charts = columns::charts(&list("chart"), &results);
        let limits = table.get("limits").and_then(|value| value.table()).map(|table| limits(&table));
        table.close(form::file);
        let across = across.map_or(Some(None), |across| across?.map(Some))?;
        let rows = rows?;
        unused(table, &rows.query, &sources, &parameters, &named);
        Some(Declaration {
            name: name.clone()?,
            file: file.to_owned(),
            text: text.to_owned(),
            title: title.unwrap_or_else(|| name.clone())?,
            about: about?,
            tables: sources,
            rows,
            across,
            parameters: of_parameters,
            quantities,
            metrics,
            charts,
            limits: limits.unwrap_or_default(),
        })
    })
}

/// The file's stem, which no other recipe may have, nor begin the names of others' metrics.
fn name(table: &Table<'_>, file: &str) -> Option<String> {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let name = name.strip_suffix(".toml").unwrap_or(name);
    let first = name.chars().next().is_some_and(|letter| letter.is_ascii_lowercase());
    let rest =
        name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
    let error = |message: String, suggestion: &str| table.diagnostic_with(message, suggestion);
    if !first || !rest || name.len() > 60 {
        error(
            format!(
                "the file name of a recipe needs lower-case letters, digits and `_`: `{}`",
                name.escape_debug()
            ),
            "rename the file",
        );
        return None;
    }
    if is_built_in(name) || ["list", "all", "summaries"].contains(&name) {
        error(format!("`{name}` is the name of a built-in recipe"), "rename the file");
        return None;
    }
    if columns::is_taken(name) {
        error(format!("metrics of a built-in recipe begin with `{name}.`"), "rename the file");
        return None;
    }
    Some(name.to_owned())
}

/// The tables that it reads, with their columns; and whether all named tables exist.
fn tables(table: &Table<'_>) -> (Vec<Source>, Vec<(String, Columns)>, bool) {
    let (mut sources, mut seen): (Vec<Source>, Vec<(String, Columns)>) = (Vec::new(), Vec::new());
    let needed = table.need("tables");
    let mut complete = needed.is_some();
    if let Some(value) = needed.as_ref().filter(|value| value.list().is_some_and(|list| list.is_empty())) {
        value.diagnostic_with("a recipe needs at least one table", "such as \"CUDA_KERNEL\"");
    }
    for (value, optional) in [(needed, false), (table.get("optional_tables"), true)] {
        for item in value.as_ref().and_then(Value::list).unwrap_or_default() {
            let Some(name) = item.non_empty_text() else {
                complete = false;
                continue;
            };
            if seen.iter().any(|(known, _)| *known == name) {
                item.diagnostic(format!("duplicate table `{name}`"));
                continue;
            }
            match own::columns_of(&name) {
                Some(columns) => {
                    seen.push((name.clone(), columns));
                    sources.push(Source { name, optional });
                }
                None => {
                    complete = false;
                    item.unknown(&name, own::names().into_iter());
                }
            }
        }
    }
    (sources, seen, complete)
}

/// Each with the place of its name; and whether all could be read.
fn parameters(table: &Table<'_>) -> (Vec<(Parameter, std::ops::Range<usize>)>, bool) {
    let (mut all, mut complete) = (Vec::new(), true);
    for (name, span, value) in table.entries() {
        let sound = name
            .chars()
            .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
        if !sound || !name.starts_with(|letter: char| letter.is_ascii_lowercase()) {
            let message = format!(
                "the name of a parameter needs lower-case letters, digits and `_`: `{}`",
                name.escape_debug()
            );
            table.source().diagnostic(&span, message);
            complete = false;
            continue;
        }
        let Some(table) = value.table() else {
            complete = false;
            continue;
        };
        let about = table.need("about").and_then(|value| value.non_empty_text());
        let default = table.need("default").and_then(|value| default(&value));
        table.close(form::parameter);
        match (about, default) {
            (Some(about), Some(default)) => {
                all.push((Parameter { name: name.to_owned(), about, default }, span))
            }
            _ => complete = false,
        }
    }
    (all, complete)
}

/// Its type is that of the parameter.
fn default(value: &Value<'_>) -> Option<Literal> {
    match value.scalar() {
        Some(Scalar::Integer(_)) => value.whole(0..=i64::MAX as u64).map(Literal::Whole),
        Some(Scalar::Float(_)) => value.number().map(Literal::Number),
        Some(Scalar::Text(_)) => value.non_empty_text().map(Literal::Text),
        Some(Scalar::Boolean(false)) => Some(Literal::Flag(false)),
        Some(Scalar::Boolean(true)) => {
            value.diagnostic_with("a switch is off by default", "invert its meaning, and write `false`");
            None
        }
        None => value.wrong("a number, a string or `false`"),
    }
}

/// The rank and the host are put before each row, so that no column may have their names.
fn own_columns(table: &Table<'_>, results: &Results) {
    let taken = results.rows.iter().flatten().find(|(name, _)| [RANK, HOST].contains(&name.as_str()));
    if let Some((name, _)) = taken {
        table.diagnostic_with(
            format!("`{name}` is added to every row already: rank and host come before the columns"),
            "rename the column",
        );
    }
}

/// Reports tables and parameters that are declared and not used.
fn unused(
    table: &Table<'_>,
    query: &own::Parsed,
    sources: &[Source],
    parameters: &[(Parameter, std::ops::Range<usize>)],
    named: &BTreeSet<String>,
) {
    let read = query.tables();
    for key in ["tables", "optional_tables"] {
        for item in table.get(key).as_ref().and_then(Value::list).unwrap_or_default() {
            let unread = sources
                .iter()
                .find(|source| item.is_text(&source.name) && !read.contains(source.name.as_str()));
            if let Some(unread) = unread {
                item.diagnostic(format!("the query does not read this table: `{}`", unread.name));
            }
        }
    }
    for (parameter, span) in parameters.iter().filter(|(parameter, _)| !named.contains(&parameter.name)) {
        let message = format!("no query names this parameter: `{}`", parameter.name);
        table.source().diagnostic_with(
            span,
            message,
            format!("write `${}` where it is used", parameter.name),
        );
    }
}

fn limits(table: &Table<'_>) -> Limits {
    let usual = Limits::default();
    let rows = |key: &'static str, usual: u64| {
        table.get(key).map_or(Some(usual), |value| value.whole(1..=10_000_000_000)).unwrap_or(usual)
    };
    let (rows_in, rows_out) = (rows("rows_in", usual.rows_in), rows("rows_out", usual.rows_out));
    let memory = table.get("memory").and_then(|value| {
        let memory = size_of(&value)?;
        if memory < LEAST_MEMORY {
            value.diagnostic(format!(
                "a query needs at least {} MiB, found {memory} bytes",
                LEAST_MEMORY >> 20
            ));
        }
        Some(memory)
    });
    let seconds = table.get("seconds").and_then(|value| value.whole(1..=86_400));
    table.close(form::limits);
    Limits {
        rows_in,
        rows_out,
        memory: memory.unwrap_or(usual.memory),
        seconds: seconds.unwrap_or(usual.seconds),
    }
}

/// What a process needs before it holds any row.
const LEAST_MEMORY: u64 = 128 << 20;
