//! All TOML files of a folder.

use super::file;
use crate::diagnostic::Diagnostic;
use std::path::Path;

/// Name and text of every TOML file in a folder, by name; and what could not be read. A folder that is not there has
/// no files.
pub fn texts(home: &Path, folder: &str) -> (Vec<(String, String)>, Vec<Diagnostic>) {
    let (mut texts, mut diagnostics) = (Vec::new(), Vec::new());
    let entries = match std::fs::read_dir(home.join(folder)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return (texts, diagnostics),
        Err(error) => {
            diagnostics.push(Diagnostic::in_file(folder, format!("cannot be read: {error}")));
            return (texts, diagnostics);
        }
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.ends_with(".toml") || name.starts_with('.') {
            continue;
        }
        let file = format!("{folder}/{name}");
        match file::read(&entry.path()) {
            Ok(text) => texts.push((file, text)),
            Err(error) => diagnostics.push(Diagnostic::in_file(&file, format!("cannot be read: {error}"))),
        }
    }
    texts.sort();
    (texts, diagnostics)
}
