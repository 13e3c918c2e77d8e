//! Nodes that are reached by ssh, from the command line to the verdict, on the simulated cluster: the same verdicts as
//! under Slurm, and what can go wrong over ssh alone.

use crate::project::Project;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

/// The fault, the cases that show it, the exit code of its class, the one line that blames, and the cause that its evidence
/// begins with.
const TABLE: &[(&str, &str, i32, &str, &str)] = &[
    ("nic-slow=0.4@rdmap113s0", "nic-pairs", 1, "culprit p5-002 rdmap113s0", "4.8 GB/s"),
    ("nic-dead@rdmap113s0", "pair-all_reduce", 1, "culprit p5-002 rdmap113s0", "listed, but moved no byte"),
    ("gpu-slow=0.5@3", "gpu-each", 1, "culprit p5-002 gpu3", "all_reduce 4GiB: "),
    ("corrupt@3", "gpu-each", 1, "culprit p5-002 gpu3", "all_reduce: "),
    ("rank-dies", "all_reduce", 3, "culprit p5-002 node", "rank-died"),
    ("node-fails", "all_reduce", 3, "culprit p5-002 node", "NODE_FAIL"),
    ("output-missing", "all_reduce", 3, "culprit p5-002 node", "output-missing"),
    ("garbled", "all_reduce", 3, "culprit p5-002 node", "capture-unreadable"),
    ("wrong-ranks", "all_reduce", 3, "culprit p5-002 node", "wrong-ranks"),
    ("host-unreachable", "all_reduce", 3, "culprit p5-002 node", "host-unreachable: p5-002 cannot be "),
];

/// The acceptance suite on three nodes over ssh, with this fault.
fn run(project: &Project, more: &[&str]) -> crate::project::Ran {
    let base = ["--suite", "nccl-p5", "--inventory", "sim-ssh", "-q", "--nodes", "p5-[001-003]"];
    project.harness(&[&base, more].concat())
}

#[test]
fn each_fault_over_ssh_ends_with_the_verdict_of_its_class_and_names_the_guilty_part_alone() {
    named(false);
}

#[test]
#[ignore = "takes minutes; each fault is always run with the cases that show it"]
fn each_fault_over_ssh_ends_with_the_verdict_of_its_class_and_names_the_guilty_part_alone_full_set() {
    named(true);
}

