//! Goes through many reports, some at a time, and puts together what recipes make of each. A report that cannot be read
//! is named and does not stop the others.

mod notes;
mod part;
mod pictures;
mod sheets;
mod taken;

pub use part::{Part, part};
pub use pictures::SUMMARY_PICTURES;
pub(super) use pictures::of_summary;
pub(super) use sheets::{below_each_other, sheet};

use super::{Kind, Of, ReportRecipe, Seen, diff, shared, together};
use crate::figures::{Grouped, Tally};
use crate::picture::Picture;
use crate::report::Arguments;
use crate::sheet::Sheet;
use nsys::export::ExportError;
use nsys::tables::{GENERIC_EVENTS, MPI_RANKS, NVTX_EVENTS};
use nsys::trace::{Filter, Trace};
use sheets::files;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use taken::{OfAll, Report, Taken, Tallies};

/// One report, in the order in which reports are numbered.
#[derive(Debug, Clone)]
pub struct Input {
    pub path: PathBuf,
    /// How it is called where it is spoken of.
    pub shown: String,
    /// Which of the inputs that a person named it is of, from 0.
    pub side: usize,
}

pub struct Survey<'a> {
    pub asked: &'a [(&'static ReportRecipe, Arguments)],
    pub inputs: &'a [Input],
    pub filter: Option<&'a Filter>,
    /// So many reports are open at once.
    pub jobs: usize,
    pub progress: &'a (dyn Fn(&Progress) + Sync),
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub reports: usize,
    pub of: usize,
    pub rows: u64,
}

/// What came of one recipe.
#[derive(Debug, Default)]
pub struct Outcome {
    pub recipe: &'static str,
    /// Each under the name of its file; none where no report has data for it.
    pub tables: Vec<(&'static str, Sheet)>,
    /// What the tables look like, for the recipes that are pictures.
    pub pictures: Vec<Picture>,
    pub notes: Vec<String>,
    /// Reports that could not be read, and why, or the recipe itself where it failed over all of them. Nothing of them is in
    /// the tables.
    pub unreadable: Vec<(String, String)>,
    /// Whether any report is of a simulated cluster.
    pub simulated: bool,
    /// What the reports had for it.
    pub seen: Seen,
}

/// All recipes over all reports. Each report is opened once for all of them.
pub fn survey(survey: &Survey) -> Result<Vec<Outcome>, String> {
    let all: Vec<usize> = (0..survey.inputs.len()).collect();
    Ok(join(survey, vec![part(survey, &all)?], &BTreeMap::new()))
}

/// What parts make together, no two of which have one report; with why there is nothing of the reports that are in none.
pub fn join(survey: &Survey, parts: Vec<Part>, lost: &BTreeMap<usize, String>) -> Vec<Outcome> {
    let mut of_all: Vec<(Tallies, together::Taken)> =
        survey.asked.iter().map(|(recipe, _)| OfAll::begin(recipe).end()).collect();
    let mut read: BTreeMap<usize, Report> = BTreeMap::new();
    for part in parts {
        for (number, report) in part.reports {
            read.insert(number, report);
        }
        for ((of_all, more), (recipe, _)) in of_all.iter_mut().zip(part.of_all).zip(survey.asked) {
            for (words, tally) in more.0 {
                of_all.0.entry(words).or_default().add(tally);
            }
            if let Kind::Together(recipe) = &recipe.kind {
                recipe.join(&mut of_all.1, more.1);
            }
        }
    }
    let reports = (0..survey.inputs.len()).map(|number| {
        let why = || lost.get(&number).map_or("nobody read it", String::as_str);
        read.remove(&number).unwrap_or_else(|| Report::unread(why(), survey.asked.len()))
    });
    let reports: Vec<Report> = reports.collect();
    let ranks = ranks(&reports);
    let outcomes = survey.asked.iter().zip(of_all).enumerate().map(|(at, ((recipe, arguments), all))| {
        outcome(survey, recipe, arguments, at, &reports, &ranks, all)
    });
    outcomes.collect()
}

fn read(survey: &Survey, input: &Input, of_all: &[OfAll]) -> Report {
    // One recipe reads what it needs once; for several each column is kept until the last of them had it.
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
    let taken = taken(survey, input, &mut trace, of_all);
    Report {
        rank: rank(&trace).unwrap_or_default(),
        host: trace.host().unwrap_or_default(),
        product: written.product,
        schema: written.schema,
        simulated: trace.is_simulated().unwrap_or_default(),
        utc_epoch_ns: trace.utc_epoch_ns().unwrap_or_default(),
        taken,
        notes,
    }
}

/// What each recipe takes from one report, and what it left out.
fn taken(survey: &Survey, input: &Input, trace: &mut Trace, of_all: &[OfAll]) -> Vec<(Taken, Vec<String>)> {
    let mut taken = Vec::new();
    for (at, ((recipe, arguments), all)) in survey.asked.iter().zip(of_all).enumerate() {
        trace.export().readers(shared::readers(&survey.asked[at..], trace));
        // The two sides of a comparison are kept apart.
        let side = if matches!(recipe.kind, Kind::Diff) { input.side } else { 0 };
        let add = |words: &[String], tally: Tally| {
            let mut all = all.tallies.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry((side, words.to_vec())).or_default().add(tally);
        };
        let summary = diff::summary_of(recipe, arguments);
        let of_report = match take(trace, summary, arguments, &add, &all.together) {
            Ok(Some(taken)) => Ok(taken),
            Ok(None) => looked_at(trace, summary, arguments),
            Err(error) => Err(error),
        };
        let of_report = of_report.unwrap_or_else(|error| Taken::Unreadable(error.to_string()));
        taken.push((of_report, trace.take_notes()));
    }
    taken
}

/// How often each table of a report was gone through for all of these recipes.
#[cfg(test)]
pub(super) fn decoded(survey: &Survey, input: &Input) -> BTreeMap<&'static str, nsys::export::Decoded> {
    let mut trace = Trace::open_shared(&input.path, shared::ROOM).expect("opens");
    let of_all: Vec<OfAll> = survey.asked.iter().map(|(recipe, _)| OfAll::begin(recipe)).collect();
    taken(survey, input, &mut trace, &of_all);
    trace.export().decoded()
}

