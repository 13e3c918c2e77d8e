//! `harness lint` over the files of `tests/lint`: those that show each error, and those that show none.

use crate::project::{Project, root};
use harness::lint::{RULES, Source, Weight, manifests};
use std::collections::BTreeSet;

/// The files of a folder with these endings, by name.
fn files(folder: &str, endings: &[&str]) -> Vec<String> {
    let entries = std::fs::read_dir(root().join("tests/lint").join(folder)).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path().display().to_string());
    let mut paths: Vec<String> = paths.filter(|path| endings.iter().any(|end| path.ends_with(end))).collect();
    paths.sort();
    assert!(!paths.is_empty());
    paths
}

const SCRIPTS: [&str; 3] = [".sbatch", ".sh", ".yaml"];

fn lint(kind: &str, files: &[String]) -> (Option<i32>, String) {
    let words: Vec<&str> = ["lint", kind].into_iter().chain(files.iter().map(String::as_str)).collect();
    let ran = Project::new().harness(&words);
    assert_eq!(ran.stderr, "");
    let here = format!("{}/", root().join("tests/lint").display());
    (ran.code, ran.stdout.replace(&here, ""))
}

#[test]
fn every_diagnostic_of_the_bad_files_is_reported_with_its_place_and_what_to_write() {
    let (code, reported) = lint("script", &files("bad", &SCRIPTS));
    assert_eq!(code, Some(1));
    insta::assert_snapshot!("bad_scripts", reported);
    let (code, reported) = lint("function-trace", &files("bad", &[".json"]));
    assert_eq!(code, Some(1));
    insta::assert_snapshot!("bad_function_trace", reported);
}

#[test]
fn the_clean_files_have_nothing_reported_about_them() {
    let (code, reported) = lint("script", &files("clean", &SCRIPTS));
    assert_eq!((code, reported.as_str()), (Some(0), "2 files: 0 errors, 0 warnings, 0 notes\n"));
    let (code, reported) = lint("function-trace", &files("clean", &[".json"]));
    assert_eq!((code, reported.as_str()), (Some(0), "1 file: 0 errors, 0 warnings, 0 notes\n"));
}

#[test]
fn scripts_that_suites_start_are_looked_at_by_check() {
    let project = Project::new();
    let case = "instance = \"p5\"\nabout = \"starts a script\"\n\n[[case]]\nname = \"script\"\nabout = \"starts it\"\nplacement = \"all\"\nrecipes = [\"command\"]\n\
                [case.workload]\n";
    project.write("jobs/train.sh", "#!/bin/bash\nexport NCCL_DEBG=INFO\npython train.py --max_steps 10 --nsys_start_step 20 --nsys_end_step 25\n");
    for workload in [
        "kind = \"command\"\nprogram = \"bash\"\nargs = [\"jobs/train.sh\"]\n",
        "kind = \"torchrun\"\nscript = \"jobs/train.sh\"\n",
        "kind = \"mpi\"\nprogram = \"bash\"\nargs = [\"jobs/train.sh\"]\n",
    ] {
        project.write("suites/own.toml", &format!("{case}{workload}"));
        let ran = project.harness(&["check"]);
        assert_eq!(ran.code, Some(2), "{}", ran.all());
        let reported = [
            "jobs/train.sh:3:32: the window begins at step 20",
            "warning: jobs/train.sh:2:8: `NCCL_DEBG` is misspelt",
        ];
        assert!(reported.iter().all(|reported| ran.stdout.contains(reported)), "{workload}: {}", ran.all());
    }
}

/// The codes of what is found in a file of `tests/lint/manifests`, and everything that is reported: what `lint script` finds in
/// commands and environment has no code.
fn codes_of(folder: &str, code: &str) -> (BTreeSet<String>, String) {
    let path = root().join(format!("tests/lint/manifests/{folder}/{code}.yaml"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let linted = manifests(&[Source { name: format!("{code}.yaml"), text }]);
    let all = linted.diagnostics.iter().chain(&linted.warnings).chain(&linted.notes);
    let lines: Vec<String> = all.map(ToString::to_string).collect();
    let code = |line: &String| {
        let (_, rest) = line.rsplit_once('[')?;
        Some(rest.split_once(']')?.0.to_owned())
    };
    (lines.iter().filter_map(code).collect(), lines.join("\n"))
}

#[test]
fn each_rule_of_manifests_has_a_file_that_breaks_it_alone_and_one_that_breaks_none() {
    for rule in RULES {
        let (codes, reported) = codes_of("bad", rule.code);
        assert_eq!(codes, BTreeSet::from([rule.code.to_owned()]), "{}: {reported}", rule.code);
        let (_, reported) = codes_of("good", rule.code);
        assert_eq!(reported, "", "{}", rule.code);
    }
    let files = files("manifests/bad", &[".yaml"]).len() + files("manifests/good", &[".yaml"]).len();
    assert_eq!(files, 2 * RULES.len(), "files of tests/lint/manifests without a rule");
}

#[test]
fn every_finding_of_the_bad_manifests_is_reported_with_its_place_and_what_to_write() {
    let reported: Vec<String> = RULES.iter().map(|rule| codes_of("bad", rule.code).1).collect();
    insta::assert_snapshot!("bad_manifests", reported.join("\n"));
    assert_eq!(lint("manifest", &files("manifests/bad", &[".yaml"])).0, Some(2));
    let (code, reported) = lint("manifest", &files("manifests/good", &[".yaml"])[..1]);
    assert_eq!((code, reported.as_str()), (Some(0), "1 file: 0 errors, 0 warnings, 0 notes\n"));
}

#[test]
fn warnings_and_notes_alone_do_not_fail_the_lint_of_manifests() {
    let notes = RULES.iter().filter(|rule| rule.weight != Weight::Error).map(|rule| rule.code);
    let files: Vec<String> = notes
        .map(|code| root().join(format!("tests/lint/manifests/bad/{code}.yaml")).display().to_string())
        .collect();
    assert!(files.len() > 1);
    for file in files {
        assert_eq!(lint("manifest", &[file]).0, Some(0));
    }
}
