//! Which of Slurm's nodes an inventory is made of, and why each of the others is not.

use super::queries::Reserved;
use super::{Discovered, Failure, LeftOut, Node, Reason, Request};
use base::nodeset;
use base::suggest::nearest;
use base::text::count;
use config::inventory::instance::{is_ec2_type, whole_machine};
use config::inventory::{GresReport, Instance, Instances};
use job::script::GpuRequest;
use std::collections::{BTreeMap, BTreeSet};

/// Words of a state with which a node takes no jobs, gravest first. One that is busy, planned for somebody's job, or
/// blocked by one that has its block to itself, does; and so does one that power saving has put down: Slurm boots it for
/// the job.
const BARRED: [&str; 16] = [
    "down",
    "not_responding",
    "fail",
    "failing",
    "error",
    "drained",
    "draining",
    "drain",
    "invalid_reg",
    "external",
    "power_drain",
    "reboot_issued",
    "reboot_requested",
    "future",
    "unknown",
    "perfctrs",
];
/// Words that mean nothing to who runs inside the reservation.
const SET_ASIDE: [&str; 2] = ["maint", "reserved"];

pub(super) fn select(
    mut nodes: Vec<Node>,
    reserved: Option<Reserved>,
    request: &Request,
    instances: &Instances,
    slurm: String,
) -> Result<Discovered, Failure> {
    nodes.sort_by(|a, b| nodeset::compare(&a.name, &b.name));
    let all = nodes.len();
    if let Some(reserved) = &reserved {
        nodes.retain(|node| reserved.nodes.contains(&node.name));
        if nodes.is_empty() {
            let partition = &request.partition;
            return Err(Failure::InvalidRequest(format!(
                "--reservation: it holds no node of partition `{partition}`"
            )));
        }
    }
    if let Some(feature) =
        request.features.iter().find(|feature| !nodes.iter().any(|node| node.features.contains(*feature)))
    {
        let known: BTreeSet<&str> =
            nodes.iter().flat_map(|node| &node.features).map(String::as_str).collect();
        let hint = match nearest(feature, known.iter().copied()) {
            Some(near) => format!("; did you mean `{near}`?"),
            None if known.is_empty() => "; they have no features".to_owned(),
            None => format!("; features: `{}`", known.into_iter().collect::<Vec<_>>().join("`, `")),
        };
        return Err(Failure::InvalidRequest(format!(
            "--feature: none of {} has `{feature}`{hint}",
            count(all, "node")
        )));
    }
    nodes.retain(|node| request.features.iter().all(|feature| node.features.contains(feature)));
    if nodes.is_empty() {
        let features = request.features.join("`, `");
        return Err(Failure::InvalidRequest(format!("--feature: no node has all of `{features}`")));
    }
    let mut kinds: BTreeSet<&str> = nodes.iter().filter_map(kind_of).collect();
    // HyperPod has a partition for each type, of its name.
    if kinds.is_empty() && is_ec2_type(&request.partition) {
        kinds.insert(&request.partition);
    }
    let instance = instance_of(&kinds, request.instance.as_deref(), instances, "Slurm")?;
    let mut left_out = Vec::new();
    let is_reserved = reserved.is_some();
    // A run decides by the same.
    let gpus = nodes.iter().map(|node| (node.name.as_str(), Some(node.gpus.unwrap_or_default())));
    let gpus = GresReport::new(gpus).request();
    nodes.retain(|node| match barred(node, is_reserved, instance, gpus) {
        Some(why) => {
            left_out.push(LeftOut { node: node.name.clone(), why });
            false
        }
        None => true,
    });
    if nodes.is_empty() {
        return Err(Failure::NoUsableNode(left_out));
    }
    let mut notes = Vec::new();
    notes.extend(reserved.and_then(|reserved| reserved.is_not_active));
    if gpus == GpuRequest::None {
        notes.push(format!(
            "Slurm has no GRES for GPUs, jobs ask for none (gpus = \"none\"); {} has {} each",
            instance.name, instance.gpus
        ));
    }
    let boots = |node: &&Node| node.state.boots();
    Ok(Discovered {
        slurm,
        instance: instance.name.clone(),
        groups: groups(&nodes),
        gpus,
        qos: None,
        mem: None,
        mpi: None,
        topology: None,
        boot: nodes.iter().filter(boots).map(|node| node.name.clone()).collect(),
        nodes: nodes.into_iter().map(|node| node.name).collect(),
        left_out,
        notes,
    })
}

