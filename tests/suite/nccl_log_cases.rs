//! NCCL's own log in suites: the plan sees to it that there is one, the pretend cluster writes it, and what ails a node is told of that
//! node.

use crate::project::Project;

#[test]
fn the_suite_over_the_log_passes_on_healthy_nodes() {
    let project = Project::new();
    let ran = project.harness(&["--suite", "nccl-log-p5", "-q"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let plan = project.json("plan.json").to_string();
    assert!(
        plan.contains("NCCL_DEBUG=INFO") && plan.contains("NCCL_DEBUG_SUBSYS="),
        "the plan asks for the log"
    );
    let found = project.json("cases/log-all_reduce/verdict.json")["findings"].to_string();
    assert!(!found.contains("nccl-"), "nothing is odd about it: {found}");
}

#[test]
fn each_fault_that_the_log_shows_is_told_of_its_node() {
    let table = [
        ("no-gdrdma", "nccl_log.not_gdrdma", "nccl-not-gdrdma"),
        ("nic-missing@rdmap113s0", "nccl_log.nics", "nccl-nics-missing"),
    ];
    for (fault, metric, code) in table {
        let project = Project::new();
        let fault = format!("p5-002:{fault}");
        let ran = project.harness(&["--suite", "nccl-log-p5", "-q", "log-all_reduce", "--sim-fault", &fault]);
        assert_eq!(ran.code, Some(1), "{fault}: {}", ran.all());
        let verdict = project.json("cases/log-all_reduce/verdict.json");
        let failed: Vec<String> = verdict["verdicts"]
            .as_array()
            .expect("verdicts")
            .iter()
            .filter(|it| it["status"] == "fail")
            .map(|it| it["name"].to_string())
            .collect();
        assert!(
            failed.len() == 1 && failed[0].contains(metric) && failed[0].contains("p5-002"),
            "{fault}: {failed:?}"
        );
        let told = verdict["findings"].as_array().expect("findings").iter().find(|it| it["code"] == code);
        assert_eq!(told.map(|it| &it["node"]), Some(&serde_json::json!("p5-002")), "{fault}");
    }
}

#[test]
fn a_rank_that_stops_is_the_one_whose_calls_are_fewer() {
    let project = Project::new();
    let ran =
        project.harness(&["--suite", "nccl-log-p5", "-q", "sequence", "--sim-fault", "p5-003:rank-dies"]);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    let findings = project.json("cases/sequence/verdict.json")["findings"].clone();
    let short = findings.as_array().expect("findings").iter().find(|it| it["code"] == "nccl-sequence-short");
    assert_eq!(short.map(|it| &it["node"]), Some(&serde_json::json!("p5-003")), "{findings}");
}

#[test]
fn accounts_of_one_job_that_disagree_are_red() {
    let project = Project::new();
    let words = ["--suite", "nccl-log-p5", "-q", "accounts", "--sim-fault", "p5-002:graph-launch"];
    let ran = project.harness(&words);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    let findings = project.json("cases/accounts/verdict.json")["findings"].clone();
    let code = "crosscheck-kernels-without-calls";
    let told = findings.as_array().expect("findings").iter().find(|it| it["code"] == code);
    assert_eq!(told.map(|it| &it["node"]), Some(&serde_json::json!("p5-002")), "{findings}");
}

#[test]
fn what_would_leave_no_log_is_refused_before_anything_is_launched() {
    let table = [
        ("NCCL_DEBUG = \"WARN\"", "`nccl_log` needs `NCCL_DEBUG = \"INFO\"`"),
        ("NCCL_DEBUG_FILE = \"/tmp/nccl.%h.%p\"", "`NCCL_DEBUG_FILE` sends that elsewhere"),
    ];
    for (variable, told) in table {
        let project = Project::new();
        let suite = format!(
            "instance = \"p5\"\nabout = \"x\"\n[[case]]\nname = \"c\"\nplacement = \"pairs\"\nworkload = {{ kind = \"nccl-tests\", op = \
             \"all_reduce\", from = \"1MiB\", to = \"2MiB\", factor = 2, environment = {{ {variable} }} }}\nrecipes = [\"nccl_log\"]\n\
             [[case.assert]]\nmetric = \"nccl_log.lines\"\nat_least = 1\n"
        );
        std::fs::write(project.path().join("suites/own.toml"), suite).expect("a suite");
        let ran = project.harness(&["--suite", "own"]);
        assert_eq!(ran.code, Some(2), "{}", ran.all());
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
    }
}
