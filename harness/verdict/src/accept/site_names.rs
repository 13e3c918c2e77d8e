//! The names that an inventory and this machine call their own, each with what stands for it where others read.

use super::pseudonyms::Pseudonyms;
use config::inventory::Inventory;
use std::fs;

/// What every other cluster has too.
const PLAIN: [&str; 16] = [
    "root", "gpu", "batch", "debug", "default", "normal", "all", "main", "compute", "nodes", "mpi", "none",
    "ubuntu", "ec2-user", "slurm", "admin",
];

/// One more name, where it is one.
pub fn add(pseudonyms: &mut Pseudonyms, inventory: &Inventory, other: &str, name: &str) {
    if is_own(name, 3) && name != inventory.instance.name {
        pseudonyms.add(name, other);
    }
}

/// Pseudonyms for the names in the inventory, and for user, home and host of this machine.
pub fn pseudonyms_for(inventory: &Inventory) -> Pseudonyms {
    let mut pseudonyms = Pseudonyms::for_nodes(&inventory.nodes);
    for (other, name) in inventory_names(inventory).into_iter().chain(machine_names()) {
        pseudonyms.add(&name, &other);
    }
    pseudonyms
}

/// What stands for the names in an inventory, and these; without its nodes.
pub fn inventory_names(inventory: &Inventory) -> Vec<(String, String)> {
    let mut names = Vec::new();
    let mut add = |other: &str, name: &str, least: usize| {
        if is_own(name, least) && name != inventory.instance.name {
            names.push((other.to_owned(), name.to_owned()));
        }
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
    names
}

/// What stands for user, home and host of this machine, and these.
pub fn machine_names() -> Vec<(String, String)> {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let names = [
        ("user-1", variable("USER"), 3),
        ("user-1", variable("LOGNAME"), 3),
        ("/home-of-user-1", variable("HOME"), 6),
        ("host-0", host.trim().to_owned(), 3),
    ];
    let own = names.into_iter().filter(|(_, name, least)| is_own(name, *least));
    own.map(|(other, name, _)| (other.to_owned(), name)).collect()
}

/// Whether a name is long enough to be looked for, and not one that every cluster has.
pub fn is_own(name: &str, least: usize) -> bool {
    name.len() >= least && !PLAIN.contains(&name)
}

fn names_of_reach(inventory: &Inventory) -> Vec<&str> {
    let mut names = inventory.reach.planner().site_names();
    names.extend(inventory.container.iter().map(|container| container.image.as_str()));
    names
}
