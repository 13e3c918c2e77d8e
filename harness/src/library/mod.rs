//! Where suites, inventories, instance profiles, baselines and recipes are found: in the project, in the user's
//! configuration folder, in the folder that `HARNESS_HOME` names, or in the program. The first that has a name wins.

mod built_in;
pub(crate) mod places;

use config::diagnostic::Diagnostic;
use config::inventory::Instances;
use config::toml_reader::{file, folder};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// Where a file was found, in the order in which it is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// The project's folder, or the current one.
    Project,
    /// The user's configuration folder.
    User,
    /// The folder that `HARNESS_HOME` names.
    HarnessHome,
    /// Shipped with the program.
    BuiltIn,
}

impl Origin {
    const ALL: [Origin; 4] = [Origin::Project, Origin::User, Origin::HarnessHome, Origin::BuiltIn];

    /// Before the names of its files, in messages and plans.
    fn prefix(self) -> &'static str {
        match self {
            Origin::Project => "",
            Origin::User => "user:",
            Origin::HarnessHome => "HARNESS_HOME:",
            Origin::BuiltIn => "built-in:",
        }
    }

    /// For a person.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Origin::Project => "project",
            Origin::User => "user",
            Origin::HarnessHome => "HARNESS_HOME",
            Origin::BuiltIn => "built in",
        }
    }
}

/// A file of the library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub origin: Origin,
    /// As messages and plans name it: `suites/nccl-p5.toml` in the project, `built-in:suites/nccl-p5.toml` elsewhere.
    pub file: String,
    content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    File(PathBuf),
    Text(&'static str),
}

impl Entry {
    /// Its file's stem.
    pub(crate) fn name(&self) -> &str {
        let name = self.file.rsplit('/').next().unwrap_or_default();
        name.strip_suffix(".toml").unwrap_or(name)
    }

    /// Where it lies, for a person; nowhere if it is built in.
    pub(crate) fn location(&self) -> String {
        match (&self.content, self.origin) {
            (Content::Text(_), _) => "-".to_owned(),
            (Content::File(_), Origin::Project) => self.file.clone(),
            (Content::File(path), _) => path.display().to_string(),
        }
    }

    /// As a file that a person wrote is read, whoever wrote it.
    pub(crate) fn read(&self) -> io::Result<String> {
        match &self.content {
            Content::File(path) => file::read(path),
            Content::Text(text) => Ok((*text).to_owned()),
        }
    }
}

/// The places in which files are looked for.
#[derive(Debug, Clone)]
pub(crate) struct Library {
    folders: Vec<(Origin, PathBuf)>,
    has_built_in: bool,
}

impl Library {
    /// Of a project's folder.
    pub(crate) fn for_project(project: &Path) -> Library {
        let others = [(Origin::User, places::user()), (Origin::HarnessHome, places::harness_home())];
        let others = others.into_iter().filter_map(|(origin, folder)| Some((origin, folder?)));
        let folders = std::iter::once((Origin::Project, project.to_owned())).chain(others).collect();
        Library { folders, has_built_in: true }
    }

    /// The same without what ships with the program.
    pub(crate) fn without_built_in(project: &Path) -> Library {
        Library { has_built_in: false, ..Library::for_project(project) }
    }

    /// The file `NAME.toml` of a folder such as `suites`.
    pub(crate) fn find(&self, folder: &str, name: &str) -> Option<Entry> {
        let file = format!("{folder}/{name}.toml");
        Origin::ALL.into_iter().find_map(|origin| self.in_place(origin, &file))
    }

    /// The file that a plan or a message names, in its own place: `built-in:suites/nccl-p5.toml`.
    pub(crate) fn named(&self, file: &str) -> Option<Entry> {
        let (origin, file) = Origin::ALL
            .into_iter()
            .rev()
            .find_map(|origin| Some((origin, file.strip_prefix(origin.prefix())?)))?;
        let is_plain = file.split('/').all(|name| !["", ".", ".."].contains(&name));
        if is_plain { self.in_place(origin, file) } else { None }
    }

