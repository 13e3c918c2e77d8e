//! The recipes of one project: the built-in ones, and those that its users wrote. It is made where the files are read, and
//! handed to whoever asks for a recipe by its name.

use crate::own::{Declaration, Engine, UserRecipe};
use crate::recipe::of_reports::{self, ReportRecipe};
use crate::recipe::{self, RecipeSpec};
use metric::MetricSpec;
use metric::finding::Meaning;
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

    /// What findings, or failures, of this code mean. One that no recipe declares is a note of a reader.
    pub fn meaning(&self, code: &str) -> Meaning {
        let mut kinds = self.job_recipes().flat_map(|recipe| recipe.findings).copied().flatten();
        kinds.find(|kind| kind.code == code).map_or(Meaning::Note, |kind| kind.means)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn codes_of_findings_that_verdicts_depend_on_keep_their_text_and_mean_one_thing() {
        let mut kinds: BTreeMap<&str, Meaning> = BTreeMap::new();
        for kind in recipe::LIST.iter().flat_map(|recipe| recipe.findings).copied().flatten() {
            let known = *kinds.entry(kind.code).or_insert(kind.means);
            assert_eq!(known, kind.means, "`{}` means two things", kind.code);
        }
        kinds.retain(|_, means| *means != Meaning::Note);
        assert_eq!(Catalogue::built_in().meaning("row-cut"), Meaning::Garbled);
        assert_eq!(Catalogue::built_in().meaning("row-of-no-reader"), Meaning::Note);
        let lines: Vec<String> = kinds.iter().map(|(code, means)| format!("{code}: {means:?}")).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn metrics_of_collectives_and_nics_show_what_joins_nodes() {
        let of_one_node = ["nic.flaps", "nic.loopback", "nic.loopback_rate"];
        let catalogue = Catalogue::built_in();
        for metric in catalogue.metrics() {
            let name = &*metric.name;
            let is_between = ["nccl.", "nic."].iter().any(|begin| name.starts_with(begin));
            let expected = is_between && !of_one_node.contains(&name);
            assert_eq!(metric.is(metric::Role::BetweenNodes), expected, "{name}");
        }
    }

    #[test]
    fn a_role_of_one_metric_has_one() {
        use metric::Role::{Flow, OverRounds};
        for role in [Flow, OverRounds] {
            let catalogue = Catalogue::built_in();
            assert_eq!(catalogue.metrics().filter(|metric| metric.is(role)).count(), 1, "{role:?}");
        }
    }
}
