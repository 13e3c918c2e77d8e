//! `tests/run` counts the tests of each share, and neither a share that ran none nor one that failed ends it well.

use crate::project::{Ran, ran, root};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// In place of the shares' tests: the last lines of theirs.
const CARGO: &str = "#!/bin/bash
[[ $1 == test ]] || exit 0
ended() { echo \"test result: ok. $1 passed; 0 failed; $2 ignored; 0 measured; 0 filtered out\"; }
case \" $* \" in
  *' suite '*) ended 40 1; ended 2 0 ;;
  *' real '*) ended \"$REAL\" 7 ;;
  *' live '*) sleep 0.5; ended 3 0; exit \"$LIVE\" ;;
  *) ended 1 0 ;;
esac
";

fn run(arguments: &[&str], real: &str, live: &str) -> Ran {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(folder.path().join("tests/oracle")).expect("made");
    fs::copy(root().join("tests/run"), folder.path().join("tests/run")).expect("copied");
    for (name, text) in
        [("cargo", CARGO), ("tests/setup", "#!/bin/sh\n"), ("tests/oracle/setup", "#!/bin/sh\n")]
    {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
    }
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("bash");
    command.arg("tests/run").args(arguments).current_dir(folder.path());
    command.env("PATH", path).env("HARNESS_TEST_CORPUS", "").env("TMPDIR", folder.path());
    ran(command.env("REAL", real).env("LIVE", live).output().expect("bash starts"))
}

#[test]
fn tests_of_all_shares_are_counted() {
    let counted = run(&[], "3", "0");
    assert_eq!(counted.code, Some(0), "{}", counted.all());
    for line in [" s, 42 passed, 1 ignored\n", " s, 3 passed, 7 ignored\n"] {
        assert!(counted.stdout.contains(line), "no `{line}`: {}", counted.all());
    }
    assert!(counted.stdout.ends_with(" s, 51 passed, 8 ignored\n"), "{}", counted.all());
    // An argument of cargo may choose tests of one share only.
    assert_eq!(run(&["replay::"], "0", "0").code, Some(0));
}

#[test]
fn a_share_that_ran_no_test_or_failed_fails_the_script() {
    let none = run(&[], "0", "0");
    assert_eq!(none.code, Some(1), "{}", none.all());
    assert!(none.stderr.contains("error: no test of `real` passed, 7 ignored\n"), "{}", none.all());
    assert!(!none.stdout.contains("in all: "), "{}", none.all());
    assert_eq!(run(&[], "3", "101").code, Some(101));
}

#[test]
fn live_tests_are_waited_for_and_shown_where_others_failed() {
    let failed = run(&[], "0", "0");
    assert_eq!(failed.code, Some(1), "{}", failed.all());
    let (_, live) = failed.stdout.split_once("== live: waits for these tests").expect("a heading");
    assert!(live.contains("test result: ok. 3 passed"), "{}", failed.all());
    assert!(!failed.stdout.contains("in all: "), "{}", failed.all());
}
