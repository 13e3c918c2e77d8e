//! A user's recipe in a suite: its metrics from the reports of a job's profiled ranks. Where a report, a table or a
//! value is missing, a finding says so and the metric is left out: a number of some ranks is not one of all.

use super::frames::Handed;
use super::reports::{across, all_specs, query_report};
use super::{Declaration, Engine, Literal, MetricColumn, RANK, ROWS, frames};
use crate::recipe::shared_findings::ReportFinding;
use crate::recipe::{FileRole, InputFile, JobInput, Output, RecipeSpec};
use metric::finding::Finding;
use metric::finding_kinds;
use metric::{Dim, DimValue, Dims, Files, MetricSpec};
use nsys::loss::loss;
use nsys::tables::{DIAGNOSTIC_EVENT, TableSpec};
use nsys::trace::Trace;
use polars::prelude::{AnyValue, DataFrame};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What stands for it among the recipes of suites.
pub(super) struct OfJobs {
    declaration: Arc<Declaration>,
    metrics: Arc<[MetricSpec]>,
    tables: Vec<&'static TableSpec>,
    run: Box<dyn Fn(&JobInput) -> Output + Send + Sync>,
}

impl OfJobs {
    pub(super) fn new(declaration: Arc<Declaration>, engine: &'static dyn Engine) -> OfJobs {
        let metrics: Arc<[MetricSpec]> = declaration.metrics.iter().map(spec).collect();
        let mut tables: Vec<&'static TableSpec> = all_specs(&declaration);
        if !tables.iter().any(|table| table.name == DIAGNOSTIC_EVENT.name) {
            tables.push(&DIAGNOSTIC_EVENT);
        }
        let (of_run, metrics_of_run) = (declaration.clone(), metrics.clone());
        let run = Box::new(move |job: &JobInput| run(&of_run, &metrics_of_run, engine, job));
        OfJobs { declaration, metrics, tables, run }
    }

    pub(super) fn recipe(&self) -> RecipeSpec<'_> {
        RecipeSpec {
            name: &self.declaration.name,
            about: &self.declaration.about,
            metrics: &self.metrics,
            tables: &self.tables,
            findings: &[ReportFinding::ALL, OwnFinding::ALL],
            reads_nccl_log: false,
            compares_clocks: false,
            reads_inspector: false,
            run: &*self.run,
        }
    }
}

/// A number of a rank is one of its node too.
fn spec(metric: &MetricColumn) -> MetricSpec {
    let mut dims: Vec<Dim> = metric.dims.iter().map(|(dim, _)| *dim).collect();
    if metric.of == ROWS && !dims.contains(&Dim::Rank) {
        dims.push(Dim::Rank);
    }
    if dims.contains(&Dim::Rank) {
        dims.push(Dim::Node);
    }
    dims.sort();
    let none = MetricSpec::new("", "", metric.unit, metric.better, Files::Reports).blaming(metric.blames);
    MetricSpec {
        name: metric.name.clone().into(),
        about: metric.about.clone().into(),
        dims: dims.into(),
        ..none
    }
}

/// The results of a job's reports, and the nodes of which one is missing.
#[derive(Default)]
struct Results {
    of_rank: BTreeMap<u32, DataFrame>,
    incomplete: BTreeSet<String>,
}

