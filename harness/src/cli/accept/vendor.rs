//! A copy of a delivery for its vendor: every text without the names that tell whose cluster it is, and nothing that is no
//! text. What a name is replaced by is `accept::pseudonyms`' business.

use super::certificate::VENDOR;
use super::delivery::{Delivery, RECORD, Stopped, machinery};
use crate::accept::pseudonyms::Pseudonyms;
use crate::inventory::{Inventory, ReachBy};
use crate::store::{self, CHECKSUMS, Home, checksums};
use std::fs;
use std::path::Path;

/// What every other cluster has too.
const PLAIN: [&str; 12] =
    ["root", "gpu", "batch", "debug", "default", "normal", "all", "main", "compute", "nodes", "mpi", "none"];
const LEFT_OUT: &str = "left-out.txt";

/// Gives the number of files that were written. Nothing is, where a name would be left in one.
pub fn write(home: &Home, delivery: &Delivery) -> Result<usize, Stopped> {
    let mut pseudonyms = known(home, delivery);
    let target = delivery.folder.join(VENDOR);
    if target.exists() {
        fs::remove_dir_all(&target).map_err(machinery)?;
    }
    let mut left_out = String::new();
    let mut texts: Vec<(String, String)> = Vec::new();
    for file in store::files(&delivery.folder).map_err(machinery)? {
        // How it was asked for is the buyer's own business.
        if file == Path::new(CHECKSUMS) || file == Path::new(RECORD) {
            continue;
        }
        let name = pseudonyms.text(&file.to_string_lossy());
        let bytes = fs::read(delivery.folder.join(&file)).map_err(machinery)?;
        match String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')) {
            Some(text) => texts.push((name, pseudonyms.text(&text))),
            None => left_out.push_str(&format!("{name}: no text\n")),
        }
    }
    texts.push((LEFT_OUT.to_owned(), left_out));
    for (name, text) in &texts {
        let left = pseudonyms.first_left(text).or_else(|| pseudonyms.first_left(name));
        if let Some(left) = left {
            return Err(Stopped::Machinery(format!(
                "no copy is made, a name would be left in `{name}`, where it is part of a longer word: `{left}`"
            )));
        }
    }
    for (name, text) in &texts {
        let path = target.join(name);
        store::write_private_by(&path, &mut |file| file.write_all(text.as_bytes())).map_err(machinery)?;
    }
    let sums = checksums(&target, &[]).map_err(machinery)?;
    delivery.write(&format!("{VENDOR}/{CHECKSUMS}"), sums.as_bytes())?;
    Ok(texts.len())
}

/// Whatever the inventory and this machine call their own.
fn known(home: &Home, delivery: &Delivery) -> Pseudonyms {
    let inventory = &delivery.inventory;
    let mut pseudonyms = Pseudonyms::of_nodes(&inventory.nodes);
    let mut add = |kind: &str, name: &str, least: usize| {
        if name.len() >= least && !PLAIN.contains(&name) && name != inventory.instance.name {
            pseudonyms.add(name, kind);
        }
    };
    let paths = &inventory.paths;
    let folder = delivery.folder.canonicalize().unwrap_or_else(|_| delivery.folder.clone());
    add("/delivery", &folder.to_string_lossy(), 2);
    add("/project", &home.path().to_string_lossy(), 2);
    add("/shared", paths.shared.trim_end_matches('/'), 2);
    add("/nccl-tests", paths.nccl_tests.trim_end_matches('/'), 2);
    for path in [&paths.nsys, &paths.harness].into_iter().flatten() {
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

fn names_of_reach(inventory: &Inventory) -> Vec<String> {
    let names = match &inventory.reach {
        ReachBy::Slurm(slurm) => vec![
            slurm.partition.clone(),
            slurm.account.clone(),
            slurm.reservation.clone(),
            slurm.constraint.clone(),
            slurm.login.clone(),
            slurm.login_config.clone(),
        ],
        ReachBy::Ssh(ssh) => vec![ssh.user.clone(), ssh.config.clone()],
        ReachBy::Local => Vec::new(),
    };
    let mut names: Vec<String> = names.into_iter().flatten().collect();
    names.extend(inventory.container.iter().map(|container| container.image.clone()));
    names
}
