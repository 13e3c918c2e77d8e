//! What was taken from some of the reports: what one process reads, and what many processes' shares are joined from. As
//! bytes it goes from one process of this program to another; how it gets there is not told here.

use super::taken::{OfAll, Report, Tallies};
use super::{Kind, Progress, Survey, read};
use crate::recipe::of_reports::{ReportRecipe, together, written};
use crate::report::Arguments;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, PoisonError};

/// Tables are made of parts by `join`, in whatever order they come.
pub struct Part {
    /// By number among all reports, ascending.
    pub(super) reports: Vec<(usize, Report)>,
    /// Of each recipe.
    pub(super) of_all: Vec<(Tallies, together::Taken)>,
}

#[derive(Serialize, Deserialize)]
struct Written {
    reports: Vec<(usize, Report<Vec<u8>>)>,
    of_all: Vec<(Tallies, Vec<u8>)>,
}

type Asked<'a> = &'a [(&'static ReportRecipe, Arguments)];

/// Reads these of the survey's reports, by their numbers.
pub fn part(survey: &Survey, which: &[usize]) -> Result<Part, String> {
    let done = Mutex::new(Progress { reports: 0, of: which.len(), rows: 0 });
    let pool = rayon::ThreadPoolBuilder::new().num_threads(survey.jobs.max(1)).build();
    let pool = pool.map_err(|error| format!("no threads to read with: {error}"))?;
    let of_all: Vec<OfAll> = survey.asked.iter().map(|(recipe, _)| OfAll::begin(recipe)).collect();
    let inputs: Vec<_> =
        which.iter().filter_map(|number| Some((*number, survey.inputs.get(*number)?))).collect();
    let reports = pool.install(|| {
        let all = inputs.into_par_iter().map(|(number, input)| {
            let report = read(survey, input, &of_all);
            let rows: u64 = report.taken.iter().map(|(taken, _)| taken.rows()).sum();
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.reports += 1;
            done.rows += rows;
            (survey.progress)(&done);
            (number, report)
        });
        all.collect()
    });
    Ok(Part { reports, of_all: of_all.into_iter().map(OfAll::end).collect() })
}

impl Part {
    /// The numbers of its reports.
    pub fn reports(&self) -> impl Iterator<Item = usize> + '_ {
        self.reports.iter().map(|(number, _)| *number)
    }

    pub fn rows(&self) -> u64 {
        self.reports.iter().flat_map(|(_, report)| &report.taken).map(|(taken, _)| taken.rows()).sum()
    }

    /// Of the recipes that it was read for.
    pub fn to_bytes(self, asked: Asked) -> Result<Vec<u8>, String> {
        let name = |at: usize, why: String| format!("`{}`: {why}", asked[at].0.name);
        let reports = self.reports.into_iter().map(|(number, report)| {
            let report = report.with_parts(|at, part| match &asked[at].0.kind {
                Kind::Together(recipe) => recipe.to_bytes(&part).map_err(|why| name(at, why)),
                Kind::Summary { .. } | Kind::Rows { .. } | Kind::Diff => Ok(Vec::new()),
            });
            Ok((number, report?))
        });
        let of_all = self.of_all.into_iter().enumerate().map(|(at, (tallies, all))| {
            let all = match &asked[at].0.kind {
                Kind::Together(recipe) => recipe.all_to_bytes(&all).map_err(|why| name(at, why))?,
                Kind::Summary { .. } | Kind::Rows { .. } | Kind::Diff => Vec::new(),
            };
            Ok((tallies, all))
        });
        let reports = reports.collect::<Result<_, String>>()?;
        written::to_bytes(&Written { reports, of_all: of_all.collect::<Result<_, String>>()? })
    }

    /// What was written for the same recipes with the same arguments; anything else is refused.
    pub fn of_bytes(asked: Asked, bytes: &[u8]) -> Result<Part, String> {
        let Written { reports, of_all } = written::from_bytes(bytes)?;
        let fits = |recipes: usize| recipes == asked.len();
        if !fits(of_all.len()) || !reports.iter().all(|(_, report)| fits(report.taken.len())) {
            return Err(format!("it is of another number of recipes than were asked for: {}", asked.len()));
        }
        let name = |at: usize, why: String| format!("`{}`: {why}", asked[at].0.name);
        let reports = reports.into_iter().map(|(number, report)| {
            let report = report.with_parts(|at, part| match &asked[at].0.kind {
                Kind::Together(recipe) => recipe.of_bytes(&part).map_err(|why| name(at, why)),
                Kind::Summary { .. } | Kind::Rows { .. } | Kind::Diff => {
                    Err(name(at, "it keeps nothing of its own".to_owned()))
                }
            });
            Ok((number, report?))
        });
        let of_all = of_all.into_iter().enumerate().map(|(at, (tallies, all))| {
            let all = match &asked[at].0.kind {
                Kind::Together(recipe) => recipe.all_of_bytes(&all).map_err(|why| name(at, why))?,
                Kind::Summary { .. } | Kind::Rows { .. } | Kind::Diff => Box::new(()),
            };
            Ok((tallies, all))
        });
        let reports = reports.collect::<Result<_, String>>()?;
        Ok(Part { reports, of_all: of_all.collect::<Result<_, String>>()? })
    }
}
