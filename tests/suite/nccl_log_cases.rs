//! NCCL's own log in suites: the plan sees to it that there is one, the simulated cluster writes it, and what ails a
//! node is reported about that node.

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
fn each_fault_that_the_log_shows_is_reported_about_its_node() {
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
        let line = verdict["findings"].as_array().expect("findings").iter().find(|it| it["code"] == code);
        assert_eq!(line.map(|it| &it["node"]), Some(&serde_json::json!("p5-002")), "{fault}");
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
    let line = findings.as_array().expect("findings").iter().find(|it| it["code"] == code);
    assert_eq!(line.map(|it| &it["node"]), Some(&serde_json::json!("p5-002")), "{findings}");
}

/// A training calls NCCL as nccl-tests do: its log, its reports and its counters are compared with each other alike.
#[test]
fn accounts_of_one_training_are_compared_with_each_other() {
    let ran = |faults: &[&str]| {
        let project = Project::new();
        let mut words = vec!["--suite", "nemo-p5", "-q", "accounts"];
        words.extend(faults.iter().flat_map(|fault| ["--sim-fault", fault]));
        let ran = project.harness(&words);
        (ran.code, ran.all(), project.json("cases/nemo-accounts/verdict.json"))
    };
    let (code, all, verdict) = ran(&[]);
    assert_eq!(code, Some(0), "{all}");
    let found = verdict["findings"].to_string();
    assert!(!found.contains("crosscheck-") && !found.contains("nccl-"), "nothing is odd about them: {found}");
    // What a graph launches again is called once, and every other rank calls it in each step.
    let (code, all, verdict) = ran(&["p5-002:graph-launch"]);
    assert_eq!(code, Some(1), "{all}");
    let findings = verdict["findings"].as_array().expect("findings");
    let line = findings.iter().find(|it| it["code"] == "crosscheck-kernels-without-calls");
    assert_eq!(line.map(|it| &it["node"]), Some(&serde_json::json!("p5-002")), "{findings:?}");
}

/// Under Slurm all ranks write into one file, between the lines of the program; over ssh each node has its own.
#[test]
fn every_call_of_a_training_is_in_its_log_wherever_that_is_written() {
    for (workload, of_step) in [
        // Shards of eight layers gathered twice, reduced within a node and then across; and the norm of all gradients.
        ("kind = \"fsdp\"\nsteps = 5\nmodel = { layers = 32, hidden = 4096, sequence = 4096 }", 33),
        ("kind = \"ddp\"\nsteps = 5\nbatch = 4", 9),
    ] {
        for inventory in ["default", "sim-ssh"] {
            let project = Project::new();
            let text = format!(
                "instance = \"p5\"\nabout = \"x\"\n[[case]]\nname = \"c\"\nplacement = 2\nrecipes = [\"training_log\", \"nccl_log\"]\n\
                 [case.workload]\n{workload}\n[[case.assert]]\nmetric = \"nccl_log.collectives\"\nequals = {}\n\
                 [[case.assert]]\nmetric = \"nccl_log.sequence_mismatches\"\nequals = 0\n\
                 [[case.assert]]\nmetric = \"nccl_log.lines_not_understood\"\nequals = 0\n\
                 [[case.assert]]\nmetric = \"nccl_log.processes\"\nequals = 16\n\
                 [[case.assert]]\nmetric = \"train.steps_missing\"\nequals = 0\n",
                of_step * 5 * 16
            );
            project.write("suites/own.toml", &text);
            let ran = project.harness(&["--suite", "own", "--inventory", inventory, "-q"]);
            assert_eq!(ran.code, Some(0), "{workload} {inventory}\n{}", ran.all());
        }
    }
}

#[test]
fn what_would_leave_no_log_is_refused_before_anything_is_launched() {
    let table = [
        ("NCCL_DEBUG = \"WARN\"", "`NCCL_DEBUG` is WARN, recipe `nccl_log` needs INFO"),
        ("NCCL_DEBUG_FILE = \"/tmp/nccl.%h.%p\"", "hides NCCL's log from recipe `nccl_log`"),
    ];
    for (variable, expected) in table {
        let project = Project::new();
        let suite = format!(
            "instance = \"p5\"\nabout = \"x\"\n[[case]]\nname = \"c\"\nplacement = \"pairs\"\nworkload = {{ kind = \"nccl-tests\", op = \
             \"all_reduce\", from = \"1MiB\", to = \"2MiB\", factor = 2, environment = {{ {variable} }} }}\nrecipes = [\"nccl_log\"]\n\
             [[case.assert]]\nmetric = \"nccl_log.lines\"\nat_least = 1\n"
        );
        std::fs::write(project.path().join("suites/own.toml"), suite).expect("a suite");
        let ran = project.harness(&["--suite", "own"]);
        assert_eq!(ran.code, Some(2), "{}", ran.all());
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
}
