//! The folders beside the project that files are taken from without being named, and whether they can be trusted.

use nix::unistd::geteuid;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The variable that names a folder laid out as a project, for all users of a cluster.
const HARNESS_HOME: &str = "HARNESS_HOME";
const WRITABLE_BY_ALL: u32 = 0o002;

/// The user's configuration folder, whether it is there or not.
pub(crate) fn user() -> Option<PathBuf> {
    user_by(&|name| std::env::var_os(name))
}

fn user_by(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    // A path that is not absolute is ignored, as the XDG specification demands.
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let configuration =
        absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")));
    configuration.map(|folder| folder.join("harness"))
}

/// The folder that `HARNESS_HOME` names.
pub(crate) fn harness_home() -> Option<PathBuf> {
    std::env::var_os(HARNESS_HOME).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Why the folders beside the project must not be used. Suites start commands on nodes: a folder that others can write
/// gives them the rights of its user.
pub(crate) fn check() -> Result<(), String> {
    if let Some(folder) = harness_home() {
        let facts = fs::metadata(&folder)
            .map_err(|error| format!("{HARNESS_HOME}: cannot read `{}`: {error}", folder.display()))?;
        if !facts.is_dir() {
            return Err(format!("{HARNESS_HOME}: `{}` is not a folder", folder.display()));
        }
        // It may belong to whoever looks after the cluster: it was named.
        open_to_all(&folder).map_or(Ok(()), Err)?;
    }
    match user() {
        Some(folder) if folder.is_dir() => distrusted(&folder).map_or(Ok(()), Err),
        _ => Ok(()),
    }
}

/// Why a folder must not be used without being named.
pub(crate) fn distrusted(folder: &Path) -> Option<String> {
    let facts = fs::metadata(folder).ok()?;
    let (owner, user) = (facts.uid(), geteuid().as_raw());
    if owner != 0 && owner != user {
        return Some(format!("`{}` belongs to user {owner}", folder.display()));
    }
    open_to_all(folder)
}

fn open_to_all(folder: &Path) -> Option<String> {
    let mode = fs::metadata(folder).ok()?.mode();
    let folder = folder.display();
    // The sticky bit does not help: files of others can still be added.
    let is_open = mode & WRITABLE_BY_ALL != 0;
    is_open.then(|| format!("every user can write files into `{folder}`; run `chmod o-w {folder}`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_users_folder_follows_xdg() {
        let folder = |pairs: &[(&str, &str)]| {
            let pairs: Vec<(String, OsString)> =
                pairs.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value))).collect();
            user_by(&|name| pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()))
        };
        assert_eq!(folder(&[("XDG_CONFIG_HOME", "/x"), ("HOME", "/h")]), Some("/x/harness".into()));
        assert_eq!(folder(&[("XDG_CONFIG_HOME", "x"), ("HOME", "/h")]), Some("/h/.config/harness".into()));
        assert_eq!(folder(&[("HOME", "/h")]), Some("/h/.config/harness".into()));
        assert_eq!(folder(&[]), None);
    }

    #[test]
    fn a_folder_that_every_user_can_write_is_distrusted() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(distrusted(folder.path()), None);
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("changed");
        let why = distrusted(folder.path()).expect("distrusted");
        assert!(why.contains("every user can write") && why.contains("chmod o-w"), "{why}");
    }
}
