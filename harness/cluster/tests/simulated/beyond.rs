//! Nodes that Slurm lists beyond those of an inventory: who is named, with which command, and where nothing is.

use cluster::probe::nodes_beyond;
use cluster::reach::{Answer, Command, Host, Reach, ReachError, Wait};
use config::inventory::{Instances, Inventory};
use std::path::Path;

/// A Slurm that gives one answer to its only question.
struct OneAnswer(Answer);

impl Reach for OneAnswer {
    fn exec<'a>(&'a self, _host: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        assert_eq!(command.argv.first().map(String::as_str), Some("sinfo"));
        Box::pin(async move { Ok(self.0.clone()) })
    }

    fn put<'a>(&'a self, _: &'a Host, path: &'a str, _: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        panic!("nothing is written: {path}")
    }

    fn get<'a>(&'a self, _: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        panic!("nothing is read: {path}")
    }
}

fn named(reach: &str, answer: Answer) -> Option<String> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a root");
    let instances = Instances::load(home).expect("sound instances");
    let text = format!(
        "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"p5-[001-002]\"\n[reach]\n{reach}\n[world]\n"
    );
    let inventory = Inventory::read(&text, "inventory/x.toml", &instances).expect("good");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(nodes_beyond(&OneAnswer(answer), &inventory))
}

#[test]
fn nodes_of_the_partition_beyond_the_inventory_come_with_the_command_that_lists_them() {
    let listed = "p5-001|idle|gpu*|efa\np5-002|alloc|gpu*|efa\np5-005|idle|gpu*|efa\np5-006|mix|gpu*|efa\n\
                  p5-007|drng|gpu*|efa\n";
    let named = |reach: &str| named(reach, Answer::ok(listed));
    let note = "2 nodes of partition `gpu` beyond the inventory: p5-[005-006]; next: harness inventory discover \
                --partition gpu";
    assert_eq!(named("via = \"slurm\""), Some(format!("{note} --output x-all")));
    assert_eq!(
        named("via = \"slurm\"\npartition = \"gpu\"\nconstraint = \"efa\""),
        Some(format!("{note} --feature efa --output x-all"))
    );
    assert_eq!(named("via = \"slurm\"\npartition = \"cpu\""), None);
    assert_eq!(named("via = \"ssh\""), None);
}

#[test]
fn a_slurm_that_lists_no_further_nodes_or_none_at_all_names_none() {
    for answer in [
        Answer::ok("p5-001|idle|gpu*|efa\np5-002|alloc|gpu*|efa\n"),
        Answer::ok(""),
        Answer::failed(1, "slurm_load_partitions: Unable to contact slurm controller (connect failure)\n"),
    ] {
        assert_eq!(named("via = \"slurm\"", answer.clone()), None, "{answer:?}");
    }
}
