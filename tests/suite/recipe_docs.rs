//! The pages of the manual are what the declarations of recipes make them.
//! `tests/expected recipe_docs` rewrites them.

use crate::project::root;
use harness::recipe::docs::pages;
use std::collections::BTreeSet;
use std::fs;

#[test]
fn the_pages_of_the_manual_are_fresh() {
    let folder = root().join("docs/src/reference/recipes");
    let pages = pages();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("made");
        for (name, text) in &pages {
            fs::write(folder.join(name), text).expect("written");
        }
        return;
    }
    let kept: BTreeSet<String> = fs::read_dir(&folder)
        .expect("docs/src/reference/recipes")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    let made: BTreeSet<String> = pages.keys().cloned().collect();
    assert_eq!(kept, made, "one page per recipe and their list; UPDATE_DOCS=1");
    for (name, text) in &pages {
        let kept = fs::read_to_string(folder.join(name)).expect("there");
        assert!(
            kept == *text,
            "docs/src/reference/recipes/{name} is not what its declaration says; UPDATE_DOCS=1"
        );
    }
}
