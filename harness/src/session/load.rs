//! Finds and reads the files that a run is asked to use, and digests them for the plan.

use crate::library::{Entry, Library, Origin};
use crate::own_recipes;
use crate::topology;
use crate::warn::{warn, warn_once};
use base::digest::sha256;
use base::suggest;
use base::text::{count, show};
use config::baseline::{Baselines, lint};
use config::inventory::instance::why_without_profile;
use config::inventory::{Instances, Inventory, Kind, Stack};
use config::suite::{self, Suite};
use config::toml_reader::{file, renamed};
use model::artefact::Source;
use recipes::catalogue::Catalogue;
use std::path::{Path, PathBuf};
use store::Home;

/// So many bounds that almost any number meets are reported one by one.
const MOST_WIDE: usize = 3;

/// The files of a run.
pub(crate) struct Loaded {
    pub suites: Vec<Suite>,
    pub inventory: Inventory,
    pub baselines: Option<Baselines>,
    pub sources: Vec<Source>,
}

/// The files without a suite, with the recipes of the project.
pub(crate) fn without_suite(home: &Home, inventory: &str) -> Result<Loaded, Vec<String>> {
    let catalogue = own_recipes::load(Some(&Library::for_project(home.path())), None)
        .map_err(|diagnostics| diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    load(home, &[], inventory, None, &catalogue)
}

/// `from` is the folder of baselines, where it is not the project's own.
pub(crate) fn load(
    home: &Home,
    suites: &[String],
    inventory: &str,
    from: Option<&Path>,
    catalogue: &Catalogue,
) -> Result<Loaded, Vec<String>> {
    load_with(home, suites, inventory, from, catalogue, &Stack::default())
}

/// The same, with a software stack in place of the inventory's own.
pub(crate) fn load_with(
    home: &Home,
    suites: &[String],
    inventory: &str,
    from: Option<&Path>,
    catalogue: &Catalogue,
    stack: &Stack,
) -> Result<Loaded, Vec<String>> {
    let mut diagnostics = Vec::new();
    let mut sources = Vec::new();
    let mut read_suites: Vec<Suite> = Vec::new();
    for name in suites {
        let read = read(home, "suites", name, &mut sources).and_then(|(file, text)| {
            warn(&renamed::warnings(&text, &file));
            let base = suite::base_of(&text).and_then(|base| read(home, "suites", &base, &mut sources).ok());
            base.iter().for_each(|(file, text)| warn(&renamed::warnings(text, file)));
            let find = |_: &str| base.clone();
            Suite::read_with(&text, &file, &find, catalogue).map_err(|diagnostics| lines(&diagnostics))
        });
        match read {
            Ok(suite) if read_suites.iter().any(|other| other.name == suite.name) => {
                diagnostics.push(format!("--suite `{}` is given twice", suite.name));
            }
            Ok(suite) => read_suites.push(suite),
            Err(more) => diagnostics.extend(more),
        }
    }
    let library = Library::for_project(home.path());
    let instances = library.instances().map_err(|diagnostics| lines(&diagnostics))?;
    let inventory = read(home, "inventory", inventory, &mut sources).and_then(|(file, text)| {
        warn(&renamed::warnings(&text, &file));
        let text = stack.overlay(&text).map_err(|why| vec![format!("{file}: {why}")])?;
        let mut read =
            Inventory::read(&text, &file, &instances).map_err(|diagnostics| lines(&diagnostics))?;
        let (source, warnings) =
            topology::order(home.path(), &mut read, &text).map_err(|error| vec![error.to_string()])?;
        warn(&warnings);
        Ok((read, source))
    });
    let (inventory, topology) = match inventory {
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
        if let Some(entry) = library.find("inventory/instances", profile)
            && let Ok(text) = entry.read()
        {
            sources.push(source(&entry.file, &text));
        }
    }
    sources.extend(topology);
    let mut read_baselines = None;
    match baselines(home, from, name, catalogue) {
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
    let library = Library::for_project(home.path());
    let fitting: Vec<String> = names(home, "inventory")
        .into_iter()
        .filter(|name| {
            let other = read(home, "inventory", name, &mut Vec::new())
                .and_then(|(file, text)| Inventory::read(&text, &file, instances).map_err(|it| lines(&it)));
            // The hosts of a real one that ships are made up.
            let is_usable = |other: &Inventory| other.is_simulated() || !library.ships("inventory", name);
            other.is_ok_and(|other| other.instance.fits(&suite.instance) && is_usable(&other))
        })
        .map(|name| format!("`--inventory {name}`"))
        .collect();
    let hint = match fitting.as_slice() {
        [] if !instances.names().any(|name| name == suite.instance) => {
            let known: Vec<&str> = instances.names().filter(|name| !name.starts_with("sim-")).collect();
            let near = suggest::nearest_name(&suite.instance, known.iter().copied());
            match (why_without_profile(&suite.instance), near) {
                (Some(why), _) => format!("unknown instance; {why}"),
                (None, Some(near)) => format!("unknown instance; did you mean `{near}`?"),
                (None, None) => format!("unknown instance; known: `{}`", known.join("`, `")),
            }
        }
        [] => format!("no inventory of yours has {} nodes; write one: harness init", suite.instance),
        some => format!("try {}", some.join(" or ")),
    };
    Some(format!(
        "suite `{}` is for `{}`, inventory `{}` has `{}`: {hint}",
        suite.name, suite.instance, inventory.name, inventory.instance.name
    ))
}

/// The baselines of an instance. No file anywhere, no baselines: the assertions that need one will say so. A file that
/// cannot be read is an error, and so is a folder that was named and has none.
pub(crate) fn baselines(
    home: &Home,
    from: Option<&Path>,
    instance: &str,
    catalogue: &Catalogue,
) -> Result<Option<(Baselines, Source)>, Vec<String>> {
    let (shown, text) = match from {
        Some(folder) => {
            let path = folder.join(format!("{instance}.toml"));
            if !path.exists() {
                return Err(vec![format!("--baselines: no file `{}`", path.display())]);
            }
            (home.display_path(&path), file::read(&path))
        }
        None => match Library::for_project(home.path()).find("baselines", instance) {
            Some(entry) => (entry.file.clone(), entry.read()),
            None => return Ok(None),
        },
    };
    let text = text.map_err(|error| vec![format!("{shown}: {error}")])?;
    let read = Baselines::read(&text, &shown, catalogue).map_err(|diagnostics| lines(&diagnostics))?;
    let wide = lint::too_wide(&read);
    warn(wide.get(..MOST_WIDE).unwrap_or(&wide));
    if let Some(more @ 1..) = wide.len().checked_sub(MOST_WIDE) {
        warn_once(format!(
            "{}: almost any number meets {}; `harness check` lists them",
            show(&shown),
            count(more, "more bound")
        ));
    }
    Ok(Some((read, source(&shown, &text))))
}

/// The names of what a folder of the library offers, sorted.
pub(crate) fn names(home: &Home, folder: &str) -> Vec<String> {
    Library::for_project(home.path()).names(folder)
}

/// The inventories of real clusters that somebody wrote for this project: not those that ship with the program.
pub(crate) fn own_real_inventories(home: &Home) -> Vec<String> {
    let library = Library::for_project(home.path());
    let Ok(instances) = library.instances() else { return Vec::new() };
    let is_real = |entry: &Entry| {
        let read = entry.read().ok().and_then(|text| Inventory::read(&text, &entry.file, &instances).ok());
        read.is_some_and(|inventory| inventory.kind == Kind::Real)
    };
    let own =
        library.entries("inventory").into_iter().filter(|entry| !library.ships("inventory", entry.name()));
    own.filter(is_real).map(|entry| entry.name().to_owned()).collect()
}

/// The file of a stored plan as an argument that finds it again in the place that it was taken from, if it is there.
pub(crate) fn argument(home: &Home, file: &str) -> Option<String> {
    let entry = Library::for_project(home.path()).named(file)?;
    Some(match entry.origin {
        Origin::Project => home.path().join(file).display().to_string(),
        _ => entry.file,
    })
}

/// A name of the folder, a path to a file anywhere, or a file of the library in its own place.
fn read(
    home: &Home,
    folder: &str,
    name: &str,
    sources: &mut Vec<Source>,
) -> Result<(String, String), Vec<String>> {
    let library = Library::for_project(home.path());
    let is_path = name.contains('/') || name.ends_with(".toml");
    let entry = match is_path {
        false => library.find(folder, name),
        true => library.named(name).filter(|entry| entry.origin != Origin::Project),
    };
    let (file, text) = match entry {
        Some(entry) => (entry.file.clone(), entry.read()),
        None if is_path && Path::new(name).is_file() => {
            let path = PathBuf::from(name);
            let path = path.canonicalize().unwrap_or(path);
            (home.display_path(&path), file::read(&path))
        }
        None => return Err(vec![unknown(&library, folder, name)]),
    };
    match text {
        Ok(text) => {
            sources.push(source(&file, &text));
            Ok((file, text))
        }
        Err(error) => Err(vec![format!("{file}: {error}")]),
    }
}

/// The names are too many for one line: the nearest is given, and the command that lists them.
fn unknown(library: &Library, folder: &str, name: &str) -> String {
    let kind = if folder == "suites" { "suite" } else { folder };
    let known = library.names(folder);
    let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str()).unwrap_or(name);
    let near = suggest::nearest_name(stem, known.iter().map(String::as_str));
    let hint = match near {
        Some(near) => format!("did you mean `{near}`? `harness list` names all"),
        None if folder == "inventory" => "`harness list` names all, `harness init` writes one".to_owned(),
        None => "`harness list` names all".to_owned(),
    };
    format!("no {kind} named `{name}`; {hint}")
}

fn source(file: &str, text: &str) -> Source {
    Source { file: file.to_owned(), sha256: sha256(text.as_bytes()) }
}

fn lines(diagnostics: &config::diagnostic::Diagnostics) -> Vec<String> {
    diagnostics.0.iter().map(ToString::to_string).collect()
}
