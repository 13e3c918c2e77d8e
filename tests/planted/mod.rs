//! A token that is planted in a run, and the look for it in every file that the run leaves.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// No one's.
pub(crate) const TOKEN: &str = "planted 4nd \"quoted\" it's";
/// What can be found of it in any form.
pub(crate) const CORE: &str = "planted 4nd";

pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("read").flatten() {
        match entry.path() {
            path if path.is_dir() && !path.is_symlink() => found.extend(files(&path)),
            path => found.push(path),
        }
    }
    found
}

/// In no file, as bytes and as what the bytes of a table say, and in no name; and all is for the user alone.
pub(crate) fn assert_found_nowhere(run: &Path, core: &str) {
    let run = run.canonicalize().expect("a run");
    let files = files(&run);
    assert!(files.len() > 5, "{files:?}");
    for file in &files {
        assert!(!file.display().to_string().contains(core), "{}", file.display());
        let mut bytes = fs::read(file).expect("read");
        if bytes.starts_with(b"PAR1") {
            let all = std::cell::RefCell::new(Vec::new());
            let look = |text: &[u8]| {
                all.borrow_mut().extend_from_slice(text);
                None
            };
            // What only begins like a table is looked at as it is.
            let table = fs::File::open(file).expect("opened");
            let _ = nsys::export::cleaned(&table, &look);
            bytes.extend(all.into_inner());
        }
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(core), "{}: {text}", file.display());
        let mode = fs::metadata(file).expect("there").mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", file.display());
        let folder = fs::metadata(file.parent().expect("a folder")).expect("there").mode() & 0o777;
        assert_eq!(folder, 0o700, "{}", file.display());
    }
}
