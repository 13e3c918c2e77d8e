//! `harness check`: reads every TOML file that people write, offline, and reports all errors, impossible limits
//! and environments without effect.
//! Files of other kinds, such as scenarios, bring their own linters.

use crate::library::Library;
use crate::lint;
use crate::own_recipes;
use crate::topology;
use base::suggest::nearest;
use config::baseline::{self, Baselines, PENDING};
use config::diagnostic::Diagnostic;
use config::envlint::{self, Linted, Versions};
use config::hardware_limits;
use config::inventory::instance::why_without_profile;
use config::inventory::{Instance, Instances, Inventory};
use config::suite::Suite;
use config::toml_reader::{file, folder, line_of, renamed};
use recipes::catalogue::Catalogue;
use std::collections::BTreeSet;
use std::path::Path;
use verdict::isolate;

/// What `harness check` found.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CheckReport {
    /// The files that were looked at, relative to the project's folder.
    pub files: Vec<String>,
    /// Errors; the exit code is 2 if there is any.
    pub diagnostics: Vec<Diagnostic>,
    /// Allowed, but probably not intended.
    pub warnings: Vec<Diagnostic>,
    /// Superfluous or unknown settings.
    pub notes: Vec<Diagnostic>,
}

/// A folder of files of a further kind, and what finds the errors in one of them.
pub(crate) struct Linter {
    /// Relative to the project's folder.
    pub folder: &'static str,
    /// Gives the errors of one file.
    pub lint: fn(text: &str, file: &str) -> Vec<Diagnostic>,
}

/// Checks the files of the project in `home`.
pub(crate) fn check(home: &Path) -> CheckReport {
    check_with(home, &[])
}

/// As `check`, and files of further kinds.
pub(crate) fn check_with(home: &Path, linters: &[Linter]) -> CheckReport {
    let mut report = CheckReport::default();
    let profiles = report.take(home, "inventory/instances");
    // Those of the project are checked; files of it may name the others.
    let library = Library::for_project(home);
    let (instances, diagnostics) = Instances::read(&library.texts("inventory/instances").0);
    report.diagnostics.extend(diagnostics);
    for instance in instances.iter() {
        let file = format!("inventory/instances/{}.toml", instance.name);
        if profiles.iter().any(|(known, _)| *known == file) {
            report.diagnostics.extend(hardware_limits::lint_instance(instance, &file));
        }
    }
    let mut in_use: Vec<(String, Instance)> = Vec::new();
    for (file, text) in report.take(home, "inventory") {
        match Inventory::read(&text, &file, &instances) {
            Ok(mut inventory) => {
                match topology::order(home, &mut inventory, &text) {
                    Ok((_, warnings)) => report.warnings.extend(warnings),
                    Err(error) => report.diagnostics.push(error),
                }
                in_use.push((file.clone(), inventory.instance.clone()));
                if instances.get(&inventory.instance.name).is_none() {
                    report.diagnostics.extend(hardware_limits::lint_instance(&inventory.instance, &file));
                }
                let versions = Versions::from_instance(&inventory.instance);
                report.add(envlint::lint_inventory(&text, &file, &versions));
                report.warnings.extend(envlint::lint_unset(&inventory, &text));
                report.warnings.extend(without_device_names(&inventory, &text));
            }
            Err(diagnostics) => report.diagnostics.extend(diagnostics.0),
        }
    }
    // Suites name them: they are known before suites are read.
    report.take(home, own_recipes::FOLDER);
    let mut catalogue = Catalogue::built_in();
    let (_, diagnostics) = own_recipes::load_quietly(&mut catalogue, Some(&library), None);
    report.diagnostics.extend(diagnostics);
    let mut asked: BTreeSet<String> = BTreeSet::new();
    let suites = report.take(home, "suites");
    let find = |name: &str| {
        let entry = library.find("suites", name)?;
        Some((entry.file.clone(), entry.read().ok()?))
    };
    for (file, text) in suites.clone() {
        match Suite::read_with(&text, &file, &find, &catalogue) {
            Ok(suite) => {
                let asks = suite.cases.iter().flat_map(|case| &case.assertions).any(|one| one.bound.baseline);
                asked.extend(asks.then(|| suite.instance.clone()));
                let instance = instances.get(&suite.instance);
                match instance {
                    Some(instance) => {
                        report.diagnostics.extend(hardware_limits::lint(&suite, instance, None))
                    }
                    None => {
                        report.diagnostics.extend(without_profile(&suite.instance, &text, &file, &instances));
                    }
                }
                let windows = config::suite::window_lint::lint(&suite);
                report.diagnostics.extend(windows.diagnostics);
                report.diagnostics.extend(isolate::round::lint(&suite));
                report.warnings.extend(windows.warnings);
                report.warnings.extend(config::suite::rank_lint::lint(&suite));
                let versions = instance.map(Versions::from_instance).unwrap_or_default();
                report.add(envlint::lint_suite(&text, &file, &versions));
                let scripts = scripts(home, &suite);
                report.files.extend(scripts.iter().map(|script| script.name.clone()));
                report.add(lint::scripts(&scripts));
            }
            Err(diagnostics) => report.diagnostics.extend(diagnostics.0),
        }
    }
    let baselines = report.take(home, "baselines");
    for (file, instance) in in_use {
        let name = &instance.name;
        let has_none = library.find("baselines", name).is_none();
        if has_none && asked.iter().any(|suite| instance.fits(suite)) {
            let message = format!("suites compare `{name}` with baselines, but it has none");
            let diagnostic = Diagnostic::in_file(&file, message);
            let try_this = format!("run `harness baseline propose`, or write `baselines/{name}.toml`");
            report.warnings.push(diagnostic.suggest(try_this));
        }
    }
    for (file, text) in baselines {
        match Baselines::read(&text, &file, &catalogue) {
            Ok(baselines) => report.diagnostics.extend(check_baselines(&baselines, &text, &instances)),
            Err(diagnostics) => report.diagnostics.extend(diagnostics.0),
        }
    }
    for linter in linters {
        for (file, text) in report.take(home, linter.folder) {
            report.diagnostics.extend((linter.lint)(&text, &file));
        }
    }
    for diagnostics in [&mut report.diagnostics, &mut report.warnings, &mut report.notes] {
        diagnostics.sort();
        diagnostics.dedup();
    }
    report
}

