//! What of a probe and of a script becomes part of a job's fingerprint, and how two of them differ.

use super::*;
use model::artefact::{Format, ProbedNode, Value};

fn job(nodes: &[&str], text: &str, profiled: bool) -> PlannedJob {
    let mut json = serde_json::json!({
        "name": "j", "nodes": nodes, "round": 0, "ranks": 8, "folder": "/f", "launch": ["sbatch", "job.sh"],
        "files": [{ "name": "job.sh", "text": text }], "expected": [], "estimate_s": 1, "limit_s": 1,
    });
    if profiled {
        json["profile"] = serde_json::json!({
            "version": { "year": 2025, "release": 1 }, "ranks": [], "delay_s": 0, "keep": "never",
        });
    }
    serde_json::from_value(json).expect("a job")
}

fn probe(nodes: &[(&str, &[(&str, &str)])]) -> Probe {
    let node = |(name, facts): &(&str, &[(&str, &str)])| ProbedNode {
        node: (*name).to_owned(),
        facts: facts
            .iter()
            .map(|(name, text)| ((*name).to_owned(), Value::Text((*text).to_owned())))
            .collect(),
        ..ProbedNode::default()
    };
    Probe {
        format: Format,
        harness: "x".to_owned(),
        simulated: false,
        inventory: "i".to_owned(),
        instance: "p5".to_owned(),
        at: "then".to_owned(),
        nodes: nodes.iter().map(node).collect(),
    }
}

fn from_parts(parts: &[(&str, &[&str])]) -> Fingerprint {
    let those = |versions: &[&str]| versions.iter().map(|version| (*version).to_owned()).collect();
    parts.iter().map(|(part, versions)| ((*part).to_owned(), those(versions))).collect()
}

/// As a run that came in a bundle has its image.
#[test]
fn a_masked_account_makes_no_other_software() {
    let of = |image: &str| from_parts(&[("image", &[image])]);
    let here = of("123456789012.dkr.ecr.us-west-2.amazonaws.com/nccl:1");
    let came = of("************.dkr.ecr.us-west-2.amazonaws.com/nccl:1");
    assert!(differences(&here, &came).is_empty());
    assert_eq!(differences(&here, &of("************.dkr.ecr.us-west-2.amazonaws.com/nccl:2")).len(), 1);
}

#[test]
fn facts_that_all_nodes_of_the_job_report_are_added_and_the_log_comes_first() {
    let probe = probe(&[
        (
            "n1",
            &[("driver", "560.35"), ("nccl", "2.20"), ("kernel", "6.8"), ("nsys", "2025.1"), ("gpus", "8")],
        ),
        ("n2", &[("driver", "550.90"), ("nccl", "2.20")]),
        ("n3", &[("driver", "535.00")]),
    ]);
    let mut fingerprint = from_parts(&[("nccl", &["2.28.3"])]);
    complete(&mut fingerprint, &job(&["n1", "n2"], "srun x", false), Some(&probe), &BTreeSet::new());
    // One of the nodes reports no kernel, so that it is unknown; the number of GPUs is no software.
    assert_eq!(fingerprint, from_parts(&[("nccl", &["2.28.3"]), ("driver", &["550.90", "560.35"])]));
    let mut alone = Fingerprint::new();
    complete(&mut alone, &job(&["n1"], "srun x", false), Some(&probe), &BTreeSet::new());
    assert_eq!(alone, from_parts(&[("nccl", &["2.20"]), ("driver", &["560.35"]), ("kernel", &["6.8"])]));
    let mut nothing = Fingerprint::new();
    complete(&mut nothing, &job(&["n9"], "srun x", false), Some(&probe), &BTreeSet::new());
    complete(&mut nothing, &job(&["n1"], "srun x", false), None, &BTreeSet::new());
    assert_eq!(nothing, Fingerprint::new());
}

