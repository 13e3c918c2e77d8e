//! Asks every node at once, a few at a time, and makes the probe of what they answer. A node that gives no answer costs
//! the others nothing, and is not reported as bad.

use super::answer::{self, Answer};
use super::clock::Offset;
use super::fitness::{self, NO_GRES};
use super::gpu_labels;
use super::on_node::{NodeJob, NodeState, Reported, on_node};
use super::request::{CLOCK, ProbeRequest};
use crate::interrupt;
use crate::reach::slurm_refusal;
use crate::reach::{Command, Host, Reach};
use crate::run::Clock;
use base::digest::sha256;
use config::facts::fact;
use config::inventory::{GresReport, Inventory, Kind, ReachBy};
use futures::{StreamExt, stream};
use model::artefact::{Format, Probe, ProbedNode};
use std::collections::BTreeMap;
use std::time::Duration;

/// How nodes are asked, and by whose clock.
pub struct Probing<'a> {
    /// How nodes are reached, and what they must have.
    pub inventory: &'a Inventory,
    /// In the inventory's order.
    pub nodes: &'a [String],
    /// Runs the script over ssh, through srun, or here.
    pub reach: &'a dyn Reach,
    /// Dates the probe; clocks of nodes are compared with it.
    pub clock: Clock,
    /// So many nodes at the same time.
    pub fanout: usize,
    /// What its jobs are called, where there are jobs: no other job has that name.
    pub name: &'a str,
    /// Nodes whose GPUs are in use count as fit.
    pub allow_busy: bool,
}

/// Why there is no probe at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotMade {
    /// Somebody asked for the end meanwhile; with the exit code that goes with it.
    Interrupted(i32),
}

const LIMIT: Duration = Duration::from_secs(120);
const CLOCK_LIMIT: Duration = Duration::from_secs(20);
const SLICE: Duration = Duration::from_millis(250);

/// Probes all nodes. A signal ends its Slurm jobs and gives `NotMade`.
pub async fn make(probing: &Probing<'_>) -> Result<Probe, NotMade> {
    let at = probing.clock.now();
    let nodes = tokio::select! {
        biased;
        nodes = all(probing) => nodes,
        code = asked_to_end() => {
            on_node(&probing.inventory.reach).end(probing.reach, probing.name).await;
            return Err(NotMade::Interrupted(code));
        }
    };
    let says_simulated =
        |node: &ProbedNode| node.facts.values().any(|fact| fact.to_string().contains("SIMULATED"));
    Ok(Probe {
        format: Format,
        harness: env!("CARGO_PKG_VERSION").to_owned(),
        simulated: probing.inventory.kind == Kind::Simulated || nodes.iter().any(says_simulated),
        inventory: probing.inventory.name.clone(),
        instance: probing.inventory.instance.name.clone(),
        at,
        nodes,
    })
}

/// The exit code of whoever asks for the end, once somebody does.
pub async fn asked_to_end() -> i32 {
    loop {
        if let Some(code) = interrupt::asked() {
            return code;
        }
        tokio::time::sleep(SLICE).await;
    }
}

/// What Slurm reports of the GRES of nodes, by one question; nothing is started on them.
pub async fn gres(reach: &dyn Reach, inventory: &Inventory, nodes: &[String]) -> GresReport {
    gres_in(&on_node(&inventory.reach).states(reach).await, nodes)
}

fn gres_in(states: &BTreeMap<String, NodeState>, nodes: &[String]) -> GresReport {
    let gpus = |node: &String| states.get(node).and_then(|state| state.gres_gpus);
    GresReport::new(nodes.iter().map(|node| (node.as_str(), gpus(node))))
}

async fn all(probing: &Probing<'_>) -> Vec<ProbedNode> {
    let launcher = on_node(&probing.inventory.reach);
    let states = launcher.states(probing.reach).await;
    let reported = launcher.reported(probing.nodes).await;
    let minutes = launcher.minutes(probing.reach).await;
    let gres = gres_in(&states, probing.nodes);
    let is_open = probing.inventory.leaves_gpu_request_open();
    let mut inventory = probing.inventory.clone();
    inventory.settle_gpu_request(gres.request());
    let probing = &Probing { inventory: &inventory, ..*probing };
    let before = |node: &String| Before {
        state: states.get(node),
        reported: reported.get(node),
        minutes,
        lacks_gres: is_open && gres.is_without(node),
    };
    let asked = probing.nodes.iter().map(|node| one(probing, node, before(node)));
    stream::iter(asked).buffered(probing.fanout.max(1)).collect().await
}

