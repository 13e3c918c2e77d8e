//! From the stages of a delivery to its certificate: gathered here, rendered by `verdict::accept::certificate`.

use super::acceptance_session::AcceptanceSession;
use super::delivery::{Stopped, machinery};
use super::messages;
use base::nodeset;
use base::text::SIMULATED;
use config::inventory::ReachBy;
use model::artefact::acceptance::{Acceptance, NodeHardware, StackPart};
use model::artefact::{Format, SLURM_GPUS, Value};
use std::collections::{BTreeMap, BTreeSet};
use store::{CHECKSUMS, checksums};
use verdict::accept::certificate;
use verdict::accept::stages::Stage;

pub(crate) const JSON: &str = "acceptance.json";
pub(crate) const MARKDOWN: &str = "acceptance.md";
/// The copy for the vendor.
pub(crate) const VENDOR: &str = "vendor";

pub(crate) fn new(accepting: &AcceptanceSession) -> Acceptance {
    let delivery = &accepting.delivery;
    let asked = &delivery.record.asked;
    let (schedule, inventory) = (&accepting.schedule, &delivery.inventory);
    let probe = accepting.probe.as_ref();
    let simulated = inventory.is_simulated()
        || probe.is_some_and(|probe| probe.simulated)
        || delivery.made.iter().any(|made| made.summary.simulated);
    let at = |probe: &model::artefact::Probe| probe.at.clone();
    let began = delivery.made.first().map(|made| made.summary.started.clone());
    let ended = delivery.made.last().map(|made| made.summary.ended.clone());
    let mut rejected = schedule.rejected.clone();
    let mut undecided = schedule.undecided.clone();
    rejected.sort_by(|a, b| nodeset::compare(&a.node, &b.node));
    undecided.sort_by(|a, b| nodeset::compare(&a.node, &b.node));
    Acceptance {
        format: Format,
        harness: env!("CARGO_PKG_VERSION").to_owned(),
        delivery: delivery.record.delivery.clone(),
        simulated,
        note: simulated.then(|| SIMULATED.to_owned()),
        suite: asked.suite.clone(),
        inventory: inventory.name.clone(),
        instance: inventory.instance.name.clone(),
        seed: asked.seed,
        nodes: nodeset::fold(&asked.nodes),
        count: asked.nodes.len(),
        partners: nodeset::fold(&asked.partners),
        vouched: asked.vouched.clone(),
        began: began.or_else(|| probe.map(at)).unwrap_or_default(),
        ended: ended.or_else(|| probe.map(at)).unwrap_or_default(),
        budget_node_hours: asked.budget,
        node_hours: delivery.node_hours(),
        accepted: schedule.candidates.clone(),
        rejected,
        undecided,
        withdrawn: schedule.withdrawn.clone(),
        stages: accepting.stages.clone(),
        soak: accepting.soak.clone(),
        limits: accepting.tally.limits.list(),
        judged_by: accepting.tally.judged.rows(),
        stack: stack(accepting),
        hardware: hardware(accepting),
        not_checked: not_checked(accepting),
        not_measured: not_measured(accepting),
    }
}

/// By case and by what is absent: the nodes without it.
fn not_checked(accepting: &AcceptanceSession) -> Vec<String> {
    let mut absent: BTreeMap<(&str, &str), BTreeSet<String>> = BTreeMap::new();
    // Where no Slurm reaches the nodes there is nothing to check about it.
    let has_slurm = matches!(accepting.delivery.inventory.reach, ReachBy::Slurm(_));
    for (case, not_installed) in accepting.delivery.not_installed() {
        for (program, nodes) in &not_installed.without {
            if program == SLURM_GPUS && !has_slurm {
                continue;
            }
            absent.entry((case.name.as_str(), program.as_str())).or_default().extend(nodes.iter().cloned());
        }
    }
    let lines = absent.into_iter().map(|((case, program), nodes)| {
        messages::not_checked(case, program, &nodes.into_iter().collect::<Vec<_>>())
    });
    lines.collect()
}

/// `--strict`: nodes on which a case was skipped are not decided.
pub(crate) fn leave_unchecked_open(accepting: &mut AcceptanceSession) {
    let mut unchecked: BTreeMap<String, (Stage, Vec<String>)> = BTreeMap::new();
    for made in &accepting.delivery.made {
        for (case, absent) in made.not_installed() {
            for node in &absent.skipped {
                let why = format!("`{}`: {}", case.name, absent.reason());
                let (_, all) = unchecked.entry(node.clone()).or_insert((made.stage, Vec::new()));
                if !all.contains(&why) {
                    all.push(why);
                }
            }
        }
    }
    for (node, (stage, why)) in unchecked {
        if accepting.schedule.is_in(&node) {
            accepting.schedule.leave_open(stage, &node, &messages::strict_refuses(&why));
        }
    }
}

