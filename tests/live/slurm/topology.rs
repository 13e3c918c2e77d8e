//! Ranks of a job in the order of Slurm's own topology: found by `discover`, written beside the inventory, obeyed by srun.

use super::bench::{Bench, case};
use crate::fact::Fact;
use crate::project::ran;
use std::fs;

pub(super) const FACTS: &[Fact] =
    &[("ranks_are_numbered_along_the_switches_that_slurm_reports", ranks_along_switches)];

const LINES: [&str; 4] = [
    "TopologyPlugin=topology/tree",
    "SwitchName=leaf1 Nodes=n[1,3]",
    "SwitchName=leaf2 Nodes=n[2,4]",
    "SwitchName=spine Switches=leaf[1-2]",
];

fn ranks_along_switches() {
    let cases = case("all", "\"all\"", "ranks", "").replace("/ranks\"", "/ranks\", tasks_per_node = 2");
    let bench = Bench::on(4, &LINES, "", &cases);
    bench.program("ranks", "echo $SLURM_PROCID $SLURMD_NODENAME >BENCH/rank.$SLURM_PROCID");
    let discover =
        ["inventory", "discover", "--partition", "main", "--instance", "p5.48xlarge", "--output", "found"];
    let found = ran(bench.command(&discover).output().expect("the harness starts"));
    assert_eq!(found.code, Some(0), "{}", found.all());
    assert!(found.stdout.contains("written: inventory/found.topology"), "{}", found.all());
    let project = bench.project.path();
    let inventory = project.join("inventory/live.toml");
    let text = fs::read_to_string(&inventory).expect("the inventory");
    let written = fs::read_to_string(project.join("inventory/found.toml")).expect("written");
    let key = "file = \"inventory/found.topology\"";
    assert!(written.contains(key), "{written}");
    fs::write(&inventory, format!("{text}[topology]\n{key}\n")).expect("written");

    let run = bench.run();
    assert_eq!(run.code, Some(0), "{}", run.all());
    let rank = |at: usize| fs::read_to_string(project.join(format!("rank.{at}"))).unwrap_or_default();
    let ranks: String = (0..8).map(rank).collect();
    assert_eq!(ranks, "0 n1\n1 n1\n2 n3\n3 n3\n4 n2\n5 n2\n6 n4\n7 n4\n", "{}", run.all());
}
