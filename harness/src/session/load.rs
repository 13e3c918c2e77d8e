//! Finds and reads the files that a run is asked to use, and digests them for the plan.

use crate::warn::warn;
use base::digest::sha256;
use base::suggest;
use config::baseline::Baselines;
use config::inventory::{Instances, Inventory};
use config::suite::{self, Suite};
use config::toml_reader::{file, renamed};
use model::artefact::Source;
use std::fs;
use std::path::{Path, PathBuf};
use store::Home;

/// The files of a run.
pub(crate) struct Loaded {
    pub suites: Vec<Suite>,
    pub inventory: Inventory,
    pub baselines: Option<Baselines>,
    pub sources: Vec<Source>,
}

/// `from` is the folder of baselines, where it is not the project's own.
pub(crate) fn load(
    home: &Home,
    suites: &[String],
    inventory: &str,
    from: Option<&Path>,
) -> Result<Loaded, Vec<String>> {
    let mut diagnostics = Vec::new();
    let mut sources = Vec::new();
    let mut read_suites: Vec<Suite> = Vec::new();
    for name in suites {
        let read = read(home, "suites", name, &mut sources).and_then(|(path, text)| {
            warn(&renamed::warnings(&text, &home.display_path(&path)));
            let base = suite::base_of(&text).and_then(|base| read(home, "suites", &base, &mut sources).ok());
            let base = base.map(|(path, text)| (home.display_path(&path), text));
            base.iter().for_each(|(file, text)| warn(&renamed::warnings(text, file)));
            let find = |_: &str| base.clone();
            Suite::read_with(&text, &home.display_path(&path), &find)
                .map_err(|diagnostics| lines(&diagnostics))
        });
        match read {
            Ok(suite) if read_suites.iter().any(|other| other.name == suite.name) => {
                diagnostics.push(format!("--suite `{}` is given twice", suite.name));
            }
            Ok(suite) => read_suites.push(suite),
            Err(more) => diagnostics.extend(more),
        }
    }
    let instances = Instances::load(home.path()).map_err(|diagnostics| lines(&diagnostics))?;
    let inventory = read(home, "inventory", inventory, &mut sources).and_then(|(path, text)| {
        warn(&renamed::warnings(&text, &home.display_path(&path)));
        Inventory::read(&text, &home.display_path(&path), &instances)
            .map_err(|diagnostics| lines(&diagnostics))
    });
    let inventory = match inventory {
        Ok(inventory) => inventory,
        Err(more) => {
            diagnostics.extend(more);
            return Err(diagnostics);
        }
    };
    diagnostics.extend(read_suites.iter().filter_map(|suite| unfit(home, suite, &inventory, &instances)));
    let name = &inventory.instance.name;
    // The profile, and the one that it is like: what stands in either decides what is run.
    for profile in [Some(name), inventory.instance.like.as_ref()].into_iter().flatten() {
        let path = instance_path(home, profile);
        if let Ok(text) = file::read(&path) {
            sources.push(source(home, &path, &text));
        }
    }
    let mut read_baselines = None;
    match baselines(home, from, name) {
        Ok(None) => {}
        Ok(Some((read, source))) => {
            sources.push(source);
            read_baselines = Some(read);
        }
        Err(more) => diagnostics.extend(more),
    }
    if diagnostics.is_empty() {
        Ok(Loaded { suites: read_suites, inventory, baselines: read_baselines, sources })
    } else {
        Err(diagnostics)
    }
}

/// That a suite is for other machines than the inventory has, and which inventories have those.
fn unfit(home: &Home, suite: &Suite, inventory: &Inventory, instances: &Instances) -> Option<String> {
    if inventory.instance.fits(&suite.instance) {
        return None;
    }
    let fitting: Vec<String> = names(home, "inventory")
        .into_iter()
        .filter(|name| {
            let other = read(home, "inventory", name, &mut Vec::new()).and_then(|(path, text)| {
                Inventory::read(&text, &home.display_path(&path), instances).map_err(|it| lines(&it))
            });
            other.is_ok_and(|other| other.instance.fits(&suite.instance))
        })
        .map(|name| format!("`--inventory {name}`"))
        .collect();
    let hint = match fitting.as_slice() {
        [] => "no inventory of this project has such nodes".to_owned(),
        some => format!("try {}", some.join(" or ")),
    };
    Some(format!(
        "suite `{}` is for `{}`, inventory `{}` has `{}`: {hint}",
        suite.name, suite.instance, inventory.name, inventory.instance.name
    ))
}

/// The baselines of an instance. No file in the project, no baselines: the assertions that need one will say so. A file
/// that cannot be read is an error, and so is a folder that was named and has none.
pub(crate) fn baselines(
    home: &Home,
    from: Option<&Path>,
    instance: &str,
) -> Result<Option<(Baselines, Source)>, Vec<String>> {
    let folder = from.map_or_else(|| home.path().join("baselines"), Path::to_owned);
    let path = folder.join(format!("{instance}.toml"));
    if !path.exists() {
        return match from {
            Some(_) => Err(vec![format!("--baselines: no file `{}`", path.display())]),
            None => Ok(None),
        };
    }
    let shown = home.display_path(&path);
    let text = file::read(&path).map_err(|error| vec![format!("{shown}: {error}")])?;
    let read = Baselines::read(&text, &shown).map_err(|diagnostics| lines(&diagnostics))?;
    Ok(Some((read, source(home, &path, &text))))
}

/// The names of what a folder offers, sorted.
pub(crate) fn names(home: &Home, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(home.path().join(folder)).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    names
}

fn instance_path(home: &Home, name: &str) -> PathBuf {
    home.path().join("inventory").join("instances").join(format!("{name}.toml"))
}

/// A name of the folder, or a path to a file anywhere.
fn read(
    home: &Home,
    folder: &str,
    name: &str,
    sources: &mut Vec<Source>,
) -> Result<(PathBuf, String), Vec<String>> {
    let is_path = name.contains('/') || name.ends_with(".toml");
    let path =
        if is_path { PathBuf::from(name) } else { home.path().join(folder).join(format!("{name}.toml")) };
    if !path.is_file() {
        let known = names(home, folder);
        let near = suggest::nearest(name, known.iter().map(String::as_str));
        let hint = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
        let all = known.join("`, `");
        return Err(vec![format!("no `{name}` in {folder}; {hint}known: `{all}`")]);
    }
    let path = path.canonicalize().unwrap_or(path);
    match file::read(&path) {
        Ok(text) => {
            sources.push(source(home, &path, &text));
            Ok((path, text))
        }
        Err(error) => Err(vec![format!("{}: {error}", home.display_path(&path))]),
    }
}

fn source(home: &Home, path: &Path, text: &str) -> Source {
    Source { file: home.display_path(path), sha256: sha256(text.as_bytes()) }
}

fn lines(diagnostics: &config::diagnostic::Diagnostics) -> Vec<String> {
    diagnostics.0.iter().map(ToString::to_string).collect()
}
