//! The suites for instances that are like another: the same cases, with the bounds of their own NICs, green on healthy
//! simulated nodes and red on a NIC that is slow.

use crate::project::Project;

const TABLE: [(&str, &str, &str, &str); 4] = [
    ("nccl-p5en", "p5en", "rdmap110s0", "22.00"),
    ("nccl-p6-b200", "p6-b200", "efa_3", "44.00"),
    ("nccl-p6-b300", "p6-b300", "efa_11", "44.00"),
    ("nccl-p4d", "p4d", "rdmap32s27", "11.00"),
];

/// Memory of a GPU in GB, as its maker has it.
const MEMORY: [(&str, u64); 4] = [("p5en", 141), ("p6-b200", 180), ("p6-b300", 268), ("p4d", 40)];

fn project() -> Project {
    let project = Project::new();
    for (_, instance, _, _) in TABLE {
        let text = format!(
            "kind = \"simulated\"\ninstance = {{ name = \"sim-{instance}-here\", like = \"{instance}\", source = \"a test\" }}\n\
             nodes = \"n[1-2]\"\n"
        );
        project.write(&format!("inventory/sim-{instance}.toml"), &text);
    }
    project
}

/// Suites that an instance which ships has none of.
const ABSENT: [&str; 1] = ["nccl-p5e"];

#[test]
fn every_instance_has_suites_for_acceptance_collectives_and_single_nodes() {
    let folder = crate::project::root().join("inventory/instances");
    let files = std::fs::read_dir(&folder).expect("the instances");
    let names = files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned());
    let real: Vec<String> = names
        .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
        .filter(|name| !name.starts_with("sim-"))
        .collect();
    assert!(real.len() >= 7, "{real:?}");
    let mut absent = Vec::new();
    for instance in &real {
        for kind in ["acceptance", "nccl", "node"] {
            let name = format!("{kind}-{instance}");
            match std::fs::read_to_string(crate::project::root().join(format!("suites/{name}.toml"))) {
                Ok(text) => assert!(text.contains(&format!("\ninstance = \"{instance}\"\n")), "{name}"),
                Err(_) => absent.push(name),
            }
        }
    }
    assert_eq!(absent, ABSENT);
}

#[test]
fn suites_of_hours_and_of_precisions_are_planned_on_their_instances() {
    let project = Project::new();
    for (suite, instance) in [
        ("deep-p5e", "p5e"),
        ("deep-p5en", "p5en"),
        ("torch-burn-p4d", "p4d"),
        ("torch-burn-p4de", "p4de"),
        ("torch-burn-p5e", "p5e"),
        ("torch-burn-p5en", "p5en"),
        ("torch-burn-p6-b200", "p6-b200"),
    ] {
        let text = format!(
            "kind = \"simulated\"\ninstance = {{ name = \"sim-{instance}-here\", like = \"{instance}\", source = \"a test\" }}\n\
             nodes = \"n[1-2]\"\n"
        );
        project.write(&format!("inventory/sim-{instance}.toml"), &text);
        let ran = project.harness(&["plan", "--suite", suite, "--inventory", &format!("sim-{instance}")]);
        assert_eq!(ran.code, Some(0), "{suite}: {}", ran.all());
    }
}

#[test]
fn each_suite_of_p6_b300_is_planned_on_it() {
    let project = project();
    for kind in ["acceptance", "nccl", "node"] {
        let suite = format!("{kind}-p6-b300");
        let ran = project.harness(&["plan", "--suite", &suite, "--inventory", "sim-p6-b300"]);
        assert_eq!(ran.code, Some(0), "{suite}: {}", ran.all());
    }
}

#[test]
fn healthy_nodes_of_each_instance_fail_nothing() {
    let project = project();
    for (suite, instance, _, _) in TABLE {
        let inventory = format!("sim-{instance}");
        let ran = project.harness(&["--suite", suite, "--inventory", &inventory, "-v"]);
        let summary = project.json("summary.json");
        assert_eq!(summary["counts"]["fail"], 0, "{suite}: {}", ran.all());
        assert_eq!(ran.blamed(), [] as [&str; 0], "{suite}: {}", ran.all());
        let rates = ran.stdout.lines().filter(|line| line.contains("nic.rate")).count();
        assert!(rates > 0, "{suite}: {}", ran.all());
    }
}

/// A program of nccl-tests holds what it sends, what it receives and what it expects.
#[test]
fn the_largest_size_fits_into_the_memory_of_a_gpu_three_times() {
    let project = project();
    for (suite, instance, _, _) in TABLE {
        let inventory = format!("sim-{instance}");
        let args = ["--suite", suite, "--inventory", &inventory, "--no-probe", "pair-all_reduce"];
        let ran = project.harness(&args);
        let plan = project.json("plan.json");
        let cases = plan["cases"].as_array().expect("cases").iter();
        let sizes = cases.filter_map(|case| case["workload"]["sizes"].as_array()).flatten();
        let largest = sizes.filter_map(serde_json::Value::as_u64).max();
        let largest = largest.unwrap_or_else(|| panic!("{suite} has no sizes: {}", ran.all()));
        let memory = MEMORY.iter().find(|(of, _)| *of == instance).expect("its memory").1 * 1_000_000_000;
        assert!(3 * largest <= memory / 10 * 9, "{suite}: 3 times {largest} bytes, {memory} bytes");
    }
}

#[test]
fn a_nic_at_half_its_rate_fails_the_bound_of_its_instance() {
    let project = project();
    for (suite, instance, nic, bound) in TABLE {
        let inventory = format!("sim-{instance}");
        let fault = format!("n2:nic-slow=0.5@{nic}");
        let args = ["--suite", suite, "--inventory", &inventory, "--sim-fault", &fault, "-v", "nic-pairs"];
        let ran = project.harness(&args);
        assert_eq!(ran.code, Some(1), "{suite}: {}", ran.all());
        assert!(ran.stdout.contains(bound) && ran.stdout.contains(nic), "{suite}: {}", ran.all());
    }
}

#[test]
fn the_suite_of_another_instance_is_not_run() {
    let project = project();
    let ran = project.harness(&["--suite", "nccl-p5en", "--inventory", "default", "--list"]);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    assert!(
        ran.stderr.contains("suite `nccl-p5en` is for `p5en`, inventory `default` has `sim-p5`"),
        "{}",
        ran.all()
    );
}
