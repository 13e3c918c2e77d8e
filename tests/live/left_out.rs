//! Tests of a Kubernetes that is not there are never reported as passed: this program runs itself without one, and counts.

use crate::fact::{Fact, trials};
use libtest_mimic::Trial;
use std::process::Command;

const FACTS: &[Fact] = &[
    ("without_a_kubernetes_its_tests_are_ignored_also_with_all", without_kubernetes),
    ("a_kubernetes_that_is_named_and_not_there_fails_its_tests", named_and_absent),
];

pub(crate) fn tests() -> Vec<Trial> {
    trials("left_out", FACTS, None)
}

/// Tests over a Kubernetes: one that is added or goes changes the number on purpose.
const KUBERNETES: usize = 37;

fn run(dir: &str, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(arguments).env("HARNESS_TEST_KUBE", dir);
    let ran = command.output().expect("it starts");
    (ran.status.success(), String::from_utf8_lossy(&ran.stdout).into_owned())
}

fn without_kubernetes() {
    for arguments in [&["kubernetes::"][..], &["kubernetes::", "--include-ignored"]] {
        let (is_good, text) = run("", arguments);
        let counted = format!("test result: ok. 0 passed; 0 failed; {KUBERNETES} ignored");
        assert!(is_good && text.contains(&counted), "no `{counted}` in\n{text}");
        assert!(text.contains("tests left out: no Kubernetes: HARNESS_TEST_KUBE "), "{text}");
    }
}

fn named_and_absent() {
    let (is_good, text) = run("/nowhere", &["kubernetes::a_suite_passes"]);
    // Where there can be none for another reason they are ignored.
    let is_root = crate::ssh::hosts::is_root();
    assert_eq!(is_good, !is_root, "{text}");
    assert!(
        text.contains(if is_root { "test result: FAILED. 0 passed; " } else { "0 passed; 0 failed; " }),
        "{text}"
    );
}
