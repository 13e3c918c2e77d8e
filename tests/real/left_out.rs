//! A test without its data is never reported as passed: this program runs itself without the collected data, and counts.

use crate::corpus;
use crate::fact::Fact;
use std::process::Command;

pub(crate) const FACTS: &[Fact] = &[
    ("without_collected_data_its_tests_are_ignored_and_none_passes", none_passes),
    ("a_corpus_that_is_named_and_not_there_fails_its_tests", a_named_one_fails),
    ("under_all_what_setup_installs_must_be_there", what_setup_installs_must_be_there),
];

/// Tests of collected data: a test that is added or goes changes the number on purpose.
const COLLECTED: usize = 38;

fn run(arguments: &[&str], environment: &[(&str, &str)]) -> (bool, String) {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(arguments).env_remove("HARNESS_TESTS_ALL").envs(environment.iter().copied());
    let ran = command.output().expect("it starts");
    (ran.status.success(), String::from_utf8_lossy(&ran.stdout).into_owned())
}

fn none_passes() {
    for all in [&[][..], &[("HARNESS_TESTS_ALL", "1"), ("ORACLE_VENV", "/nowhere")]] {
        let environment = [&[(corpus::VARIABLE, "")], all].concat();
        let (is_good, text) = run(&["corpus::"], &environment);
        let counted = format!("test result: ok. 0 passed; 0 failed; {COLLECTED} ignored");
        assert!(is_good && text.contains(&counted), "no `{counted}` in\n{text}");
        let why = format!("tests left out: no collected data: set {}", corpus::VARIABLE);
        assert!(text.contains(&why), "no `{why}` in\n{text}");
    }
}

fn a_named_one_fails() {
    let (is_good, text) = run(&["corpus::"], &[(corpus::VARIABLE, "/nowhere")]);
    assert!(!is_good && text.contains("test result: FAILED. 0 passed; "), "{text}");
}

fn what_setup_installs_must_be_there() {
    let without = [(corpus::VARIABLE, ""), ("PATH", "/nowhere")];
    let (is_good, text) = run(&["awk::"], &without);
    assert!(is_good && text.contains("test result: ok. 0 passed; 0 failed; "), "{text}");
    let (is_good, text) = run(&["awk::"], &[&without[..], &[("HARNESS_TESTS_ALL", "1")]].concat());
    assert!(!is_good && text.contains("test result: FAILED. 0 passed; "), "{text}");
    assert!(text.contains("no gawk: tests/setup installs it"), "{text}");
}