/// A real inventory whose profile has names that stand in for those of the devices.
fn without_device_names(inventory: &Inventory, text: &str) -> Option<Diagnostic> {
    let message =
        format!("the device names of `{}` stand in for those of its nodes", inventory.instance.name);
    let diagnostic = Diagnostic::at(&inventory.file, line_of(text, "instance"), 1, message);
    let to_write = inventory.device_names_to_write(None);
    inventory.lacks_device_names().then(|| {
        diagnostic.suggest(format!(
            "{to_write}; `harness inventory probe` reports them, and a run reads them first"
        ))
    })
}

/// The scripts of the project that a suite's workloads start, each once.
fn scripts(home: &Path, suite: &Suite) -> Vec<lint::Source> {
    let mut names: Vec<&String> =
        suite.cases.iter().flat_map(|case| case.workload.written_arguments()).collect();
    names.retain(|name| {
        [".sh", ".sbatch", ".slurm"].iter().any(|end| name.ends_with(end)) && !name.starts_with('/')
    });
    names.sort();
    names.dedup();
    let read =
        |name: &String| Some(lint::Source { name: name.clone(), text: file::read(&home.join(name)).ok()? });
    names.into_iter().filter_map(read).collect()
}

impl CheckReport {
    fn add(&mut self, linted: Linted) {
        self.diagnostics.extend(linted.diagnostics);
        self.warnings.extend(linted.warnings);
        self.notes.extend(linted.notes);
    }

    fn take(&mut self, home: &Path, folder: &str) -> Vec<(String, String)> {
        let (texts, diagnostics) = folder::texts(home, folder);
        self.files.extend(texts.iter().map(|(file, _)| file.clone()));
        self.diagnostics.extend(diagnostics);
        self.warnings.extend(texts.iter().flat_map(|(file, text)| renamed::warnings(text, file)));
        texts
    }
}

