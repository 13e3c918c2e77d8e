//! `harness predict`: the bus bandwidth to expect of an instance before any baseline exists, and how wrong that may be.

use super::columns::columns;
use super::home;
use super::logs::unknown_instance;
use crate::error::Error;
use crate::library::Library;
use base::{size, suggest};
use clap::Args;
use config::toml_reader::quantity;
use metric::op::Op;
use metric::unit::Unit;
use model::exit_code;
use predict::{
    Errors, Figure, Hardware, Key, NoPrediction, Prediction, Summary, Tested, errors, predicted_ops,
};
use serde_json::{Value, json};

const CODES: &str = "\
Exit codes: 0 at least one key is predicted; 2 wrong usage; 3 none is: the reason stands in the table.

A prediction is provisional: it is fitted to figures that others published, on other software.";

/// `harness predict`
#[derive(Debug, Args)]
#[command(
    about = "Predict the bus bandwidth of an instance from published figures and hardware limits.",
    after_help = CODES
)]
pub(super) struct PredictArgs {
    /// The instance profile, such as `p5`
    #[arg(long, value_name = "NAME", required_unless_present = "errors")]
    instance: Option<String>,
    /// Node counts, such as `2,3,16`
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "2,4,8,16,32")]
    nodes: Vec<u32>,
    /// Operations; all that have published figures of the instance where absent
    #[arg(long = "op", value_name = "OP,...", value_delimiter = ',', value_parser = op)]
    ops: Vec<Op>,
    /// Sizes as nccl-tests prints them
    #[arg(long = "size", value_name = "SIZE,...", value_delimiter = ',', default_value = "1GiB,8GiB", value_parser = quantity::size)]
    sizes: Vec<u64>,
    /// Print how far predictions were off from published figures that were left out, and the worst of them
    #[arg(long, conflicts_with_all = ["instance", "nodes", "ops", "sizes"])]
    errors: bool,
    /// How it is printed, for people or for programs
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    format: String,
}

fn op(name: &str) -> Result<Op, String> {
    let near = || {
        let near = suggest::nearest(name, Op::ALL.iter().map(|op| op.name()));
        near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
    };
    Op::from_name(name).ok_or_else(|| format!("no operation of nccl-tests{}", near()))
}

