//! The user recipes that this process knows, beside the built-in ones. They are read once and live as long as the
//! process, as the declarations of built-in recipes do.

use super::{Declaration, Engine, jobs, reports};
use crate::recipe::of_reports::ReportRecipe;
use crate::recipe::{self, RecipeSpec, of_reports};
use std::sync::{PoisonError, RwLock};

/// One recipe, as it is asked for over named reports and as it stands in suites.
pub struct Own {
    pub declaration: &'static Declaration,
    pub of_reports: &'static ReportRecipe,
    pub of_jobs: &'static RecipeSpec,
}

static ALL: RwLock<Vec<&'static Own>> = RwLock::new(Vec::new());

/// In the order of their names.
pub fn all() -> Vec<&'static Own> {
    ALL.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The registered recipe of this name.
pub fn find(name: &str) -> Option<&'static Own> {
    all().into_iter().find(|own| own.declaration.name == name)
}

/// Makes a recipe known. The same recipe may be made known again; another one of its name is refused, as is one that
/// has a name of a built-in one.
pub fn register(declaration: Declaration, engine: &'static dyn Engine) -> Result<(), String> {
    let name = declaration.name.as_str();
    let built_in = recipe::LIST.iter().map(|one| one.name).chain(of_reports::LIST.iter().map(|one| one.name));
    if built_in.into_iter().any(|one| one == name) {
        return Err(format!("`{name}` is the name of a built-in recipe"));
    }
    let mut all = ALL.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = all.iter().find(|own| own.declaration.name == name) {
        return match known.declaration.text == declaration.text {
            true => Ok(()),
            false => Err(format!(
                "two recipes have this name, `{}` and `{}`: `{name}`",
                known.declaration.file, declaration.file
            )),
        };
    }
    let declaration: &'static Declaration = Box::leak(Box::new(declaration));
    let own = Own {
        declaration,
        of_reports: Box::leak(Box::new(reports::recipe(declaration, engine))),
        of_jobs: Box::leak(Box::new(jobs::recipe(declaration, engine))),
    };
    recipe::OF_USERS.add(own.of_jobs);
    of_reports::OF_USERS.add(own.of_reports);
    all.push(Box::leak(Box::new(own)));
    all.sort_by(|a, b| a.declaration.name.cmp(&b.declaration.name));
    Ok(())
}
