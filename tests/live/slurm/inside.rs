//! A harness that is itself a job of Slurm, as in CI on a cluster: the variables of that job do not reach the nodes
//! that it probes and measures.

use super::bench::{Bench, case, until};
use crate::fact::Fact;
use crate::project::HARNESS;
use std::fs;

pub(super) const FACTS: &[Fact] =
    &[("a_harness_inside_an_allocation_probes_and_measures_other_nodes", inside_an_allocation)];

fn inside_an_allocation() {
    let bench = Bench::with_cases(3, "", &case("each", "\"each\"", "well", ""));
    bench.program("well", "[[ $(hostname) == \"$SLURMD_NODENAME\" ]]");
    let inventory = bench.project.path().join("inventory/live.toml");
    let text = fs::read_to_string(&inventory).expect("an inventory");
    fs::write(&inventory, text.replace("nodes = \"n[1-3]\"", "nodes = \"n[1-2]\"")).expect("written");
    let (folder, path) = (bench.folder(), format!("{}/usr/bin:/bin", bench.cluster.first_on_path()));
    bench.program(
        "harness-as-a-job",
        &format!(
            "export PATH={path}\ncd {folder}\n{HARNESS} --suite live --inventory live >out 2>err\necho $? >code.part && mv code.part code"
        ),
    );
    bench.cluster.ask(&[
        "sbatch",
        "--nodelist=n3",
        "--ntasks=1",
        "--gres=gpu:1",
        "--output=/dev/null",
        &format!("{folder}/bin/harness-as-a-job"),
    ]);
    until("the end of the harness", || bench.has("code").then_some(()));
    let text = |file: &str| fs::read_to_string(bench.project.path().join(file)).unwrap_or_default();
    let all = format!("{}\n{}", text("out"), text("err"));
    assert_eq!(text("code").trim(), "0", "{all}");
    assert!(!all.contains("not probed"), "{all}");
    bench.cluster.assert_nothing_is_left();
}
