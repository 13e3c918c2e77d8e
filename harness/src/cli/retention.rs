//! Which stored runs something stands on: baselines that were made from them, and culprits that no later run has cleared.

use config::toml_reader::file;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use store::Home;
use toml::Value;
use verdict::history::past::{self, RunKind};
use verdict::history::suspects;

/// By the id of a run: why it stays. An error where that cannot be found out.
pub(super) fn reasons(home: &Home) -> Result<BTreeMap<String, String>, String> {
    let mut reasons = BTreeMap::new();
    let folder = home.path().join("runs");
    if folder.is_dir() {
        // What a rehearsal has shown is no evidence against a node.
        let past = past::read(&folder)?.only(RunKind::Real);
        for suspect in suspects::suspects(&past).iter().filter(|suspect| suspect.is_open()) {
            let part = &suspect.component;
            for run in suspect.blamed().iter().filter_map(|at| past.runs.get(*at)) {
                let why = format!("it blames {} {}, which no run has cleared", part.node, part.part);
                reasons.insert(run.id().to_owned(), why);
            }
        }
    }
    for path in baseline_files(&home.path().join("baselines"))? {
        let shown = home.display_path(&path);
        let text = file::read(&path).map_err(|error| format!("{shown}: {error}"))?;
        let table: toml::Table = text.parse().map_err(|error| format!("{shown}: {error}"))?;
        let mut runs = Vec::new();
        named(&Value::Table(table), &mut runs);
        for run in runs {
            reasons.insert(run, format!("{shown} was made from it"));
        }
    }
    Ok(reasons)
}

/// Those in force, and those that are proposed, which may lie one folder deeper.
fn baseline_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        if !folder.is_dir() {
            continue;
        }
        let error = |error: std::io::Error| format!("{}: {error}", folder.display());
        for entry in fs::read_dir(&folder).map_err(error)? {
            let path = entry.map_err(error)?.path();
            if path.is_dir() && !path.is_symlink() && depth == 0 {
                folders.push((path, depth + 1));
            } else if path.extension().is_some_and(|end| end == "toml") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The texts of every key `run` and `runs`.
fn named(value: &Value, runs: &mut Vec<String>) {
    match value {
        Value::Table(table) => {
            for (key, value) in table {
                match (key.as_str(), value) {
                    ("run", Value::String(run)) => runs.push(run.clone()),
                    ("runs", Value::Array(all)) => {
                        runs.extend(all.iter().filter_map(Value::as_str).map(str::to_owned));
                    }
                    _ => named(value, runs),
                }
            }
        }
        Value::Array(all) => all.iter().for_each(|value| named(value, runs)),
        _ => {}
    }
}

/// Of all files of a run.
pub(super) fn bytes(folder: &Path) -> u64 {
    let files = store::files(folder).unwrap_or_default();
    files.iter().filter_map(|file| fs::symlink_metadata(folder.join(file)).ok()).map(|data| data.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_baselines_name_are_found_in_those_in_force_and_in_proposals() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::bare(folder.path());
        let write = |name: &str, text: &str| {
            let path = folder.path().join("baselines").join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        write("p5.toml", "[[baseline]]\nmetric = \"m\"\nruns = [\"r1\", \"r2\"]\n");
        write("proposed/p5.toml", "[[baseline]]\nsamples = [{ run = \"r3\", value = 1 }]\n");
        let found = reasons(&home).expect("found");
        assert_eq!(found.keys().collect::<Vec<_>>(), ["r1", "r2", "r3"]);
        assert_eq!(found["r1"], "baselines/p5.toml was made from it");
        write("broken.toml", "runs = [");
        assert!(reasons(&home).is_err_and(|why| why.starts_with("baselines/broken.toml: ")));
    }
}
