//! Real tools behave otherwise than one would wish: each test sets one property of the simulated world and looks at
//! what the harness makes of it.

use crate::project::{Project, Ran};

/// Four simulated p5 nodes under Slurm in a world with these settings, and further tables.
fn in_world(project: &Project, world: &str) {
    reached_by(project, "slurm", world);
}

fn reached_by(project: &Project, via: &str, world: &str) {
    let text = format!(
        "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"p5-[001-004]\"\n\n[reach]\nvia = \"{via}\"\n\n[world]\n{world}\n"
    );
    project.write("inventory/quirk.toml", &text);
}

/// What a case found, by code.
fn findings(project: &Project, case: &str, code: &str) -> Vec<String> {
    let verdict = project.json(&format!("cases/{case}/verdict.json"));
    let all = verdict["findings"].as_array().cloned().unwrap_or_default();
    let of_code = all.iter().filter(|finding| finding["code"] == code);
    of_code.map(|finding| finding["message"].as_str().unwrap_or_default().to_owned()).collect()
}

fn run(project: &Project, suite: &str, cases: &[&str]) -> Ran {
    let mut args = vec!["--suite", suite, "--inventory", "quirk", "--no-probe"];
    args.extend(cases);
    project.harness(&args)
}

/// The verdicts of a case: status, name and message.
fn verdicts(project: &Project, case: &str) -> Vec<(String, String, String)> {
    let file = format!("cases/{case}/verdict.json");
    let verdict = project.json(&file);
    let all = verdict["verdicts"].as_array().cloned().unwrap_or_default();
    let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    all.iter().map(|one| (word(&one["status"]), word(&one["name"]), word(&one["message"]))).collect()
}

fn of_metric(all: &[(String, String, String)], metric: &str) -> Vec<(String, String, String)> {
    all.iter().filter(|(_, name, _)| name.contains(&format!("::{metric}"))).cloned().collect()
}

#[test]
fn sendrecv_without_a_check_in_place_is_judged_by_its_check_out_of_place() {
    let project = Project::new();
    in_world(&project, "");
    for case in ["node-sendrecv", "node-alltoall"] {
        let ran = run(&project, "nccl-p5", &[case]);
        let wrong = of_metric(&verdicts(&project, case), "wrong");
        assert!(!wrong.is_empty(), "{}", ran.all());
        assert!(wrong.iter().all(|(status, ..)| status == "pass"), "{wrong:#?}");
    }
}