/// Nothing where a table that it needs is absent or empty, or has none of what is looked for.
fn take(
    trace: &Trace,
    recipe: &ReportRecipe,
    arguments: &Arguments,
    add: &dyn Fn(&[String], Tally),
    all: &Mutex<together::Taken>,
) -> Result<Option<Taken>, ExportError> {
    match &recipe.kind {
        Kind::Summary { groups, .. } => {
            let Some(groups) = groups(trace, arguments)? else { return Ok(None) };
            let grouped = Grouped::new(&groups.of_row, &groups.values, groups.labels.len());
            let rows = groups.values.len() as u64;
            let mut stats = Vec::new();
            for (group, words) in groups.labels.into_iter().enumerate() {
                let mut tally = Tally::of(grouped.values(group));
                if let Some(figures) = tally.stats() {
                    add(&words, tally);
                    stats.push((words, figures));
                }
            }
            Ok(Some(Taken::Groups { stats, rows }))
        }
        Kind::Rows { of } => Ok(of(trace, arguments)?.map(Taken::Sheet)),
        Kind::Together(recipe) => {
            Ok(recipe.take(trace, arguments, all)?.map(|(part, rows)| Taken::Part { part, rows }))
        }
        Kind::Diff => Ok(None),
    }
}

/// Whether there were rows to look at, where nothing came of them.
fn looked_at(trace: &mut Trace, recipe: &ReportRecipe, arguments: &Arguments) -> Result<Taken, ExportError> {
    let mut rows = 0;
    let mut absent = Vec::new();
    for (at, spec) in recipe.tables.iter().enumerate() {
        // What a recipe falls back to is not what it needs.
        let falls_back = at > 0 && [NVTX_EVENTS.name, GENERIC_EVENTS.name].contains(&spec.name);
        let moment =
            ["start", "timestamp"].into_iter().find(|name| spec.columns.iter().any(|c| c.name == *name));
        if let (Some(moment), false) = (moment, falls_back) {
            match trace.export().columns(spec, &[moment])? {
                Some(of_table) => rows += of_table.len() as u64,
                None => absent.push(spec.name),
            }
        }
    }
    if rows == 0 {
        if absent.is_empty() {
            for spec in recipe.tables {
                if trace.export().table(spec)?.is_none() {
                    absent.push(spec.name);
                }
            }
        }
        return Ok(Taken::Nothing { absent });
    }
    // Which columns it would have had is told by the report without a filter.
    let headings = match &recipe.kind {
        Kind::Rows { of } if trace.is_filtered() => {
            trace.whole(|whole| of(whole, arguments))?.map(Sheet::without_rows)
        }
        Kind::Rows { .. } | Kind::Summary { .. } | Kind::Together(_) | Kind::Diff => None,
    };
    Ok(Taken::FoundNone { rows, headings, absent })
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
    recipe: &'static ReportRecipe,
    arguments: &Arguments,
    at: usize,
    reports: &[Report],
    (ranks, from): &(Vec<i64>, &'static str),
    (all, together): (Tallies, together::Taken),
) -> Outcome {
    let of = |report: usize| &reports[report].taken[at].0;
    let shown = |report: usize| survey.inputs[report].shown.as_str();
    let unreadable = (0..reports.len()).filter_map(|report| match of(report) {
        Taken::Unreadable(why) => Some((shown(report).to_owned(), why.clone())),
        _ => None,
    });
    let mut unreadable: Vec<(String, String)> = unreadable.collect();
    let seen = seen((0..reports.len()).map(of));
    let told = reports.iter().enumerate().flat_map(|(number, report)| {
        let notes = report.notes.iter().chain(&report.taken[at].1);
        notes.map(move |note| (shown(number), note.as_str()))
    });
    let mut notes = notes::folded(told);
    let (mut tables, mut pictures) = (Vec::new(), Vec::new());
    let looked = seen.looked_at;
    match &recipe.kind {
        Kind::Summary { quantity, words, .. } if !all.is_empty() || looked > 0 => {
            let rows =
                all.into_iter().filter_map(|((_, words), mut tally)| Some((None, words, tally.stats()?)));
            let rows: Vec<_> = rows.collect();
            pictures.extend(of_summary(recipe.title, *quantity, &rows));
            tables.push(("all_stats", sheet(recipe, *quantity, words, rows)));
            let mut rows = Vec::new();
            for (report, rank) in ranks.iter().enumerate() {
                if let Taken::Groups { stats, .. } = of(report) {
                    rows.extend(
                        stats.iter().map(|(words, stats)| (Some(*rank), words.clone(), stats.clone())),
                    );
                }
            }
            tables.push(("rank_stats", sheet(recipe, *quantity, words, rows)));
        }
        Kind::Rows { .. } => {
            let sheets: Vec<(i64, &Sheet)> = (0..reports.len())
                .filter_map(|report| match of(report) {
                    Taken::Sheet(sheet) => Some((ranks[report], sheet)),
                    Taken::FoundNone { headings, .. } => Some((ranks[report], headings.as_ref()?)),
                    _ => None,
                })
                .collect();
            if let Some(sheet) = below_each_other(&sheets) {
                tables.push(("rows", sheet));
            }
        }
        Kind::Together(across) => {
            let parts = reports.iter().enumerate().filter_map(|(at, report)| match of(at) {
                Taken::Part { part, .. } => Some(Of {
                    rank: ranks[at],
                    file: shown(at).to_owned(),
                    host: report.host.clone(),
                    utc_epoch_ns: report.utc_epoch_ns,
                    taken: part,
                }),
                _ => None,
            });
            let parts: Vec<Of<&together::Taken>> = parts.collect();
            if !parts.is_empty() || (looked > 0 && across.tells_of_none()) {
                let made = across.make(together, parts, arguments);
                tables.extend(made.tables);
                pictures.extend(made.pictures);
                notes.extend(made.notes);
                unreadable.extend(made.unreadable);
            }
        }
        Kind::Diff if !all.is_empty() || looked > 0 => {
            tables.push(("diff", diff::sheet(recipe, arguments, all)))
        }
        Kind::Summary { .. } | Kind::Diff => {}
    }
    if tables.iter().all(|(_, sheet)| sheet.height() == 0) && looked > 0 {
        notes.push(format!("{}: looked at {looked} rows, found none", recipe.name));
    }
    if !tables.is_empty() {
        tables.push(("files", files(survey, recipe, reports, at, ranks, from)));
    }
    let simulated = reports.iter().any(|report| report.simulated);
    Outcome { recipe: recipe.name, tables, pictures, notes, unreadable, simulated, seen }
}

fn seen<'a>(taken: impl Iterator<Item = &'a Taken>) -> Seen {
    let mut seen = Seen::default();
    for taken in taken {
        seen.rows += taken.rows();
        match taken {
            Taken::Groups { .. } | Taken::Sheet(_) | Taken::Part { .. } => seen.with_data += 1,
            Taken::FoundNone { rows, absent, .. } => {
                seen.found_none += 1;
                seen.looked_at += rows;
                seen.absent.extend(absent);
            }
            Taken::Nothing { absent } => {
                seen.without += 1;
                seen.absent.extend(absent);
            }
            Taken::Unreadable(_) => seen.unreadable += 1,
        }
    }
    seen
}
