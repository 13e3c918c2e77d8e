//! Takes the evidence: a few read-only commands where Slurm's are, and the probe and one script on a few nodes.

use super::evidence::{Evidence, NodeEvidence, Section, read_sections};
use super::request::{CLUSTER_COMMANDS, CONFIG_KEYS, NodeRequest, srun_options, test_only};
use crate::interrupt;
use crate::probe::{self, NodeJob, NotMade, Probing, on_node};
use crate::reach::{Command, Host, Reach, Status};
use crate::run::Clock;
use config::inventory::{Inventory, ReachBy, SshStart};
use futures::{StreamExt, stream};
use std::collections::BTreeMap;
use std::time::Duration;

/// From which nodes evidence is taken, and through what.
pub struct Gathering<'a, 'i> {
    /// Says whether the nodes are behind Slurm or ssh, or are this machine.
    pub inventory: &'i Inventory,
    /// Those that may be asked, in the inventory's order.
    pub nodes: &'a [String],
    /// So many of them are.
    pub most_nodes: usize,
    /// Runs Slurm's commands here, and the scripts on nodes.
    pub reach: &'a dyn Reach,
    /// Dates the probe; clocks of nodes are compared with it.
    pub clock: Clock,
    /// What its jobs are called: no other job has that name.
    pub name: &'a str,
}

const HERE_LIMIT: Duration = Duration::from_secs(60);
const NODE_LIMIT: Duration = Duration::from_secs(300);
const FANOUT: usize = 4;
const SLICE: Duration = Duration::from_millis(250);

/// Takes all evidence. A signal ends its Slurm jobs and gives `NotMade`.
pub async fn gather<'i>(gathering: &Gathering<'_, 'i>) -> Result<Evidence<'i>, NotMade> {
    tokio::select! {
        biased;
        evidence = all(gathering) => evidence,
        code = interrupted() => {
            on_node(&gathering.inventory.reach).end(gathering.reach, gathering.name).await;
            Err(NotMade::Interrupted(code))
        }
    }
}

async fn interrupted() -> i32 {
    loop {
        if let Some(code) = interrupt::asked() {
            return code;
        }
        tokio::time::sleep(SLICE).await;
    }
}

async fn all<'i>(gathering: &Gathering<'_, 'i>) -> Result<Evidence<'i>, NotMade> {
    let inventory = gathering.inventory;
    let mut here = BTreeMap::new();
    if inventory.reach.slurm().is_some() {
        for (name, argv) in CLUSTER_COMMANDS {
            here.insert(name, cluster_command(gathering, name, argv).await);
        }
    }
    let is_silent = matches!(here.get("nodes"), Some(Err(_)))
        || matches!(here.get("nodes"), Some(Ok(section)) if section.status != Some(0));
    let chosen = choose(gathering, here.get("nodes"));
    if is_silent {
        let why = "not queried: sinfo gives no answer".to_owned();
        let nodes = chosen.into_iter().map(|node| NodeEvidence { node, sections: Err(why.clone()) });
        return Ok(Evidence { inventory, here, nodes: nodes.collect(), probe: None });
    }
    // As a run does.
    let gres = probe::gres(gathering.reach, inventory, gathering.nodes).await;
    let mut settled = inventory.clone();
    settled.settle_gpu_request(gres.request());
    if let Some(slurm) = settled.reach.slurm() {
        let argv = test_only(slurm, inventory.instance.gpus, &chosen);
        let words: Vec<&str> = argv.iter().map(String::as_str).collect();
        here.insert("request", cluster_command(gathering, "request", &words).await);
    }
    let probing = Probing {
        inventory,
        nodes: &chosen,
        reach: gathering.reach,
        clock: gathering.clock,
        fanout: FANOUT,
        name: gathering.name,
        allow_busy: true,
    };
    let probe = probe::make(&probing).await?;
    let gathering = &Gathering { inventory: &settled, ..*gathering };
    let asked = chosen.iter().enumerate().map(|(at, node)| gather_node(gathering, &chosen, at, node));
    let nodes = stream::iter(asked).buffered(FANOUT).collect().await;
    Ok(Evidence { inventory, here, nodes, probe: Some(probe) })
}

