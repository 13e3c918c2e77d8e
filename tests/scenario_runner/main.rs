//! The tests that are data: each TOML file under `tests/scenarios` is one, and this program runs them all. What stands in
//! such a file is described in CONTRIBUTING.md. The documents are tested as data, too: their commands and outputs.

// Tests wait for real processes by the machine's clock; what they test must not.
#![allow(clippy::disallowed_methods)]

mod docs;
mod names;
mod page;
mod pattern;
mod printed_fixes;
#[path = "../suite/project.rs"]
#[allow(dead_code)]
mod project;
mod runner_tests;
mod scenario;
mod schemas;
mod screen;
#[path = "../suite/small_export.rs"]
#[allow(dead_code)]
mod small_export;
mod steps;
mod value;
mod variables;

use libtest_mimic::{Arguments, Failed, Trial};
use project::root;
use scenario::Scenario;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

const FOLDER: &str = "tests/scenarios";

/// Every `AREA/NAME.toml`, by path, and what lies where it is none; `AREA/files` belongs to scenarios.
fn scenarios(folder: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let list = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        entries.flatten().map(|entry| entry.path()).collect()
    };
    let (areas, mut misplaced): (Vec<_>, Vec<_>) = list(folder).into_iter().partition(|path| path.is_dir());
    let (mut files, folders): (Vec<_>, Vec<_>) =
        areas.iter().flat_map(|area| list(area)).partition(|path| path.is_file());
    misplaced.extend(folders.into_iter().filter(|path| !path.ends_with("files")));
    files.sort();
    misplaced.sort();
    (files, misplaced)
}

fn misplaced(path: &Path) -> Trial {
    let shown = path.strip_prefix(root()).unwrap_or(path).display().to_string();
    let error =
        format!("{shown} is no test: scenarios are {FOLDER}/AREA/NAME.toml, their files are in AREA/files");
    Trial::test(format!("misplaced::{shown}"), move || Err(Failed::from(error)))
}

/// One trial, or one for each row of its table; a file that cannot be read is a trial that fails.
fn trials(path: &Path) -> Vec<Trial> {
    let area = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = format!("{area}::{stem}");
    let shown = path.strip_prefix(root()).unwrap_or(path).display().to_string();
    let scenario = match fs::read_to_string(path).map_err(|error| error.to_string()).and_then(Scenario::read)
    {
        Ok(scenario) => Arc::new(scenario),
        Err(error) => {
            return vec![Trial::test(name, move || Err(Failed::from(format!("{shown}: {error}"))))];
        }
    };
    let one = |row: Option<usize>| {
        let name = row.map_or_else(|| name.clone(), |row| format!("{name}::{}", scenario.label(row)));
        let (scenario, path, area) = (Arc::clone(&scenario), path.to_owned(), area.clone());
        let shown = shown.clone();
        Trial::test(name, move || {
            steps::run(&scenario, &path, &area, row)
                .map_err(|error| Failed::from(format!("{shown}: {error}")))
        })
    };
    steps::rows(&scenario).into_iter().map(one).collect()
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let (files, others) = scenarios(&root().join(FOLDER));
    let mut all: Vec<Trial> = files.iter().flat_map(|path| trials(path)).collect();
    all.extend(others.iter().map(|path| misplaced(path)));
    all.extend(runner_tests::trials());
    all.extend(docs::trials());
    all.push(schemas::trial(files));
    libtest_mimic::run(&arguments, all).exit_code()
}