/// What the preflight read on the new nodes, and the software versions that their jobs reported.
fn stack(accepting: &AcceptanceSession) -> Vec<StackPart> {
    let mut parts: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    let new = &accepting.delivery.record.asked.nodes;
    let asked = accepting.probe.iter().flat_map(|probe| &probe.nodes).filter(|node| new.contains(&node.node));
    for node in asked {
        for (name, value) in &node.facts {
            if config::facts::fact(name).is_some_and(|fact| fact.is_alike) {
                parts.entry((name.clone(), value.to_string())).or_default().insert(node.node.clone());
            }
        }
    }
    let mut by_jobs: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for made in &accepting.delivery.made {
        for verdict in &made.verdicts {
            let nodes = made.stored.plan.nodes.iter().filter(|node| new.contains(node));
            let nodes: BTreeSet<String> = nodes.cloned().collect();
            for (part, version) in
                verdict.versions.iter().flat_map(|(part, all)| all.iter().map(move |one| (part, one)))
            {
                let key = (format!("{part}, by its jobs"), version.clone());
                by_jobs.entry(key).or_default().extend(nodes.iter().cloned());
            }
        }
    }
    let shown = |((part, value), nodes): ((String, String), BTreeSet<String>)| StackPart {
        part,
        value,
        nodes: nodeset::fold(&nodes.into_iter().collect::<Vec<_>>()),
    };
    parts.into_iter().chain(by_jobs).map(shown).collect()
}

/// What the preflight read of it.
fn hardware(accepting: &AcceptanceSession) -> Vec<NodeHardware> {
    let new = &accepting.delivery.record.asked.nodes;
    let asked = accepting.probe.iter().flat_map(|probe| &probe.nodes).filter(|node| new.contains(&node.node));
    let all = asked.map(|node| {
        let list = |fact: &str| match node.facts.get(fact) {
            Some(Value::Names(names)) => names.clone(),
            _ => Vec::new(),
        };
        let machine = node.facts.get("machine").map(Value::to_string);
        NodeHardware { node: node.node.clone(), machine, gpus: list("gpu_ids"), nics: list("nic_ids") }
    });
    all.filter(|one| one.machine.is_some() || !one.gpus.is_empty() || !one.nics.is_empty()).collect()
}

fn not_measured(accepting: &AcceptanceSession) -> Vec<String> {
    let mut lines = Vec::new();
    for stage in Stage::ALL.into_iter().skip(1) {
        if stage == Stage::Soak && accepting.delivery.record.asked.soak_s == Some(0) {
            lines.push(messages::no_soak());
        } else if !accepting.suites.contains_key(&stage) {
            lines.push(messages::no_case(stage.name()));
        } else if !accepting.stages.iter().any(|one| one.name == stage.name()) {
            lines.push(messages::not_reached(stage.name()));
        }
    }
    let came = accepting.stages.iter().find(|one| one.name == Stage::All.name());
    let made = accepting.delivery.made.iter().find(|made| made.stage == Stage::All);
    if let (Some(came), Some(made)) = (came, made) {
        let entered = nodeset::expand(&came.entered).map_or(0, |nodes| nodes.len());
        for case in &made.stored.plan.cases {
            let at_once = case.jobs.iter().map(|job| job.nodes.len()).max().unwrap_or_default();
            if at_once < entered {
                lines.push(messages::fewer_at_once(entered, &case.name, at_once, case.jobs.len()));
            }
        }
    }
    if accepting.tally.provisional > 0 {
        lines.push(messages::provisional(accepting.tally.provisional));
    }
    let new = &accepting.delivery.record.asked.nodes;
    let asked = accepting.probe.iter().flat_map(|probe| &probe.nodes).filter(|node| new.contains(&node.node));
    let mut unread: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for node in asked {
        for (name, why) in &node.unknown {
            unread.entry((name.as_str(), why.as_str())).or_default().push(node.node.clone());
        }
    }
    lines.extend(unread.iter().map(|((fact, why), nodes)| messages::fact_unknown(fact, why, nodes)));
    lines.extend(accepting.notes.iter().cloned());
    lines
}

/// Writes the certificate, and seals it and all runs.
pub(crate) fn write(accepting: &AcceptanceSession, acceptance: &Acceptance) -> Result<(), Stopped> {
    let delivery = &accepting.delivery;
    delivery.write_json(JSON, acceptance)?;
    delivery.write(MARKDOWN, certificate::markdown(acceptance).as_bytes())?;
    let sums = checksums(&delivery.folder, &[VENDOR]).map_err(machinery)?;
    delivery.write(CHECKSUMS, sums.as_bytes())
}
