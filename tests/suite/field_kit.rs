//! `harness field-kit` end to end: on a simulated cluster, on this very machine, and where no node answers.

use crate::project::{Project, Ran};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A simulated cluster that sets what AWS sets, with this in its `[world]`.
fn with_world(project: &Project, name: &str, reach: &str, world: &str) {
    project.write(
        &format!("inventory/{name}.toml"),
        &format!(
            "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"acme-gpu-[1-4]\"\nreach = {{ via = \"{reach}\" }}\n\
             [environment]\nNCCL_SOCKET_IFNAME = \"^docker,lo,veth\"\n\
             OMPI_MCA_btl_tcp_if_exclude = \"lo,docker0,veth_def_agent\"\n{world}"
        ),
    );
}

fn kit(project: &Project, inventory: &str, more: &[&str]) -> Ran {
    project.harness(&[&["field-kit", "--inventory", inventory, "--output", "kit.tar.gz"], more].concat())
}

/// The files of a bundle.
fn unpacked(path: &Path) -> BTreeMap<String, String> {
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(File::open(path).expect("a bundle")));
    let mut files = BTreeMap::new();
    for entry in archive.entries().expect("entries") {
        let mut entry = entry.expect("an entry");
        let name = entry.path().expect("a path").to_string_lossy().into_owned();
        let mut text = String::new();
        entry.read_to_string(&mut text).expect("text");
        files.insert(name, text);
    }
    files
}

#[test]
fn a_stock_simulated_cluster_is_what_the_harness_assumes() {
    let project = Project::new();
    for reach in ["slurm", "ssh"] {
        with_world(&project, reach, reach, "");
        let output = format!("{reach}.tar.gz");
        let args = ["field-kit", "--inventory", reach, "--output", &output, "--verbose"];
        let ran = project.harness(&args);
        assert_eq!(ran.code, Some(0), "{}", ran.all());
        assert!(
            ran.stdout.starts_with("SIMULATED\n") && ran.stdout.contains(" 0 differ, 0 not seen"),
            "{}",
            ran.all()
        );
        let files = unpacked(&project.path().join(&output));
        assert!(files["field-kit/README.txt"].starts_with("SIMULATED"));
        let findings: Value = serde_json::from_str(&files["field-kit/findings.json"]).expect("JSON");
        assert_eq!((&findings["simulated"], &findings["nodes"]), (&Value::Bool(true), &Value::from(2)));
        assert!(findings["findings"].as_array().is_some_and(|all| all.len() > 20), "{findings}");
        assert!(
            files.keys().any(|name| name == "field-kit/nodes/node-001/devices.txt"),
            "{:?}",
            files.keys()
        );
        let texts: String = files.iter().map(|(name, text)| format!("{name}\n{text}\n")).collect();
        assert!(!texts.contains("acme"), "a name of the site is left");
        assert!(texts.contains("rdmap79s0") && texts.contains("rdma_write_bytes"));
    }
}

#[test]
fn each_way_in_which_a_world_differs_is_reported() {
    for (world, ids) in [
        ("pmix = false", &["slurm.mpi"][..]),
        ("boot_s = 900", &["slurm.powered_up"]),
        ("retrans_counters = false", &["node.retrans"]),
        ("other_rdma_devices = 2", &["node.other_rdma"]),
        ("flow_tools = false", &["tools.flow_tool"]),
        ("flow_tools_cuda = false", &["tools.flow_tool_cuda"]),
    ] {
        let project = Project::new();
        with_world(&project, "lab", "slurm", &format!("[world]\n{world}\n"));
        let ran = kit(&project, "lab", &["--json"]);
        let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.all()));
        let found = report["findings"].as_array().expect("findings");
        let of = |outcome: &str| -> Vec<&str> {
            let those = found.iter().filter(|finding| finding["outcome"] == outcome);
            those.filter_map(|finding| finding["id"].as_str()).collect()
        };
        assert_eq!(of("differs"), ids, "{world}: {}", ran.all());
        assert_eq!(ran.code, Some(1), "{world}: {}", ran.all());
    }
}

