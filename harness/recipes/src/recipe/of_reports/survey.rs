//! Runs recipes over many reports, several at a time, and joins the results. A report that cannot be read is named and
//! does not stop the others.

mod charts;
mod extract;
mod notes;
mod part;
mod result_tables;

pub(crate) use charts::SUMMARY_CHARTS;
pub(super) use charts::summary_charts;
pub use part::{Part, part};
pub(super) use result_tables::{below_each_other, result_table};

use super::columns::undeclared;
use super::{RecipeKind, ReportCounts, ReportExtract, ReportRecipe, diff, shared, together};
use crate::chart::Chart;
use crate::figures::{Grouped, Tally};
use crate::report::Arguments;
use crate::result_table::ResultTable;
use extract::{Accumulators, RecipeExtract, Report, Tallies};
use nsys::export::ExportError;
use nsys::tables::{GENERIC_EVENTS, MPI_RANKS, NVTX_EVENTS};
use nsys::trace::{Filter, Trace};
use result_tables::files;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// One report, in the order in which reports are numbered.
#[derive(Debug, Clone)]
pub struct Input {
    /// The export: a folder of tables, or one file that holds them all.
    pub path: PathBuf,
    /// Its name in messages.
    pub shown: String,
    /// The command-line input that it belongs to, from 0.
    pub side: usize,
}

/// Which recipes to run over which reports, and how.
pub struct Survey<'a> {
    /// Recipes with their arguments; outcomes come in this order.
    pub asked: &'a [(ReportRecipe<'a>, Arguments)],
    /// All reports; a report's number is its place here.
    pub inputs: &'a [Input],
    /// Restricts the rows of every report; `None` where all count.
    pub filter: Option<&'a Filter>,
    /// How many reports are open at once.
    pub jobs: usize,
    /// Called after each report, by the thread that read it.
    pub progress: &'a (dyn Fn(&Progress) + Sync),
}

/// Reports and rows read so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Reports read so far, unreadable ones included.
    pub reports: usize,
    /// Reports to be read by this process.
    pub of: usize,
    /// Matching rows so far, summed over all recipes.
    pub rows: u64,
}