/// What each fault comes to: in all cases of the suite, or in those that show it.
fn named(in_all_cases: bool) {
    let project = Project::new();
    let mut wrong = Vec::new();
    for (fault, cases, code, blamed, cause) in TABLE {
        let fault_on_node = format!("p5-002:{fault}");
        let all = ["--sim-fault", fault_on_node.as_str(), *cases];
        let ran = run(&project, if in_all_cases { &all[..2] } else { &all[..] });
        let named = ran.stdout.contains(&format!("{blamed}: {cause}"));
        if ran.code != Some(*code) || ran.blamed() != [*blamed] || !named {
            let tail: Vec<&str> = ran.stdout.lines().rev().take(8).collect();
            let tail: Vec<&str> = tail.into_iter().rev().collect();
            wrong.push(format!("{fault}: exit {:?}\n{}\n{}", ran.code, tail.join("\n"), ran.stderr));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn a_rank_that_hangs_is_ended_on_every_node_at_its_limit() {
    let project = Project::new();
    let ran = run(&project, &["all_reduce", "--sim-fault", "p5-002:hang", "--set", "limit_s=300"]);
    assert_eq!((ran.code, ran.blamed()), (Some(3), vec!["culprit p5-002 node".to_owned()]), "{}", ran.all());
    assert!(ran.stdout.contains("culprit p5-002 node: hang"), "{}", ran.all());
}

/// Status and number of every assertion of the last run, by name.
fn verdicts(project: &Project) -> BTreeMap<String, (String, Option<f64>)> {
    let plan = project.json("plan.json");
    let mut all = BTreeMap::new();
    for case in plan["cases"].as_array().expect("cases") {
        let name = case["name"].as_str().expect("a name");
        let verdict = project.json(&format!("cases/{name}/verdict.json"));
        for one in verdict["verdicts"].as_array().expect("verdicts") {
            let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
            all.insert(text("name"), (text("status"), one["observed"].as_f64()));
        }
    }
    all
}

#[test]
fn the_verdicts_over_ssh_are_those_under_slurm() {
    for faults in
        [&[][..], &["p5-002:gpu-slow=0.5@3", "p5-001:nic-slow=0.4@rdmap113s0"][..], &["p5-002:rank-dies"][..]]
    {
        let project = Project::new();
        let mut ran = Vec::new();
        let mut reported = Vec::new();
        for inventory in ["default", "sim-ssh"] {
            let mut args =
                vec!["--suite", "nccl-p5", "-q", "--inventory", inventory, "--nodes", "p5-[001-003]"];
            faults.iter().for_each(|fault| args.extend(["--sim-fault", fault]));
            let one = project.harness(&args);
            reported.push(verdicts(&project));
            ran.push((one.code, one.blamed()));
        }
        assert_eq!(ran[0], ran[1], "{faults:?}");
        assert!(reported[0].len() > 300, "{}", reported[0].len());
        let differ: Vec<_> = reported[0]
            .iter()
            .filter(|(name, verdict)| reported[1].get(*name) != Some(verdict))
            .take(5)
            .collect();
        assert!(differ.is_empty() && reported[0].len() == reported[1].len(), "{faults:?}: {differ:#?}");
    }
}

#[test]
fn a_connection_that_drops_changes_no_verdict_and_leaves_a_finding() {
    let project = Project::new();
    let ran = run(&project, &["pair-all_", "--sim-fault", "p5-002:connection-drops"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let verdict = project.json("cases/pair-all_reduce/verdict.json");
    let findings = verdict["findings"].as_array().expect("findings");
    let dropped: Vec<&Value> =
        findings.iter().filter(|finding| finding["code"] == "connection-drops").collect();
    assert!(
        !dropped.is_empty() && dropped.iter().all(|finding| finding["node"] == "p5-002"),
        "{findings:#?}"
    );
    // The answer to its start was lost too, and it was not run twice.
    let events = fs::read_to_string(project.latest().join("events.jsonl")).expect("events");
    let of = |kind: &str| events.lines().filter(|line| line.contains(kind)).count();
    assert_eq!(of("\"job-submitted\""), of("\"job-ended\""));
    assert_eq!(of("\"job-not-submitted\""), 0, "{events}");
}

#[test]
fn two_runs_over_ssh_of_one_seed_have_the_same_verdicts() {
    let project = Project::new();
    let args = &["pair-", "--sim-fault", "p5-002:node-fails", "--sim-fault", "p5-003:connection-drops"];
    let first = run(&project, args);
    let reported = verdicts(&project);
    let second = run(&project, args);
    assert_eq!((first.code, first.blamed()), (second.code, second.blamed()));
    assert_eq!(reported, verdicts(&project));
}

#[test]
fn without_mpirun_a_node_drives_its_gpus_alone_and_several_nodes_are_refused() {
    let project = Project::new();
    let inventory = fs::read_to_string(project.path().join("inventory/sim-ssh.toml")).expect("read");
    project.write("inventory/alone.toml", &format!("{inventory}start = \"processes\"\n"));
    let args = ["--suite", "nccl-p5", "--inventory", "alone", "-q"];
    let ran = project.harness(&args);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    assert!(ran.stderr.contains("runs nccl-tests on one node only"), "{}", ran.stderr);
    project.write(
        "suites/alone.toml",
        "instance = \"p5\"\nabout = \"a node alone\"\n[[case]]\nname = \"node\"\nplacement = \"each\"\n\
         workload = { kind = \"nccl-tests\", op = \"all_reduce\", from = \"1GiB\", to = \"1GiB\", factor = 2 }\n\
         recipes = [\"nccl_tests\"]\n[[case.assert]]\nmetric = \"nccl.busbw\"\nsize = \"1GiB\"\nat_least = \"200 GB/s\"\n",
    );
    let ran = project.harness(&["--suite", "alone", "--inventory", "alone", "-q"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert!(project.latest().join("cases/node/raw/p5-001/stdout.p5-001").is_file());
    let plan = project.json("plan.json");
    let script = plan["cases"][0]["jobs"][0]["files"][0]["text"].as_str().expect("a script");
    assert!(script.contains("-g 8 > ") && !script.contains("mpirun"), "{script}");
}

#[test]
fn what_ssh_cannot_do_is_a_diagnostic_of_the_plan() {
    let project = Project::new();
    project.write(
        "suites/tasks.toml",
        "instance = \"p5\"\nabout = \"x\"\n[[case]]\nname = \"c\"\nplacement = \"each\"\n\
         workload = { kind = \"command\", program = \"true\", tasks_per_node = 2 }\n\
         recipes = [\"command\"]\n[[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n",
    );
    let inventory = fs::read_to_string(project.path().join("inventory/sim-ssh.toml")).expect("read");
    project.write("inventory/boxed.toml", &format!("{inventory}[container]\nimage = \"/x.sqsh\"\n"));
    for (args, expected) in [
        (["--suite", "tasks", "--inventory", "sim-ssh"], "`tasks_per_node = 2` needs Slurm"),
        (
            ["--suite", "nccl-p5", "--inventory", "boxed"],
            "`[container]` over ssh needs `runtime = \"docker\"`",
        ),
    ] {
        let ran = project.harness(&args);
        assert_eq!(ran.code, Some(2), "{}", ran.all());
        assert!(ran.stderr.contains(expected), "{expected}: {}", ran.stderr);
    }
    for (inventory, fault, expected) in [
        ("sim-ssh", "p5-002:preempted", "fault `preempted` does not exist on nodes reached by ssh"),
        ("sim-ssh", "p5-002:queue-stuck", "fault `queue-stuck` does not exist on nodes reached by ssh"),
        ("default", "p5-002:connection-drops", "does not exist on nodes reached by slurm"),
        ("default", "p5-002:host-unreachable", "does not exist on nodes reached by slurm"),
    ] {
        let ran = project.harness(&["--suite", "nccl-p5", "--inventory", inventory, "--sim-fault", fault]);
        assert_eq!(ran.code, Some(2), "{}", ran.all());
        assert!(ran.stderr.contains(expected), "{expected}: {}", ran.stderr);
    }
    assert_eq!(project.runs(), 0, "nothing was launched");
}

#[test]
fn real_nodes_are_planned_over_ssh_without_being_asked() {
    let project = Project::new();
    let args = ["--suite", "nccl-p4de", "--inventory", "ssh-example"];
    let planned = project.harness(&[&args[..], &["--dry-run"]].concat());
    assert_eq!(planned.code, Some(0), "{}", planned.all());
    for expected in ["launched by ssh", "supervisor.sh start", "\"$mpirun\" -np", "'{host}'"] {
        assert!(planned.stdout.contains(expected), "{expected}: {}", planned.stdout);
    }
    assert_eq!(project.harness(&[&args[..], &["--list"]].concat()).code, Some(0));
    assert_eq!(project.runs(), 0);
}

/// What other users leave where control sockets lie is never followed, emptied or asked.
#[test]
fn control_sockets_of_others_and_links_are_left_alone() {
    let project = Project::new();
    project.write(
        "inventory/hssh.toml",
        "kind = \"real\"\ninstance = \"p5\"\nnodes = \"h1\"\n[reach]\nvia = \"ssh\"\nconfig = \"ssh_config\"\n[paths]\nshared = \"/fsx/harness\"\n",
    );
    project.write("ssh_config", "Host *\n  ProxyCommand false\n");
    let victim = project.path().join("victim");
    fs::create_dir(&victim).expect("made");
    fs::write(victim.join("authorized_keys"), "key").expect("written");
    let runtime = project.path().join("runtime");
    for (parent, mode) in [("runtime/harness", 0o700), ("tmp", 0o1777)] {
        let parent = project.path().join(parent);
        fs::create_dir_all(&parent).expect("made");
        fs::set_permissions(&parent, fs::Permissions::from_mode(mode)).expect("set");
        symlink(&victim, parent.join("harness-ssh-4194999-abc")).expect("linked");
        // Ours by its name, and open to others: who knows who wrote into it.
        let open = parent.join("harness-ssh-4194999-open");
        fs::create_dir(&open).expect("made");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).expect("set");
        for file in ["lock", "0"] {
            fs::write(open.join(file), "").expect("written");
        }
    }
    fs::set_permissions(&runtime, fs::Permissions::from_mode(0o700)).expect("set");
    for set in [true, false] {
        let mut command = project.command(&["inventory", "probe", "--inventory", "hssh", "--nodes", "h1"]);
        command.env("TMPDIR", project.path().join("tmp")).env("HOME", project.path().join("home"));
        match set {
            true => command.env("XDG_RUNTIME_DIR", &runtime),
            false => command.env_remove("XDG_RUNTIME_DIR"),
        };
        let ran = crate::project::ran(command.output().expect("the harness starts"));
        assert!(victim.join("authorized_keys").is_file(), "emptied through a link: {}", ran.all());
        for parent in ["runtime/harness", "tmp"] {
            let open = project.path().join(parent).join("harness-ssh-4194999-open/0");
            assert!(open.is_file(), "{}: {}", open.display(), ran.all());
        }
    }
}
