//! Jobs that hang over several nodes: the dumps of all ranks, or two reports of NCCL's RAS, name the rank that did not come, and
//! its node, before the job is ended; without either no node is named.
//! A rank that calls something else is named, and no node is blamed.

use crate::project::{Project, Ran};

fn suite(more: &str) -> String {
    format!(
        "instance = \"p5\"\nabout = \"x\"\n[[case]]\nname = \"train\"\nplacement = \"all\"\nrecipes = [\"training_log\"]\n\
         limit_s = 3600\nworkload = {{ kind = \"fsdp\", steps = 6, stall_s = 60 }}\n{more}\n\
         [[case.assert]]\nmetric = \"train.steps_missing\"\nequals = 0\n"
    )
}

fn run(project: &Project, inventory: &str, seed: u64, fault: &str) -> Ran {
    let seed = seed.to_string();
    let base =
        ["--suite", "mine", "-q", "--inventory", inventory, "--nodes", "p5-[001-003]", "--seed", &seed];
    project.harness(&[&base[..], &["--sim-fault", fault]].concat())
}

/// The rank of the evidence, where it is of this node and all others wait for it.
fn named(text: &str, node: &str) -> Option<u64> {
    let (_, rest) = text.split_once("hang: rank ")?;
    let (rank, rest) = rest.split_once(" (")?;
    let gpu = rest.strip_prefix(&format!("{node} GPU "))?;
    let (gpu, rest) = gpu.split_once(") did not enter ")?;
    let (rank, gpu): (u64, u64) = (rank.parse().ok()?, gpu.parse().ok()?);
    let is_whole = rest.contains(" of communicator ") && rest.contains("; 23 ranks wait");
    let number: u64 = node.strip_prefix("p5-")?.parse().ok()?;
    (is_whole && rank % 8 == gpu && rank / 8 + 1 == number).then_some(rank)
}