fn barred(node: &Node, is_reserved: bool, instance: &Instance, asked_by: GpuRequest) -> Option<String> {
    let behind = node.reason.as_ref().map(reason_suffix).unwrap_or_default();
    if nodeset::expand(&node.name) != Ok(vec![node.name.clone()]) {
        return Some("its name is not a valid node name".to_owned());
    }
    let words = BARRED.iter().chain(SET_ASIDE.iter().filter(|_| !is_reserved));
    let words: Vec<String> =
        words.filter(|word| node.state.has(word)).map(|word| word.replace('_', " ")).collect();
    if !words.is_empty() {
        return Some(format!("{}{behind}", words.join(", ")));
    }
    if !node.state.unknown.is_empty() {
        let unknown: Vec<&str> = node.state.unknown.iter().map(String::as_str).collect();
        return Some(format!("unknown state `{}`{behind}", unknown.join("+")));
    }
    if node.state.words.is_empty() {
        return Some(format!("no state{behind}"));
    }
    if let Some(kind) = kind_of(node)
        && profile_name(kind).is_some_and(|name| name != instance.name)
    {
        return Some(format!("its type is `{kind}`, expected {}", instance.name));
    }
    if let Some(drained) = node.gpus_drained {
        return Some(format!("Slurm has drained {drained} of its GPUs (gres_drained)"));
    }
    if let Some(profile) = &node.mig {
        return Some(format!("its GRES has MIG instances ({profile}), suites measure whole GPUs"));
    }
    if node.gpus.is_none() && asked_by == GpuRequest::Gres {
        return Some("its GRES names no GPU, but jobs request GPUs by GRES".to_owned());
    }
    let gpus = node.gpus.filter(|gpus| *gpus != instance.gpus)?;
    Some(format!("its GRES has {}, {} has {}", count(gpus, "GPU"), instance.name, instance.gpus))
}

/// `: text (who, when)`.
fn reason_suffix(reason: &Reason) -> String {
    let behind: Vec<&str> = [&reason.by, &reason.since].into_iter().flatten().map(String::as_str).collect();
    let behind = if behind.is_empty() { String::new() } else { format!(" ({})", behind.join(", ")) };
    format!(": {}{behind}", reason.text)
}

/// The profile of a type, of which EC2's name may be reported.
pub(super) fn profile_name(kind: &str) -> Option<&str> {
    if kind.contains('.') { whole_machine(kind) } else { Some(kind) }
}

/// What a node is, by Slurm's own field or by a feature: ParallelCluster writes EC2's name among them.
fn kind_of(node: &Node) -> Option<&str> {
    let feature = || node.features.iter().find(|feature| is_ec2_type(feature));
    node.instance_type.as_ref().or_else(feature).map(String::as_str)
}

/// The profile that was asked for, else that of the one type of the nodes.
pub(super) fn instance_of<'i>(
    kinds: &BTreeSet<&str>,
    asked: Option<&str>,
    instances: &'i Instances,
    scheduler: &str,
) -> Result<&'i Instance, Failure> {
    let names = || instances.names().filter(|name| !name.starts_with("sim-"));
    let all = || names().collect::<Vec<_>>().join("`, `");
    let find = |kind: &str| {
        profile_name(kind).and_then(|name| instances.get(name)).filter(|found| !found.is_simulated())
    };
    if let Some(asked) = asked {
        return find(asked).ok_or_else(|| {
            let hint = match nearest(asked.split('.').next().unwrap_or_default(), names()) {
                Some(near) if asked.contains('.') => {
                    format!("profiles are of whole machines, such as `{near}`")
                }
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("profiles: `{}`", all()),
            };
            Failure::InvalidRequest(format!(
                "--instance: no profile `{asked}` in `inventory/instances`; {hint}"
            ))
        });
    }
    let kinds: Vec<&str> = kinds.iter().copied().collect();
    match kinds[..] {
        [kind] => find(kind).ok_or_else(|| {
            Failure::InvalidRequest(format!("no profile for the nodes' type `{kind}`; set --instance"))
        }),
        [] => Err(Failure::InvalidRequest(format!(
            "{scheduler} does not report the type of the nodes; set --instance, such as p5.48xlarge; profiles: `{}`",
            all()
        ))),
        _ => {
            let why = "the nodes have several types";
            Err(Failure::InvalidRequest(format!("{why}: `{}`; set --instance", kinds.join("`, `"))))
        }
    }
}

fn groups(nodes: &[Node]) -> BTreeMap<String, Vec<String>> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for node in nodes {
        for feature in &node.features {
            groups.entry(feature.clone()).or_default().push(node.name.clone());
        }
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    groups.retain(|feature, members| members.len() < nodes.len() && feature.chars().all(is_name));
    groups
}