/// The results of one recipe.
#[derive(Debug, Default)]
pub struct Outcome {
    /// As in `ReportRecipe::name`.
    pub recipe: String,
    /// Each under the name of its file; none where no report has data for it.
    pub tables: Vec<(&'static str, ResultTable)>,
    /// The charts of the tables, for recipes that have some.
    pub charts: Vec<Chart>,
    /// One line each; equal notes of several reports are one.
    pub notes: Vec<String>,
    /// Reports that could not be read, and why, or the recipe itself where it failed over all of them. Nothing of them
    /// is in the tables.
    pub unreadable: Vec<(String, String)>,
    /// Whether any report is of a simulated cluster.
    pub simulated: bool,
    /// How many reports had data for it.
    pub seen: ReportCounts,
}

/// All recipes over all reports. Each report is opened once for all of them.
pub fn survey(survey: &Survey) -> Result<Vec<Outcome>, String> {
    let all: Vec<usize> = (0..survey.inputs.len()).collect();
    Ok(join(survey, vec![part(survey, &all)?], &BTreeMap::new()))
}

/// Joins parts with disjoint reports; `lost` says why a report is in none of them.
pub fn join(survey: &Survey, parts: Vec<Part>, lost: &BTreeMap<usize, String>) -> Vec<Outcome> {
    let mut of_all: Vec<(Tallies, together::Extract)> =
        survey.asked.iter().map(|(recipe, _)| Accumulators::begin(recipe).end()).collect();
    let mut read: BTreeMap<usize, Report> = BTreeMap::new();
    for part in parts {
        for (number, report) in part.reports {
            read.insert(number, report);
        }
        for ((of_all, more), (recipe, _)) in of_all.iter_mut().zip(part.of_all).zip(survey.asked) {
            for (words, tally) in more.0 {
                of_all.0.entry(words).or_default().add(tally);
            }
            if let RecipeKind::Together(recipe) = &recipe.kind {
                recipe.join(&mut of_all.1, more.1);
            }
        }
    }
    let reports = (0..survey.inputs.len()).map(|number| {
        let why = || lost.get(&number).map_or("it was not read", String::as_str);
        read.remove(&number).unwrap_or_else(|| Report::unread(why(), survey.asked.len()))
    });
    let reports: Vec<Report> = reports.collect();
    let ranks = ranks(&reports);
    let outcomes = survey.asked.iter().zip(of_all).enumerate().map(|(at, ((recipe, arguments), all))| {
        outcome(survey, recipe, arguments, at, &reports, &ranks, all)
    });
    outcomes.collect()
}

fn read(survey: &Survey, input: &Input, of_all: &[Accumulators]) -> Report {
    // One recipe reads what it needs once; for several each column is kept until the last of them has read it.
    let opened = match survey.asked {
        [_] => Trace::open(&input.path),
        _ => Trace::open_shared(&input.path, shared::ROOM / survey.jobs.max(1)),
    };
    let opened = opened.and_then(|trace| match survey.filter {
        Some(filter) => trace.filtered(filter),
        None => Ok(trace),
    });
    let mut trace = match opened {
        Ok(trace) => trace,
        Err(error) => return Report::unread(&error.to_string(), survey.asked.len()),
    };
    let written = trace.export().written_by().unwrap_or_default();
    let notes = trace.take_notes();
    let extract = extracts(survey, input, &mut trace, of_all);
    Report {
        rank: rank(&trace).unwrap_or_default(),
        host: trace.host().unwrap_or_default(),
        product: written.product,
        schema: written.schema,
        simulated: trace.is_simulated().unwrap_or_default(),
        utc_epoch_ns: trace.utc_epoch_ns().unwrap_or_default(),
        extracts: extract,
        notes,
    }
}

/// The extract of each recipe from one report, and notes on what it left out.
fn extracts(
    survey: &Survey,
    input: &Input,
    trace: &mut Trace,
    of_all: &[Accumulators],
) -> Vec<(RecipeExtract, Vec<String>)> {
    let mut extract = Vec::new();
    for (at, ((recipe, arguments), all)) in survey.asked.iter().zip(of_all).enumerate() {
        trace.export().readers(shared::readers(&survey.asked[at..], trace));
        // The two sides of a comparison are kept apart.
        let side = if matches!(recipe.kind, RecipeKind::Diff) { input.side } else { 0 };
        let add = |words: &[String], tally: Tally| {
            let mut all = all.tallies.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry((side, words.to_vec())).or_default().add(tally);
        };
        let summary = diff::summary_of(*recipe, arguments);
        let of_report = match take(trace, &summary, arguments, &add, &all.together) {
            Ok(Some(extract)) => Ok(extract),
            Ok(None) => looked_at(trace, &summary, arguments),
            Err(error) => Err(error),
        };
        let of_report = of_report.unwrap_or_else(|error| RecipeExtract::Unreadable(error.to_string()));
        extract.push((of_report, trace.take_notes()));
    }
    extract
}

/// How often each table of a report was gone through for all of these recipes.
#[cfg(test)]
pub(super) fn decoded(survey: &Survey, input: &Input) -> BTreeMap<&'static str, nsys::export::Decoded> {
    let mut trace = Trace::open_shared(&input.path, shared::ROOM).expect("opens");
    let of_all: Vec<Accumulators> =
        survey.asked.iter().map(|(recipe, _)| Accumulators::begin(recipe)).collect();
    extracts(survey, input, &mut trace, &of_all);
    trace.export().decoded()
}

