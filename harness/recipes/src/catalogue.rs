//! The recipes of one project: the built-in ones, and those that its users wrote. It is made where the files are read, and
//! handed to whoever asks for a recipe by its name.

use crate::own::{Declaration, Engine, UserRecipe};
use crate::recipe::of_reports::{self, ReportRecipe};
use crate::recipe::{self, RecipeSpec};
use metric::MetricSpec;
use std::sync::Arc;

/// Starts with the built-in recipes alone. A copy is cheap.
#[derive(Clone, Default)]
pub struct Catalogue {
    /// In the order of their names.
    users: Vec<Arc<UserRecipe>>,
}

impl Catalogue {
    /// The built-in recipes.
    pub fn built_in() -> Catalogue {
        Catalogue::default()
    }

    /// Adds a user's recipe. The same recipe may be added again; another one of its name is refused, as is one that has
    /// the name of a built-in one.
    pub fn add(&mut self, declaration: Declaration, engine: &'static dyn Engine) -> Result<(), String> {
        let name = declaration.name.as_str();
        if is_built_in(name) {
            return Err(format!("`{name}` is the name of a built-in recipe"));
        }
        match self.users.binary_search_by(|known| known.declaration().name.as_str().cmp(name)) {
            Ok(at) if self.users[at].declaration().text == declaration.text => Ok(()),
            Ok(at) => Err(format!(
                "two recipes have this name, `{}` and `{}`: `{name}`",
                self.users[at].declaration().file,
                declaration.file
            )),
            Err(at) => {
                self.users.insert(at, Arc::new(UserRecipe::new(declaration, engine)));
                Ok(())
            }
        }
    }

    /// What users wrote, in the order of their names.
    pub fn users(&self) -> impl Iterator<Item = &Declaration> {
        self.users.iter().map(|user| user.declaration())
    }

    /// What a user wrote by this name.
    pub fn user(&self, name: &str) -> Option<&Declaration> {
        self.users().find(|declaration| declaration.name == name)
    }

    /// Every recipe that suites may name: the built-in ones, and behind them those of users.
    pub fn job_recipes(&self) -> impl Iterator<Item = RecipeSpec<'_>> {
        recipe::LIST.iter().copied().chain(self.users.iter().map(|user| user.job_recipe()))
    }

    /// The recipe of this name that suites may name.
    pub fn job_recipe(&self, name: &str) -> Option<RecipeSpec<'_>> {
        self.job_recipes().find(|recipe| recipe.name == name)
    }

    /// Every recipe over reports: the built-in ones, and behind them those of users.
    pub fn report_recipes(&self) -> impl Iterator<Item = ReportRecipe<'_>> {
        of_reports::LIST.iter().copied().chain(self.users.iter().map(|user| user.report_recipe()))
    }

    /// The recipe of this name over reports.
    pub fn report_recipe(&self, name: &str) -> Option<ReportRecipe<'_>> {
        self.report_recipes().find(|recipe| recipe.name == name)
    }

    /// Every metric that a recipe declares.
    pub fn metrics(&self) -> impl Iterator<Item = &MetricSpec> {
        self.job_recipes().flat_map(|recipe| recipe.metrics)
    }

    /// The declaration of a metric, with the recipe that gives it.
    pub fn metric(&self, name: &str) -> Option<(RecipeSpec<'_>, &MetricSpec)> {
        self.job_recipes().find_map(|recipe| {
            let metric = recipe.metrics.iter().find(|metric| metric.name == name)?;
            Some((recipe, metric))
        })
    }
}

/// Whether a recipe that comes with this program has the name.
pub fn is_built_in(name: &str) -> bool {
    let names = recipe::LIST.iter().map(|one| one.name).chain(of_reports::LIST.iter().map(|one| one.name));
    names.into_iter().any(|one| one == name)
}
