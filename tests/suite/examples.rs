//! The examples of `tests/examples`, each a diff that adds a thing: they still apply, and touch as many files as
//! CONTRIBUTING says.

use crate::project::root;
use std::collections::BTreeSet;
use std::fs;

/// What one diff does to one file.
struct FileChange {
    file: String,
    is_new: bool,
    /// Of each hunk the lines that must stand in the file, one below the other.
    hunks: Vec<Vec<String>>,
}

fn changes(diff: &str) -> Vec<FileChange> {
    let mut changes: Vec<FileChange> = Vec::new();
    let mut is_new = false;
    for line in diff.lines() {
        let last = changes.last_mut();
        match line.split_at_checked(1) {
            _ if line.starts_with("--- ") => is_new = line == "--- /dev/null",
            _ if line.starts_with("+++ ") => {
                let file = line.strip_prefix("+++ b/").expect("a path of the repository").to_owned();
                changes.push(FileChange { file, is_new, hunks: Vec::new() });
            }
            _ if line.starts_with("diff ") || line.starts_with("index ") || line.starts_with("new file ") => {
            }
            Some(("@", _)) => last.expect("a file").hunks.push(Vec::new()),
            Some((" " | "-", rest)) => {
                last.expect("a file").hunks.last_mut().expect("a hunk").push(rest.to_owned());
            }
            Some(("+", _)) => {}
            _ => panic!("not a line of a diff: {line:?}"),
        }
    }
    changes
}

/// Why the diff does not apply, if it does not.
fn odd(change: &FileChange) -> Option<String> {
    let path = root().join(&change.file);
    if change.is_new {
        return path.exists().then(|| format!("{} is there already", change.file));
    }
    let Ok(text) = fs::read_to_string(&path) else { return Some(format!("no file {}", change.file)) };
    let lines: Vec<&str> = text.lines().collect();
    let missing = change.hunks.iter().find(|hunk| !lines.windows(hunk.len()).any(|window| window == *hunk));
    missing.map(|hunk| format!("{} has no such lines:\n{}", change.file, hunk.join("\n")))
}

/// The row of CONTRIBUTING whose files an example counts.
fn files_of(thing: &str) -> usize {
    let text = fs::read_to_string(root().join("CONTRIBUTING.md")).expect("CONTRIBUTING");
    let row =
        text.lines().find(|line| line.starts_with(&format!("| {thing} |"))).expect("a row of the table");
    row.split('|').nth(2).and_then(|cell| cell.trim().parse().ok()).expect("a number of files")
}

#[test]
fn each_example_applies_and_touches_as_many_files_as_the_table_says() {
    let examples = [("workload", "kind of workload"), ("metric", "metric of a recipe")];
    for (name, thing) in examples {
        let path = root().join(format!("tests/examples/{name}.diff"));
        let diff = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let changes = changes(&diff);
        let oddities: Vec<String> = changes.iter().filter_map(odd).collect();
        assert!(oddities.is_empty(), "{name}: update the example\n{}", oddities.join("\n"));
        let files: BTreeSet<&str> = changes.iter().map(|change| change.file.as_str()).collect();
        let by_hand = files.iter().filter(|file| file.starts_with("harness/")).count();
        assert_eq!(by_hand, files_of(thing), "{name}: {files:?}");
    }
    let all = fs::read_dir(root().join("tests/examples")).expect("examples").count();
    assert_eq!(all, examples.len(), "an example that no test reads");
}
