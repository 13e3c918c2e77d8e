//! The collected data of real programs, which may not lie in this repository: `HARNESS_TEST_CORPUS` names its folder, and
//! without that it is looked for beside the repository. An empty value means that there is none.

use crate::project::root;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) const VARIABLE: &str = "HARNESS_TEST_CORPUS";
const BESIDE: &str = "../shared/corpus";

/// A folder that is named is taken as it is: where it is not there, its tests fail.
pub(crate) fn place() -> Option<PathBuf> {
    match std::env::var_os(VARIABLE) {
        Some(named) if named.is_empty() => None,
        Some(named) => Some(PathBuf::from(named)),
        None => Some(root().join(BESIDE)).filter(|beside| beside.is_dir()),
    }
}

pub(crate) fn file(name: &str) -> PathBuf {
    let path = place().expect("tests of collected data run where it is there").join(name);
    assert!(path.exists(), "not in the collected data: {}", path.display());
    path
}

/// The files of a folder; a test of none would test nothing.
pub(crate) fn files(folder: &str) -> Vec<PathBuf> {
    let folder = file(folder);
    let entries = fs::read_dir(&folder).expect("a folder").flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.is_file()).collect();
    files.sort();
    assert!(!files.is_empty(), "no file in the collected data: {}", folder.display());
    files
}

pub(crate) fn export(name: &str) -> PathBuf {
    file(&format!("nsys/{name}.sqlite"))
}

pub(crate) fn exports() -> Vec<PathBuf> {
    let mut exports = files("nsys");
    exports.retain(|path| path.extension().is_some_and(|of| of == "sqlite"));
    assert!(!exports.is_empty(), "no SQLite export in the collected data");
    exports
}

pub(crate) fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
