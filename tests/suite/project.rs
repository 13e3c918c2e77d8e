//! A copy of the project's suites, inventories and baselines in a folder of its own, and the harness run in it.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;
use verdict::history::index::INDEX;

pub(crate) const HARNESS: &str = env!("CARGO_BIN_EXE_harness");

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the root").to_owned()
}

/// Where the configuration folder of a test's user lies in its project: `.user/harness`.
const CONFIGURATION: &str = ".user";

/// Variables by which the machine of a test would change what the harness does.
pub(crate) const OF_THE_MACHINE: [&str; 7] = [
    "HARNESS_HOME",
    "HARNESS_INVENTORY",
    "HARNESS_RECIPE_PATH",
    "NO_COLOR",
    "CLICOLOR_FORCE",
    "GITHUB_ACTIONS",
    "GITHUB_STEP_SUMMARY",
];

pub(crate) struct Project {
    folder: TempDir,
}

/// What a run of the harness gave.
pub(crate) struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Project {
    pub(crate) fn new() -> Project {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["suites", "inventory", "baselines"] {
            copy(&root().join(name), &folder.path().join(name));
        }
        Project { folder }
    }

    /// A folder with nothing in it.
    pub(crate) fn bare() -> Project {
        Project { folder: tempfile::tempdir().expect("a folder") }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        let path = self.path().join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(HARNESS);
        command.args(args).current_dir(self.path()).stdin(Stdio::null());
        for name in OF_THE_MACHINE {
            command.env_remove(name);
        }
        // Whatever the user of this machine has set up is no part of a test.
        command.env("XDG_CONFIG_HOME", self.path().join(CONFIGURATION));
        command
    }

    pub(crate) fn harness(&self, args: &[&str]) -> Ran {
        ran(self.command(args).output().expect("the harness starts"))
    }

    /// A recipe's tables as CSV: their folder.
    pub(crate) fn tables(&self, recipe: &str, input: &Path) -> (PathBuf, Ran) {
        let input = input.display().to_string();
        let written = ["--csv", "--output", "maps", "--force-overwrite"];
        let ran = self.harness(&[&["recipe", recipe, "--input", &input][..], &written].concat());
        (self.path().join("maps"), ran)
    }

    /// A folder of all programs of this machine but one.
    pub(crate) fn programs_but(&self, missing: &str) -> PathBuf {
        let programs = self.path().join("programs");
        fs::create_dir(&programs).expect("made");
        for folder in ["/usr/bin", "/bin"] {
            for entry in fs::read_dir(folder).expect("read").flatten() {
                if entry.file_name() != missing {
                    // Those of both folders are the same on most machines.
                    let _ = std::os::unix::fs::symlink(entry.path(), programs.join(entry.file_name()));
                }
            }
        }
        programs
    }

    pub(crate) fn latest(&self) -> PathBuf {
        self.path().join("runs/latest")
    }

    pub(crate) fn json(&self, file: &str) -> Value {
        let path = self.latest().join(file);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// What the newest run reports in its files, where the terminal shows one short line.
    pub(crate) fn reported(&self) -> String {
        let cases = fs::read_dir(self.latest().join("cases")).into_iter().flatten().flatten();
        let folders = cases.map(|entry| entry.path()).chain([self.latest()]);
        let names = ["verdict.json", "analysis.json", "summary.json", "junit.xml"];
        let files = folders.flat_map(|folder| names.map(|name| folder.join(name)));
        files.filter_map(|file| fs::read_to_string(file).ok()).collect()
    }

    pub(crate) fn runs(&self) -> usize {
        let entries = fs::read_dir(self.path().join("runs")).into_iter().flatten().flatten();
        let is_run = |entry: &fs::DirEntry| !entry.path().is_symlink() && entry.file_name() != INDEX;
        entries.filter(is_run).count()
    }
}

impl Ran {
    pub(crate) fn all(&self) -> String {
        format!("exit {:?}\n--- stdout\n{}\n--- stderr\n{}", self.code, self.stdout, self.stderr)
    }

    /// The lines that blame somebody, without their evidence: `culprit NODE PART`, `suspects NODE NODE`.
    pub(crate) fn blamed(&self) -> Vec<String> {
        self.stdout
            .lines()
            .filter(|line| line.starts_with("culprit ") || line.starts_with("suspects "))
            .map(|line| line.split(':').next().unwrap_or_default().to_owned())
            .collect()
    }
}

pub(crate) fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// The cells of a table of CSV that has no quoted cell, by heading.
pub(crate) fn rows(csv: &Path) -> Vec<BTreeMap<String, String>> {
    let text = fs::read_to_string(csv).unwrap_or_else(|error| panic!("{}: {error}", csv.display()));
    let mut lines = text.lines();
    let headings: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let row = |line: &str| {
        headings.iter().map(|heading| (*heading).to_owned()).zip(line.split(',').map(str::to_owned)).collect()
    };
    lines.map(row).collect()
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("read").flatten() {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).expect("copied");
        }
    }
}

/// Takes from a stored run what shows that its artefacts were changed, as if an older harness had written it.
pub(crate) fn remove_digests(run: &Path) {
    let path = run.join("run.json");
    let mut record: Value = serde_json::from_slice(&fs::read(&path).expect("a record")).expect("JSON");
    drop(record.as_object_mut().expect("fields").shift_remove("artefacts"));
    fs::write(path, record.to_string()).expect("written");
}
