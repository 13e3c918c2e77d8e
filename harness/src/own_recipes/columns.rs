//! Reads what a user's recipe declares about the columns of its results: units, metrics and charts.

use super::form;
use base::suggest::nearest;
use config::baseline::BETTERS;
use config::toml_reader::{Table, Value};
use metric::unit::Unit;
use metric::{Blames, Dim};
use nsys::tables::ColumnType;
use recipes::own::{ACROSS, ChartSpec, Columns, MetricColumn, ROWS, Shape};
use recipes::recipe;
use recipes::result_table::Quantity;

/// The results with their columns; `None` where a result could not be read.
pub(super) struct Results {
    pub rows: Option<Columns>,
    /// Whether there is a second query.
    pub has_across: bool,
    pub across: Option<Columns>,
}

impl Results {
    /// The one that is meant where none is named.
    fn last(&self) -> &'static str {
        if self.has_across { ACROSS } else { ROWS }
    }

    fn columns(&self, of: &str) -> Option<&Columns> {
        if of == ROWS { self.rows.as_ref() } else { self.across.as_ref() }
    }

    fn source(&self, table: &Table<'_>) -> Option<&'static str> {
        let Some(value) = table.get("of") else { return Some(self.last()) };
        let all: &[(&str, &'static str)] =
            if self.has_across { &[(ROWS, ROWS), (ACROSS, ACROSS)] } else { &[(ROWS, ROWS)] };
        value.one_of(all)
    }
}

/// The kind of a column, or an error where the result has no such column. Columns of a result that could not be read
/// are not checked.
fn column(value: &Value<'_>, results: &Results, of: &str) -> Option<(String, Option<ColumnType>)> {
    let name = value.non_empty_text()?;
    let Some(columns) = results.columns(of) else { return Some((name, None)) };
    // The rank and the host stand before each row of all reports.
    let own = columns.iter().map(|(name, kind)| (name.as_str(), *kind));
    let before = [(recipes::own::RANK, ColumnType::Integer), (recipes::own::HOST, ColumnType::Text)];
    let all: Vec<(&str, ColumnType)> = before.into_iter().filter(|_| of == ROWS).chain(own).collect();
    match all.iter().find(|(known, _)| *known == name) {
        Some((_, kind)) => Some((name, Some(*kind))),
        None => {
            let message = format!("`{of}` has no column `{}`", name.escape_debug());
            let suggestion = match nearest(&name, all.iter().map(|(name, _)| *name)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
                    format!("its columns are `{}`", names.join("`, `"))
                }
            };
            value.diagnostic_with(message, suggestion);
            None
        }
    }
}

pub(super) const QUANTITIES: [(&str, Quantity); 4] = [
    ("ns", Quantity::Nanoseconds),
    ("bytes", Quantity::Bytes),
    ("bytes/s", Quantity::BytesPerSecond),
    ("percent", Quantity::Percent),
];
pub(super) const WHOM: [(&str, Blames); 2] = [("nobody", Blames::NoNode), ("node", Blames::OddNode)];

/// What the numbers of columns are.
pub(super) fn quantities(table: &Table<'_>, results: &Results) -> Vec<(String, Quantity)> {
    let of = |columns: &Option<Columns>| columns.clone().unwrap_or_default();
    let known: Columns = of(&results.rows).into_iter().chain(of(&results.across)).collect();
    let whole = results.rows.is_some() && (results.across.is_some() || !results.has_across);
    let mut all = Vec::new();
    for (name, span, value) in table.entries() {
        let found = known.iter().find(|(column, _)| column == name);
        if found.is_none() && whole {
            let message = format!("no result has a column `{}`", name.escape_debug());
            match nearest(name, known.iter().map(|(name, _)| name.as_str())) {
                Some(near) => {
                    table.source().diagnostic_with(&span, message, format!("did you mean `{near}`?"))
                }
                None => table.source().diagnostic(&span, message),
            }
        }
        if let Some((_, ColumnType::Text)) = found {
            value.diagnostic(format!("a column of strings has no unit: `{name}`"));
        }
        all.extend(value.one_of(&QUANTITIES).map(|quantity| (name.to_owned(), quantity)));
    }
    all
}

/// The dimensions that a column may give, beside the rank.
pub(super) const DIMS: [Dim; 7] =
    [Dim::Rank, Dim::Gpu, Dim::Nic, Dim::Kernel, Dim::Step, Dim::Direction, Dim::Peer];

pub(super) fn metrics(tables: &[Table<'_>], recipe_name: &str, results: &Results) -> Vec<MetricColumn> {
    let mut all: Vec<MetricColumn> = Vec::new();
    for table in tables {
        let name = table.need("name");
        let about = table.need("about").and_then(|value| value.non_empty_text());
        let of = results.source(table);
        let value = table.need("value");
        let unit =
            table.need("unit").and_then(|value| value.one_of(&Unit::ALL.map(|unit| (unit.name(), unit))));
        let better = table.need("better").and_then(|value| value.one_of(&BETTERS));
        let dims = table.get("dims").and_then(|value| value.table());
        let blames = table.get("blames").map_or(Some(Blames::NoNode), |value| value.one_of(&WHOM));
        table.close(form::metric);
        let name = name.and_then(|value| {
            let name = metric_name(&value, recipe_name)?;
            if all.iter().any(|known| known.name == name) {
                value.diagnostic(format!("duplicate metric `{name}`"));
                return None;
            }
            Some(name)
        });
        let Some(of) = of else { continue };
        let value = value.and_then(|value| match column(&value, results, of)? {
            (name, Some(ColumnType::Text)) => {
                value.diagnostic(format!("`value` of a metric needs a column of numbers, found `{name}`"));
                None
            }
            (name, _) => Some(name),
        });
        let dims = dims.map_or(Some(Vec::new()), |dims| read_dims(&dims, results, of));
        if let (Some(name), Some(about), Some(value), Some(unit), Some(better), Some(blames), Some(dims)) =
            (name, about, value, unit, better, blames, dims)
        {
            all.push(MetricColumn { name, about, of, value, unit, better, blames, dims });
        }
    }
    all
}

fn metric_name(value: &Value<'_>, recipe_name: &str) -> Option<String> {
    let name = value.non_empty_text()?;
    let sound = name.strip_prefix(recipe_name).and_then(|rest| rest.strip_prefix('.')).is_some_and(|rest| {
        !rest.is_empty()
            && rest
                .chars()
                .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_')
    });
    if !sound {
        value.diagnostic_with(
            format!(
                "the name of a metric needs its recipe, a dot, and lower-case letters, digits and `_`: `{}`",
                name.escape_debug()
            ),
            format!("such as `{recipe_name}.share`"),
        );
        return None;
    }
    Some(name)
}

fn read_dims(table: &Table<'_>, results: &Results, of: &str) -> Option<Vec<(Dim, String)>> {
    let mut dims = Vec::new();
    let mut sound = true;
    for (name, span, value) in table.entries() {
        let Some(dim) = DIMS.into_iter().find(|dim| dim.name() == name) else {
            let message = format!("unknown dimension `{}`", name.escape_debug());
            let names = DIMS.map(Dim::name).join("`, `");
            table.source().diagnostic_with(&span, message, format!("known: `{names}`"));
            sound = false;
            continue;
        };
        let found = column(&value, results, of);
        let wanted = if dim.is_number() { ColumnType::Integer } else { ColumnType::Text };
        match found {
            Some((column, Some(kind))) if kind != wanted => {
                let wanted = if dim.is_number() { "whole numbers" } else { "strings" };
                value.diagnostic(format!(
                    "the dimension `{name}` needs a column of {wanted}, found `{column}`"
                ));
                sound = false;
            }
            Some((column, _)) => dims.push((dim, column)),
            None => sound = false,
        }
    }
    dims.sort();
    sound.then_some(dims)
}

pub(super) fn charts(tables: &[Table<'_>], results: &Results) -> Vec<ChartSpec> {
    let mut all: Vec<ChartSpec> = Vec::new();
    for table in tables {
        let name_value = table.get("name");
        let title = table.need("title").and_then(|value| value.non_empty_text());
        let about = table.get("about").and_then(|value| value.non_empty_text()).unwrap_or_default();
        let of = results.source(table);
        let log = table.get("log").and_then(|value| value.boolean()).unwrap_or_default();
        let kinds = Shape::KINDS.map(|kind| (kind, kind));
        let kind = table.need("kind").and_then(|value| value.one_of(&kinds));
        let label = table.get("label");
        let values = match kind {
            Some("lines") => ["x", "y"].as_slice(),
            Some("heatmap") => &["x", "value"],
            _ => &["value"],
        };
        let values: Vec<Option<Value<'_>>> = values.iter().map(|key| table.need(key)).collect();
        let bins = (kind == Some("histogram"))
            .then(|| table.get("bins").map_or(Some(30), |value| value.small(1..=10_000)));
        let width = (kind == Some("heatmap"))
            .then(|| table.need("width").and_then(|value| value.whole(1..=i64::MAX as u64)));
        if kind.is_some() {
            table.close(form::chart);
        }
        let name = match &name_value {
            Some(value) => value.non_empty_text().and_then(|name| chart_name(value, name)),
            None => kind.map(str::to_owned),
        };
        let (Some(of), Some(kind), Some(name), Some(title)) = (of, kind, name, title) else { continue };
        if all.iter().any(|known| known.name == name) {
            table.diagnostic_with(format!("duplicate chart `{name}`"), "add another `name`");
            continue;
        }
        let labels = match &label {
            None => Vec::new(),
            Some(value) if value.raw().get_ref().is_str() => vec![value.clone()],
            Some(value) => value.list().unwrap_or_default(),
        };
        let label: Option<Vec<String>> =
            labels.iter().map(|value| column(value, results, of).map(|(name, _)| name)).collect();
        // Columns of a heatmap begin at whole numbers, all else is any number.
        let wanted =
            |at: usize| if kind == "heatmap" && at == 0 { ColumnType::Integer } else { ColumnType::Real };
        let columns = values.iter().enumerate().map(|(at, value)| {
            let value = value.as_ref()?;
            let (name, found) = column(value, results, of)?;
            let fits = match (wanted(at), found) {
                (ColumnType::Integer, Some(kind)) => kind == ColumnType::Integer,
                (_, Some(kind)) => kind != ColumnType::Text,
                (_, None) => true,
            };
            if !fits {
                let needs = if wanted(at) == ColumnType::Integer { "whole numbers" } else { "numbers" };
                value.diagnostic(format!(
                    "`{}` of a chart of {kind} needs a column of {needs}, found `{name}`",
                    value.key()
                ));
            }
            fits.then_some(name)
        });
        let columns: Option<Vec<String>> = columns.collect();
        let (Some(label), Some(columns)) = (label, columns) else { continue };
        let mut columns = columns.into_iter();
        let mut next = || columns.next().unwrap_or_default();
        let shape = match kind {
            "bars" => Some(Shape::Bars { label, value: next() }),
            "lines" => Some(Shape::Lines { label, x: next(), y: next() }),
            "boxes" => Some(Shape::Boxes { label, value: next() }),
            "histogram" => bins.flatten().map(|bins| Shape::Histogram { label, value: next(), bins }),
            _ => width.flatten().map(|width| Shape::Heatmap { label, x: next(), value: next(), width }),
        };
        all.extend(shape.map(|shape| ChartSpec { name, title, about, of, shape, log }));
    }
    all
}

fn chart_name(value: &Value<'_>, name: String) -> Option<String> {
    let sound =
        name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
    if !sound {
        value.diagnostic(format!(
            "the name of a chart needs lower-case letters, digits and `_`: `{}`",
            name.escape_debug()
        ));
    }
    sound.then_some(name)
}

/// Whether built-in metrics begin with this name.
pub(super) fn is_taken(name: &str) -> bool {
    let metrics = recipe::LIST.iter().flat_map(|recipe| recipe.metrics);
    metrics.filter_map(|metric| metric.name.split('.').next()).any(|first| first == name)
}