pub(super) fn run(args: &PredictArgs) -> Result<i32, Error> {
    let as_json = args.format == "json";
    let (text, code) = match &args.instance {
        None => (if as_json { pretty(&errors_json()) } else { errors_text() }, exit_code::PASSED),
        Some(name) => {
            let rows = predictions(&hardware(name)?, args);
            let none = rows.iter().all(|row| row.predicted.is_err());
            let text = if as_json { pretty(&rows_json(name, &rows)) } else { rows_text(name, &rows) };
            (text, if none { exit_code::INCONCLUSIVE } else { exit_code::PASSED })
        }
    };
    crate::standard_output::print(text.as_bytes());
    Ok(code)
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

fn hardware(name: &str) -> Result<Hardware, Error> {
    let instances = Library::for_project(home()?.path()).instances()?;
    match instances.get(name) {
        Some(instance) => Ok(plan::hardware(instance)),
        None => {
            let known: Vec<&str> = instances.names().collect();
            Err(Error::Usage(unknown_instance(name, &known)))
        }
    }
}

/// A key and what is predicted for it.
struct Row {
    op: Op,
    size_bytes: u64,
    nodes: u32,
    ranks: u32,
    predicted: Result<Prediction, NoPrediction>,
}

fn predictions(hardware: &Hardware, args: &PredictArgs) -> Vec<Row> {
    let ops = match args.ops.as_slice() {
        [] => predicted_ops(&hardware.instance).collect(),
        some => some.to_vec(),
    };
    // Of an instance without figures one row says why.
    let ops = if ops.is_empty() { vec![Op::AllReduce] } else { ops };
    let mut rows = Vec::new();
    for op in ops {
        for size_bytes in &args.sizes {
            for nodes in &args.nodes {
                let ranks = nodes.saturating_mul(hardware.gpus);
                let key = Key { hardware, op, size_bytes: *size_bytes, nodes: *nodes, ranks, chosen: None };
                let predicted = predict::predict(&key);
                rows.push(Row { op, size_bytes: *size_bytes, nodes: *nodes, ranks, predicted });
            }
        }
    }
    rows
}

fn rows_text(name: &str, rows: &[Row]) -> String {
    let head = ["op", "size", "nodes", "predicted", "interval", "fitted to"].map(str::to_owned).to_vec();
    let line = |row: &Row| {
        let key = [row.op.name().to_owned(), size::show(row.size_bytes), row.nodes.to_string()];
        let found = match &row.predicted {
            Ok(one) => [
                value_text(one),
                format!("{:.0} to {:.0}", one.lower, one.upper),
                format!("{}, {} of {name}, {} in all", one.reach, one.of_instance, one.figures),
            ],
            Err(why) => ["none".to_owned(), String::new(), why.to_string()],
        };
        key.into_iter().chain(found).collect::<Vec<String>>()
    };
    let mut text = columns(&std::iter::once(head).chain(rows.iter().map(line)).collect::<Vec<_>>());
    if rows.iter().any(|row| row.predicted.is_ok()) {
        text.push('\n');
        text.push_str(&summaries_text());
        text.push_str(&without_figures(name));
        text.push_str("Provisional, until a baseline is accepted: `harness help baseline`.\n");
    }
    text
}

/// The operations that are not predicted, in one line; nothing where all are.
fn without_figures(name: &str) -> String {
    let known: Vec<Op> = predicted_ops(name).collect();
    let others: Vec<&str> = Op::ALL.iter().filter(|op| !known.contains(op)).map(|op| op.name()).collect();
    match others.as_slice() {
        [] => String::new(),
        others => format!("Not predicted, for want of published figures of {name}: {}.\n", others.join(", ")),
    }
}

/// `452 +- 31 GB/s`
fn value_text(one: &Prediction) -> String {
    format!("{:.0} +- {:.0} {}", one.value, one.half_width(), Unit::GigabytesPerSecond.name())
}

/// What was left out of the fit, and the figures that were tested so.
type LeftOut = (&'static str, fn(&Errors) -> &[Tested]);

const LEFT_OUT: [LeftOut; 2] =
    [("node count", |errors| &errors.without_node_count), ("source", |errors| &errors.without_source)];

fn summaries_text() -> String {
    let line = |(what, tested): &LeftOut| {
        let tested = tested(errors());
        let summary = Summary::new(tested)?;
        Some(format!(
            "Error of published figures whose {what} was left out of the fit: median {:.1} %; {} of {} in the interval.\n",
            summary.median_error * 100.0,
            tested.iter().filter(|one| one.is_covered()).count(),
            summary.figures
        ))
    };
    LEFT_OUT.iter().filter_map(line).collect()
}

/// So many of the worst are shown.
const WORST: usize = 10;

fn errors_text() -> String {
    let head = ["left out", "op", "figures", "median error", "in the interval", "median half-width"];
    let mut table = vec![head.map(str::to_owned).to_vec()];
    for (what, tested) in LEFT_OUT {
        let tested = tested(errors());
        table.extend(summary_row(what, "all", tested.iter()));
        for op in Op::ALL {
            table.extend(summary_row("", op.name(), tested.iter().filter(|one| one.figure.op == op)));
        }
    }
    let mut text = columns(&table);
    for (what, tested) in LEFT_OUT {
        text.push_str(&format!("\nFurthest off, {what} left out:\n"));
        text.push_str(&tested_text(&Errors::worst(tested(errors()), WORST)));
    }
    text.push_str("\nAn older stack (NCCL 2.18.5, aws-ofi-nccl 1.7.3), never fitted:\n");
    text.push_str(&tested_text(&errors().older_stack.iter().collect::<Vec<_>>()));
    text.push_str("\nFigures:\n");
    for (source, where_from) in predict::sources() {
        text.push_str(&format!("{source}: {where_from}\n"));
    }
    text
}

fn summary_row<'a>(
    what: &str,
    op: &str,
    tested: impl Iterator<Item = &'a Tested> + Clone,
) -> Option<Vec<String>> {
    let summary = Summary::new(tested.clone())?;
    let covered = tested.filter(|one| one.is_covered()).count();
    let percent = |fraction: f64| format!("{:.1} %", fraction * 100.0);
    Some(vec![
        what.to_owned(),
        op.to_owned(),
        summary.figures.to_string(),
        percent(summary.median_error),
        format!("{covered}, {}", percent(summary.covered)),
        percent(summary.half_width),
    ])
}

fn tested_text(tested: &[&Tested]) -> String {
    let head = ["instance", "op", "size", "nodes", "measured", "predicted", "interval", "error", "source"];
    let row = |one: &&Tested| {
        let Figure { instance, op, nodes, size_bytes, busbw, source } = &one.figure;
        vec![
            instance.clone(),
            op.name().to_owned(),
            size::show(*size_bytes),
            nodes.to_string(),
            format!("{busbw:.0}"),
            format!("{:.0}", one.value),
            format!("{:.0} to {:.0}", one.lower, one.upper),
            format!("{:+.0} %", one.error() * 100.0),
            source.clone(),
        ]
    };
    columns(
        &std::iter::once(head.map(str::to_owned).to_vec()).chain(tested.iter().map(row)).collect::<Vec<_>>(),
    )
}

fn rows_json(name: &str, rows: &[Row]) -> Value {
    let row = |row: &Row| {
        let mut value = json!({
            "op": row.op.name(),
            "size_bytes": row.size_bytes,
            "nodes": row.nodes,
            "ranks": row.ranks,
        });
        let more = match &row.predicted {
            Ok(one) => json!({
                "busbw_gb_s": rounded(one.value),
                "lower_gb_s": rounded(one.lower),
                "upper_gb_s": rounded(one.upper),
                "nearest": one.reach.to_string(),
                "figures": one.figures,
                "figures_of_instance": one.of_instance,
            }),
            Err(why) => json!({ "reason": why.to_string() }),
        };
        if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
            value.extend(more);
        }
        value
    };
    let rows: Vec<Value> = rows.iter().map(row).collect();
    json!({ "instance": name, "predictions": rows, "errors": summaries_json() })
}

