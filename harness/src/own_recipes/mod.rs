//! Recipes that users write: finds their files, reads them and adds them to a catalogue. `read` defines the format,
//! `worker` runs the queries, `recipes::own` uses the results.

mod columns;
mod form;
mod query;
mod read;
#[cfg(test)]
mod tests;
pub(crate) mod worker;

pub(crate) use form::KIND;
pub(crate) use read::read;

use crate::library::Library;
use crate::warn::warn;
use base::digest::sha256;
use config::diagnostic::Diagnostic;
use config::toml_reader::file;
use config::toml_reader::folder;
use config::toml_reader::renamed;
use model::artefact::PlannedRecipe;
use recipes::catalogue::Catalogue;
use std::path::Path;

/// Where a project keeps them.
pub(crate) const FOLDER: &str = "suites/recipes";

/// The recipes of the library and of another path, beside the built-in ones; or all errors in them. Prints warnings.
pub(crate) fn load(library: Option<&Library>, beside: Option<&Path>) -> Result<Catalogue, Vec<Diagnostic>> {
    let mut catalogue = Catalogue::built_in();
    load_into(&mut catalogue, library, beside).map(|()| catalogue)
}

/// The same, beside those that are known already.
pub(crate) fn load_into(
    catalogue: &mut Catalogue,
    library: Option<&Library>,
    beside: Option<&Path>,
) -> Result<(), Vec<Diagnostic>> {
    let (warnings, diagnostics) = load_quietly(catalogue, library, beside);
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    warn(&warnings);
    Ok(())
}

/// The same without printing: warnings and errors. Recipes without an error are added.
pub(crate) fn load_quietly(
    catalogue: &mut Catalogue,
    library: Option<&Library>,
    beside: Option<&Path>,
) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
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
        diagnostics.extend(add(catalogue, &text, &file));
    }
    (warnings, diagnostics)
}

/// The built-in recipes and those that a plan carries.
pub(crate) fn from_plan(planned: &[PlannedRecipe]) -> Result<Catalogue, Vec<Diagnostic>> {
    let (mut catalogue, mut diagnostics) = (Catalogue::built_in(), Vec::new());
    for recipe in planned {
        if sha256(recipe.text.as_bytes()) != recipe.sha256 {
            let message = "the text of this recipe does not match its sha256 in the plan";
            diagnostics.push(Diagnostic::in_file(&recipe.file, message));
            continue;
        }
        diagnostics.extend(add(&mut catalogue, &recipe.text, &recipe.file));
    }
    if diagnostics.is_empty() { Ok(catalogue) } else { Err(diagnostics) }
}

/// The same, with all errors in one line.
pub(crate) fn catalogue_of_plan(planned: &[PlannedRecipe]) -> Result<Catalogue, String> {
    from_plan(planned)
        .map_err(|diagnostics| diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

fn add(catalogue: &mut Catalogue, text: &str, file: &str) -> Vec<Diagnostic> {
    match read(text, file) {
        Ok(declaration) => match catalogue.add(declaration, worker::engine()) {
            Ok(()) => Vec::new(),
            Err(why) => vec![Diagnostic::in_file(file, why).suggest("give the file another name")],
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
    match file::read(path) {
        Ok(text) => (vec![(shown, text)], Vec::new()),
        Err(error) => {
            (Vec::new(), vec![Diagnostic::in_file(&shown, format!("--recipe-path: cannot read it: {error}"))])
        }
    }
}
