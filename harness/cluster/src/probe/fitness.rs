//! Which nodes cannot pass, by their facts: compared with the profile of their instance, and with the requirements of
//! the inventory. What is not reported speaks neither for a node nor against it, unless it is asked for, or every such
//! node has it.

use super::environment::environment_findings;
use base::nodeset;
use base::text::{count, first_few};
use config::facts::version;
use config::inventory::{Instance, Inventory, Kind};
use model::artefact::{Probe, ProbedNode, Value};
use std::cmp::Ordering;

/// Less room than this is filled by the outputs of a few jobs.
const LEAST_ROOM: u64 = 256 << 20;
/// What the vendor's own health check of EFA instances asks for.
const LEAST_LOCKED: u64 = 16 << 30;
/// A clock that is further off makes files of nodes look older or newer than they are.
const OFF_MS: f64 = 1000.0;

/// Fills in what makes a node unfit, and what is odd about it. `broken` are the facts that report themselves as broken.
pub fn weigh(
    node: &mut ProbedNode,
    broken: impl IntoIterator<Item = String>,
    inventory: &Inventory,
    allow_busy: bool,
) {
    let mut unfit: Vec<String> = broken.into_iter().collect();
    let mut notes = Vec::new();
    unread(node, inventory, &mut unfit, &mut notes);
    gpus(node, &inventory.instance, &mut unfit);
    nics(node, inventory, &mut unfit, &mut notes);
    shared(node, inventory, &mut unfit);
    if let Some(Value::Names(busy)) = node.facts.get("busy")
        && !busy.is_empty()
    {
        let busy = format!("{BUSY}its GPUs are in use by {}", first_few(busy, MOST));
        if allow_busy { notes.push(busy) } else { unfit.push(busy) }
    }
    unfit.extend(inventory.probe.iter().filter_map(|requirement| requirement.unmet(node)));
    odd(node, inventory, &mut notes);
    notes.extend(environment_findings(node, inventory));
    node.unfit = unfit;
    node.notes = notes;
}

/// What every node of such an instance has, and nothing on this one reports: a driver or a module is gone, or was never
/// installed. On machines whose firmware says that they are something else it is a note.
fn unread(node: &ProbedNode, inventory: &Inventory, unfit: &mut Vec<String>, notes: &mut Vec<String>) {
    let is_instance = inventory.kind == Kind::Simulated || is_of_p_family(node);
    let several = inventory.nodes.len() > 1;
    for (fact, what, is_asked) in [
        ("gpus", "no GPU can be read", true),
        ("nics", "no EFA device can be read", true),
        // A container brings its own plugin; one node alone sends nothing over EFA.
        ("ofi_nccl", "no aws-ofi-nccl plugin, so NCCL uses TCP", several && inventory.container.is_none()),
    ] {
        let why = node.unknown.get(fact).filter(|why| !why.starts_with(PLUGIN));
        if let Some(why) = why.filter(|_| is_asked && !node.facts.contains_key(fact)) {
            let line = format!("{what}: {why}");
            if is_instance { unfit.push(line) } else { notes.push(line) }
        }
    }
}

/// Begins the reason of a plugin that is there and bears a commit in place of a number: `aws-ofi-nccl git-6e504db of ...`.
const PLUGIN: &str = "aws-ofi-nccl ";

