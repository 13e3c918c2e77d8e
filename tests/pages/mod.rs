//! Pages as a browser has them: their size, what they show, and what a hand or a key does to them.

mod made;

use std::path::PathBuf;

/// A folder that goes with the test, or the one that a person wants to look into.
fn folder(kept: &str) -> (PathBuf, Option<tempfile::TempDir>) {
    match std::env::var_os("HARNESS_KEEP_PAGES") {
        Some(folder) => (PathBuf::from(folder).join(kept), None),
        None => {
            let folder = tempfile::tempdir().expect("a folder");
            (folder.path().to_owned(), Some(folder))
        }
    }
}

#[test]
fn pages_of_256_ranks_are_smaller_than_five_megabytes() {
    let (folder, _kept) = folder("large");
    for (name, bytes) in made::large(&folder) {
        println!("{name}: {bytes} bytes");
        assert!(bytes < harness::page::MOST_BYTES, "{name}: {bytes}");
        assert!(bytes > 1_500_000, "{name} holds little: {bytes}");
    }
}

#[test]
fn pages_of_every_kind_of_picture_can_be_written() {
    let (folder, _kept) = folder("small");
    assert!(made::every_kind(&folder) < harness::page::MOST_BYTES);
    assert!(made::hostile(&folder) < harness::page::MOST_BYTES);
}
