//! Trainings that hang over several nodes: the dumps of all ranks name the rank that did not come, and its node, before the job
//! is ended; without them no node is named.

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

#[test]
fn without_dumps_of_all_ranks_no_node_is_named() {
    for (inventory, more) in [
        ("default", "[case.workload.environment]\nTORCH_FR_BUFFER_SIZE = \"0\""),
        ("sim-ssh", "[case.workload.environment]\nTORCH_NCCL_DEBUG_INFO_TEMP_FILE = \"/tmp/own_\""),
    ] {
        let project = Project::new();
        let text = suite("").replace(
            "workload = { kind = \"fsdp\", steps = 6, stall_s = 60 }",
            "[case.workload]\nkind = \"fsdp\"\nsteps = 6\nstall_s = 60",
        );
        project.write("suites/mine.toml", &text.replace("stall_s = 60", &format!("stall_s = 60\n{more}")));
        let ran = run(&project, inventory, 1, "p5-002:hang");
        let suspects = "suspects p5-001 p5-002 p5-003".to_owned();
        assert_eq!((ran.code, ran.blamed()), (Some(3), vec![suspects]), "{}", ran.all());
    }
}

#[test]
fn a_rank_that_calls_something_else_is_named_and_no_node_is_blamed() {
    for inventory in ["default", "sim-ssh"] {
        let project = Project::new();
        project.write("suites/mine.toml", &suite(""));
        let ran = run(&project, inventory, 3, "p5-002:mismatch@5");
        assert_eq!((ran.code, ran.blamed()), (Some(3), vec![]), "{}", ran.all());
        let verdict = project.json("cases/train/verdict.json").to_string();
        assert!(verdict.contains("hang: rank 13 called "), "{verdict}");
    }
}
