//! Files that choose what runs, and where, and that other users can write: a warning with the command that closes them.

use crate::warn::warn_once;
use base::text::command_line;
use std::path::{Path, PathBuf};
use store::trust::is_writable_by_others;

/// Names each of them once by a process.
pub(super) fn warn(files: &[PathBuf]) {
    for file in files {
        if let Some(why) = warning(file) {
            warn_once(why);
        }
    }
}

fn warning(file: &Path) -> Option<String> {
    is_writable_by_others(file).then(|| {
        let path = file.to_string_lossy().into_owned();
        let command = command_line(&["chmod".to_owned(), "go-w".to_owned(), path.clone()]);
        format!(
            "{}: other users can write it, and it chooses what runs; run `{command}`",
            base::text::show(&path)
        )
    })
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
            let why = warning(&file);
            assert_eq!(why.is_some(), is_open, "{mode:o}: {why:?}");
            let command = format!("chmod go-w '{}'", file.display());
            assert!(why.is_none_or(|why| why.contains(&command)), "{mode:o}");
        }
        assert_eq!(warning(&folder.path().join("absent")), None);
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
