//! JSON Schemas and readers agree on the files of all scenarios and pages: the schemas accept what is read, and refuse what
//! is wrong in form. Files that are wrong in meaning only are counted by their first error in `tests/schemas.txt`.

use crate::page::{self, Block};
use crate::project::root;
use crate::scenario::Scenario;
use crate::variables::Variables;
use crate::{docs, steps};
use config::baseline::Baselines;
use config::diagnostic::Diagnostics;
use config::inventory::{Instances, Inventory};
use config::schema::KINDS;
use config::suite::Suite;
use fixture::schema::{Agreement, SchemaCheck};
use libtest_mimic::{Failed, Trial};
use recipes::catalogue::Catalogue;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

const COUNTS: &str = "tests/schemas.txt";

/// Files of one project, by their path.
type Files = BTreeMap<String, String>;

pub(crate) fn trial(scenarios: Vec<PathBuf>) -> Trial {
    Trial::test("schemas::readers_and_schemas_agree_on_every_file", move || agree(&scenarios))
}

fn agree(scenarios: &[PathBuf]) -> Result<(), Failed> {
    let shipped = shipped();
    let mut counts = Counts::default();
    for path in scenarios {
        let scenario = Scenario::read(fs::read_to_string(path)?)?;
        for row in steps::rows(&scenario) {
            let variables = steps::variables(&scenario, row);
            let states =
                states(&scenario, &variables, if scenario.bare { Files::new() } else { shipped.clone() });
            states.iter().for_each(|files| counts.look(files));
        }
    }
    for path in docs::pages() {
        let mut files = shipped.clone();
        for block in page::read(&fs::read_to_string(path)?)? {
            if let Block::File { name, text, .. } = block {
                files.insert(name, text);
            }
        }
        counts.look(&files);
    }
    if !counts.differ.is_empty() {
        return Err(Failed::from(counts.differ.into_iter().collect::<Vec<_>>().join("\n")));
    }
    let path = root().join(COUNTS);
    let text = counts.text();
    if std::env::var_os("HARNESS_EXPECT").is_some_and(|what| what == "write") {
        fs::write(&path, &text)?;
    }
    match fs::read_to_string(&path).unwrap_or_default() == text {
        true => Ok(()),
        false => Err(Failed::from(format!("{COUNTS}: run `tests/expected schemas`\n{text}"))),
    }
}

fn shipped() -> Files {
    let mut files = Files::new();
    for folder in ["suites", "inventory", "inventory/instances", "baselines"] {
        for entry in fs::read_dir(root().join(folder)).expect("a folder").flatten() {
            let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if name.ends_with(".toml") {
                files.insert(name, fs::read_to_string(entry.path()).expect("text"));
            }
        }
    }
    files
}

/// The files as they are before each command.
fn states(scenario: &Scenario, variables: &Variables, mut files: Files) -> Vec<Files> {
    let write = |files: &mut Files, written: &BTreeMap<String, String>| {
        files.extend(written.iter().map(|(name, text)| (variables.text(name), variables.text(text))));
    };
    write(&mut files, &scenario.files);
    let mut states = vec![files.clone()];
    for step in &scenario.step {
        write(&mut files, &step.files);
        for (name, changes) in &step.replace {
            let Some(text) = files.get_mut(&variables.text(name)) else { continue };
            for [from, to] in changes {
                *text = text.replace(&variables.text(from), &variables.text(to));
            }
        }
        states.push(files.clone());
    }
    states
}

#[derive(Default)]
struct Counts {
    seen: BTreeSet<(&'static str, String)>,
    sound: usize,
    wrong_in_form: usize,
    /// By the first error, without what it names.
    wrong_in_meaning: BTreeMap<String, usize>,
    differ: BTreeSet<String>,
    checks: BTreeMap<&'static str, SchemaCheck>,
}

impl Counts {
    fn look(&mut self, files: &Files) {
        let all = |folder: &str| -> Vec<(String, String)> {
            let is_in = |name: &str| name.rsplit_once('/').is_some_and(|(of, _)| of == folder);
            let all = files.iter().filter(|(name, _)| is_in(name) && name.ends_with(".toml"));
            all.map(|(name, text)| (name.clone(), text.clone())).collect()
        };
        let profiles = all("inventory/instances");
        let mut fresh = |kind: &'static str, folder: &str| {
            let mut files = all(folder);
            files.retain(|(_, text)| self.seen.insert((kind, text.clone())));
            files
        };
        let (new_profiles, inventories) =
            (fresh("instance", "inventory/instances"), fresh("inventory", "inventory"));
        let (baselines, suites) = (fresh("baselines", "baselines"), fresh("suite", "suites"));
        let catalogue = Catalogue::built_in();
        if !new_profiles.is_empty() || !inventories.is_empty() {
            let (instances, wrong) = Instances::read(&profiles);
            for (name, text) in new_profiles {
                let of_it = wrong.iter().filter(|one| one.file == name);
                self.compare(
                    "instance",
                    &name,
                    &text,
                    &of_it.map(|one| one.message.clone()).collect::<Vec<_>>(),
                );
            }
            for (name, text) in inventories {
                let read = Inventory::read(&text, &name, &instances);
                self.compare("inventory", &name, &text, &messages(read, &name));
            }
        }
        for (name, text) in baselines {
            let read = Baselines::read(&text, &name, &catalogue);
            self.compare("baselines", &name, &text, &messages(read, &name));
        }
        let find = |name: &str| {
            let file = format!("suites/{name}.toml");
            files.get(&file).map(|text| (file.clone(), text.clone()))
        };
        for (name, text) in suites {
            let read = Suite::read_with(&text, &name, &find, &catalogue);
            self.compare("suite", &name, &text, &messages(read, &name));
        }
    }

    fn compare(&mut self, kind: &'static str, name: &str, text: &str, messages: &[String]) {
        let of = KINDS.iter().find(|of| of.name == kind).expect("a kind of file");
        let make = || SchemaCheck::new(&of.schema(&Catalogue::built_in()));
        match self.checks.entry(kind).or_insert_with(make).compare(text, messages) {
            Ok(Agreement::Sound) => self.sound += 1,
            Ok(Agreement::WrongInForm) => self.wrong_in_form += 1,
            Ok(Agreement::WrongInMeaning(message)) => {
                *self.wrong_in_meaning.entry(format!("{kind}: {}", without_names(&message))).or_default() +=
                    1;
            }
            Ok(Agreement::NoToml) => {}
            Err(why) => {
                self.differ.insert(format!("{name}: {why}"));
            }
        }
    }

    fn text(&self) -> String {
        let head = format!(
            "{} files without an error are accepted, {} that are wrong in form are refused.\nWrong in meaning only:\n",
            self.sound, self.wrong_in_form
        );
        let line = |(reason, count): (&String, &usize)| format!("{count:>4} {reason}\n");
        head + &self.wrong_in_meaning.iter().map(line).collect::<String>()
    }
}

/// Those of the file itself: a suite may extend one that has errors.
fn messages<T>(read: Result<T, Diagnostics>, file: &str) -> Vec<String> {
    let all = read.err().into_iter().flat_map(|all| all.0);
    all.filter(|one| one.file == file).map(|one| one.message).collect()
}

/// What stands in backticks is of the file.
fn without_names(message: &str) -> String {
    let parts = message.split('`').enumerate();
    parts.map(|(at, part)| if at % 2 == 0 { part } else { "`..`" }).collect()
}
