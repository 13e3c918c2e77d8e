//! Pages of recipes on disk: one beside the tables of each recipe, and an index over a folder of them. `page` writes
//! their content.

use super::{Order, TableForm};
use crate::page::limits::{self, FolderDiagnosis};
use crate::page::{self, INDEX_NAME, Page};
use model::artefact::Format;
use model::exit_code;
use recipes::diagnosis::Diagnosis;
use recipes::recipe::of_reports::{Outcome, ReportRecipe};
use recipes::report::Arguments;
use recipes::result_table::visible;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// `NAME.html` in the folder of that recipe's tables.
pub(super) fn write(
    order: &Order<'_>,
    place: &Path,
    recipe: &ReportRecipe<'_>,
    arguments: &Arguments,
    outcome: &Outcome,
) -> io::Result<()> {
    let asked: Vec<String> =
        [Some(arguments.written()).filter(|words| !words.is_empty()), order.filtered.clone()]
            .into_iter()
            .flatten()
            .collect();
    let beside: Vec<&str> = order.forms.iter().filter_map(|form| name(*form)).collect();
    let page = Page {
        title: recipe.title,
        about: recipe.about,
        definition: recipe.definition,
        asked: asked.join(" "),
        outcome,
        look: order.look,
        beside: &beside,
    };
    let path = place.join(format!("{}.html", outcome.recipe));
    let write = &mut |whole: &mut dyn Write| {
        let mut whole = BufWriter::new(whole);
        page::write(&page, &mut whole)?;
        whole.flush()
    };
    store::write_whole_by(&path, write).map_err(|error| io::Error::other(error.to_string()))
}

fn name(form: TableForm) -> Option<&'static str> {
    match form {
        TableForm::Csv => Some("CSV"),
        TableForm::Json => Some("JSON"),
        TableForm::Parquet => Some("Parquet"),
        TableForm::Console | TableForm::Html => None,
    }
}

/// `diagnosis.json` in the folder, which its index shows first.
pub(super) fn write_limits(folder: &Path, input: String, found: Diagnosis) -> io::Result<()> {
    let diagnosis = FolderDiagnosis { format: Format, input, found: found.into() };
    let text = serde_json::to_vec(&diagnosis).map_err(io::Error::other)?;
    store::write_whole(&folder.join(limits::NAME), &text).map_err(|error| io::Error::other(error.to_string()))
}

/// Whether there was any page to list.
pub(super) fn write_index(folder: &Path) -> io::Result<bool> {
    let Some(text) = page::index(folder)? else { return Ok(false) };
    store::write_whole(&folder.join(INDEX_NAME), &text)
        .map_err(|error| io::Error::other(error.to_string()))?;
    Ok(true)
}

/// `harness recipe index DIR...`: 0 where each has an index now, 3 where one has no page, 2 where one cannot be read.
pub fn index(folders: &[PathBuf], quiet: bool, err: &mut dyn Write) -> i32 {
    // A closed stderr is no error of the verb.
    let mut print = |text: String| {
        let _ = writeln!(err, "{}", visible(&text));
    };
    if folders.is_empty() {
        print("error: no folder given: `harness recipe index DIR`".to_owned());
        return exit_code::USAGE;
    }
    let mut code = exit_code::PASSED;
    for folder in folders {
        let shown = folder.display();
        match write_index(folder) {
            Ok(true) if quiet => {}
            Ok(true) => print(format!("written: {}", folder.join(INDEX_NAME).display())),
            Ok(false) => {
                print(format!(
                    "note: {shown}: no page of a recipe in it; `harness recipe NAME --html` makes pages"
                ));
                code = if code == exit_code::PASSED { exit_code::INCONCLUSIVE } else { code };
            }
            Err(error) => {
                print(format!("error: {shown}: {error}"));
                code = exit_code::USAGE;
            }
        }
    }
    code
}
