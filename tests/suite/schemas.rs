//! The JSON Schemas of files that people write: they are what the program makes, and every file that ships is named one
//! that accepts it. `tests/expected schemas` writes them. That they agree with the readers on the files of other tests is
//! tested by `tests/scenario_runner/schemas.rs`.

use crate::project::{Project, root};
use config::schema::FileKind;
use fixture::schema::{Agreement, SchemaCheck};
use serde_json::Value;
use std::fs;

const FOLDER: &str = "docs/schemas";

fn file(kind: &FileKind) -> String {
    format!("{FOLDER}/{}.schema.json", kind.name)
}

#[test]
fn schemas_are_what_the_program_makes() {
    let project = Project::new();
    for kind in harness::cli::schema::kinds() {
        let ran = project.harness(&["schema", kind.name]);
        assert_eq!(ran.code, Some(0), "{}", ran.all());
        let path = root().join(file(kind));
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::create_dir_all(root().join(FOLDER)).expect("a folder");
            fs::write(&path, &ran.stdout).expect("written");
        }
        let kept = fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == ran.stdout, "{}: run `tests/expected schemas`", file(kind));
    }
    let kept = fs::read_dir(root().join(FOLDER)).expect("a folder").count();
    assert_eq!(kept, harness::cli::schema::kinds().count(), "a schema of nothing lies in {FOLDER}");
}

/// Files of the repository that a pattern such as `suites/*.toml` means. Only users have files of other patterns.
fn shipped(pattern: &str) -> Vec<String> {
    let (folder, name) = pattern.rsplit_once('/').expect("a folder");
    if name != "*.toml" {
        return Vec::new();
    }
    let Ok(entries) = fs::read_dir(root().join(folder)) else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut files: Vec<String> =
        names.filter(|name| name.ends_with(".toml")).map(|name| format!("{folder}/{name}")).collect();
    files.sort();
    files
}

#[test]
fn every_shipped_file_names_its_schema_which_accepts_it() {
    let mut seen = 0;
    for kind in harness::cli::schema::kinds() {
        let schema = fs::read_to_string(root().join(file(kind))).expect("a schema");
        let check = SchemaCheck::new(&serde_json::from_str::<Value>(&schema).expect("JSON"));
        for name in kind.files.iter().flat_map(|pattern| shipped(pattern)) {
            let text = fs::read_to_string(root().join(&name)).expect("text");
            assert_eq!(check.compare(&text, &[]), Ok(Agreement::Sound), "{name}");
            let up = "../".repeat(name.matches('/').count());
            let first = format!("#:schema {up}{}", file(kind));
            assert_eq!(text.lines().next(), Some(first.as_str()), "{name}");
            seen += 1;
        }
    }
    assert!(seen > 40, "only {seen} files");
}

#[test]
fn a_kind_of_file_that_is_none_is_corrected() {
    let ran = Project::bare().harness(&["schema", "siute"]);
    assert_eq!(ran.code, Some(2));
    let message = "error: no kind of file `siute`; did you mean `suite`? `harness schema` lists them\n";
    assert_eq!(ran.stderr, message);
}
