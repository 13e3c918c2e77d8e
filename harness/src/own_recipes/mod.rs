//! Recipes that users write: finds their files, reads and registers them. `read` defines the format, `worker` runs the
//! queries, `recipes::own` uses the results.

mod columns;
mod query;
mod read;
#[cfg(test)]
mod tests;
pub(crate) mod worker;

pub(crate) use read::read;

use crate::library::Library;
use crate::warn::warn;
use base::digest::sha256;
use config::diagnostic::Diagnostic;
use config::toml_reader::folder;
use config::toml_reader::renamed;
use model::artefact::PlannedRecipe;
use recipes::own;
use std::path::Path;

/// Where a project keeps them.
pub(crate) const FOLDER: &str = "suites/recipes";

/// Reads and registers the recipes of the library and of another path; or returns all errors in them. Prints warnings.
pub(crate) fn load(library: Option<&Library>, beside: Option<&Path>) -> Result<(), Vec<Diagnostic>> {
    load_quietly(library, beside).map(|warnings| warn(&warnings))
}

/// The same; gives the warnings instead of printing them.
pub(crate) fn load_quietly(
    library: Option<&Library>,
    beside: Option<&Path>,
) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
    let (mut texts, mut diagnostics) = (Vec::new(), Vec::new());
    if let Some(library) = library {
        (texts, diagnostics) = library.texts(FOLDER);
    }
    if let Some(path) = beside {
        let (more, errors) = texts_at(path);
        texts.extend(more);
        diagnostics.extend(errors);
    }
    let mut warnings = Vec::new();
    for (file, text) in texts {
        warnings.extend(renamed::warnings(&text, &file));
        diagnostics.extend(register(&text, &file));
    }
    if diagnostics.is_empty() { Ok(warnings) } else { Err(diagnostics) }
}

/// Registers the recipes that a plan carries.
pub(crate) fn from_plan(planned: &[PlannedRecipe]) -> Result<(), Vec<Diagnostic>> {
    let mut diagnostics = Vec::new();
    for recipe in planned {
        if sha256(recipe.text.as_bytes()) != recipe.sha256 {
            let message = "the text of this recipe does not match its sha256 in the plan";
            diagnostics.push(Diagnostic::of_file(&recipe.file, message));
            continue;
        }
        diagnostics.extend(register(&recipe.text, &recipe.file));
    }
    if diagnostics.is_empty() { Ok(()) } else { Err(diagnostics) }
}

/// The recipes of these names that users wrote, as a plan carries them.
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

fn register(text: &str, file: &str) -> Vec<Diagnostic> {
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
            (Vec::new(), vec![Diagnostic::of_file(&shown, format!("--recipe-path: cannot read it: {error}"))])
        }
    }
}