fn without_profile(name: &str, text: &str, file: &str, instances: &Instances) -> Option<Diagnostic> {
    if instances.is_broken(name) {
        return None;
    }
    let message = format!("no instance `{}` in `inventory/instances`", name.escape_debug());
    let diagnostic = Diagnostic::at(file, line_of(text, "instance"), 1, message);
    if let Some(why) = why_without_profile(name) {
        return Some(diagnostic.suggest(why));
    }
    // By its size, as EC2 calls it.
    let short = name.split_once('.').map(|(family, _)| family);
    let known = short.filter(|short| instances.names().any(|one| one == *short));
    Some(match known.or_else(|| nearest(name, instances.names())) {
        Some(near) => diagnostic.suggest(format!("did you mean `{near}`?")),
        None => diagnostic,
    })
}

fn check_baselines(baselines: &Baselines, text: &str, instances: &Instances) -> Vec<Diagnostic> {
    let (file, name) = (&baselines.file, &baselines.instance);
    let mut diagnostics = Vec::new();
    diagnostics.extend(baseline::lint::lint(baselines));
    if !file.ends_with(&format!("/{name}.toml")) && !file.ends_with(&format!("/{name}{PENDING}")) {
        let message = format!("baselines are looked up by file name, which must be the instance: `{name}`");
        diagnostics.push(Diagnostic::at(file, line_of(text, "instance"), 1, message));
    }
    match instances.get(name) {
        Some(instance) => diagnostics.extend(hardware_limits::lint_baselines(baselines, instance)),
        None => diagnostics.extend(without_profile(name, text, file, instances)),
    }
    diagnostics
}

#[cfg(test)]
mod file_tests {
    use super::*;
    use std::time::Duration;

    /// The diagnostics of a project with one file; `None` where reading it does not end.
    fn diagnostics_of(put: impl Fn(&Path)) -> Option<Vec<String>> {
        let folder = tempfile::tempdir().expect("a folder");
        let suites = folder.path().join("suites");
        std::fs::create_dir(&suites).expect("made");
        put(&suites);
        let home = folder.path().to_owned();
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let (_, diagnostics) = folder::texts(&home, "suites");
            let _ = sender.send(diagnostics.iter().map(|diagnostic| diagnostic.message.clone()).collect());
        });
        receiver.recv_timeout(Duration::from_secs(5)).ok()
    }

    #[test]
    fn a_pipe_a_device_and_a_file_of_5_mib_are_refused_and_not_read() {
        let pipe = |suites: &Path| {
            let mode = nix::sys::stat::Mode::S_IRUSR;
            nix::unistd::mkfifo(&suites.join("x.toml"), mode).expect("made");
        };
        let device = |suites: &Path| {
            std::os::unix::fs::symlink("/dev/zero", suites.join("x.toml")).expect("linked");
        };
        let large =
            |suites: &Path| std::fs::write(suites.join("x.toml"), vec![b'#'; 5 << 20]).expect("written");
        assert_eq!(diagnostics_of(pipe), Some(vec!["cannot be read: not a regular file".to_owned()]));
        assert_eq!(
            diagnostics_of(large),
            Some(vec!["cannot be read: larger than 4 MiB: 5242880 bytes".to_owned()])
        );
        assert_eq!(diagnostics_of(device), Some(vec!["cannot be read: not a regular file".to_owned()]));
        let plain = |suites: &Path| std::fs::write(suites.join("x.toml"), "a = 1").expect("written");
        assert_eq!(diagnostics_of(plain), Some(Vec::new()));
    }

    #[test]
    fn a_suites_file_name_is_checked_like_the_name_of_a_case() {
        for name in ["x\ntouch injected #", "a b", "-rf", "$(id)"] {
            let why = Suite::read_with("", &format!("suites/{name}.toml"), &|_| None, &Catalogue::built_in())
                .expect_err(name)
                .to_string();
            assert!(why.contains("a suite name m"), "{name:?}: {why}");
        }
    }

    #[test]
    fn shipped_files_have_no_diagnostics() {
        let report = check(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")));
        assert!(report.files.iter().any(|file| file == "baselines/p5.toml"), "{:?}", report.files);
        let found: Vec<String> = report.diagnostics.iter().map(ToString::to_string).collect();
        assert_eq!(found, [] as [&str; 0]);
    }
}
