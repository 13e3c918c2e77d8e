//! Where in an unpacked package the folder of a version lies, and what of it is there: the program, the importer for
//! collections that were cut off, plugins, and the sampler of EFA's counters.

use job::profile::NsysVersion;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A part of nsys that some packages lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// `QdstrmImporter`, which makes reports of interrupted collections.
    Importer,
    /// The folder `plugins`, where it is not empty.
    Plugins,
    /// The plugin's program that samples EFA counters.
    EfaSampler,
}

impl Part {
    /// As messages show it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Part::Importer => "importer",
            Part::Plugins => "plugins",
            Part::EfaSampler => "EFA sampler",
        }
    }

    /// What is lost without it.
    pub(crate) fn loss(self) -> &'static str {
        match self {
            Part::Importer => "interrupted collections cannot be converted to reports",
            Part::Plugins => "only GPUs and processes are sampled",
            Part::EfaSampler => "nsys warns and continues, and reports have no EFA counters",
        }
    }
}

pub(super) struct PackageLayout {
    /// The folder of the version.
    pub root: PathBuf,
    pub version: NsysVersion,
    pub nsys: PathBuf,
    pub parts: Vec<(Part, Option<PathBuf>)>,
    pub plugins: Vec<String>,
}

/// Packages have it some folders deep: `opt/nvidia/nsight-systems/VERSION`.
const DEEPEST: usize = 6;
const SAMPLERS: [&str; 2] = ["nic_sampler", "efa_metrics"];

/// `named`: the version in the name of the package, used where its folders have none.
pub(super) fn find(unpacked: &Path, named: Option<NsysVersion>) -> Result<PackageLayout, String> {
    let mut roots = Vec::new();
    search(unpacked, DEEPEST, &mut roots);
    let root = match roots.as_slice() {
        [] => return Err("it has no nsys in a folder `target-linux-*`".to_owned()),
        [root] => root.clone(),
        [first, second, ..] => {
            let shown = |path: &Path| path.strip_prefix(unpacked).unwrap_or(path).display().to_string();
            return Err(format!("it has more than one nsys, `{}` and `{}`", shown(first), shown(second)));
        }
    };
    let inside = root.strip_prefix(unpacked).unwrap_or(&root).to_string_lossy().into_owned();
    let version =
        NsysVersion::in_path(&inside).or(named).ok_or("neither its folders nor its name have a version")?;
    let target = targets(&root, "target-linux-").into_iter().find(|target| is_program(&target.join("nsys")));
    let target = target.ok_or("it has no nsys in a folder `target-linux-*`")?;
    let importer = targets(&root, "host-linux-")
        .into_iter()
        .map(|host| host.join("QdstrmImporter"))
        .find(|importer| is_program(importer));
    let folder = target.join("plugins");
    let plugins = names(&folder);
    let sampler = SAMPLERS.iter().find_map(|sampler| program_below(&folder, sampler, 3));
    Ok(PackageLayout {
        nsys: target.join("nsys"),
        parts: vec![
            (Part::Importer, importer),
            (Part::Plugins, (!plugins.is_empty()).then_some(folder)),
            (Part::EfaSampler, sampler),
        ],
        plugins,
        root,
        version,
    })
}

fn search(folder: &Path, deep: usize, roots: &mut Vec<PathBuf>) {
    if targets(folder, "target-linux-").iter().any(|target| is_program(&target.join("nsys"))) {
        roots.push(folder.to_owned());
        return;
    }
    if deep == 0 {
        return;
    }
    for name in names(folder) {
        let inner = folder.join(name);
        // Links lead to what is looked at anyway.
        if inner.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            search(&inner, deep - 1, roots);
        }
    }
}

fn targets(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    names(folder).into_iter().filter(|name| name.starts_with(prefix)).map(|name| folder.join(name)).collect()
}

fn program_below(folder: &Path, name: &str, deep: usize) -> Option<PathBuf> {
    let here = folder.join(name);
    if is_program(&here) {
        return Some(here);
    }
    let deeper = deep.checked_sub(1)?;
    names(folder)
        .into_iter()
        .map(|inner| folder.join(inner))
        .filter(|inner| inner.is_dir())
        .find_map(|inner| program_below(&inner, name, deeper))
}

/// Sorted; none where the folder cannot be read.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