#[test]
fn a_slurm_without_gres_differs_only_from_an_inventory_that_asks_for_gpus_by_gres() {
    for (reach, code, differ) in
        [("slurm", 0, "0 differ, 0 not seen"), ("slurm\", gpus = \"gres", 1, "DIFFERS  slurm.request")]
    {
        let project = Project::new();
        with_world(&project, "lab", reach, "[world]\ngres = false\n");
        let ran = kit(&project, "lab", &[]);
        assert_eq!(ran.code, Some(code), "{}", ran.all());
        assert!(ran.stdout.contains(differ), "{}", ran.all());
        assert_eq!(ran.stdout.contains("DIFFERS  slurm.gres: (null)"), code == 1, "{}", ran.all());
    }
}

#[test]
fn an_inventory_that_does_not_exclude_docker0_differs() {
    let project = Project::new();
    project.write(
        "inventory/lab.toml",
        "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"n[1-2]\"\nreach = { via = \"slurm\" }\n\
         environment = { OMPI_MCA_btl_tcp_if_exclude = \"lo\" }\n",
    );
    let ran = kit(&project, "lab", &[]);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    assert!(ran.stdout.contains("DIFFERS  node.interfaces: all 2 nodes: docker0, which"), "{}", ran.all());
}

#[test]
fn a_controller_that_does_not_answer_is_reported_and_no_node_is_asked() {
    let project = Project::new();
    with_world(&project, "lab", "slurm", "[world]\ncontroller = false\n");
    let ran = kit(&project, "lab", &[]);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    assert!(ran.stdout.contains("DIFFERS  slurm.controller: slurm_load_partitions: Unable"), "{}", ran.all());
    assert!(
        ran.stdout.contains("not seen node.instance and 30 more (-v): all 2 nodes: not queried"),
        "{}",
        ran.all()
    );
    assert!(!ran.stdout.contains("holds"), "{}", ran.all());
}

#[test]
fn this_machine_is_no_p5_and_its_name_stays_at_home() {
    let project = Project::new();
    project.write(
        "inventory/here.toml",
        &format!(
            "kind = \"real\"\ninstance = \"p5\"\nnodes = \"secret-host-1\"\nreach = {{ via = \"local\" }}\n\
             paths = {{ shared = \"{}\", counters = \"/nowhere/{{host}}\" }}\n",
            project.path().display()
        ),
    );
    let mut command = project.command(&["field-kit", "-v", "--inventory", "here", "--output", "kit.tar.gz"]);
    command.env_remove("LD_LIBRARY_PATH");
    command.env("NCCL_ALGO", "Tree").env("NCCL_MY_TOKEN", "hf_abcdefghijklmnopqrstuvwxyz012345");
    let ran = crate::project::ran(command.output().expect("the harness starts"));
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    assert!(ran.stdout.contains("DIFFERS  node.environment: NCCL_ALGO"), "{}", ran.all());
    assert!(ran.stdout.contains("not seen node.counters"), "{}", ran.all());
    let files = unpacked(&project.path().join("kit.tar.gz"));
    let texts: String = files.iter().map(|(name, text)| format!("{name}\n{text}\n")).collect();
    assert!(texts.contains("NCCL_ALGO=Tree"), "{texts}");
    for left in ["secret-host", "hf_abcdefghijkl", &project.path().display().to_string()] {
        assert!(!texts.contains(left), "{left}: {texts}");
    }
}

#[test]
fn a_field_kit_that_cannot_be_written_is_refused_before_anybody_is_asked() {
    let project = Project::new();
    project.write("kit.tar.gz", "mine");
    let ran = kit(&project, "default", &[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{}", ran.all());
    assert!(ran.stderr.contains("already exists"), "{}", ran.all());
    let ran = project.harness(&["field-kit", "--inventory", "defualt"]);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    assert!(ran.stderr.contains("did you mean `default`"), "{}", ran.all());
}
