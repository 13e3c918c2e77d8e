//! The folders beside the project that files are taken from without being named, and whether they can be trusted.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use store::trust::{distrusted, open_to_all};

/// The variable that names a folder laid out as a project, for all users of a cluster.
const HARNESS_HOME: &str = "HARNESS_HOME";
/// Those of a project that files are taken from.
const FOLDERS: [&str; 6] = ["", "suites", "suites/recipes", "inventory", "inventory/instances", "baselines"];

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
        check_all(&folder, open_to_all)?;
    }
    match user() {
        Some(folder) if folder.is_dir() => check_all(&folder, distrusted),
        _ => Ok(()),
    }
}

/// A folder, those in it that files are taken from, and the files. A link that the user made may lead to a file of
/// another user, but not to one that all can write.
fn check_all(folder: &Path, folder_rule: fn(&Path) -> Option<String>) -> Result<(), String> {
    for folder in FOLDERS.iter().map(|name| folder.join(name)).filter(|folder| folder.is_dir()) {
        folder_rule(&folder).map_or(Ok(()), Err)?;
        let files = fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut files =
            files.filter(|path| path.extension().is_some_and(|end| end == "toml") && path.is_file());
        files.find_map(|path| open_to_all(&path)).map_or(Ok(()), Err)?;
    }
    Ok(())
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
    fn nothing_that_others_can_write_is_taken() {
        let home = tempfile::tempdir().expect("a folder");
        let set = |name: &str, mode: u32| {
            let changed = fs::set_permissions(home.path().join(name), fs::Permissions::from_mode(mode));
            changed.expect("changed");
        };
        fs::create_dir_all(home.path().join("suites/recipes")).expect("made");
        fs::write(home.path().join("suites/own.toml"), "").expect("written");
        for name in ["suites", "suites/recipes"] {
            set(name, 0o755);
        }
        set("suites/own.toml", 0o644);
        assert_eq!(check_all(home.path(), distrusted), Ok(()));
        for (name, open, closed) in [
            ("", 0o777, 0o755),
            ("suites", 0o777, 0o755),
            ("suites/recipes", 0o1777, 0o755),
            ("suites/own.toml", 0o666, 0o644),
        ] {
            set(name, open);
            for rule in [distrusted, open_to_all] {
                let why = check_all(home.path(), rule).expect_err(name);
                assert!(why.contains("every user can write") && why.contains("chmod o-w"), "{name}: {why}");
            }
            set(name, closed);
        }
    }
}