    fn in_place(&self, origin: Origin, file: &str) -> Option<Entry> {
        let content = match self.folder(origin) {
            None => Content::Text(self.built_in_text(file).filter(|_| origin == Origin::BuiltIn)?),
            Some(folder) => {
                Content::File(Some(folder.join(file)).filter(|path| path.symlink_metadata().is_ok())?)
            }
        };
        Some(Entry { origin, file: format!("{}{file}", origin.prefix()), content })
    }

    fn built_in_text(&self, file: &str) -> Option<&'static str> {
        built_in::text(file).filter(|_| self.has_built_in)
    }

    fn built_in_files(&self, folder: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
        built_in::files(folder).filter(|_| self.has_built_in)
    }

    fn folder(&self, origin: Origin) -> Option<&Path> {
        let found = self.folders.iter().find(|(of, _)| *of == origin);
        found.map(|(_, folder)| folder.as_path())
    }

    /// Every file of a folder, by name; of several with the same name the one that is used.
    pub(crate) fn entries(&self, folder: &str) -> Vec<Entry> {
        let names: BTreeSet<String> = self.names(folder).into_iter().collect();
        names.iter().filter_map(|name| self.find(folder, name)).collect()
    }

    /// The names of what a folder offers, sorted.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let listed = self.folders.iter().flat_map(|(_, place)| {
            std::fs::read_dir(place.join(folder)).into_iter().flatten().flatten().map(|entry| entry.path())
        });
        let built_in = self.built_in_files(folder).map(|(file, _)| PathBuf::from(file));
        let all: BTreeSet<String> = listed
            .chain(built_in)
            .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
            .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
            .collect();
        all.into_iter().collect()
    }

    /// Name and text of every file of a folder, and what could not be read.
    pub(crate) fn texts(&self, folder: &str) -> (Vec<(String, String)>, Vec<Diagnostic>) {
        let (mut texts, mut diagnostics) = (Vec::new(), Vec::new());
        for (origin, place) in &self.folders {
            let (more, wrong) = folder::texts(place, folder);
            let known = names(&texts);
            let new = more.into_iter().filter(|(file, _)| !known.contains(stem(file)));
            texts.extend(new.map(|(file, text)| (format!("{}{file}", origin.prefix()), text)));
            diagnostics.extend(wrong.into_iter().map(|mut one| {
                one.file.insert_str(0, origin.prefix());
                one
            }));
        }
        let known = names(&texts);
        let built_in = self.built_in_files(folder).filter(|(file, _)| !known.contains(stem(file)));
        texts.extend(
            built_in.map(|(file, text)| (format!("{}{file}", Origin::BuiltIn.prefix()), text.to_owned())),
        );
        (texts, diagnostics)
    }

    /// Whether the program ships a file of this name, whichever is used.
    pub(crate) fn ships(&self, folder: &str, name: &str) -> bool {
        self.built_in_text(&format!("{folder}/{name}.toml")).is_some()
    }

    /// How many files of a folder are built in.
    pub(crate) fn count_built_in(folder: &str) -> usize {
        built_in::files(folder).count()
    }

    /// The instance profiles.
    pub(crate) fn instances(&self) -> Result<Instances, config::diagnostic::Diagnostics> {
        let (files, mut diagnostics) = self.texts("inventory/instances");
        let (instances, wrong) = Instances::read(&files);
        diagnostics.extend(wrong);
        if diagnostics.is_empty() { Ok(instances) } else { Err(config::diagnostic::Diagnostics(diagnostics)) }
    }
}

fn names(texts: &[(String, String)]) -> BTreeSet<String> {
    texts.iter().map(|(file, _)| stem(file).to_owned()).collect()
}

fn stem(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or_default();
    name.strip_suffix(".toml").unwrap_or(name)
}
