//! Puts into the program what ships with it: the suites, inventories, instance profiles and baselines of the repository.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// What is built in, as it lies in the repository.
const FOLDERS: [&str; 5] = ["suites", "suites/recipes", "inventory", "inventory/instances", "baselines"];

fn main() {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    let repository = package.parent().expect("the package lies in the repository");
    println!("cargo::rerun-if-changed=build.rs");
    fs::write(out.join("built_in.rs"), built_in(repository)).expect("the folder of the build can be written");
}

/// A table of `(file, text)`, sorted by file.
fn built_in(repository: &Path) -> String {
    let mut files: Vec<String> = FOLDERS.iter().flat_map(|folder| toml_files(repository, folder)).collect();
    files.sort();
    let mut table = String::from("&[\n");
    for file in files {
        let path = repository.join(&file);
        writeln!(table, "    ({file:?}, include_str!({path:?})),").expect("a string can be written");
    }
    table + "]\n"
}

fn toml_files(repository: &Path, folder: &str) -> Vec<String> {
    let path = repository.join(folder);
    // Cargo looks at all that lies in it, at any depth.
    println!("cargo::rerun-if-changed={}", path.display());
    let entries = fs::read_dir(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; build it in a clone of the repository", path.display()));
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    let ships =
        |name: &String| name.ends_with(".toml") && !name.ends_with(".pending.toml") && !name.starts_with('.');
    names.filter(ships).map(|name| format!("{folder}/{name}")).collect()
}
