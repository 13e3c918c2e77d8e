//! What tests need beyond the repository. Under `tests/run --all` a test fails where its need is absent and `tests/setup`
//! could have installed it; what cannot be installed, such as data whose owner does not let it be copied, stays ignored.

use crate::{corpus, fact};
use fact::Fact;
use libtest_mimic::{Arguments, Trial};
use std::path::PathBuf;
use std::process::{Command, Stdio};

pub(crate) struct Need {
    absent: fn() -> Option<String>,
    is_installable: fn() -> bool,
}

pub(crate) const CORPUS: usize = 0;
pub(crate) const GAWK: usize = 1;
pub(crate) const PYTHON: usize = 2;
pub(crate) const PANDAS: usize = 3;
pub(crate) const TORCH: usize = 4;
pub(crate) const OWN_PYTHON: usize = 5;
pub(crate) const PROMETHEUS: usize = 6;
pub(crate) const JSON_SCHEMA: usize = 7;
pub(crate) const XMLLINT: usize = 8;
pub(crate) const MDBOOK: usize = 9;

const NEEDS: [Need; 10] = [
    Need { absent: no_corpus, is_installable: || false },
    Need { absent: no_gawk, is_installable: || true },
    Need { absent: no_python, is_installable: || true },
    Need { absent: no_pandas, is_installable: index_is_reached },
    Need { absent: no_torch, is_installable: || false },
    Need { absent: no_own_python, is_installable: || false },
    Need { absent: no_prometheus, is_installable: index_is_reached },
    Need { absent: no_json_schema, is_installable: index_is_reached },
    Need { absent: no_xmllint, is_installable: || true },
    Need { absent: no_mdbook, is_installable: || false },
];

/// What a package index gives, a machine without one lacks: `tests/oracle/setup` leaves a file where it could not install.
fn index_is_reached() -> bool {
    let folder = pandas();
    let folder = folder.ancestors().nth(2).map(|folder| folder.join("not-installed"));
    !folder.is_some_and(|file| file.exists())
}

/// Why each need is absent, asked for once.
pub(crate) struct AbsentNeeds([Option<String>; NEEDS.len()]);

pub(crate) fn seen() -> AbsentNeeds {
    AbsentNeeds(NEEDS.map(|need| (need.absent)()))
}

impl AbsentNeeds {
    pub(crate) fn trials(&self, room: &str, facts: &[Fact], needs: &[usize]) -> Vec<Trial> {
        let absent: Vec<usize> = needs.iter().copied().filter(|need| self.0[*need].is_some()).collect();
        let why: Vec<&str> = absent.iter().filter_map(|need| self.0[*need].as_deref()).collect();
        let must_run = std::env::var_os("HARNESS_TESTS_ALL").is_some()
            && absent.iter().all(|need| (NEEDS[*need].is_installable)());
        let why = (!why.is_empty()).then(|| why.join("; "));
        let is_ignored = why.is_some() && !must_run;
        let trials = fact::trials(room, facts, why.as_deref()).into_iter();
        trials.map(|trial| trial.with_ignored_flag(is_ignored)).collect()
    }
}

/// What is absent, below the results: the reasons stand in the lines of the tests, far above.
pub(crate) fn print(arguments: &Arguments) {
    if !arguments.list {
        seen().0.iter().flatten().for_each(|why| println!("tests left out: {why}"));
    }
}

fn answers(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn no_corpus() -> Option<String> {
    corpus::place().is_none().then(|| format!("no collected data: set {}", corpus::VARIABLE))
}

fn no_gawk() -> Option<String> {
    (!answers("gawk", &["BEGIN {}"])).then(|| "no gawk: tests/setup installs it".to_owned())
}

fn no_xmllint() -> Option<String> {
    (!answers("xmllint", &["--version"])).then(|| "no xmllint: tests/setup installs it".to_owned())
}

fn no_mdbook() -> Option<String> {
    (!answers("mdbook", &["--version"])).then(|| "no mdbook: cargo install mdbook".to_owned())
}

fn no_python() -> Option<String> {
    (!answers("python3", &["--version"])).then(|| "no python3: tests/setup installs it".to_owned())
}

fn no_own_python() -> Option<String> {
    (!answers("/usr/bin/python3", &["--version"]))
        .then(|| "no /usr/bin/python3: apt-get install python3".to_owned())
}

/// The Python of the second implementation.
pub(crate) fn pandas() -> PathBuf {
    let own = || crate::project::root().join("target/oracle-venv");
    std::env::var_os("ORACLE_VENV").map_or_else(own, PathBuf::from).join("bin/python")
}

fn no_pandas() -> Option<String> {
    let python = pandas().display().to_string();
    (!answers(&python, &["-c", "import numpy, pandas, pyarrow"]))
        .then(|| "no Python with numpy, pandas and pyarrow: tests/oracle/setup makes one".to_owned())
}

fn no_prometheus() -> Option<String> {
    no_module("prometheus_client")
}

fn no_json_schema() -> Option<String> {
    no_module("jsonschema")
}

/// In the same Python.
fn no_module(name: &str) -> Option<String> {
    let python = pandas().display().to_string();
    (!answers(&python, &["-c", &format!("import {name}")]))
        .then(|| format!("no Python with {name}: tests/oracle/setup makes one"))
}

/// `HARNESS_PYTHON_WITH_TORCH` names it; one that is named and has no torch makes its tests fail.
pub(crate) fn python_with_torch() -> String {
    std::env::var("HARNESS_PYTHON_WITH_TORCH").unwrap_or_else(|_| "python3".to_owned())
}

fn no_torch() -> Option<String> {
    let is_named = std::env::var_os("HARNESS_PYTHON_WITH_TORCH").is_some();
    (!is_named && !answers(&python_with_torch(), &["-c", "import torch, numpy"]))
        .then(|| "no python3 with PyTorch and numpy: set HARNESS_PYTHON_WITH_TORCH".to_owned())
}
