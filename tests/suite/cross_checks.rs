//! Accounts of one job compared with each other through the whole path: reports of the simulated cluster beside what its
//! nccl-tests printed, and what is said where an account is missing.

use crate::project::{Project, Ran};

const SUITE: &str = r#"
instance = "p5"
about = "one account beside another"
[[case]]
name = "sweep"
placement = "pairs"
workload = { kind = "nccl-tests", op = "all_reduce", from = "64MiB", to = "256MiB", factor = 2, iterations = 5 }
recipes = ["nccl_tests", "cross_checks", "nvtx_unbalanced"]
[case.profile]
ranks = "all"
[[case.assert]]
metric = "crosscheck.accounts"
at_least = 2
[[case.assert]]
metric = "crosscheck.sizes_disagree"
equals = 0
[[case.assert]]
metric = "crosscheck.kernels_without_calls"
equals = 0
[[case.assert]]
metric = "nvtx.push_without_pop"
equals = 0
"#;

const EFA: &str = r#"
[[case.assert]]
metric = "crosscheck.efa_share_of_least"
at_least = 0.999
"#;

fn ran(suite: &str, faults: &[&str]) -> Ran {
    let project = Project::new();
    project.write("suites/crossed.toml", suite);
    let mut words = vec!["--suite", "crossed", "--nodes", "p5-[001-002]", "-v"];
    words.extend(faults.iter().flat_map(|fault| ["--sim-fault", *fault]));
    project.harness(&words)
}

/// What failed, by the names of the assertions.
fn failed(ran: &Ran) -> Vec<String> {
    let (mut case, mut names) = ("", Vec::new());
    for line in ran.stdout.lines() {
        if let Some(name) = line.strip_prefix("crossed::") {
            case = name;
        }
        let red = ["  fail ", "  unexpected pass ", "  error ", "  inconclusive "];
        if let Some(own) = red.iter().find_map(|status| line.strip_prefix(status)) {
            names.push(format!("{case}::{}", own.split(": ").next().unwrap_or_default()));
        }
    }
    names.sort();
    names
}

#[test]
fn accounts_of_a_healthy_cluster_agree() {
    let ran = ran(SUITE, &[]);
    assert_eq!((ran.code, failed(&ran)), (Some(0), vec![]), "{}", ran.all());
}

#[test]
fn kernels_that_no_call_launched_are_red() {
    let ran = ran(SUITE, &["p5-002:graph-launch"]);
    assert_ne!(ran.code, Some(0), "{}", ran.all());
    let failed = failed(&ran);
    assert!(failed.iter().any(|name| name.contains("kernels_without_calls")), "{failed:?}");
}

#[test]
fn what_needs_a_log_that_is_not_there_is_no_pass_and_says_so() {
    let ran = ran(&format!("{SUITE}{EFA}"), &[]);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(ran.all().contains("no NCCL call in the job's output"), "{}", ran.all());
}
