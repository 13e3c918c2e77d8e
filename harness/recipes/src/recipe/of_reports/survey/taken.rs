//! What recipes took from reports, before tables are made of it: of each report, and what all of them add to.

use super::Kind;
use crate::figures::{Stats, Tally};
use crate::known::{self, Known};
use crate::recipe::of_reports::{ReportRecipe, together};
use crate::sheet::Sheet;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// What one recipe took from one report. What a recipe over all reports keeps of it is of a type of its own here, and bytes
/// where it is written.
#[derive(Serialize, Deserialize)]
pub(super) enum Taken<P = together::Taken> {
    /// The figures of its groups; their values stand in the tallies of all reports.
    Groups {
        stats: Vec<(Vec<String>, Stats)>,
        rows: u64,
    },
    Sheet(Sheet),
    /// What a recipe over all reports keeps of it.
    Part {
        part: P,
        rows: u64,
    },
    /// Its tables have rows, and none is of what is looked for; with the headings of what was looked for, where these are
    /// not the recipe's own.
    FoundNone {
        rows: u64,
        headings: Option<Sheet>,
        #[serde(with = "known::list")]
        absent: Vec<Known>,
    },
    /// These tables that it needs are absent or empty.
    Nothing {
        #[serde(with = "known::list")]
        absent: Vec<Known>,
    },
    Unreadable(String),
}

impl<P> Taken<P> {
    pub(super) fn rows(&self) -> u64 {
        match self {
            Taken::Groups { rows, .. } | Taken::Part { rows, .. } => *rows,
            Taken::Sheet(sheet) => sheet.height() as u64,
            Taken::FoundNone { .. } | Taken::Nothing { .. } | Taken::Unreadable(_) => 0,
        }
    }

    fn with_part<Q>(self, other: impl FnOnce(P) -> Result<Q, String>) -> Result<Taken<Q>, String> {
        Ok(match self {
            Taken::Groups { stats, rows } => Taken::Groups { stats, rows },
            Taken::Sheet(sheet) => Taken::Sheet(sheet),
            Taken::Part { part, rows } => Taken::Part { part: other(part)?, rows },
            Taken::FoundNone { rows, headings, absent } => Taken::FoundNone { rows, headings, absent },
            Taken::Nothing { absent } => Taken::Nothing { absent },
            Taken::Unreadable(why) => Taken::Unreadable(why),
        })
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct Report<P = together::Taken> {
    pub rank: Option<i64>,
    pub host: Option<String>,
    pub product: Option<String>,
    pub schema: Option<String>,
    pub simulated: bool,
    pub utc_epoch_ns: Option<i64>,
    /// Of each recipe, and what it left out.
    pub taken: Vec<(Taken<P>, Vec<String>)>,
    /// What was left out before any recipe read.
    pub notes: Vec<String>,
}

impl Report {
    /// One of which nothing is known but why.
    pub(super) fn unread(why: &str, recipes: usize) -> Report {
        Report {
            rank: None,
            host: None,
            product: None,
            schema: None,
            simulated: false,
            utc_epoch_ns: None,
            taken: (0..recipes).map(|_| (Taken::Unreadable(why.to_owned()), Vec::new())).collect(),
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
        let taken = self.taken.into_iter().enumerate().map(|(at, (taken, left_out))| {
            taken.with_part(|part| other(at, part)).map(|taken| (taken, left_out))
        });
        Ok(Report {
            rank: self.rank,
            host: self.host,
            product: self.product,
            schema: self.schema,
            simulated: self.simulated,
            utc_epoch_ns: self.utc_epoch_ns,
            taken: taken.collect::<Result<_, String>>()?,
            notes: self.notes,
        })
    }
}

/// By input of a person and words of a group. Summaries make no difference between inputs.
pub(super) type Tallies = BTreeMap<(usize, Vec<String>), Tally>;

/// What all reports add to, while they are read.
pub(super) struct OfAll {
    pub tallies: Mutex<Tallies>,
    pub together: Mutex<together::Taken>,
}

impl OfAll {
    pub(super) fn begin(recipe: &ReportRecipe) -> OfAll {
        let together = match &recipe.kind {
            Kind::Together(recipe) => recipe.begin(),
            Kind::Summary { .. } | Kind::Rows { .. } | Kind::Diff => Box::new(()),
        };
        OfAll { tallies: Mutex::default(), together: Mutex::new(together) }
    }

    pub(super) fn end(self) -> (Tallies, together::Taken) {
        let OfAll { tallies, together } = self;
        let tallies = tallies.into_inner().unwrap_or_else(PoisonError::into_inner);
        (tallies, together.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}
