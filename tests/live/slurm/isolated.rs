//! `harness isolate` over a real Slurm of eight nodes whose programs are stand-ins: one fault, its part, and nothing left.

use crate::bed::StandIns;
use crate::fact::Fact;
use crate::project::{Project, ran};
use crate::slurm_cluster::Cluster;

pub const FACTS: &[Fact] = &[(
    "one_slow_nic_among_eight_nodes_is_named_and_nobody_else_is",
    one_slow_nic_among_eight_nodes_is_named_and_nobody_else_is,
)];

fn one_slow_nic_among_eight_nodes_is_named_and_nobody_else_is() {
    let project = Project::new();
    let fault = "seed = 7\nfaults = [\"n6:nic-slow=0.5@rdmap113s0\"]\nfloor_s = 0.8\n";
    let programs = StandIns::new("n[1-8]", fault);
    let cluster = Cluster::start(8);
    let (shared, state) = (project.path().join("shared"), programs.state());
    let (shared, state) = (shared.display(), state.display());
    project.write(
        "inventory/eight.toml",
        &format!(
            "kind = \"real\"\ninstance = \"p5\"\nnodes = \"n[1-8]\"\n[reach]\nvia = \"slurm\"\nmpi = \"pmi2\"\n\
             [paths]\nshared = \"{shared}\"\nnccl_tests = \"{state}/bin\"\ncounters = \"{state}/hosts/{{host}}\"\n\
             [environment]\nPATH = \"{state}/bin:/usr/local/bin:/usr/bin:/bin\"\n"
        ),
    );
    let mut command = project.command(&["isolate", "--suite", "nccl-p5", "--inventory", "eight"]);
    command.env("SLURM_CONF", cluster.configuration());
    let ran = ran(command.output().expect("the harness starts"));
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    let named: Vec<&str> = ran.stdout.lines().filter(|line| line.starts_with("HRN-")).collect();
    let right = named.len() == 1 && named[0].starts_with("HRN-NIC-SLOW replace n6 rdmap113s0: ");
    assert!(right, "{}", ran.all());
    // Its programs only pretend, and that is told though the cluster is a real one.
    assert!(ran.stdout.contains("SIMULATED"), "{}", ran.all());
    let last = ran.stdout.lines().last().unwrap_or_default();
    assert!(last.starts_with("culprits 1, runs ") && last.contains("(all pairs: 28)"), "{last}");
    cluster.assert_nothing_is_left();
}
