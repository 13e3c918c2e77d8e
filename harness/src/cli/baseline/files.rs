//! The files of baselines in the project: those in force and the proposals beside them, read and written whole. The lines
//! of comment that a file opens with stay as they are.

use config::baseline::{Baselines, PENDING};
use config::toml_reader::file;
use std::fs;
use std::path::{Path, PathBuf};
use store::{Home, write_whole};

pub(super) fn in_force(home: &Home, instance: &str) -> PathBuf {
    home.path().join("baselines").join(format!("{instance}.toml"))
}

pub(super) fn pending(home: &Home, instance: &str) -> PathBuf {
    home.path().join("baselines").join(format!("{instance}{PENDING}"))
}

/// The instances that have a file of this kind, sorted.
pub(super) fn instances(home: &Home, ending: &str) -> Vec<String> {
    let entries = fs::read_dir(home.path().join("baselines")).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.') && (ending == PENDING || !name.ends_with(PENDING)))
        .filter_map(|name| name.strip_suffix(ending).map(str::to_owned))
        .collect();
    names.sort();
    names
}

/// `None` if there is no such file.
pub(super) fn read(home: &Home, path: &Path) -> Result<Option<Baselines>, String> {
    let shown = home.display_path(path);
    let text = match file::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{shown}: {error}")),
    };
    Baselines::read(&text, &shown).map(Some).map_err(|diagnostics| diagnostics.to_string())
}

/// A file without entries is removed where it held proposals: there is nothing to decide on.
pub(super) fn write(path: &Path, baselines: &Baselines) -> Result<(), String> {
    if baselines.is_pending() && baselines.entries.is_empty() {
        return match fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(format!("{}: {error}", path.display()))
            }
            _ => Ok(()),
        };
    }
    let opening = file::read(path).map(|text| opening(&text)).unwrap_or_default();
    let text = format!("{opening}{}", baselines.render());
    write_whole(path, text.as_bytes()).map_err(|error| error.to_string())
}

/// The lines of comment before all else.
fn opening(text: &str) -> String {
    text.split_inclusive('\n').take_while(|line| line.starts_with('#') || line.trim().is_empty()).collect()
}
