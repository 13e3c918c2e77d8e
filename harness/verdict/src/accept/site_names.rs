//! The names that an inventory and this machine call their own, each with what stands for it where others read.

use super::pseudonyms::Pseudonyms;
use config::inventory::Inventory;
use std::fs;

/// What every other cluster has too.
const PLAIN: [&str; 12] =
    ["root", "gpu", "batch", "debug", "default", "normal", "all", "main", "compute", "nodes", "mpi", "none"];

/// One more name, where it is one.
pub fn add(pseudonyms: &mut Pseudonyms, inventory: &Inventory, other: &str, name: &str) {
    add_from(pseudonyms, inventory, other, name, 3);
}

fn add_from(pseudonyms: &mut Pseudonyms, inventory: &Inventory, other: &str, name: &str, least: usize) {
    if name.len() >= least && !PLAIN.contains(&name) && name != inventory.instance.name {
        pseudonyms.add(name, other);
    }
}

/// Pseudonyms for the names in the inventory, and for user, home and host of this machine.
pub fn pseudonyms_for(inventory: &Inventory) -> Pseudonyms {
    let mut pseudonyms = Pseudonyms::for_nodes(&inventory.nodes);
    let mut add = |other: &str, name: &str, least: usize| {
        add_from(&mut pseudonyms, inventory, other, name, least);
    };
    let paths = &inventory.paths;
    add("/shared", paths.shared.trim_end_matches('/'), 2);
    add("/nccl-tests", paths.nccl_tests.trim_end_matches('/'), 2);
    let samples = &paths.samples;
    let samples = [&samples.fsdp, &samples.nemo, &samples.megatron, &samples.ddp, &samples.torchrun];
    for path in [&paths.nsys, &paths.harness, &paths.slurm, &paths.mpirun, &paths.nccl_inspector]
        .into_iter()
        .chain(samples)
        .flatten()
    {
        add("/program", path, 2);
    }
    add("cluster-1", &inventory.name, 3);
    for (at, group) in inventory.groups.keys().enumerate() {
        add(&format!("group-{}", at + 1), group, 3);
    }
    for (at, name) in names_of_reach(inventory).iter().enumerate() {
        add(&format!("name-{}", at + 1), name, 3);
    }
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    for name in ["USER", "LOGNAME"] {
        add("user-1", &variable(name), 3);
    }
    add("/home-of-user-1", &variable("HOME"), 6);
    let own = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    add("host-0", own.trim(), 3);
    pseudonyms
}

fn names_of_reach(inventory: &Inventory) -> Vec<&str> {
    let mut names = inventory.reach.planner().site_names();
    names.extend(inventory.container.iter().map(|container| container.image.as_str()));
    names
}
