//! A user's recipe over the reports that a person names: its query over each report, its query over all results, tables
//! and charts of both.

use super::tables::{read, specs};
use super::{ACROSS, Columns, Declaration, Engine, Literal, Parameter, ROWS, charts, engine, frames};
use crate::chart::Chart;
use crate::recipe::of_reports::{
    Extract, Made, OutputTable, RecipeKind, ReportExtract, ReportRecipe, Share, Together,
};
use crate::report::{ArgumentSpec, Arguments, Takes};
use crate::result_table::ResultTable;
use nsys::export::ExportError;
use nsys::tables::{ColumnType, TableSpec};
use nsys::trace::Trace;
use polars::prelude::DataFrame;
use std::sync::{Arc, Mutex};

/// What stands for it among the recipes over reports.
pub(super) struct OfReports {
    declaration: Arc<Declaration>,
    engine: &'static dyn Engine,
    arguments: Vec<ArgumentSpec>,
    definition: String,
    tables: Vec<&'static TableSpec>,
}

impl OfReports {
    pub(super) fn new(declaration: Arc<Declaration>, engine: &'static dyn Engine) -> OfReports {
        OfReports {
            engine,
            arguments: declaration.parameters.iter().map(argument).collect(),
            definition: definition(&declaration),
            tables: all_specs(&declaration),
            declaration,
        }
    }

    pub(super) fn recipe(&self) -> ReportRecipe<'_> {
        ReportRecipe {
            name: &self.declaration.name,
            title: &self.declaration.title,
            about: &self.declaration.about,
            definition: &self.definition,
            arguments: &self.arguments,
            tables: &self.tables,
            kind: RecipeKind::Together(self),
        }
    }
}

/// The tables of reports that it comes from, each once.
pub(super) fn all_specs(declaration: &Declaration) -> Vec<&'static TableSpec> {
    let mut all: Vec<&'static TableSpec> = Vec::new();
    for spec in declaration.tables.iter().flat_map(|table| specs(&table.name)) {
        if !all.iter().any(|known| known.name == spec.name) {
            all.push(spec);
        }
    }
    all
}

fn argument(parameter: &Parameter) -> ArgumentSpec {
    let takes = match &parameter.default {
        Literal::Whole(number) => Takes::Number(*number),
        Literal::Number(number) => Takes::Decimal(number.to_string().into()),
        Literal::Text(text) => Takes::Text(text.clone().into()),
        Literal::Flag(_) => Takes::Nothing,
    };
    let (name, about) = (parameter.name.clone().into(), parameter.about.clone().into());
    ArgumentSpec { name, about, takes, choice: None }
}

fn definition(declaration: &Declaration) -> String {
    let limits = &declaration.limits;
    let mut text =
        format!("Declared in `{}`. Per report: {}", declaration.file, declaration.rows.query.render());
    if let Some(across) = &declaration.across {
        text.push_str(&format!(". Over all results, with rank and host: {}", across.query.render()));
    }
    for metric in &declaration.metrics {
        let dims: Vec<String> =
            metric.dims.iter().map(|(dim, column)| format!("{} from `{column}`", dim.name())).collect();
        let dims = if dims.is_empty() { String::new() } else { format!(", {}", dims.join(", ")) };
        text.push_str(&format!(
            ". Metric `{}` in {}: {}, from `{}`{dims}",
            metric.name, metric.unit, metric.about, metric.value
        ));
    }
    text.push_str(&format!(
        ". Limits: {} rows of a report, {} rows of a result, {} MiB, {} s",
        limits.rows_in,
        limits.rows_out,
        limits.memory >> 20,
        limits.seconds
    ));
    text
}

/// The result of one report: none where a table is absent that must be there, with how many rows it came from.
pub(super) fn query_report(
    declaration: &Declaration,
    engine: &dyn Engine,
    trace: &Trace,
    arguments: &[(String, Literal)],
) -> Result<Option<(DataFrame, u64)>, ExportError> {
    let failed = |why: String| ExportError::Query { what: declaration.name.clone(), why };
    let wanted = declaration.rows.query.wanted();
    let (mut tables, mut rows) = (Vec::new(), 0);
    for table in &declaration.tables {
        let frame = match read(trace, &table.name, wanted.as_ref())? {
            Some(frame) => frame,
            None if table.optional => frames::empty(&super::columns_of(&table.name).unwrap_or_default()),
            None => return Ok(None),
        };
        rows += frame.height() as u64;
        tables.push((table.name.clone(), frame));
    }
    let query = declaration.rows.query.prepared(arguments).map_err(failed)?;
    let result = engine::ask(engine, &query, tables, &declaration.limits).map_err(failed)?;
    Ok(Some((result, rows)))
}

/// The result of the query over the results of all reports.
pub(super) fn across(
    declaration: &Declaration,
    engine: &dyn Engine,
    rows: DataFrame,
    arguments: &[(String, Literal)],
) -> Option<Result<DataFrame, String>> {
    let across = declaration.across.as_ref()?;
    let query = match across.query.prepared(arguments) {
        Ok(query) => query,
        Err(why) => return Some(Err(why)),
    };
    Some(engine::ask(engine, &query, vec![(ROWS.to_owned(), rows)], &declaration.limits))
}

