//! `harness accept` over a real Slurm of eight nodes whose programs are stand-ins: four are new, one of them has a slow NIC.

use super::isolated::inventory;
use crate::bed::StandIns;
use crate::fact::Fact;
use crate::project::{Project, ran};
use crate::slurm_cluster::Cluster;

pub(super) const FACTS: &[Fact] = &[(
    "the_one_of_four_new_nodes_with_a_slow_nic_is_rejected_and_costs_nothing_more",
    the_one_of_four_new_nodes_with_a_slow_nic_is_rejected_and_costs_nothing_more,
)];

/// Short, and by limits that need no baseline.
const SUITE: &str = "instance = \"p5\"\nabout = \"new nodes\"\n\
    [[case]]\nname = \"node\"\nplacement = \"each\"\nrecipes = [\"nccl_tests\"]\n\
    workload = { kind = \"nccl-tests\", op = \"all_reduce\", from = \"1GiB\", to = \"1GiB\", factor = 2 }\n\
    [[case.assert]]\nmetric = \"nccl.wrong\"\nequals = 0\n\
    [[case]]\nname = \"nic-pairs\"\nplacement = \"pairs\"\nrecipes = [\"nic_flows\"]\n\
    workload = { kind = \"nic-pairs\", seconds = 5 }\n\
    [[case.assert]]\nmetric = \"nic.rate\"\nper = \"nic\"\nat_least = \"11 GB/s\"\n\
    [[case]]\nname = \"all\"\nplacement = \"all\"\nrecipes = [\"nccl_tests\"]\n\
    workload = { kind = \"nccl-tests\", op = \"all_gather\", from = \"1GiB\", to = \"1GiB\", factor = 2 }\n\
    [[case.assert]]\nmetric = \"nccl.wrong\"\nequals = 0\n";

fn the_one_of_four_new_nodes_with_a_slow_nic_is_rejected_and_costs_nothing_more() {
    let project = Project::new();
    let fault = "seed = 7\nfaults = [\"n6:nic-slow=0.5@rdmap113s0\"]\nfloor_s = 0.8\n";
    let programs = StandIns::new("n[1-8]", fault);
    let cluster = Cluster::start(8);
    inventory(&project, "n[1-8]", &programs, &cluster);
    project.write("suites/new.toml", SUITE);
    let words =
        ["accept", "--suite", "new", "--inventory", "live", "--nodes", "n[5-8]", "--partners", "n[1-4]"];
    let mut command = project.command(&[&words[..], &["--out", "out"]].concat());
    command.envs(cluster.variables());
    let ran = ran(command.output().expect("the harness starts"));
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    assert!(ran.stdout.contains("rejected at pairs: HRN-NIC-SLOW replace n6 rdmap113s0: "), "{}", ran.all());
    let last = ran.stdout.lines().last().unwrap_or_default();
    assert!(last.starts_with("accepted 3, rejected 1, not decided 0, runs 3, "), "{}", ran.all());
    // Its programs only simulated, and that is reported though the cluster is a real one.
    assert!(ran.stdout.contains("SIMULATED"), "{}", ran.all());
    let all = std::fs::read_dir(project.path().join("out/runs")).expect("runs").flatten();
    let all = all.map(|entry| entry.path()).find(|path| path.to_string_lossy().ends_with("-03-all"));
    let plan = std::fs::read_to_string(all.expect("a run").join("plan.json")).expect("a plan");
    let plan: model::artefact::Plan = serde_json::from_str(&plan).expect("a plan");
    let jobs: Vec<&[String]> = plan.cases[0].jobs.iter().map(|job| job.nodes.as_slice()).collect();
    assert_eq!(jobs, [["n5", "n7", "n8"].map(str::to_owned).as_slice()]);
    cluster.assert_nothing_is_left();
}