fn run(declaration: &Declaration, metrics: &[MetricSpec], engine: &dyn Engine, job: &JobInput) -> Output {
    let mut output = Output::default();
    let mut results = Results::default();
    let defaults: Vec<(String, Literal)> =
        declaration.parameters.iter().map(|one| (one.name.clone(), one.default.clone())).collect();
    for file in job.files_of(FileRole::NsysExport) {
        let (Some(rank), Some(node)) = (file.rank, &file.node) else { continue };
        let read = || query_file(declaration, engine, &defaults, file).map(Handed);
        match job.report_extract(&declaration.name, file, read) {
            Ok(Handed(frame)) => {
                results.of_rank.insert(rank, frame);
            }
            Err(finding) => {
                output.findings.push(*finding);
                results.incomplete.insert(node.clone());
            }
        }
    }
    // Why a report is missing is reported by the account of files.
    let missing = job.expected_exports.iter().filter(|(rank, _)| !results.of_rank.contains_key(rank));
    results.incomplete.extend(missing.map(|(_, node)| node.clone()));
    let nodes: BTreeMap<u32, &str> =
        job.expected_exports.iter().map(|(rank, node)| (*rank, node.as_str())).collect();
    let finding = |code: &str, why: String| Finding::new(code, format!("`{}`: {why}", declaration.name));
    let parts =
        results.of_rank.iter().map(|(rank, frame)| (i64::from(*rank), nodes.get(rank).copied(), frame));
    let rows = match frames::below_each_other(parts, &declaration.rows.columns) {
        Ok(rows) => rows,
        Err(why) => {
            output.findings.push(finding(OwnFinding::Failed.code(), why));
            return output;
        }
    };
    let is_whole = results.incomplete.is_empty() && !results.of_rank.is_empty();
    let of_all = if is_whole { across(declaration, engine, rows.clone(), &defaults) } else { None };
    let of_all = match of_all {
        Some(Err(why)) => {
            output.findings.push(finding(OwnFinding::Failed.code(), why));
            None
        }
        Some(Ok(frame)) => Some(frame),
        None => None,
    };
    for (column, spec) in declaration.metrics.iter().zip(metrics) {
        let table = if column.of == ROWS { Some(&rows) } else { of_all.as_ref() };
        let Some(table) = table else { continue };
        let reader = MetricReader { job, column, spec, nodes: &nodes, incomplete: &results.incomplete };
        reader.metric(table, &mut output);
    }
    output
}

fn query_file(
    declaration: &Declaration,
    engine: &dyn Engine,
    defaults: &[(String, Literal)],
    file: &InputFile,
) -> Result<DataFrame, (&'static str, String)> {
    let unreadable = |error: &dyn std::fmt::Display| (ReportFinding::Unreadable.code(), error.to_string());
    let trace = Trace::open(&file.path).map_err(|error| unreadable(&error))?;
    if let Some((code, text)) = loss(trace.export()).map_err(|error| unreadable(&error))? {
        return Err((code, format!("the profiler reported: {text}")));
    }
    match query_report(declaration, engine, &trace, defaults) {
        Ok(Some((frame, _))) => Ok(frame),
        Ok(None) => {
            let wanted = declaration.tables.iter().filter(|table| !table.optional);
            let names: Vec<&str> = wanted.map(|table| table.name.as_str()).collect();
            let why = format!("`{}` needs rows of: {}", declaration.name, names.join(", "));
            Err((OwnFinding::NoData.code(), why))
        }
        Err(error) => Err((OwnFinding::Failed.code(), error.to_string())),
    }
}

/// Values with their dimensions, or why one of them is missing.
type Sound = Result<Vec<(Dims, f64)>, String>;

/// One metric, as it is taken from a table.
struct MetricReader<'a> {
    job: &'a JobInput,
    column: &'a MetricColumn,
    spec: &'a MetricSpec,
    nodes: &'a BTreeMap<u32, &'a str>,
    incomplete: &'a BTreeSet<String>,
}

