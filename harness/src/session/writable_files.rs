//! Files that choose what runs, and where, and that other users can write: a warning with the command that closes them.

use crate::warn::warn_once;
use base::text::{command_line, count, show};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use store::trust::is_writable_by_others;

/// Names each of them once by a process.
pub(super) fn warn(files: &[PathBuf]) {
    static NAMED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    let new: BTreeSet<PathBuf> = files.iter().filter(|file| !named.contains(*file)).cloned().collect();
    if let Some(why) = warning(&new) {
        warn_once(why);
    }
    named.extend(new);
}

/// One for all of them: a checkout with an umask of 0 has every file like this.
fn warning(files: &BTreeSet<PathBuf>) -> Option<String> {
    let open = files.iter().filter(|file| is_writable_by_others(file));
    let paths: Vec<String> = open.map(|file| file.to_string_lossy().into_owned()).collect();
    let first = show(paths.first()?);
    let what = match paths.len() - 1 {
        0 => format!("{first}: other users can write it, and it chooses what runs"),
        more => {
            let more = count(more, "more file");
            format!("{first} and {more}: other users can write them, and they choose what runs")
        }
    };
    let arguments: Vec<String> = ["chmod", "go-w"].map(str::to_owned).into_iter().chain(paths).collect();
    Some(format!("{what}; run `{}`", command_line(&arguments)))
}

/// The files that kubectl reads: those of `KUBECONFIG`, else the user's own. It may run commands of theirs (`users[].user.exec`).
pub(super) fn kubeconfigs(variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> Vec<PathBuf> {
    match variable("KUBECONFIG").filter(|list| !list.is_empty()) {
        Some(list) => std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect(),
        None => variable("HOME").map(|home| Path::new(&home).join(".kube/config")).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_that_other_users_can_write_is_named_with_the_command_that_closes_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("my config");
        fs::write(&file, "").expect("written");
        for (mode, is_open) in [(0o600, false), (0o644, false), (0o666, true), (0o602, true)] {
            fs::set_permissions(&file, Permissions::from_mode(mode)).expect("set");
            let why = warning(&BTreeSet::from([file.clone()]));
            assert_eq!(why.is_some(), is_open, "{mode:o}: {why:?}");
            let command = format!("chmod go-w '{}'", file.display());
            assert!(why.is_none_or(|why| why.contains(&command)), "{mode:o}");
        }
        assert_eq!(warning(&BTreeSet::from([folder.path().join("absent")])), None);
    }

    #[test]
    fn many_files_that_other_users_can_write_are_one_warning_with_one_command() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, mode: u32| {
            let path = folder.path().join(name);
            fs::write(&path, "").expect("written");
            fs::set_permissions(&path, Permissions::from_mode(mode)).expect("set");
            path
        };
        let (a, b, c) = (file("a.toml", 0o666), file("b.toml", 0o644), file("c.toml", 0o666));
        let why = warning(&BTreeSet::from([a.clone(), b, c.clone()])).expect("two are open");
        let (a, c) = (a.display(), c.display());
        let expected = format!(
            "{a} and 1 more file: other users can write them, and they choose what runs; run `chmod go-w {a} {c}`"
        );
        assert_eq!(why, expected);
    }

    #[test]
    fn kubectl_reads_each_file_of_its_list_or_the_users_own() {
        let files = |list: Option<&str>| {
            kubeconfigs(|name| match name {
                "KUBECONFIG" => list.map(OsString::from),
                _ => Some(OsString::from("/home/u")),
            })
        };
        assert_eq!(files(Some("/a::/b")), [PathBuf::from("/a"), PathBuf::from("/b")]);
        for none in [None, Some("")] {
            assert_eq!(files(none), [PathBuf::from("/home/u/.kube/config")]);
        }
    }
}