/// `None` where a table that it needs is absent or empty, or has no matching rows.
fn take(
    trace: &Trace,
    recipe: &ReportRecipe<'_>,
    arguments: &Arguments,
    add: &dyn Fn(&[String], Tally),
    all: &Mutex<together::Extract>,
) -> Result<Option<RecipeExtract>, ExportError> {
    match &recipe.kind {
        RecipeKind::Summary { groups, .. } => {
            let Some(groups) = groups(trace, arguments)? else { return Ok(None) };
            let grouped = Grouped::new(&groups.of_row, &groups.values, groups.labels.len());
            let rows = groups.values.len() as u64;
            let mut stats = Vec::new();
            for (group, words) in groups.labels.into_iter().enumerate() {
                let mut tally = Tally::from_values(grouped.values(group));
                if let Some(figures) = tally.stats() {
                    add(&words, tally);
                    stats.push((words, figures));
                }
            }
            Ok(Some(RecipeExtract::Groups { stats, rows }))
        }
        RecipeKind::Rows { of, .. } => Ok(of(trace, arguments)?.map(RecipeExtract::ResultTable)),
        RecipeKind::Together(recipe) => {
            Ok(recipe.take(trace, arguments, all)?.map(|(part, rows)| RecipeExtract::Part { part, rows }))
        }
        RecipeKind::Diff => Ok(None),
    }
}

/// Whether there were rows to search, where none matched.
fn looked_at(
    trace: &mut Trace,
    recipe: &ReportRecipe<'_>,
    arguments: &Arguments,
) -> Result<RecipeExtract, ExportError> {
    let mut rows = 0;
    let mut absent = Vec::new();
    for (at, spec) in recipe.tables.iter().enumerate() {
        // Fallback tables are not required.
        let falls_back = at > 0 && [NVTX_EVENTS.name, GENERIC_EVENTS.name].contains(&spec.name);
        let moment =
            ["start", "timestamp"].into_iter().find(|name| spec.columns.iter().any(|c| c.name == *name));
        if let (Some(moment), false) = (moment, falls_back) {
            match trace.export().columns(spec, &[moment])? {
                Some(of_table) => rows += of_table.len() as u64,
                None => absent.push(spec.name.to_owned()),
            }
        }
    }
    if rows == 0 {
        if absent.is_empty() {
            for spec in recipe.tables {
                if trace.export().table(spec)?.is_none() {
                    absent.push(spec.name.to_owned());
                }
            }
        }
        return Ok(RecipeExtract::Nothing { absent });
    }
    // The columns come from the report without a filter.
    let headings = match &recipe.kind {
        RecipeKind::Rows { of, .. } if trace.is_filtered() => {
            trace.whole(|whole| of(whole, arguments))?.map(ResultTable::without_rows)
        }
        RecipeKind::Rows { .. } | RecipeKind::Summary { .. } | RecipeKind::Together(_) | RecipeKind::Diff => {
            None
        }
    };
    Ok(RecipeExtract::FoundNone { rows, headings, absent })
}

/// The rank that a report's own program had, where MPI says one.
fn rank(trace: &Trace) -> Result<Option<i64>, ExportError> {
    let Some(rows) = trace.export().table(&MPI_RANKS)? else { return Ok(None) };
    let ranks: BTreeSet<i64> = rows.ints("rank")?.iter().copied().collect();
    Ok(if ranks.len() == 1 { ranks.first().copied() } else { None })
}

/// The ranks that reports know of themselves, where each knows one and no two the same; else their order.
fn ranks(reports: &[Report]) -> (Vec<i64>, &'static str) {
    let known: BTreeSet<i64> = reports.iter().filter_map(|report| report.rank).collect();
    if known.len() == reports.len() {
        (reports.iter().filter_map(|report| report.rank).collect(), "MPI")
    } else {
        ((0..reports.len() as i64).collect(), "order of names")
    }
}

