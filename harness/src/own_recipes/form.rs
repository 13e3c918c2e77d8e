//! The form of a recipe that a user writes.

use super::columns::{DIMS, QUANTITIES, WHOM};
use config::baseline::BETTERS;
use config::form::{Condition, Form, Key, Type, names, units};
use config::schema::FileKind;
use recipes::own::{ACROSS, ROWS, Shape};

/// A recipe that a user writes.
pub(crate) static KIND: FileKind = FileKind {
    name: "recipe",
    about: "A recipe of your own: tables of profiler reports, a query over them, metrics and charts.",
    form: file,
    files: &["suites/recipes/*.toml"],
};

/// A file of `suites/recipes`.
pub(super) fn file() -> Form {
    let tables =
        || Type::list(Type::OneOf(|_| recipes::own::names().into_iter().map(str::to_owned).collect()));
    let across = "a second query, over the rows of all reports: its table is `rows`";
    Form::new([
        Key::needed("about", Type::Text, "one sentence"),
        Key::usual("title", "the name of the file", Type::Text, "what stands above its results"),
        Key::needed(
            "tables",
            tables(),
            "the tables that the query reads; a report without one of them is not read",
        ),
        Key::usual("optional_tables", "[]", tables(), "the same; empty where a report has no such table"),
        Key::optional(
            "parameters",
            Type::map(Type::table(parameter())),
            "what a user can set: `$name` in queries",
        ),
    ])
    .and(query().keys)
    .and([
        Key::optional("across", Type::table(query()), across),
        Key::optional(
            "columns",
            Type::map(Type::OneOf(|_| names(&QUANTITIES))),
            "what the numbers of columns are",
        ),
        Key::usual("metric", "[]", Type::tables(metric()), "columns of the results that suites can assert"),
        Key::usual("chart", "[]", Type::tables(chart()), "charts of the results"),
        Key::optional("limits", Type::table(limits()), "what a query may take"),
    ])
}

/// `sql`, or steps.
pub(super) fn query() -> Form {
    let expressions = || Type::map(Type::Text);
    Form::new([
        Key::optional("sql", Type::Text, "the query; or steps, below"),
        Key::optional("from", Type::Text, "steps: the table"),
        Key::optional("derive", expressions(), "steps: further columns"),
        Key::optional("filter", Type::Text, "steps: which rows are kept"),
        Key::optional("group", Type::texts(), "steps: the columns whose equal rows are one"),
        Key::optional("aggregate", expressions(), "steps: what each group has"),
        Key::optional(
            "order",
            Type::texts(),
            "steps: the columns by which rows are sorted; `\"total DESC\"`",
        ),
    ])
}

/// A table of `[parameters]`.
pub(super) fn parameter() -> Form {
    let default = Type::Either(vec![Type::Text, Type::Number, Type::Off]);
    Form::new([
        Key::needed("about", Type::Text, "what it is"),
        Key::needed("default", default, "its value where none is given; its type is the parameter's"),
    ])
}

fn query_key() -> Key {
    let queries = Type::OneOf(|_| [ROWS, ACROSS].map(str::to_owned).to_vec());
    Key::usual("of", "the last query", queries, "the query whose results are meant")
}

/// `[[metric]]`.
pub(super) fn metric() -> Form {
    let dims = DIMS.map(|dim| Key::optional(dim.name(), Type::Text, "the column that says which"));
    Form::new([
        Key::needed("name", Type::Text, "the recipe's name, a dot, and a name: `own.share`"),
        Key::needed("about", Type::Text, "what it is"),
        query_key(),
        Key::needed("value", Type::Text, "the column of its numbers"),
        Key::needed("unit", Type::OneOf(units), "of its numbers"),
        Key::needed("better", Type::OneOf(|_| names(&BETTERS)), "which way it is better"),
        Key::optional("dims", Type::keys(dims), "what there is one number of each"),
        Key::usual(
            "blames",
            "no node",
            Type::OneOf(|_| names(&WHOM)),
            "`\"node\"`: a node unlike its peers is at fault",
        ),
    ])
}

/// `[[chart]]`.
pub(super) fn chart() -> Form {
    let column = |name, about| Key::needed(name, Type::Text, about);
    let label = Type::Either(vec![Type::Text, Type::texts()]);
    let of_kind = |kind: &'static str| match kind {
        "lines" => vec![column("x", "the column along"), column("y", "the column up")],
        "heatmap" => vec![
            column("x", "the column along: whole numbers"),
            column("value", "the column of its numbers"),
            Key::needed("width", Type::WHOLE, "of a cell, in units of `x`"),
        ],
        "histogram" => vec![
            column("value", "the column of its numbers"),
            Key::usual("bins", "30", Type::WHOLE, "how many bars"),
        ],
        _ => vec![column("value", "the column of its numbers")],
    };
    Form::new([
        Key::needed("kind", Type::OneOf(|_| Shape::KINDS.map(str::to_owned).to_vec()), "how it is drawn"),
        Key::usual("name", "the kind", Type::Text, "of its file"),
        Key::needed("title", Type::Text, "what stands above it"),
        Key::usual("about", "\"\"", Type::Text, "what stands below it"),
        query_key(),
        Key::usual("log", "false", Type::Boolean, "a logarithmic axis of values"),
        Key::optional("label", label, "the column, or columns, that name what is drawn"),
    ])
    .by("kind", Shape::KINDS.map(|kind| (Condition::Is(kind), Form::new(of_kind(kind)))))
}

/// `[limits]`.
pub(super) fn limits() -> Form {
    Form::new([
        Key::optional("rows_in", Type::WHOLE, "rows of a table that a query may read"),
        Key::optional("rows_out", Type::WHOLE, "rows of a result"),
        Key::optional("memory", Type::Size, "of the process that runs a query"),
        Key::optional("seconds", Type::WHOLE, "that a query may take"),
    ])
}