/// By its firmware, such as `p5.48xlarge`.
fn is_of_p_family(node: &ProbedNode) -> bool {
    let Some(Value::Text(product)) = node.facts.get("instance") else { return false };
    let family = product.split('.').next().unwrap_or_default();
    product.contains('.')
        && family.strip_prefix('p').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn gpus(node: &ProbedNode, instance: &Instance, unfit: &mut Vec<String>) {
    if let Some(Value::Number(gpus)) = node.facts.get("gpus")
        && *gpus != u64::from(instance.gpus)
    {
        let gpus = count(*gpus, "GPU");
        unfit.push(format!("nvidia-smi lists {gpus}, expected {} (`{}`)", instance.gpus, instance.name));
    }
    // The driver says more of a model than its name, and in other words.
    let name = instance.gpu.split(' ').next().unwrap_or_default();
    if let Some(Value::Text(models)) = node.facts.get("gpu")
        && !models.split(" and ").all(|model| model.contains(name))
    {
        unfit.push(format!("GPUs are {models}, expected {name} (`{}`)", instance.name));
    }
}

fn nics(node: &ProbedNode, inventory: &Inventory, unfit: &mut Vec<String>, notes: &mut Vec<String>) {
    let instance = &inventory.instance;
    let Some(Value::Names(there)) = node.facts.get("nics") else { return };
    if instance.device_names_seen {
        let missing: Vec<&String> = instance.nics.iter().filter(|nic| !there.contains(nic)).collect();
        let others: Vec<&String> = there.iter().filter(|nic| !instance.nics.contains(nic)).collect();
        if !missing.is_empty() {
            let named = match others.as_slice() {
                [] => String::new(),
                others => format!("; other devices: {}", first_few(others, MOST)),
            };
            unfit.push(format!(
                "NICs: {} of {}, missing: {}{named}",
                there.len() - others.len(),
                instance.nics.len(),
                first_few(&missing, MOST)
            ));
        } else if !others.is_empty() {
            notes.push(format!("NICs beyond those of `{}`: {}", instance.name, first_few(&others, MOST)));
        }
    } else if there.len() != instance.nics.len() {
        let nics = count(there.len(), "NIC");
        unfit.push(format!("{nics}, expected {} (`{}`)", instance.nics.len(), instance.name));
    } else if inventory.lacks_device_names() {
        let mut names = there.clone();
        nodeset::sort(&mut names);
        notes.push(format!(
            "its profile does not name its NICs: {}",
            inventory.device_names_to_write(Some(&names))
        ));
    }
    if let Some(Value::Names(down)) = node.facts.get("nics_down")
        && !down.is_empty()
    {
        unfit.push(format!("NICs whose link is not active: {}", first_few(down, MOST)));
    }
}

fn shared(node: &ProbedNode, inventory: &Inventory, unfit: &mut Vec<String>) {
    let folder = &inventory.paths.shared;
    if let Some(Value::Text(state)) = node.facts.get("shared")
        && state != "writable"
    {
        unfit.push(format!("shared folder `{folder}`: {state}"));
    }
    room(node, inventory, unfit);
}

fn room(node: &ProbedNode, inventory: &Inventory, unfit: &mut Vec<String>) {
    let folder = &inventory.paths.shared;
    if let Some(Value::Number(bytes)) = node.facts.get(ROOM)
        && *bytes < LEAST_ROOM
    {
        unfit.push(format!(
            "shared folder `{folder}`: {} MiB free, limit {} MiB",
            bytes >> 20,
            LEAST_ROOM >> 20
        ));
    }
}

/// The findings against a node whose folder lacks space.
fn lacks_room(node: &ProbedNode, inventory: &Inventory) -> Vec<String> {
    let mut lacks = Vec::new();
    room(node, inventory, &mut lacks);
    let asked = inventory.probe.iter().filter(|requirement| requirement.fact == ROOM);
    let is_known = node.facts.contains_key(ROOM);
    lacks.extend(asked.filter(|_| is_known).filter_map(|requirement| requirement.unmet(node)));
    lacks
}

/// Whether nothing of the node itself keeps it from passing: its GPUs are in use, the shared folder has no room, no
/// machine is there, Slurm's GRES gives jobs no GPUs of it, an autoscaler or a cloud is about to take it away, or what runs on it
/// beside us leaves it short of memory, disk or processes. A folder that is full on some nodes only is not the one that they share.
pub fn is_external(node: &ProbedNode, made: &Probe, inventory: &Inventory) -> bool {
    let mut probed = made.nodes.iter().filter(|node| node.unprobed.is_none());
    let is_shared = probed.all(|other| !lacks_room(other, inventory).is_empty());
    // Counted, not compared: an older version worded the reasons of a stored probe otherwise.
    let room = if is_shared { lacks_room(node, inventory).len() } else { 0 };
    let elsewhere = [BUSY, NO_MACHINE, NO_GRES, PRESSURE, LEAVING];
    let is_elsewhere = |why: &&String| elsewhere.iter().any(|begin| why.starts_with(begin));
    let others = node.unfit.iter().filter(is_elsewhere).count();
    room + others > 0 && node.unfit.len() == room + others
}

const BUSY: &str = "busy: ";
/// The queue knows a name, and nothing runs behind it.
pub(super) const NO_MACHINE: &str = "no machine: ";
/// Slurm's configuration of the node: it refuses there what it takes on the others.
pub(super) const NO_GRES: &str = "no GRES: ";
/// Of the node, as Kubernetes reports it: whose pods and files they are is not known.
pub(super) const PRESSURE: &str = "pressure: ";
/// Somebody has announced to Kubernetes that the node is about to go.
pub(super) const LEAVING: &str = "leaving: ";
const ROOM: &str = "shared_free";

fn odd(node: &ProbedNode, inventory: &Inventory, notes: &mut Vec<String>) {
    for (fact, what) in [("xid", "the driver reported faults"), ("gpu_throttled", "throttled GPUs")] {
        if let Some(Value::Names(faults)) = node.facts.get(fact)
            && !faults.is_empty()
        {
            notes.push(format!("{what}: {}", first_few(faults, MOST)));
        }
    }
    if let Some(Value::Names(missing)) = node.facts.get("nccl_tests_missing_libraries")
        && !missing.is_empty()
    {
        notes.push(format!("all_reduce_perf does not find libraries: {}", first_few(missing, MOST)));
    }
    if let Some(Value::Names(open)) = node.facts.get("open_programs")
        && !open.is_empty()
    {
        let first: Vec<&str> = open.iter().take(MOST).map(String::as_str).collect();
        notes.push(format!("every user can change programs of `[paths]`: chmod o-w {}", first.join(" ")));
    }
    if let Some(Value::Number(errors)) = node.facts.get("ecc_errors")
        && *errors > 0
    {
        notes.push(format!("uncorrected errors of GPU memory: {errors}"));
    }
    if let (Some(Value::Number(bytes)), Some(Value::Names(nics))) =
        (node.facts.get("memlock"), node.facts.get("nics"))
        && *bytes < LEAST_LOCKED
        && !nics.is_empty()
    {
        notes.push(format!(
            "a process may lock {} MiB of memory, transfers between nodes need {} MiB",
            bytes >> 20,
            LEAST_LOCKED >> 20
        ));
    }
    if let (Some(Value::Text(found)), Some(planned)) = (node.facts.get("nsys"), inventory.nsys_version)
        && version::compare(found, &planned.to_string()) == Ordering::Less
    {
        notes.push(format!("nsys {found} is older than {planned}; its ranks run without nsys"));
    }
    if let Some(offset) = &node.clock_offset
        && offset.surely_off_ms() > OFF_MS
    {
        let (least, most) = (offset.at_least_ms, offset.at_most_ms);
        notes.push(format!("its clock is {least} to {most} ms ahead of this machine's"));
    }
    if let Some(Value::Text(reported)) = node.facts.get("instance")
        && let Some((family, _)) = reported.split_once('.')
        && !inventory.instance.fits(family)
    {
        notes.push(format!(
            "its firmware does not report an instance of `{}`: {reported}",
            inventory.instance.name
        ));
    }
}

const MOST: usize = 4;
