//! Recipes that users write: finds their files, reads them and makes them known to this process. What a file may say is
//! told in `read`, who runs its queries in `worker`; what becomes of results, in `recipes::own`.

mod columns;
mod query;
mod read;
#[cfg(test)]
mod tests;
pub(crate) mod worker;

pub(crate) use read::read;

use base::digest::sha256;
use config::diagnostic::Diagnostic;
use config::toml_reader::folder;
use model::artefact::PlannedRecipe;
use recipes::own;
use std::path::Path;

/// Where a project keeps them.
pub(crate) const FOLDER: &str = "suites/recipes";

/// The files of the project and of a path beside it, read and made known; or all that is wrong in them.
pub(crate) fn load(home: Option<&Path>, beside: Option<&Path>) -> Result<(), Vec<Diagnostic>> {
    let (mut texts, mut diagnostics) = (Vec::new(), Vec::new());
    if let Some(home) = home {
        (texts, diagnostics) = folder::texts(home, FOLDER);
    }
    if let Some(path) = beside {
        let (more, wrong) = texts_at(path);
        texts.extend(more);
        diagnostics.extend(wrong);
    }
    for (file, text) in texts {
        diagnostics.extend(make_known(&text, &file));
    }
    if diagnostics.is_empty() { Ok(()) } else { Err(diagnostics) }
}

/// The recipes that a plan carries, made known as they were.
pub(crate) fn from_plan(planned: &[PlannedRecipe]) -> Result<(), Vec<Diagnostic>> {
    let mut diagnostics = Vec::new();
    for recipe in planned {
        if sha256(recipe.text.as_bytes()) != recipe.sha256 {
            let message = "the plan's text of this recipe is not what was planned";
            diagnostics.push(Diagnostic::of_file(&recipe.file, message));
            continue;
        }
        diagnostics.extend(make_known(&recipe.text, &recipe.file));
    }
    if diagnostics.is_empty() { Ok(()) } else { Err(diagnostics) }
}

/// What a plan carries of the recipes of these names, as far as they are users' own.
pub(crate) fn planned<'a>(names: impl Iterator<Item = &'a str>) -> Vec<PlannedRecipe> {
    let names: std::collections::BTreeSet<&str> = names.collect();
    names
        .into_iter()
        .filter_map(own::find)
        .map(|own| PlannedRecipe {
            name: own.declaration.name.clone(),
            file: own.declaration.file.clone(),
            sha256: sha256(own.declaration.text.as_bytes()),
            text: own.declaration.text.clone(),
        })
        .collect()
}

fn make_known(text: &str, file: &str) -> Vec<Diagnostic> {
    match read(text, file) {
        Ok(declaration) => match own::register(declaration, worker::engine()) {
            Ok(()) => Vec::new(),
            Err(why) => vec![Diagnostic::of_file(file, why).suggest("give the file another name")],
        },
        Err(diagnostics) => diagnostics.0,
    }
}

/// A file, or every TOML file of a folder.
fn texts_at(path: &Path) -> (Vec<(String, String)>, Vec<Diagnostic>) {
    let shown = path.display().to_string();
    if path.is_dir() {
        let (texts, diagnostics) = folder::texts(path, ".");
        let named =
            |file: String| format!("{}/{}", shown.trim_end_matches('/'), file.trim_start_matches("./"));
        let texts = texts.into_iter().map(|(file, text)| (named(file), text)).collect();
        return (texts, diagnostics);
    }
    match std::fs::read_to_string(path) {
        Ok(text) => (vec![(shown, text)], Vec::new()),
        Err(error) => {
            (Vec::new(), vec![Diagnostic::of_file(&shown, format!("--recipe-path: cannot be read: {error}"))])
        }
    }
}