#[test]
fn corrupt_data_of_sendrecv_fails_though_nothing_is_checked_in_place() {
    let project = Project::new();
    in_world(&project, "");
    let args =
        ["--suite", "nccl-p5", "--inventory", "quirk", "--no-probe", "--sim-fault", "p5-002:corrupt@3"];
    let ran = project.harness(&[&args[..], &["node-sendrecv"]].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    let wrong = of_metric(&verdicts(&project, "node-sendrecv"), "wrong");
    let failed: Vec<_> = wrong.iter().filter(|(status, ..)| status == "fail").collect();
    assert!(failed.len() == 1 && failed[0].1.ends_with("@p5-002"), "{wrong:#?}");
}

#[test]
fn each_gpu_is_measured_where_open_mpi_4_aborts_inside_a_slurm_step() {
    let project = Project::new();
    in_world(&project, "openmpi = 4");
    let ran = run(&project, "nccl-p5", &["gpu-each"]);
    let all = verdicts(&project, "gpu-each");
    assert!(!all.is_empty() && all.iter().all(|(status, ..)| status == "pass"), "{}", ran.all());
}

#[test]
fn a_sampler_that_srun_refuses_is_named_with_the_words_of_srun() {
    let project = Project::new();
    in_world(&project, "overlap = false");
    let ran = run(&project, "nccl-p5", &["pair-all_reduce"]);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    let present = of_metric(&verdicts(&project, "pair-all_reduce"), "nic.share");
    let (status, _, message) = present.first().expect("an assertion of NICs");
    assert_eq!(status, "inconclusive");
    assert!(message.contains("the sampler ended") && message.contains("--overlap"), "{message}");
    assert!(!ran.stdout.contains("culprit"), "{}", ran.all());
}

#[test]
fn retransmission_counters_that_an_old_driver_lacks_are_skipped_with_the_reason() {
    let project = Project::new();
    in_world(&project, "retrans_counters = false");
    let ran = run(&project, "nccl-p5", &["pair-all_reduce"]);
    let all = verdicts(&project, "pair-all_reduce");
    let timeouts = of_metric(&all, "nic.retrans_timeouts");
    assert!(!timeouts.is_empty(), "{}", ran.all());
    for (status, _, message) in &timeouts {
        assert_eq!(status, "skipped", "{message}");
        assert!(message.contains("EFA driver"), "{message}");
    }
    assert!(all.iter().any(|(status, ..)| status == "pass"), "{}", ran.all());
}

#[test]
fn nics_whose_only_number_was_skipped_are_no_pass_on_an_old_driver() {
    let project = Project::new();
    in_world(&project, "retrans_counters = false");
    let suite = "instance = \"p5\"\nabout = \"retransmissions\"\n[[case]]\nname = \"pair\"\nplacement = \"pairs\"\n\
        workload = { kind = \"nccl-tests\", op = \"all_reduce\", from = \"8\", to = \"1GiB\", factor = 2, iterations = 20 }\n\
        recipes = [\"nccl_tests\", \"efa_traffic\"]\nlimit_s = 900\n\
        [[case.assert]]\nmetric = \"nccl.wrong\"\nplace = \"both\"\nequals = 0\n\
        [[case.assert]]\nmetric = \"nic.retrans_timeouts\"\nper = \"node\"\nat_most = 0\n";
    project.write("suites/retrans.toml", suite);
    let ran = run(&project, "retrans", &[]);
    assert_eq!((ran.code, ran.blamed()), (Some(3), Vec::new()), "{}", ran.all());
    let whole = run(&project, "nccl-p5", &[]);
    assert_eq!(whole.code, Some(0), "a healthy fleet with an old driver stays green: {}", whole.all());
}

#[test]
fn what_a_suite_exports_beats_what_the_image_sets() {
    let project = Project::new();
    let container = "[container]\nimage = \"/fsx/nccl.sqsh\"\nmounts = [\"/fsx:/fsx\"]";
    in_world(&project, &format!("image_env = {{ NCCL_DEBUG = \"WARN\" }}\n\n{container}"));
    let ran = run(&project, "nccl-log-p5", &["log-all_reduce"]);
    let all = verdicts(&project, "log-all_reduce");
    assert!(!all.is_empty() && all.iter().all(|(status, ..)| status == "pass"), "{}", ran.all());
}

#[test]
fn the_script_names_what_it_exports_to_the_container_and_the_image_is_unpacked_once() {
    let project = Project::new();
    let container = "[container]\nimage = \"/fsx/nccl.sqsh\"\nmounts = [\"/fsx:/fsx\"]";
    let variables = "[environment]\nLD_LIBRARY_PATH = \"/opt/x\"\nFI_PROVIDER = \"efa\"";
    in_world(&project, &format!("{container}\n\n{variables}"));
    let ran = run(&project, "nccl-p5", &["pair-all_reduce"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let plan = project.json("plan.json");
    let text = plan["cases"][0]["jobs"][0]["files"][0]["text"].as_str().unwrap_or_default().to_owned();
    let word = |name: &str| text.split_whitespace().find(|word| word.starts_with(name)).map(str::to_owned);
    let named = word("--container-env=").expect("variables");
    assert!(named.contains("FI_PROVIDER") && !named.contains("LD_LIBRARY_PATH"), "{named}");
    let run_id = plan["run_id"].as_str().unwrap_or_default();
    assert_eq!(word("--container-name="), Some(format!("--container-name=harness-{run_id}")), "{text}");
}

#[test]
fn open_mpi_does_not_take_docker0_for_a_path_to_other_nodes() {
    let project = Project::new();
    for via in ["slurm", "ssh"] {
        reached_by(&project, via, "docker0 = true");
        let ran = run(&project, "nccl-p5", &["pair-all_reduce"]);
        assert_eq!(ran.code, Some(0), "{via}: {}", ran.all());
    }
}

#[test]
fn interfaces_that_a_person_chose_stand() {
    let project = Project::new();
    in_world(&project, "docker0 = true\n\n[environment]\nOMPI_MCA_btl_tcp_if_include = \"docker0\"");
    let ran = run(&project, "nccl-p5", &["pair-all_reduce"]);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(verdicts(&project, "pair-all_reduce").iter().all(|(status, ..)| status == "error"));
}

#[test]
fn mpirun_is_found_where_no_login_shell_has_set_the_path() {
    let project = Project::new();
    reached_by(&project, "ssh", "tools_on_path = false");
    let ran = run(&project, "nccl-p5", &["pair-all_reduce"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    reached_by(&project, "ssh", "tools_on_path = false\n\n[paths]\nmpirun = \"/usr/local/bin/mpirun\"");
    let ran = run(&project, "nccl-p5", &["pair-all_reduce"]);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
}

#[test]
fn nccl_without_its_plugin_for_efa_is_red_with_the_reason_and_names_nobody() {
    let project = Project::new();
    in_world(&project, "ofi_plugin = false");
    let ran = run(&project, "nccl-p5", &["pair-all_reduce"]);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    let busbw = of_metric(&verdicts(&project, "pair-all_reduce"), "busbw");
    let failed: Vec<_> = busbw.iter().filter(|(status, ..)| status == "fail").collect();
    assert!(!failed.is_empty() && failed.iter().all(|one| one.2.contains("TCP sockets")), "{busbw:#?}");
    assert!(ran.blamed().is_empty(), "{}", ran.all());
    let found = findings(&project, "pair-all_reduce", "tcp-not-efa");
    assert!(!found.is_empty() && found[0].contains("aws-ofi-nccl"), "{found:?}");
}

#[test]
fn a_protocol_that_moves_no_data_by_writes_is_hinted_at() {
    let project = Project::new();
    in_world(&project, "\n[environment]\nOFI_NCCL_PROTOCOL = \"SENDRECV\"");
    let ran = run(&project, "nccl-p5", &["all-all_gather"]);
    let found = findings(&project, "all-all_gather", "other-protocol");
    assert!(!found.is_empty() && found[0].contains("OFI_NCCL_PROTOCOL=SENDRECV"), "{}", ran.all());
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    assert!(ran.blamed().is_empty(), "{}", ran.all());
}