/// Idle ones first: no job should wait for a field kit.
fn choose(gathering: &Gathering<'_, '_>, states: Option<&Result<Section, String>>) -> Vec<String> {
    let is_idle = |node: &str| {
        let Some(Ok(section)) = states else { return true };
        section.names().any(|row| {
            let mut fields = row.split('|');
            fields.next() == Some(node) && fields.next() == Some("idle")
        })
    };
    let (mut chosen, others): (Vec<String>, Vec<String>) =
        gathering.nodes.iter().cloned().partition(|node| is_idle(node));
    chosen.extend(others);
    chosen.truncate(gathering.most_nodes);
    chosen
}

async fn cluster_command(
    gathering: &Gathering<'_, '_>,
    name: &str,
    argv: &[&str],
) -> Result<Section, String> {
    let command = Command::new(argv.iter().copied(), HERE_LIMIT);
    let answer = gathering.reach.exec(&Host::Here, &command).await.map_err(|error| error.to_string())?;
    // `srun --mpi=list` speaks on stderr.
    let text = format!("{}\n{}", answer.stdout_text(), String::from_utf8_lossy(&answer.stderr));
    let status = match answer.status {
        Status::Code(code) => code,
        Status::Signal(signal) => 128 + signal,
    };
    let ours = |line: &&str| is_wanted(gathering.inventory, name, line);
    // A message of an error is kept whatever it says.
    let kept: Vec<&str> = text.lines().filter(|line| status != 0 || ours(line)).collect();
    Ok(Section::from_text(Some(status), &kept.join("\n")))
}

/// Rows about others' nodes and partitions stay where they are.
fn is_wanted(inventory: &Inventory, name: &str, line: &str) -> bool {
    let first = line.split('|').next().unwrap_or_default().trim();
    match (name, inventory.reach.slurm()) {
        ("nodes", _) => inventory.nodes.iter().any(|node| node == first),
        ("partitions", Some(slurm)) => {
            slurm.partition.as_ref().is_none_or(|wanted| first.trim_end_matches('*') == wanted.as_str())
        }
        ("config", _) => {
            let key = line.split('=').next().unwrap_or_default().trim();
            // Newer releases may have several: `Prolog[0]`.
            CONFIG_KEYS.contains(&key.split('[').next().unwrap_or_default())
        }
        ("srun_help", Some(slurm)) => {
            let options = srun_options(slurm.gpu_request());
            options.iter().chain(&["--container"]).any(|word| line.contains(word))
        }
        _ => !line.trim().is_empty(),
    }
}

async fn gather_node(
    gathering: &Gathering<'_, '_>,
    chosen: &[String],
    at: usize,
    node: &str,
) -> NodeEvidence {
    let inventory = gathering.inventory;
    let wires_by_ssh = matches!(&inventory.reach, ReachBy::Ssh(ssh) if ssh.start == SshStart::Mpirun);
    let peer = chosen.get(1).filter(|_| wires_by_ssh && at == 0).map(String::as_str);
    let argv = NodeRequest::new(inventory, node, peer).argv();
    let launcher = on_node(&inventory.reach);
    let minutes = launcher.minutes(gathering.reach).await;
    let job = NodeJob { name: gathering.name, gpus: inventory.instance.gpus, minutes };
    let (host, argv) = launcher.command(node, argv, &job);
    let sections = match gathering.reach.exec(&host, &Command::new(argv, NODE_LIMIT)).await {
        Err(error) => Err(error.to_string()),
        Ok(answer) => read_sections(&answer.stdout_text()).map_err(|why| match answer.succeeded() {
            true => why,
            false => format!("it ended with {}: {}", answer.status, answer.complaint()),
        }),
    };
    NodeEvidence { node: node.to_owned(), sections }
}
