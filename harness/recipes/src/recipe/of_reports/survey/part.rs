//! The extracts of some of the reports: what one process reads, and what the shares of many processes are joined from.
//! Serialised for another process of this program; the caller transports the bytes.

use super::extract::{Accumulators, Report, Tallies};
use super::{Progress, RecipeKind, Survey, read};
use crate::recipe::of_reports::{ReportRecipe, encoding, together};
use crate::report::Arguments;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, PoisonError};

/// Tables are made of parts by `join`, in whatever order they come.
pub struct Part {
    /// By number among all reports, ascending.
    pub(super) reports: Vec<(usize, Report)>,
    /// Of each recipe.
    pub(super) of_all: Vec<(Tallies, together::Extract)>,
}

#[derive(Serialize, Deserialize)]
struct EncodedPart {
    reports: Vec<(usize, Report<Vec<u8>>)>,
    of_all: Vec<(Tallies, Vec<u8>)>,
}

type Requests<'a> = &'a [(ReportRecipe<'a>, Arguments)];

/// Reads these of the survey's reports, by their numbers.
pub fn part(survey: &Survey, which: &[usize]) -> Result<Part, String> {
    let done = Mutex::new(Progress { reports: 0, of: which.len(), rows: 0 });
    let pool = rayon::ThreadPoolBuilder::new().num_threads(survey.jobs.max(1)).build();
    let pool = pool.map_err(|error| format!("cannot start reader threads: {error}"))?;
    let of_all: Vec<Accumulators> =
        survey.asked.iter().map(|(recipe, _)| Accumulators::begin(recipe)).collect();
    let inputs: Vec<_> =
        which.iter().filter_map(|number| Some((*number, survey.inputs.get(*number)?))).collect();
    let reports = pool.install(|| {
        let all = inputs.into_par_iter().map(|(number, input)| {
            let report = read(survey, input, &of_all);
            let rows: u64 = report.extracts.iter().map(|(extract, _)| extract.rows()).sum();
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.reports += 1;
            done.rows += rows;
            (survey.progress)(&done);
            (number, report)
        });
        all.collect()
    });
    Ok(Part { reports, of_all: of_all.into_iter().map(Accumulators::end).collect() })
}

impl Part {
    /// The numbers of its reports.
    pub fn reports(&self) -> impl Iterator<Item = usize> + '_ {
        self.reports.iter().map(|(number, _)| *number)
    }

    /// Matching rows of its reports, summed over all recipes.
    pub fn rows(&self) -> u64 {
        self.reports.iter().flat_map(|(_, report)| &report.extracts).map(|(extract, _)| extract.rows()).sum()
    }

    /// Of the recipes that it was read for.
    pub fn to_bytes(self, asked: Requests) -> Result<Vec<u8>, String> {
        let name = |at: usize, why: String| format!("`{}`: {why}", asked[at].0.name);
        let reports = self.reports.into_iter().map(|(number, report)| {
            let report = report.with_parts(|at, part| match &asked[at].0.kind {
                RecipeKind::Together(recipe) => recipe.to_bytes(&part).map_err(|why| name(at, why)),
                RecipeKind::Summary { .. } | RecipeKind::Rows { .. } | RecipeKind::Diff => Ok(Vec::new()),
            });
            Ok((number, report?))
        });
        let of_all = self.of_all.into_iter().enumerate().map(|(at, (tallies, all))| {
            let all = match &asked[at].0.kind {
                RecipeKind::Together(recipe) => recipe.all_to_bytes(&all).map_err(|why| name(at, why))?,
                RecipeKind::Summary { .. } | RecipeKind::Rows { .. } | RecipeKind::Diff => Vec::new(),
            };
            Ok((tallies, all))
        });
        let reports = reports.collect::<Result<_, String>>()?;
        encoding::to_bytes(&EncodedPart { reports, of_all: of_all.collect::<Result<_, String>>()? })
    }

    /// Decodes bytes of the same recipes with the same arguments; anything else is refused.
    pub fn from_bytes(asked: Requests, bytes: &[u8]) -> Result<Part, String> {
        let EncodedPart { reports, of_all } = encoding::from_bytes(bytes)?;
        let fits = |recipes: usize| recipes == asked.len();
        if !fits(of_all.len()) || !reports.iter().all(|(_, report)| fits(report.extracts.len())) {
            return Err(format!("the extract has another number of recipes than requested: {}", asked.len()));
        }
        let name = |at: usize, why: String| format!("`{}`: {why}", asked[at].0.name);
        let reports = reports.into_iter().map(|(number, report)| {
            let report = report.with_parts(|at, part| match &asked[at].0.kind {
                RecipeKind::Together(recipe) => recipe.read_bytes(&part).map_err(|why| name(at, why)),
                RecipeKind::Summary { .. } | RecipeKind::Rows { .. } | RecipeKind::Diff => {
                    Err(name(at, "the recipe has no extract of its own".to_owned()))
                }
            });
            Ok((number, report?))
        });
        let of_all = of_all.into_iter().enumerate().map(|(at, (tallies, all))| {
            let all = match &asked[at].0.kind {
                RecipeKind::Together(recipe) => recipe.all_from_bytes(&all).map_err(|why| name(at, why))?,
                RecipeKind::Summary { .. } | RecipeKind::Rows { .. } | RecipeKind::Diff => Box::new(()),
            };
            Ok((tallies, all))
        });
        let reports = reports.collect::<Result<_, String>>()?;
        Ok(Part { reports, of_all: of_all.collect::<Result<_, String>>()? })
    }
}