impl MetricReader<'_> {
    /// Rows of a node where one has no value are left out whole, as are those of a node of which a report is missing.
    fn metric(&self, table: &DataFrame, output: &mut Output) {
        let mut by_node: BTreeMap<Option<String>, Sound> = BTreeMap::new();
        let of_ranks = self.spec.dims.contains(&Dim::Rank);
        if of_ranks {
            let nodes = self.nodes.values().filter(|node| !self.incomplete.contains(**node));
            by_node.extend(nodes.map(|node| (Some((*node).to_owned()), Ok(Vec::new()))));
        } else {
            by_node.insert(None, Ok(Vec::new()));
        }
        for row in 0..table.height() {
            let read = self.row(table, row);
            let node = match &read {
                Ok((dims, _)) => dims.word(Dim::Node).map(str::to_owned),
                Err((node, _)) => node.clone(),
            };
            let Some(rows) = by_node.get_mut(&node) else { continue };
            match (rows.as_mut(), read) {
                (Ok(all), Ok(one)) => all.push(one),
                (Ok(_), Err((_, why))) => *rows = Err(why),
                (Err(_), _) => {}
            }
        }
        for (node, rows) in by_node {
            let finding = |why: String| {
                let finding =
                    Finding::new(OwnFinding::NoValue.code(), format!("`{}`: {why}", self.spec.name));
                match &node {
                    Some(node) => finding.node(node.as_str()),
                    None => finding,
                }
            };
            match rows {
                Ok(rows) => match self.silent(node.as_deref(), &rows) {
                    None => {
                        output.metrics.extend(rows.into_iter().map(|(dims, value)| self.spec.of(dims, value)))
                    }
                    Some(why) => output.findings.push(finding(why)),
                },
                Err(why) => output.findings.push(finding(why)),
            }
        }
    }

    /// Why rows that are all sound are still not enough: there is none, or none of one of the ranks.
    fn silent(&self, node: Option<&str>, rows: &[(Dims, f64)]) -> Option<String> {
        if rows.is_empty() {
            return Some("the query returned no row".to_owned());
        }
        let seen: BTreeSet<u64> = rows.iter().filter_map(|(dims, _)| dims.number(Dim::Rank)).collect();
        let of_node = self.nodes.iter().filter(|(_, of)| node.is_some() && Some(**of) == node);
        let silent: Vec<String> = of_node
            .filter(|(rank, _)| !seen.contains(&u64::from(**rank)))
            .map(|(rank, _)| rank.to_string())
            .collect();
        (!silent.is_empty()).then(|| format!("the query returned no row for ranks {}", silent.join(", ")))
    }

    /// The dimensions and the value of a row; or, with its node, why it has none.
    fn row(&self, table: &DataFrame, row: usize) -> Result<(Dims, f64), (Option<String>, String)> {
        let mut dims = self.job.dims();
        let cell = |name: &str| {
            table.column(name).ok().and_then(|column| column.get(row).ok()).unwrap_or(AnyValue::Null)
        };
        if self.spec.dims.contains(&Dim::Rank) {
            let from = self.column.dims.iter().find(|(dim, _)| *dim == Dim::Rank);
            let from = from.map_or(RANK, |(_, column)| column.as_str());
            let rank = whole(&cell(from)).and_then(|rank| u32::try_from(rank).ok());
            let node = rank.and_then(|rank| Some((rank, *self.nodes.get(&rank)?)));
            let (rank, node) = node.ok_or_else(|| {
                (None, format!("row {}: column `{from}` holds no rank of the job", row + 1))
            })?;
            dims.set(Dim::Rank, rank);
            dims.set(Dim::Node, node);
        }
        let node = dims.word(Dim::Node).map(str::to_owned);
        let none = |column: &str| (node.clone(), format!("row {} has no value in `{column}`", row + 1));
        for (dim, column) in self.column.dims.iter().filter(|(dim, _)| *dim != Dim::Rank) {
            let value = cell(column);
            let value = match dim.is_number() {
                true => whole(&value).and_then(|value| u64::try_from(value).ok()).map(DimValue::Number),
                false => value.get_str().map(DimValue::from),
            };
            dims.set(*dim, value.ok_or_else(|| none(column))?);
        }
        let value = match cell(&self.column.value) {
            AnyValue::Int64(value) => Some(value as f64),
            AnyValue::Float64(value) => Some(value).filter(|value| value.is_finite()),
            _ => None,
        };
        Ok((dims, value.ok_or_else(|| none(&self.column.value))?))
    }
}

fn whole(value: &AnyValue) -> Option<i64> {
    match value {
        AnyValue::Int64(value) => Some(*value),
        _ => None,
    }
}

finding_kinds! {
    /// Of a user's recipe.
    pub(crate) enum OwnFinding {
        Failed = "recipe-failed": NoNumber,
        NoData = "recipe-no-data": NoNumber,
        NoValue = "recipe-no-value": NoNumber,
    }
}
