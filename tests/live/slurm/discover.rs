//! An inventory from what a real Slurm reports its nodes, and a run that is planned from it alone.

use super::bench::{Bench, case, until};
use crate::fact::Fact;
use crate::project::{Ran, ran};
use std::time::{Duration, Instant};

pub(super) const FACTS: &[Fact] = &[(
    "an_inventory_is_discovered_without_the_nodes_that_take_no_jobs",
    an_inventory_is_discovered_without_the_nodes_that_take_no_jobs,
)];

const DISCOVER: [&str; 8] =
    ["inventory", "discover", "--partition", "main", "--instance", "p5.48xlarge", "--output", "found"];

fn an_inventory_is_discovered_without_the_nodes_that_take_no_jobs() {
    let bench = Bench::new(&case("runs", "\"each\"", "runs", ""));
    bench.program("runs", "exit 0");
    let update = |node: &str, state: &str, reason: &str| {
        let (node, state, reason) =
            (format!("NodeName={node}"), format!("State={state}"), format!("Reason={reason}"));
        bench.cluster.ask(&["scontrol", "update", &node, &state, &reason]);
    };
    update("n2", "drain", "a fan | is loud # and more");
    update("n3", "down", "power");
    until("the state of the nodes", || {
        let line =
            bench.cluster.ask(&["sinfo", "--noheader", "--Node", "--partition=main", "--format=%N %T"]);
        (line.contains("n2 drained") && line.contains("n3 down")).then_some(())
    });
    let discover = |more: &[&str]| {
        let args: Vec<&str> = DISCOVER.iter().chain(more).copied().collect();
        ran(bench.command(&args).output().expect("the harness starts"))
    };
    let found = discover(&[]);
    // Of newer ones the JSON is read, which says `drain` also once nothing runs there any more.
    let drained = if found.stdout.contains("n2: drained") { "drained" } else { "drain" };
    assert_eq!(found.code, Some(0), "{}", found.all());
    assert!(
        found.stdout.contains(&format!("excluded n2: {drained}: a fan | is loud # and more (root")),
        "{}",
        found.all()
    );
    assert!(found.stdout.contains("excluded n3: down: power"), "{}", found.all());
    assert!(found.stdout.contains("2 nodes of p5: n[1,4]; 2 excluded"), "{}", found.all());
    let written =
        std::fs::read_to_string(bench.project.path().join("inventory/found.toml")).expect("written");
    assert!(
        written.contains("nodes = \"n[1,4]\"") && written.contains(&format!("#   n2: {drained}")),
        "{written}"
    );

    let again = discover(&[]);
    assert_eq!(again.code, Some(2), "{}", again.all());
    assert!(again.stderr.contains("--force"), "{}", again.all());
    // Slurm has changed its mind; the file has not, until it is rewritten.
    update("n2", "resume", "");
    let listed = bench.project.harness(&["--suite", "live", "--inventory", "found", "--list"]);
    assert!(listed.stdout.contains("@n4") && !listed.stdout.contains("@n2"), "{}", listed.all());
    // Beside it a busy machine may lose another node for a moment.
    let has_n2 = |ran: &Ran| ran.code == Some(0) && !ran.stdout.contains("excluded n2");
    let from = Instant::now();
    let mut renewed = discover(&["--force"]);
    while !has_n2(&renewed) && from.elapsed() < Duration::from_secs(60) {
        renewed = discover(&["--force"]);
    }
    assert!(has_n2(&renewed), "{}", renewed.all());

    let wrong = discover(&["--force", "--feature", "nosuch"]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.all());
    bench.cluster.script("stop", &["slurmctld"]);
    let away = discover(&["--force"]);
    assert_eq!(away.code, Some(3), "{}", away.all());
    bench.cluster.script("start", &["slurmctld"]);
}
