//! Extracts of reports before tables are made from them: of each report, and the accumulators of all.

use super::RecipeKind;
use crate::figures::{Stats, Tally};
use crate::recipe::of_reports::{ReportRecipe, together};
use crate::result_table::ResultTable;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The extract of one recipe from one report. That of a recipe over all reports has a type of its own, and is bytes
/// where it is written.
#[derive(Serialize, Deserialize)]
pub(super) enum RecipeExtract<P = together::Extract> {
    /// The figures of its groups; their values stand in the tallies of all reports.
    Groups {
        stats: Vec<(Vec<String>, Stats)>,
        rows: u64,
    },
    ResultTable(ResultTable),
    /// The extract of a recipe over all reports.
    Part {
        part: P,
        rows: u64,
    },
    /// Its tables have rows, but none matches; with the headings of the table, where these are not the recipe's own.
    FoundNone {
        rows: u64,
        headings: Option<ResultTable>,
        absent: Vec<String>,
    },
    /// These tables that it needs are absent or empty.
    Nothing {
        absent: Vec<String>,
    },
    Unreadable(String),
}

impl<P> RecipeExtract<P> {
    pub(super) fn rows(&self) -> u64 {
        match self {
            RecipeExtract::Groups { rows, .. } | RecipeExtract::Part { rows, .. } => *rows,
            RecipeExtract::ResultTable(result_table) => result_table.height() as u64,
            RecipeExtract::FoundNone { .. }
            | RecipeExtract::Nothing { .. }
            | RecipeExtract::Unreadable(_) => 0,
        }
    }

    fn with_part<Q>(self, other: impl FnOnce(P) -> Result<Q, String>) -> Result<RecipeExtract<Q>, String> {
        Ok(match self {
            RecipeExtract::Groups { stats, rows } => RecipeExtract::Groups { stats, rows },
            RecipeExtract::ResultTable(result_table) => RecipeExtract::ResultTable(result_table),
            RecipeExtract::Part { part, rows } => RecipeExtract::Part { part: other(part)?, rows },
            RecipeExtract::FoundNone { rows, headings, absent } => {
                RecipeExtract::FoundNone { rows, headings, absent }
            }
            RecipeExtract::Nothing { absent } => RecipeExtract::Nothing { absent },
            RecipeExtract::Unreadable(why) => RecipeExtract::Unreadable(why),
        })
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct Report<P = together::Extract> {
    pub rank: Option<i64>,
    pub host: Option<String>,
    pub product: Option<String>,
    pub schema: Option<String>,
    pub simulated: bool,
    pub utc_epoch_ns: Option<i64>,
    /// One per recipe, with notes on what it left out.
    pub extracts: Vec<(RecipeExtract<P>, Vec<String>)>,
    /// Notes on what was left out before any recipe read.
    pub notes: Vec<String>,
}

impl Report {
    /// A report that could not be read, and why.
    pub(super) fn unread(why: &str, recipes: usize) -> Report {
        Report {
            rank: None,
            host: None,
            product: None,
            schema: None,
            simulated: false,
            utc_epoch_ns: None,
            extracts: (0..recipes).map(|_| (RecipeExtract::Unreadable(why.to_owned()), Vec::new())).collect(),
            notes: Vec::new(),
        }
    }
}

impl<P> Report<P> {
    /// The same, of which each recipe's own part is made another one.
    pub(super) fn with_parts<Q>(
        self,
        other: impl Fn(usize, P) -> Result<Q, String>,
    ) -> Result<Report<Q>, String> {
        let extract = self.extracts.into_iter().enumerate().map(|(at, (extract, left_out))| {
            extract.with_part(|part| other(at, part)).map(|extract| (extract, left_out))
        });
        Ok(Report {
            rank: self.rank,
            host: self.host,
            product: self.product,
            schema: self.schema,
            simulated: self.simulated,
            utc_epoch_ns: self.utc_epoch_ns,
            extracts: extract.collect::<Result<_, String>>()?,
            notes: self.notes,
        })
    }
}

/// By input of a person and words of a group. Summaries make no difference between inputs.
pub(super) type Tallies = BTreeMap<(usize, Vec<String>), Tally>;

/// The accumulators that reports add to while they are read.
pub(super) struct Accumulators {
    pub tallies: Mutex<Tallies>,
    pub together: Mutex<together::Extract>,
}

impl Accumulators {
    pub(super) fn begin(recipe: &ReportRecipe<'_>) -> Accumulators {
        let together = match &recipe.kind {
            RecipeKind::Together(recipe) => recipe.begin(),
            RecipeKind::Summary { .. } | RecipeKind::Rows { .. } | RecipeKind::Diff => Box::new(()),
        };
        Accumulators { tallies: Mutex::default(), together: Mutex::new(together) }
    }

    pub(super) fn end(self) -> (Tallies, together::Extract) {
        let Accumulators { tallies, together } = self;
        let tallies = tallies.into_inner().unwrap_or_else(PoisonError::into_inner);
        (tallies, together.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}