fn names_the_rank(inventory: &str) {
    let project = Project::new();
    project.write("suites/mine.toml", &suite(""));
    let (mut wrong, mut ranks) = (Vec::new(), Vec::new());
    for seed in 1..=10 {
        let node = format!("p5-00{}", 1 + seed % 3);
        let ran = run(&project, inventory, seed, &format!("{node}:hang"));
        let verdict = project.json("cases/train/verdict.json").to_string();
        let job = project.json("cases/train/job.json");
        let is_stall = job["jobs"][0]["end"]["how"] == "stall";
        let rank = named(&verdict, &node);
        ranks.extend(rank);
        if (ran.code, ran.blamed()) != (Some(3), vec![format!("culprit {node} node")])
            || !is_stall
            || rank.is_none()
        {
            wrong.push(format!("seed {seed}, {node}: {}\n{verdict}", ran.all()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    ranks.sort_unstable();
    ranks.dedup();
    assert!(ranks.len() > 4, "drawn ranks: {ranks:?}");
}

#[test]
fn under_slurm_the_rank_is_named_before_the_job_is_ended() {
    names_the_rank("default");
}

#[test]
fn over_ssh_the_rank_is_named_before_the_job_is_ended() {
    names_the_rank("sim-ssh");
}

/// The training with these variables.
fn with(variables: &[&str]) -> String {
    let lines = variables.join("\n");
    let table = format!(
        "[case.workload]\nkind = \"fsdp\"\nsteps = 6\nstall_s = 60\n[case.workload.environment]\n{lines}"
    );
    suite("").replace("workload = { kind = \"fsdp\", steps = 6, stall_s = 60 }", &table)
}

const NO_DUMPS: [(&str, &str); 2] = [
    ("default", "TORCH_FR_BUFFER_SIZE = \"0\""),
    ("sim-ssh", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE = \"/tmp/own_\""),
];

#[test]
fn without_dumps_ras_shows_the_rank_and_no_node_is_blamed() {
    for (inventory, variable) in NO_DUMPS {
        let project = Project::new();
        project.write("suites/mine.toml", &with(&[variable]));
        let ran = run(&project, inventory, 1, "p5-002:hang");
        // Ranks of a training launch ahead: who launched less may itself wait for what it receives.
        assert_eq!((ran.code, ran.blamed()), (Some(3), vec![]), "{}", ran.all());
        let verdict = project.json("cases/train/verdict.json").to_string();
        assert!(verdict.contains("hang: rank ") && verdict.contains(" (p5-002 GPU "), "{verdict}");
        assert!(verdict.contains("AllReduce, 23 others 1"), "{verdict}");
        assert!(verdict.contains("; NCCL RAS, twice; no progress for 60 s"), "{verdict}");
    }
}

#[test]
fn without_dumps_and_ras_no_node_is_named() {
    for (inventory, variable) in NO_DUMPS {
        let project = Project::new();
        project.write("suites/mine.toml", &with(&[variable, "NCCL_RAS_ENABLE = \"0\""]));
        let ran = run(&project, inventory, 1, "p5-002:hang");
        let suspects = "suspects p5-001 p5-002 p5-003".to_owned();
        assert_eq!((ran.code, ran.blamed()), (Some(3), vec![suspects]), "{}", ran.all());
    }
}

#[test]
fn a_collective_of_nccl_tests_that_hangs_names_the_node_that_launched_less() {
    let suite = |op: &str, more: &str| {
        format!(
            "instance = \"p5\"\nabout = \"x\"\n[[case]]\nname = \"sweep\"\nplacement = \"all\"\n\
             recipes = [\"nccl_tests\"]\nlimit_s = 3600\nworkload = {{ kind = \"nccl-tests\", op = \"{op}\", \
             from = \"1GiB\", to = \"8GiB\", factor = 2, stall_s = 60{more} }}\n\
             [[case.assert]]\nmetric = \"nccl.busbw\"\nsize = \"8GiB\"\nat_least = \"1 GB/s\"\n"
        )
    };
    let culprit = || vec!["culprit p5-002 node".to_owned()];
    let suspects = || vec!["suspects p5-001 p5-002 p5-003".to_owned()];
    for (inventory, op, more, blamed) in [
        ("default", "all_reduce", "", culprit()),
        ("sim-ssh", "reduce_scatter", "", culprit()),
        // More than are queued: who waits is held up as well.
        ("default", "all_reduce", ", iterations = 500", suspects()),
        // Sends and receives have no count.
        ("default", "alltoall", "", suspects()),
        ("sim-ssh", "all_reduce", ", environment = { NCCL_RAS_ADDR = \":28029\" }", suspects()),
    ] {
        let project = Project::new();
        project.write("suites/mine.toml", &suite(op, more));
        let ran = run(&project, inventory, 1, "p5-002:hang");
        assert_eq!((ran.code, ran.blamed()), (Some(3), blamed), "{inventory} {op}: {}", ran.all());
        if ran.blamed() == culprit() {
            let verdict = project.json("cases/sweep/verdict.json").to_string();
            assert!(verdict.contains("hang: ranks 8-15 (p5-002) launched 1"), "{verdict}");
        }
    }
}

#[test]
fn a_rank_that_calls_something_else_is_named_with_its_node_and_no_node_is_blamed() {
    for inventory in ["default", "sim-ssh"] {
        for (fault, called) in [("mismatch@5", "called "), ("mismatch-size@5", "called with ")] {
            let project = Project::new();
            project.write("suites/mine.toml", &suite(""));
            let ran = run(&project, inventory, 3, &format!("p5-002:{fault}"));
            assert_eq!((ran.code, ran.blamed()), (Some(3), vec![]), "{}", ran.all());
            let verdict = project.json("cases/train/verdict.json").to_string();
            assert!(verdict.contains(&format!("hang: rank 13 (p5-002 GPU 5) {called}")), "{verdict}");
        }
    }
}