impl OfReports {
    fn literals(&self, given: &Arguments) -> Vec<(String, Literal)> {
        let of = |(parameter, spec): (&Parameter, &ArgumentSpec)| {
            let value = match &parameter.default {
                Literal::Whole(_) => Literal::Whole(given.number(spec)),
                // It was read as a number before.
                Literal::Number(default) => Literal::Number(given.text(spec).parse().unwrap_or(*default)),
                Literal::Text(_) => Literal::Text(given.text(spec).to_owned()),
                Literal::Flag(_) => Literal::Flag(given.has(&spec.name)),
            };
            (parameter.name.clone(), value)
        };
        self.declaration.parameters.iter().zip(&self.arguments).map(of).collect()
    }

    fn result_table(&self, of: &'static str, frame: &DataFrame, made: &mut Made) -> Result<(), String> {
        let declaration = &self.declaration;
        let (result_table, odd): (ResultTable, u64) =
            frames::to_result_table(frame, (&declaration.name, &declaration.title), &declaration.quantities)?;
        if odd > 0 {
            made.notes.push(format!(
                "{}: cells of `{of}` that are not finite, left empty: {odd}",
                declaration.name
            ));
        }
        for spec in declaration.charts.iter().filter(|spec| spec.of == of && result_table.height() > 0) {
            match charts::chart(spec, &result_table) {
                Ok(chart) => made.charts.push(chart),
                Err(why) => made.notes.push(format!("{}: {why}", declaration.name)),
            }
        }
        made.tables.push((of, result_table));
        Ok(())
    }

    fn put_together(
        &self,
        reports: &[ReportExtract<&DataFrame>],
        given: &Arguments,
        made: &mut Made,
    ) -> Result<(), String> {
        let parts = reports.iter().map(|report| (report.rank, report.host.as_deref(), report.extract));
        let rows = frames::below_each_other(parts, &self.declaration.rows.columns)?;
        self.result_table(ROWS, &rows, made)?;
        let most = self.declaration.limits.rows_out;
        if rows.height() as u64 > most {
            return Err(format!(
                "the results of all reports have more rows than `limits.rows_out` allows: {} > {most}",
                rows.height()
            ));
        }
        if let Some(result) = across(&self.declaration, self.engine, rows, &self.literals(given)) {
            self.result_table(ACROSS, &result?, made)?;
            made.tables.rotate_right(1);
        }
        Ok(())
    }
}

impl Together for OfReports {
    fn tables(&self) -> Vec<OutputTable> {
        let rows = &self.declaration.rows.columns;
        let mut tables = vec![described(ROWS, "the result of each report", &super::seen_across(rows))];
        if let Some(across) = &self.declaration.across {
            tables.insert(0, described(ACROSS, "the result over all reports", &across.columns));
        }
        tables
    }

    fn to_bytes(&self, taken: &Extract) -> Result<Vec<u8>, String> {
        let frame = taken.downcast_ref::<DataFrame>().ok_or("the extract is of another recipe")?;
        frames::to_bytes(frame.clone())
    }

    fn read_bytes(&self, bytes: &[u8]) -> Result<Extract, String> {
        Ok(Box::new(frames::from_bytes(bytes.to_vec())?))
    }

    fn take(&self, trace: &Trace, arguments: &Arguments, _: &Mutex<Extract>) -> Share<Extract> {
        let taken = query_report(&self.declaration, self.engine, trace, &self.literals(arguments))?;
        Ok(taken.map(|(frame, rows)| (Box::new(frame) as Extract, rows)))
    }

    fn make(&self, _: Extract, reports: Vec<ReportExtract<&Extract>>, arguments: &Arguments) -> Made {
        let frames: Vec<ReportExtract<&DataFrame>> = reports
            .into_iter()
            .filter_map(|report| {
                // What was taken was taken by this very recipe.
                let extract = report.extract.downcast_ref::<DataFrame>()?;
                let ReportExtract { rank, file, host, utc_epoch_ns, .. } = report;
                Some(ReportExtract { rank, file, host, utc_epoch_ns, extract })
            })
            .collect();
        let mut made = Made::default();
        if let Err(why) = self.put_together(&frames, arguments, &mut made) {
            made.unreadable.push((self.declaration.name.clone(), why));
        }
        // As they are declared: the first is what a person is to see first.
        let place = |chart: &Chart| self.declaration.charts.iter().position(|spec| spec.name == chart.name);
        made.charts.sort_by_key(place);
        made
    }
}

/// A query says no more of a column than its type.
fn described(name: &'static str, about: &str, columns: &Columns) -> OutputTable {
    let about_of = |kind: &ColumnType| match kind {
        ColumnType::Integer => "whole number",
        ColumnType::Real => "number",
        ColumnType::Text => "text",
        ColumnType::Bytes => "bytes",
    };
    let columns = columns.iter().map(|(name, kind)| (name.clone(), about_of(kind).to_owned()));
    OutputTable { name, about: about.to_owned(), columns: columns.collect() }
}