/// To what a published figure has: two digits behind the point.
fn rounded(gb_s: f64) -> f64 {
    (gb_s * 100.0).round() / 100.0
}

fn summaries_json() -> Value {
    let of = |(what, tested): &(&str, fn(&Errors) -> &[Tested])| {
        let summary = Summary::new(tested(errors()))?;
        Some(json!({
            "left_out": what,
            "figures": summary.figures,
            "median_error": summary.median_error,
            "in_interval": summary.covered,
            "median_half_width": summary.half_width,
        }))
    };
    Value::Array(LEFT_OUT.iter().filter_map(of).collect())
}

fn errors_json() -> Value {
    let all = |tested: &[Tested]| -> Value {
        let one = |one: &Tested| {
            json!({
                "instance": one.figure.instance,
                "op": one.figure.op.name(),
                "size_bytes": one.figure.size_bytes,
                "nodes": one.figure.nodes,
                "source": one.figure.source,
                "measured_gb_s": one.figure.busbw,
                "busbw_gb_s": rounded(one.value),
                "lower_gb_s": rounded(one.lower),
                "upper_gb_s": rounded(one.upper),
            })
        };
        Value::Array(tested.iter().map(one).collect())
    };
    json!({
        "errors": summaries_json(),
        "without_node_count": all(&errors().without_node_count),
        "without_source": all(&errors().without_source),
        "older_stack": all(&errors().older_stack),
    })
}
