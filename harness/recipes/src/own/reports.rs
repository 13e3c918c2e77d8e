//! A user's recipe over the reports that a person names: its query over each report, its query over all results, tables
//! and pictures of both.

use super::tables::{read, specs};
use super::{ACROSS, Declaration, Engine, Literal, Parameter, ROWS, engine, frames, pictures};
use crate::picture::Picture;
use crate::recipe::of_reports::{Kind, Made, Of, ReportRecipe, Share, Taken, Together};
use crate::report::{ArgumentSpec, Arguments, Takes};
use crate::sheet::Sheet;
use nsys::export::ExportError;
use nsys::tables::TableSpec;
use nsys::trace::Trace;
use polars::prelude::DataFrame;
use std::sync::Mutex;

struct OfReports {
    declaration: &'static Declaration,
    engine: &'static dyn Engine,
    arguments: &'static [ArgumentSpec],
}

/// What stands for it among the recipes over reports.
pub(super) fn recipe(declaration: &'static Declaration, engine: &'static dyn Engine) -> ReportRecipe {
    let arguments: &'static [ArgumentSpec] =
        declaration.parameters.iter().map(argument).collect::<Vec<_>>().leak();
    let of_reports: &'static OfReports = Box::leak(Box::new(OfReports { declaration, engine, arguments }));
    ReportRecipe {
        name: &declaration.name,
        title: &declaration.title,
        about: &declaration.about,
        definition: definition(declaration).leak(),
        arguments,
        tables: all_specs(declaration).leak(),
        kind: Kind::Together(of_reports),
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
        Literal::Number(number) => Takes::Decimal(number.to_string().leak()),
        Literal::Text(text) => Takes::Text(text.clone().leak()),
        Literal::Flag(_) => Takes::Nothing,
    };
    let (name, about) = (parameter.name.clone().leak(), parameter.about.clone().leak());
    ArgumentSpec { name, about, takes, choice: None }
}

fn definition(declaration: &Declaration) -> String {
    let limits = &declaration.limits;
    let mut text =
        format!("`{}` says it. Of each report: {}", declaration.file, declaration.rows.query.shown());
    if let Some(across) = &declaration.across {
        text.push_str(&format!(
            ". Over these results, with the rank and the host of each: {}",
            across.query.shown()
        ));
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
pub(super) fn of_report(
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
                Literal::Flag(_) => Literal::Flag(given.has(spec.name)),
            };
            (parameter.name.clone(), value)
        };
        self.declaration.parameters.iter().zip(self.arguments).map(of).collect()
    }

    fn sheet(&self, of: &'static str, frame: &DataFrame, made: &mut Made) -> Result<(), String> {
        let declaration = self.declaration;
        let (sheet, odd): (Sheet, u64) =
            frames::to_sheet(frame, (&declaration.name, &declaration.title), &declaration.quantities)?;
        if odd > 0 {
            made.notes.push(format!(
                "{}: cells of `{of}` that are no finite number, left empty: {odd}",
                declaration.name
            ));
        }
        for spec in declaration.pictures.iter().filter(|spec| spec.of == of && sheet.height() > 0) {
            match pictures::picture(spec, &sheet) {
                Ok(picture) => made.pictures.push(picture),
                Err(why) => made.notes.push(format!("{}: {why}", declaration.name)),
            }
        }
        made.tables.push((of, sheet));
        Ok(())
    }

    fn put_together(
        &self,
        reports: &[Of<&DataFrame>],
        given: &Arguments,
        made: &mut Made,
    ) -> Result<(), String> {
        let parts = reports.iter().map(|report| (report.rank, report.host.as_deref(), report.taken));
        let rows = frames::below_each_other(parts, &self.declaration.rows.columns)?;
        self.sheet(ROWS, &rows, made)?;
        let most = self.declaration.limits.rows_out;
        if rows.height() as u64 > most {
            return Err(format!(
                "the results of all reports have more rows than `limits.rows_out` allows: {} > {most}",
                rows.height()
            ));
        }
        if let Some(result) = across(self.declaration, self.engine, rows, &self.literals(given)) {
            self.sheet(ACROSS, &result?, made)?;
            made.tables.rotate_right(1);
        }
        Ok(())
    }
}

impl Together for OfReports {
    fn tables(&self) -> &'static [&'static str] {
        self.declaration.results()
    }

    fn to_bytes(&self, taken: &Taken) -> Result<Vec<u8>, String> {
        let frame = taken.downcast_ref::<DataFrame>().ok_or("it was taken by another recipe")?;
        frames::to_bytes(frame.clone())
    }

    fn of_bytes(&self, bytes: &[u8]) -> Result<Taken, String> {
        Ok(Box::new(frames::from_bytes(bytes.to_vec())?))
    }

    fn take(&self, trace: &Trace, arguments: &Arguments, _: &Mutex<Taken>) -> Share<Taken> {
        let taken = of_report(self.declaration, self.engine, trace, &self.literals(arguments))?;
        Ok(taken.map(|(frame, rows)| (Box::new(frame) as Taken, rows)))
    }

    fn make(&self, _: Taken, reports: Vec<Of<&Taken>>, arguments: &Arguments) -> Made {
        let frames: Vec<Of<&DataFrame>> = reports
            .into_iter()
            .filter_map(|report| {
                // What was taken was taken by this very recipe.
                let taken = report.taken.downcast_ref::<DataFrame>()?;
                let Of { rank, file, host, utc_epoch_ns, .. } = report;
                Some(Of { rank, file, host, utc_epoch_ns, taken })
            })
            .collect();
        let mut made = Made::default();
        if let Err(why) = self.put_together(&frames, arguments, &mut made) {
            made.unreadable.push((self.declaration.name.clone(), why));
        }
        // As they are declared: the first is what a person is to see first.
        let place =
            |picture: &Picture| self.declaration.pictures.iter().position(|spec| spec.name == picture.name);
        made.pictures.sort_by_key(place);
        made
    }
}
