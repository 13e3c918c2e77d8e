//! A user's recipe as it is asked for over named reports, and as it stands in suites.

use super::jobs::OfJobs;
use super::reports::OfReports;
use super::{Declaration, Engine};
use crate::recipe::RecipeSpec;
use crate::recipe::of_reports::ReportRecipe;
use std::sync::Arc;

/// One recipe of a catalogue.
pub struct UserRecipe {
    declaration: Arc<Declaration>,
    of_reports: OfReports,
    of_jobs: OfJobs,
}

impl UserRecipe {
    /// The engine runs its queries.
    pub fn new(declaration: Declaration, engine: &'static dyn Engine) -> UserRecipe {
        let declaration = Arc::new(declaration);
        UserRecipe {
            of_reports: OfReports::new(declaration.clone(), engine),
            of_jobs: OfJobs::new(declaration.clone(), engine),
            declaration,
        }
    }

    /// As its file has it.
    pub fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    /// What stands for it among the recipes over reports.
    pub fn report_recipe(&self) -> ReportRecipe<'_> {
        self.of_reports.recipe()
    }

    /// What stands for it among the recipes of suites.
    pub fn job_recipe(&self) -> RecipeSpec<'_> {
        self.of_jobs.recipe()
    }
}
