//! What a path inside a run's folder begins with in a JUnit report that lies elsewhere.

use crate::report::JunitFlavor;
use std::env;
use std::path::{Component, Path, PathBuf};

/// Jenkins looks attachments up by their whole path, GitLab from the project's root; other readers look from the document.
pub(super) fn folder(flavor: JunitFlavor, document: &Path, run: &Path) -> String {
    let here = env::current_dir().unwrap_or_default();
    let run = plain(&here.join(run));
    match flavor {
        JunitFlavor::Jenkins => prefix(&run),
        JunitFlavor::Gitlab => {
            let root = env::var_os("CI_PROJECT_DIR").map_or(here.clone(), PathBuf::from);
            prefix(&relative(&plain(&here.join(root)), &run))
        }
        JunitFlavor::Default => {
            let of_document = plain(&here.join(document));
            prefix(&relative(of_document.parent().unwrap_or(&here), &run))
        }
    }
}

/// The path from a folder to another; the whole path where they share nothing but the root.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let shared = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    if shared <= 1 {
        return to.to_owned();
    }
    let up = from.components().skip(shared).map(|_| Component::ParentDir);
    up.chain(to.components().skip(shared)).collect()
}

/// Without `.` and `..`, which need not exist.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

fn prefix(folder: &Path) -> String {
    match folder.as_os_str().is_empty() {
        true => String::new(),
        false => format!("{}/", base::text::show(&folder.display().to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attachments_resolve_from_where_their_reader_looks() {
        let run = Path::new("/p/runs/r");
        for (document, expected) in [
            ("/p/junit.xml", "runs/r/"),
            ("/p/out/junit.xml", "../runs/r/"),
            ("/p/out/../junit.xml", "runs/r/"),
            ("/p/runs/r/copy.xml", ""),
            ("/elsewhere/junit.xml", "/p/runs/r/"),
        ] {
            assert_eq!(folder(JunitFlavor::Default, Path::new(document), run), expected, "{document}");
        }
        assert_eq!(folder(JunitFlavor::Jenkins, Path::new("/p/out/junit.xml"), run), "/p/runs/r/");
    }
}