fn outcome(
    survey: &Survey,
    recipe: &ReportRecipe<'_>,
    arguments: &Arguments,
    at: usize,
    reports: &[Report],
    (ranks, from): &(Vec<i64>, &'static str),
    (all, together): (Tallies, together::Extract),
) -> Outcome {
    let of = |report: usize| &reports[report].extracts[at].0;
    let shown = |report: usize| survey.inputs[report].shown.as_str();
    let unreadable = (0..reports.len()).filter_map(|report| match of(report) {
        RecipeExtract::Unreadable(why) => Some((shown(report).to_owned(), why.clone())),
        _ => None,
    });
    let mut unreadable: Vec<(String, String)> = unreadable.collect();
    let seen = count_reports((0..reports.len()).map(of));
    let of_reports = reports.iter().enumerate().flat_map(|(number, report)| {
        let notes = report.notes.iter().chain(&report.extracts[at].1);
        notes.map(move |note| (shown(number), note.as_str()))
    });
    let mut notes = notes::folded(of_reports);
    let (mut tables, mut charts) = (Vec::new(), Vec::new());
    let looked = seen.looked_at;
    match &recipe.kind {
        RecipeKind::Summary { quantity, words, .. } if !all.is_empty() || looked > 0 => {
            let rows =
                all.into_iter().filter_map(|((_, words), mut tally)| Some((None, words, tally.stats()?)));
            let rows: Vec<_> = rows.collect();
            charts.extend(summary_charts(recipe.title, *quantity, &rows));
            tables.push(("all_stats", result_table(recipe, *quantity, words, rows)));
            let mut rows = Vec::new();
            for (report, rank) in ranks.iter().enumerate() {
                if let RecipeExtract::Groups { stats, .. } = of(report) {
                    rows.extend(
                        stats.iter().map(|(words, stats)| (Some(*rank), words.clone(), stats.clone())),
                    );
                }
            }
            tables.push(("rank_stats", result_table(recipe, *quantity, words, rows)));
        }
        RecipeKind::Rows { .. } => {
            let result_tables: Vec<(i64, &ResultTable)> = (0..reports.len())
                .filter_map(|report| match of(report) {
                    RecipeExtract::ResultTable(result_table) => Some((ranks[report], result_table)),
                    RecipeExtract::FoundNone { headings, .. } => Some((ranks[report], headings.as_ref()?)),
                    _ => None,
                })
                .collect();
            if let Some(result_table) = below_each_other(&result_tables) {
                tables.push(("rows", result_table));
            }
        }
        RecipeKind::Together(across) => {
            let parts = reports.iter().enumerate().filter_map(|(at, report)| match of(at) {
                RecipeExtract::Part { part, .. } => Some(ReportExtract {
                    rank: ranks[at],
                    file: shown(at).to_owned(),
                    host: report.host.clone(),
                    utc_epoch_ns: report.utc_epoch_ns,
                    extract: part,
                }),
                _ => None,
            });
            let parts: Vec<ReportExtract<&together::Extract>> = parts.collect();
            if !parts.is_empty() || (looked > 0 && across.shows_empty_tables()) {
                let made = across.make(together, parts, arguments);
                tables.extend(made.tables);
                charts.extend(made.charts);
                notes.extend(made.notes);
                unreadable.extend(made.unreadable);
            }
        }
        RecipeKind::Diff if !all.is_empty() || looked > 0 => {
            tables.push(("diff", diff::result_table(*recipe, arguments, all)))
        }
        RecipeKind::Summary { .. } | RecipeKind::Diff => {}
    }
    if tables.iter().all(|(_, result_table)| result_table.height() == 0) && looked > 0 {
        notes.push(format!("{}: looked at {looked} rows, found none", recipe.name));
    }
    if !tables.is_empty() {
        tables.push(("files", files(survey, recipe, reports, at, ranks, from)));
    }
    debug_assert_eq!(undeclared(recipe, &tables), Vec::<String>::new(), "`{}`", recipe.name);
    let simulated = reports.iter().any(|report| report.simulated);
    Outcome { recipe: recipe.name.to_owned(), tables, charts, notes, unreadable, simulated, seen }
}

fn count_reports<'a>(extracts: impl Iterator<Item = &'a RecipeExtract>) -> ReportCounts {
    let mut counts = ReportCounts::default();
    for extract in extracts {
        counts.rows += extract.rows();
        match extract {
            RecipeExtract::Groups { .. } | RecipeExtract::ResultTable(_) | RecipeExtract::Part { .. } => {
                counts.with_data += 1
            }
            RecipeExtract::FoundNone { rows, absent, .. } => {
                counts.found_none += 1;
                counts.looked_at += rows;
                counts.absent.extend(absent.iter().cloned());
            }
            RecipeExtract::Nothing { absent } => {
                counts.without += 1;
                counts.absent.extend(absent.iter().cloned());
            }
            RecipeExtract::Unreadable(_) => counts.unreadable += 1,
        }
    }
    counts
}
