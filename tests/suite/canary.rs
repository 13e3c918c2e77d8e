//! The canary suite: every way to go red, and each goes red in its own way.

use crate::project::Project;

#[test]
fn every_case_of_the_canary_ends_as_it_must_and_the_suite_exits_1() {
    let project = Project::new();
    let ran = project.harness(&["--suite", "canary", "--keep-bad-nodes"]);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    let summary = project.json("summary.json");
    let cases = summary["cases"].as_array().expect("cases");
    let wrong: Vec<String> = cases
        .iter()
        .filter(|case| case["end"] != case["must_end"])
        .map(|case| format!("{}: {} instead of {}", case["name"], case["end"], case["must_end"]))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}\n{}", ran.stdout);
    assert!(cases.iter().all(|case| case["must_end"].is_string()), "each case says how it must end");
}

#[test]
fn the_canary_has_a_case_for_every_fault() {
    let text = std::fs::read_to_string(crate::project::root().join("suites/canary.toml")).expect("read");
    for form in harness::sim::fault::Fault::FORMS {
        let kind = form.split(['=', '@']).next().unwrap_or(form);
        // Its inventory is reached by Slurm; what can go wrong over ssh alone is in `ssh.rs`.
        if !harness::sim::fault::Fault::happens_via(kind, "slurm") {
            continue;
        }
        assert!(text.contains(&format!(":{kind}")), "no case for `{kind}`");
    }
}

#[test]
fn a_clock_that_jumps_leaves_its_finding() {
    let project = Project::new();
    project.harness(&["--suite", "canary", "clock-jump"]);
    let verdict = project.json("cases/clock-jump/verdict.json");
    let findings = verdict["findings"].as_array().expect("findings");
    let jump = findings.iter().find(|finding| finding["code"] == "clock-jump").expect("a finding");
    assert_eq!(jump["node"], "p5-002");
    assert_eq!(verdict["end"], "pass");
}
