//! `harness inventory probe` and `diff` as a person calls them: what is printed, and how they exit.

use crate::project::Project;
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn a_healthy_cluster_is_a_table_of_fit_nodes() {
    let project = Project::new();
    let ran = project.harness(&["inventory", "probe"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    insta::assert_snapshot!(ran.stdout);
    assert_eq!(project.runs(), 0, "it keeps no run");
}

#[test]
fn a_node_that_cannot_pass_is_named_and_the_exit_code_is_1() {
    let project = Project::new();
    for inventory in ["default", "sim-ssh"] {
        let ran = project.harness(&[
            "inventory",
            "probe",
            "--inventory",
            inventory,
            "--sim-fault",
            "p5-002:gpu-missing@3",
            "--sim-fault",
            "p5-003:gpu-missing@3",
        ]);
        assert_eq!(ran.code, Some(1), "{}", ran.all());
        let reported = "cannot pass: p5-[002-003]: nvidia-smi lists 7 GPUs, expected 8 (`sim-p5`)";
        assert!(ran.stdout.contains(reported), "{}", ran.all());
    }
}

#[test]
fn a_node_that_cannot_be_asked_is_unknown_and_the_exit_code_is_3() {
    let project = Project::new();
    let ran = project.harness(&[
        "inventory",
        "probe",
        "--inventory",
        "sim-ssh",
        "--sim-fault",
        "p5-002:host-unreachable",
    ]);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(ran.stdout.contains("not probed: p5-002: "), "{}", ran.all());
}

#[test]
fn what_probe_prints_as_json_is_what_golden_reads() {
    let project = Project::new();
    let golden = project.harness(&["inventory", "probe", "--json", "--nodes", "p5-001"]);
    let reported = json(&golden.stdout);
    assert_eq!((&reported["format"], &reported["simulated"]), (&1.into(), &true.into()));
    assert_eq!(reported["nodes"].as_array().map(Vec::len), Some(1));
    project.write("golden.json", &golden.stdout);
    let alike = project.harness(&["inventory", "diff", "--golden", "golden.json"]);
    assert_eq!(alike.code, Some(0), "{}", alike.all());
    let differs =
        ["inventory", "diff", "--golden", "golden.json", "--json", "--sim-fault", "p5-003:driver-differs"];
    let ran = project.harness(&differs);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    let compared = json(&ran.stdout);
    assert_eq!(compared["differences"].as_array().map(Vec::len), Some(1), "{}", ran.all());
    assert_eq!(compared["differences"][0]["node"], "p5-003");
    assert_eq!(compared["differences"][0]["fact"], "driver");
}

#[test]
fn nodes_unlike_the_majority_are_named_and_a_tie_names_no_node() {
    let project = Project::new();
    let ran = project.harness(&["inventory", "diff", "--sim-fault", "p5-003:nic-missing@rdmap113s0"]);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    assert!(ran.stdout.starts_with("p5-003: nics without rdmap113s0, expected "), "{}", ran.all());
    let tie = ["inventory", "diff", "--nodes", "p5-[001-002]", "--sim-fault", "p5-001:driver-differs"];
    let ran = project.harness(&tie);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    assert!(ran.stdout.starts_with("tie: driver: "), "{}", ran.all());
}

#[test]
fn what_cannot_be_asked_is_reported_before_anybody_is() {
    let project = Project::new();
    project.write("bad.json", "{\"format\": 1, \"nodes\": 3}");
    project.write("newer.json", "{\"format\": 99}");
    for (args, expected) in [
        (vec!["inventory", "diff", "--golden", "none.json"], "none.json"),
        (vec!["inventory", "diff", "--golden", "bad.json"], "bad.json"),
        (vec!["inventory", "diff", "--golden", "newer.json"], "format 99"),
        (vec!["inventory", "probe", "--nodes", "p5-009"], "has no node `p5-009`"),
        (vec!["inventory", "probe", "--inventory", "nine"], "no inventory named `nine`; `harness list`"),
        (vec!["inventory", "probe", "--sim-fault", "p5-002:gpu-mising@1"], "did you mean `gpu-missing`"),
        (vec!["inventory", "probe", "--sim-fault", "p5-002:gpu-missing@9"], "unknown GPU"),
        (vec!["inventory", "porbe"], "probe"),
        (vec!["inventory"], "probe"),
    ] {
        let ran = project.harness(&args);
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.all());
        assert!(ran.stderr.contains(expected), "{args:?}: {}", ran.all());
    }
}

#[test]
fn this_machine_is_probed_by_real_processes() {
    let project = Project::new();
    let folder = project.path().display();
    project.write(
        "inventory/here.toml",
        &format!(
            "kind = \"real\"\ninstance = \"p5\"\nnodes = \"here\"\nreach = {{ via = \"local\" }}\n\
             paths = {{ shared = \"{folder}/shared\", counters = \"{folder}/none\" }}\n\
             [probe]\nshared = {{ equals = \"writable\" }}\nnics = {{ at_least = 1 }}\n"
        ),
    );
    let ran = project.harness(&["inventory", "probe", "--inventory", "here", "--json"]);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    let reported = json(&ran.stdout);
    let node = &reported["nodes"][0];
    assert_eq!(node["facts"]["shared"], "writable");
    assert!(node["facts"]["kernel"].is_string(), "{node}");
    // What was asked for is not reported, and that is no 0.
    let unfit = node["unfit"].to_string();
    assert!(unfit.contains("`nics` must be at least 1, but is unknown: no such folder"), "{unfit}");
    assert!(node["facts"]["nics"].is_null());
    let offset = node["clock_offset"]["at_least_ms"].as_f64().expect("a number");
    assert!(offset.abs() < 20_000.0, "{node}");
}

/// Nothing was measured that speaks for such a node as a p5.
#[test]
fn a_node_without_nvidia_smi_is_not_fit_and_the_exit_code_is_3() {
    let project = Project::new();
    let folder = project.path().display();
    project.write(
        "inventory/here.toml",
        &format!(
            "kind = \"real\"\ninstance = \"p5\"\nnodes = \"here\"\nreach = {{ via = \"local\" }}\n\
             paths = {{ shared = \"{folder}/shared\", counters = \"{folder}/none\" }}\n"
        ),
    );
    let mut command = project.command(&["inventory", "probe", "--inventory", "here"]);
    let ran = crate::project::ran(
        command.env("PATH", project.programs_but("nvidia-smi")).output().expect("starts"),
    );
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(ran.stdout.contains("not fit: here: no GPU can be read: no nvidia-smi on PATH"), "{}", ran.all());
    assert!(ran.stdout.contains("1 node: 0 fit, 0 cannot pass, 0 not probed, 1 without"), "{}", ran.all());
}

#[test]
fn a_node_alone_is_in_no_majority_and_can_be_compared_with_a_golden_one() {
    let project = Project::new();
    let alone = project.harness(&["inventory", "diff", "--nodes", "p5-001"]);
    assert_eq!(alone.code, Some(3), "{}", alone.all());
    assert!(alone.stderr.contains("fewer than two nodes have no majority"), "{}", alone.stderr);
    let golden = project.harness(&["inventory", "probe", "--nodes", "p5-002", "--json"]);
    project.write("golden.json", &golden.stdout);
    let held = project.harness(&["inventory", "diff", "--nodes", "p5-001", "--golden", "golden.json"]);
    assert_eq!(held.code, Some(0), "{}", held.all());
}