#[test]
fn variables_that_the_script_sets_are_listed_without_those_of_logs() {
    let text = "#!/bin/bash\nexport PATH=/x\nexport NCCL_PROTO=simple\n  export FI_EFA_FORK_SAFE=1\nexport NCCL_DEBUG=INFO\n\
                export NCCL_DEBUG_FILE=/tmp/x\nexport FI_LOG_LEVEL=warn\necho export NCCL_ALGO=Tree\n";
    assert_eq!(variables(&job(&["n1"], text, false)), "FI_EFA_FORK_SAFE=1 NCCL_PROTO=simple");
    assert_eq!(variables(&job(&["n1"], "srun x", false)), "none");
}

#[test]
fn the_image_is_the_one_that_the_script_names() {
    for (text, image) in [
        ("srun --mpi=pmix --container-image=/fsx/a.sqsh --container-mounts=/fsx /opt/x", Some("/fsx/a.sqsh")),
        ("srun '--container-image=docker://x/y:1' z", Some("docker://x/y:1")),
        ("srun --mpi=pmix /opt/x", None),
    ] {
        let mut fingerprint = Fingerprint::new();
        complete(&mut fingerprint, &job(&["n1"], text, false), None, &BTreeSet::new());
        let expected = image.map(|image| from_parts(&[("image", &[image])])).unwrap_or_default();
        assert_eq!(fingerprint, expected, "{text}");
    }
}

#[test]
fn a_part_differs_where_its_versions_do_or_one_side_is_unknown() {
    let before = from_parts(&[("nccl", &["2.18"]), ("driver", &["560"]), ("kernel", &["6.8"])]);
    let after = from_parts(&[("nccl", &["2.18", "2.23"]), ("driver", &["560"]), ("libfabric", &["1.22"])]);
    let said: Vec<String> = differences(&before, &after).iter().map(ToString::to_string).collect();
    assert_eq!(said, ["kernel 6.8 -> unknown", "libfabric unknown -> 1.22", "nccl 2.18 -> 2.18 or 2.23"]);
    assert_eq!(differences(&before, &before), []);
}

#[test]
fn what_slurm_is_asked_for_is_part_of_it_where_it_is_not_the_usual() {
    let directives = |gpus| job::script::Directives {
        job_name: "j".into(),
        folder: "/f".into(),
        tasks_per_node: 8,
        gpus_per_node: gpus_per_node(gpus),
        minutes: 1,
        exclusive: true,
        stands_alone: true,
        partition: Some("gpu".into()),
        account: None,
        reservation: None,
        constraint: None,
        gpus,
        qos: Some("high".into()),
        mem: None,
        sbatch: Vec::new(),
        srun: Vec::new(),
        records_environment: true,
    };
    let run = |mpi: &str| {
        let argv = vec!["/opt/all_reduce_perf".to_owned()];
        Step::Run(script::Run {
            argv,
            tasks_per_node: 8,
            mpi: Some(mpi.into()),
            container: None,
            profile: None,
        })
    };
    let of = |directives, mpi| {
        let nodes = vec!["n1".to_owned()];
        let text =
            script::render(&script::Script { start: Start::Slurm(directives), nodes, steps: vec![run(mpi)] });
        let mut all = Fingerprint::new();
        complete(&mut all, &job(&["n1"], &text, false), None, &BTreeSet::new());
        all
    };
    assert_eq!(of(directives(GpuRequest::Gres), "pmix"), Fingerprint::new());
    let mut other = directives(GpuRequest::None);
    other.mem = Some("0".into());
    other.sbatch = vec!["--switches=1".into()];
    other.srun = vec!["--network=no_vni".into()];
    let asked = "gpus=none mpi=pmi2 mem=0 sbatch=--switches=1 srun=--network=no_vni";
    assert_eq!(of(other, "pmi2"), from_parts(&[("slurm", &[asked])]));
}

fn gpus_per_node(gpus: GpuRequest) -> u32 {
    gpus.count(8)
}
