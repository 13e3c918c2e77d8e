//! Puts an nsys that a user has as a package onto a folder that all nodes see. Nothing is downloaded, no program of the
//! package is run, and the final name appears only when all is unpacked.

mod ar;
mod cpio;
mod layout;
mod package;
#[cfg(test)]
mod tests;
mod unpack;

pub(crate) use layout::Part;

use job::profile::NsysVersion;
use std::fs;
use std::path::{Path, PathBuf};

/// The result of provisioning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Provisioned {
    /// From the package's folders, else from its name.
    pub version: NsysVersion,
    /// The folder of this version.
    pub folder: PathBuf,
    /// The program to name in an inventory as `paths.nsys`.
    pub nsys: PathBuf,
    /// The parts that make profiles useful, each where it lies or absent.
    pub parts: Vec<(Part, Option<PathBuf>)>,
    /// Names of the plugins, such as `efa_metrics`.
    pub plugins: Vec<String>,
}

impl Provisioned {
    /// Parts that the package lacks.
    pub(crate) fn missing(&self) -> impl Iterator<Item = Part> {
        self.parts.iter().filter(|(_, path)| path.is_none()).map(|(part, _)| *part)
    }
}

/// The parent folder of all versions, as the vendor names it: the wrapper of ranks looks there too.
const VENDOR: &str = "nsight-systems";
/// Hidden, so that it is not taken for a version.
const UNFINISHED: &str = ".part-";

/// Unpacks `package` below `to`; on failure, nothing there is changed.
pub(crate) fn provision(package: &Path, to: &Path) -> Result<Provisioned, String> {
    let kind = package::kind(package)?;
    let is_vendors = to.file_name().is_some_and(|name| name.to_string_lossy().starts_with(VENDOR));
    let versions = if is_vendors { to.to_owned() } else { to.join(VENDOR) };
    let cannot = |what: &str, path: &Path, error: &dyn std::fmt::Display| {
        format!("cannot {what} `{}`: {error}", path.display())
    };
    let made: Vec<&Path> = versions.ancestors().take_while(|folder| !folder.exists()).collect();
    fs::create_dir_all(&versions).map_err(|error| cannot("create the folder", &versions, &error))?;
    let done = place(package, kind, &versions);
    if done.is_err() {
        // Removes only empty folders: somebody else may have put something there.
        made.iter().for_each(|folder| drop(fs::remove_dir(folder)));
    }
    done
}

fn place(package: &Path, kind: package::PackageKind, versions: &Path) -> Result<Provisioned, String> {
    let shown = package.display();
    let temporary = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .tempdir_in(versions)
        .map_err(|error| format!("cannot write `{}`: {error}", versions.display()))?;
    let unpacked = package::unpack(package, kind, temporary.path());
    let named = unpacked.map_err(|why| format!("cannot provision `{shown}`: {why}"))?;
    let found =
        layout::find(temporary.path(), named).map_err(|why| format!("cannot provision `{shown}`: {why}"))?;
    let folder = versions.join(found.version.to_string());
    if folder.symlink_metadata().is_ok() {
        return Err(format!("`{}` already exists; remove it first", folder.display()));
    }
    // The folder of the temporary one is the user's alone; others run what stands in this one.
    fs::rename(&found.root, &folder)
        .map_err(|error| format!("cannot write `{}`: {error}", folder.display()))?;
    let moved = |path: &PathBuf| folder.join(path.strip_prefix(&found.root).unwrap_or(path));
    Ok(Provisioned {
        version: found.version,
        nsys: moved(&found.nsys),
        parts: found.parts.iter().map(|(part, path)| (*part, path.as_ref().map(moved))).collect(),
        plugins: found.plugins,
        folder,
    })
}
