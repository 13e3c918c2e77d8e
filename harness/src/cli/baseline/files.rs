//! The files of baselines: those in force, which the library finds, and the proposals of the project, read and written
//! whole. The lines of comment that a file opens with stay as they are.

use crate::library::Library;
use crate::own_recipes;
use config::baseline::{Baselines, PENDING};
use config::schema;
use config::toml_reader::file;
use recipes::catalogue::Catalogue;
use std::fs;
use std::path::{Path, PathBuf};
use store::{Home, write_whole};

const FOLDER: &str = "baselines";

pub(super) fn in_force(home: &Home, instance: &str) -> PathBuf {
    home.path().join(FOLDER).join(format!("{instance}.toml"))
}

pub(super) fn pending(home: &Home, instance: &str) -> PathBuf {
    home.path().join(FOLDER).join(format!("{instance}{PENDING}"))
}

/// The instances that have proposals here, sorted.
pub(super) fn with_proposals(home: &Home) -> Vec<String> {
    let names = Library::for_project(home.path()).names(FOLDER);
    let stem = |name: &String| Some(format!("{name}.toml").strip_suffix(PENDING)?.to_owned());
    names.iter().filter_map(stem).filter(|name| pending(home, name).exists()).collect()
}

/// The instances that have baselines in force, here or elsewhere in the library, sorted.
pub(super) fn with_baselines(home: &Home) -> Vec<String> {
    let mut names = Library::for_project(home.path()).names(FOLDER);
    names.retain(|name| !format!("{name}.toml").ends_with(PENDING) && !name.starts_with('.'));
    names
}

/// The baselines in force, here or elsewhere in the library. `None` if there are none.
pub(super) fn read_in_force(home: &Home, instance: &str) -> Result<Option<Baselines>, String> {
    let Some(entry) = Library::for_project(home.path()).find(FOLDER, instance) else { return Ok(None) };
    let text = entry.read().map_err(|error| format!("{}: {error}", entry.file))?;
    Baselines::read(&text, &entry.file, &catalogue(home))
        .map(Some)
        .map_err(|diagnostics| diagnostics.to_string())
}

/// The recipes of the library. Errors in them are reported by `check` and where they are used.
pub(super) fn catalogue(home: &Home) -> Catalogue {
    let mut catalogue = Catalogue::built_in();
    let _ = own_recipes::load_quietly(&mut catalogue, Some(&Library::for_project(home.path())), None);
    catalogue
}

/// `None` if there is no such file.
pub(super) fn read(home: &Home, path: &Path) -> Result<Option<Baselines>, String> {
    let shown = home.display_path(path);
    let text = match file::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{shown}: {error}")),
    };
    Baselines::read(&text, &shown, &catalogue(home)).map(Some).map_err(|diagnostics| diagnostics.to_string())
}

/// Writes the baselines in force into the project, with the comment that the file opens with, wherever it was found.
pub(super) fn write_in_force(home: &Home, baselines: &Baselines) -> Result<(), String> {
    let found = Library::for_project(home.path()).find(FOLDER, &baselines.instance);
    let text = found.and_then(|entry| entry.read().ok()).unwrap_or_default();
    let path = in_force(home, &baselines.instance);
    let text = if path.exists() { &text } else { schema::without_directive(&text) };
    write_text(&path, &opening(text), baselines)
}

/// Writes proposals. A file without any is removed: there is nothing to decide on.
pub(super) fn write_proposals(home: &Home, baselines: &Baselines) -> Result<(), String> {
    let path = pending(home, &baselines.instance);
    if baselines.entries.is_empty() {
        return match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(format!("{}: {error}", path.display()))
            }
            _ => Ok(()),
        };
    }
    let opening = file::read(&path).map(|text| opening(&text)).unwrap_or_default();
    write_text(&path, &opening, baselines)
}

fn write_text(path: &Path, opening: &str, baselines: &Baselines) -> Result<(), String> {
    let made = path.parent().map_or(Ok(()), fs::create_dir_all);
    made.map_err(|error| format!("{}: {error}", path.display()))?;
    let text = format!("{opening}{}", baselines.render());
    write_whole(path, text.as_bytes()).map_err(|error| error.to_string())
}

/// The lines of comment before all else.
fn opening(text: &str) -> String {
    text.split_inclusive('\n').take_while(|line| line.starts_with('#') || line.trim().is_empty()).collect()
}