/// What is known of a node before it is asked.
struct Before<'a> {
    state: Option<&'a NodeState>,
    reported: Option<&'a Reported>,
    minutes: u32,
    /// Other nodes have GPUs as GRES, by which jobs ask for them.
    lacks_gres: bool,
}

async fn one(probing: &Probing<'_>, node: &str, before: Before<'_>) -> ProbedNode {
    let Before { state, reported, minutes, lacks_gres } = before;
    let reported = reported.cloned().unwrap_or_default();
    let gpu_labels = reported.gpu_labels;
    let mut probed = ProbedNode {
        node: node.to_owned(),
        slurm: state.map(|state| state.state.clone()),
        gres_gpus: state.and_then(|state| state.gres_gpus),
        facts: reported.facts,
        unknown: reported.unknown,
        ..ProbedNode::default()
    };
    if let Some(why) = state.and_then(|state| state.unusable.clone()).or(reported.unusable) {
        probed.unfit.push(why);
        return probed;
    }
    if lacks_gres {
        let why = "Slurm's GRES of it names no GPU, that of other nodes does; set `gpus` in `[reach]`";
        probed.unfit.push(format!("{NO_GRES}{why}"));
        return probed;
    }
    let ask = ProbeRequest::for_node(probing.inventory, node);
    let launcher = on_node(&probing.inventory.reach);
    let job = NodeJob { name: probing.name, gpus: probing.inventory.instance.gpus, minutes };
    let (host, argv) = launcher.command(node, ask.argv(), &job);
    let limit = launcher.limit(state.is_some_and(|state| state.boots)).unwrap_or(LIMIT);
    let asked_s = probing.clock.now_unix_s();
    let output = match probing.reach.exec(&host, &Command::new(argv, limit)).await {
        Ok(output) => output,
        Err(error) => {
            probed.unprobed = Some(error.to_string());
            return probed;
        }
    };
    let answered_s = probing.clock.now_unix_s();
    let read = match probing.inventory.kind {
        Kind::Simulated => answer::read_simulated,
        Kind::Real => answer::read,
    };
    let answer = match read(&output.stdout_text()) {
        Ok(answer) => answer,
        Err(_) if !output.succeeded() => {
            let complaint = output.complaint();
            let next = slurm_refusal::next_step(&complaint);
            probed.unprobed = Some(format!("ended with {}: {complaint}{next}", output.status));
            return probed;
        }
        Err(why) => {
            probed.unprobed = Some(why);
            return probed;
        }
    };
    let mut offset = Offset::unknown();
    for moment in [answer.began_s, answer.ended_s].into_iter().flatten() {
        offset.read(moment, asked_s, answered_s);
    }
    if matches!(host, Host::Node(_)) {
        narrow(probing, &host, &mut offset).await;
    }
    probed.clock_offset = offset.known();
    let Answer { mut facts, mut unreported, broken, host_name, .. } = answer;
    facts.append(&mut probed.facts);
    unreported.append(&mut probed.unknown);
    (probed.facts, probed.unknown) = (facts, unreported);
    if let Some(labels) = gpu_labels {
        gpu_labels::compare(&labels, &mut probed);
    }
    // Pods have names of their own.
    let is_host = matches!(probing.inventory.reach, ReachBy::Slurm(_) | ReachBy::Ssh(_));
    probed.host_name = host_name.filter(|_| is_host);
    let broken = broken.into_iter().map(|(name, why)| format!("`{name}` cannot be read: {why}"));
    fitness::weigh(&mut probed, broken, probing.inventory, probing.allow_busy);
    probed.fingerprint = Some(fingerprint(&probed));
    probed
}

/// The connection is there by now: the answer takes no longer than its way.
async fn narrow(probing: &Probing<'_>, host: &Host, offset: &mut Offset) {
    let asked_s = probing.clock.now_unix_s();
    let answer = probing.reach.exec(host, &Command::new(CLOCK, CLOCK_LIMIT)).await;
    let answered_s = probing.clock.now_unix_s();
    if let Ok(answer) = answer
        && let Ok(node_s) = answer.stdout_text().trim().parse()
    {
        offset.read(node_s, asked_s, answered_s);
    }
}

/// Of the facts that nodes of one kind have alike, known or not.
fn fingerprint(node: &ProbedNode) -> String {
    let known = node.facts.iter().map(|(name, value)| (name, value.to_string()));
    // Part of the digest: fingerprints of stored probes must stay the same.
    let unknown = node.unknown.keys().map(|name| (name, "not told".to_owned()));
    let alike: BTreeMap<&String, String> =
        known.chain(unknown).filter(|(name, _)| fact(name).is_some_and(|fact| fact.is_alike)).collect();
    let text: String = alike.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    sha256(text.as_bytes())
}
