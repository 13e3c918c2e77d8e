//! Puts into the program what ships with it: the suites, inventories, instance profiles and baselines of the repository.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// What is built in, as it lies in the repository.
const FOLDERS: [&str; 5] = ["suites", "suites/recipes", "inventory", "inventory/instances", "baselines"];

fn main() {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    let repository = package.parent().expect("the package lies in the repository");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=HARNESS_COMMIT={}", commit(repository));
    fs::write(out.join("built_in.rs"), built_in(repository)).expect("the folder of the build can be written");
}

/// The commit that is built, where it is known. A build for tests does not look: it would be made again after each commit.
fn commit(repository: &Path) -> String {
    println!("cargo::rerun-if-env-changed=HARNESS_COMMIT");
    if let Some(given) = env::var("HARNESS_COMMIT").ok().filter(|given| !given.trim().is_empty()) {
        return given.trim().lines().next().unwrap_or_default().to_owned();
    }
    if env::var("PROFILE").as_deref() != Ok("release") {
        return "debug build".to_owned();
    }
    let git = |args: &[&str]| {
        let output = Command::new("git").arg("-C").arg(repository).args(args).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    for file in ["HEAD", "index", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]) {
            let path = repository.join(path);
            path.exists().then(|| println!("cargo::rerun-if-changed={}", path.display()));
        }
    }
    println!("cargo::rerun-if-changed={}", repository.join("harness").display());
    // An archive of the sources that lies within another repository is no commit of that one.
    let is_ours = git(&["ls-files", "--error-unmatch", "harness/build.rs"]).is_some();
    match git(&["log", "-1", "--format=%h %cs", "--abbrev=12"]).filter(|_| is_ours) {
        None => "unknown commit".to_owned(),
        Some(commit) if git(&["status", "--porcelain"]).is_none_or(|changes| !changes.is_empty()) => {
            format!("{commit}, modified")
        }
        Some(commit) => commit,
    }
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
