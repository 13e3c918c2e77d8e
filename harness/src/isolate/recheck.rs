//! `--resume-drained`: nodes that the harness drained, back in their queue once they have passed a run. How Slurm and
//! Kubernetes are asked stands in `cluster::drain`.

use super::drain::{refused, with_slurm};
use crate::library::Library;
use crate::own_recipes;
use crate::session::execution::new_runtime;
use crate::session::planning::to_lines;
use crate::session::{RunOptions, load, plan_and_run_as, report_error, run_cluster};
use cluster::drain::{self, KubernetesQueue, Leftover, NodeState, Queue, SlurmQueue};
use cluster::interrupt;
use cluster::reach::process::ProcessReach;
use config::inventory::{Inventory, ReachBy};
use model::artefact::Launcher;
use model::exit_code;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use store::Home;
use verdict::history::grounds::{self, Grounds};
use verdict::history::past;

/// Which nodes are looked at, and what they must pass.
#[derive(Debug, Clone)]
pub(crate) struct RecheckRequest {
    pub suite: String,
    pub inventory: String,
    pub nodes: Option<String>,
    pub exclude_nodes: Option<String>,
    pub recipe_path: Option<PathBuf>,
    pub ssh_fanout: u32,
}

/// Every node of those asked for that is drained for a reason of ours: run on again, with a good partner.
pub(crate) fn recheck(home: &Home, request: &RecheckRequest) -> Result<i32, Vec<String>> {
    let (inventory, nodes) = requested_nodes(home, request)?;
    interrupt::watch();
    Ok(recheck_all(home, request, &inventory, &nodes))
}

fn requested_nodes(home: &Home, request: &RecheckRequest) -> Result<(Inventory, Vec<String>), Vec<String>> {
    let suite = std::slice::from_ref(&request.suite);
    let catalogue =
        own_recipes::load(Some(&Library::for_project(home.path())), request.recipe_path.as_deref())
            .map_err(|diagnostics| to_lines(&diagnostics))?;
    let inventory = load::load(home, suite, &request.inventory, None, &catalogue)?.inventory;
    let flag = "--resume-drained";
    refused(&inventory, flag).map_err(|why| vec![why])?;
    if inventory.is_simulated() {
        let why = format!("{flag}: a simulated cluster forgets who was drained: `{}`", inventory.name);
        return Err(vec![why]);
    }
    let nodes = inventory.select(request.nodes.as_deref(), request.exclude_nodes.as_deref());
    Ok((inventory, nodes.map_err(|why| vec![why])?))
}

/// What the queue says of all nodes, and of which ones another re-check may be going on, and why.
type QueueStates = (BTreeMap<String, NodeState>, BTreeMap<String, String>);

/// In Slurm those nodes are drained again first that a harness which was ended had put back.
fn node_states(
    request: &RecheckRequest,
    inventory: &Inventory,
    nodes: &[String],
) -> Result<QueueStates, String> {
    if let ReachBy::Kubernetes(pods) = &inventory.reach {
        let all = new_runtime(false)?.block_on(KubernetesQueue::new(pods).show_all())?;
        return Ok((all.into_iter().collect(), BTreeMap::new()));
    }
    with_slurm(inventory, request.ssh_fanout, async |reach| {
        let mut in_use = BTreeMap::new();
        for node in nodes {
            let left = drain::take_up(reach, node).await.map_err(|why| format!("{node}: {why}"))?;
            if let Leftover::InUse(why) = left {
                in_use.insert(node.clone(), why);
            }
        }
        Ok((drain::show_all(reach).await?.into_iter().collect(), in_use))
    })?
}

fn recheck_all(home: &Home, request: &RecheckRequest, inventory: &Inventory, nodes: &[String]) -> i32 {
    let queue = if inventory.reach.launcher() == Launcher::Kubernetes { "Kubernetes" } else { "Slurm" };
    let (all, in_use) = match node_states(request, inventory, nodes) {
        Ok(states) => states,
        Err(why) => return report_error(&why),
    };
    let mut code = exit_code::PASSED;
    let mut ours = 0;
    for node in nodes {
        let Some(shown) = all.get(node) else {
            println!("{node}: {queue} has no such node");
            code = exit_code::graver(code, exit_code::INCONCLUSIVE);
            continue;
        };
        if let Some(why) = in_use.get(node) {
            println!("{node}: {why}");
            ours += 1;
            code = exit_code::graver(code, exit_code::INCONCLUSIVE);
            continue;
        }
        if !shown.is_draining() {
            continue;
        }
        if shown.ours().is_none() {
            println!("{node} stays drained, its reason in {queue} is not the harness's: {shown}");
            continue;
        }
        ours += 1;
        code = exit_code::graver(code, recheck_node(home, request, inventory, node, &all));
        if let Some(signal) = interrupt::asked() {
            return signal;
        }
    }
    if ours == 0 {
        println!("no node is drained for a reason of the harness");
    }
    code
}

fn recheck_node(
    home: &Home,
    request: &RecheckRequest,
    inventory: &Inventory,
    node: &str,
    all: &BTreeMap<String, NodeState>,
) -> i32 {
    let Some(reason) = all.get(node).and_then(NodeState::ours) else { return exit_code::INCONCLUSIVE };
    let runs = home.path().join("runs");
    let run = blaming_run(&runs, inventory, node, reason);
    if let Ok(run) = &run
        && let Err(why) = run_cluster::check_nodes(&runs.join(run), inventory)
    {
        println!("{node} stays drained: {why}");
        return exit_code::INCONCLUSIVE;
    }
    let grounds = match run.and_then(|run| grounds_of(&runs, inventory, node, &run)) {
        Ok(grounds) => grounds,
        Err(why) => {
            let by_hand = match &inventory.reach {
                ReachBy::Kubernetes(pods) => KubernetesQueue::new(pods).undo(node),
                _ => SlurmQueue(&ProcessReach).undo(node),
            };
            println!(
                "{node} stays drained, what it is blamed for is not known: {why}; run on it what it failed, then put \
                 it back by hand: `{by_hand}`: {reason}"
            );
            return exit_code::INCONCLUSIVE;
        }
    };
    let is_good = |partner: &&String| {
        *partner != node && all.get(*partner).is_some_and(|shown| shown.is_idle() && shown.reason.is_none())
    };
    let Some(partner) = inventory.nodes.iter().find(is_good) else {
        println!("{node} stays drained: no other node is idle to run with it");
        return exit_code::INCONCLUSIVE;
    };
    let drained = DrainedNode { node, partner, reason, grounds };
    match &inventory.reach {
        ReachBy::Kubernetes(pods) => recheck_in_pods(home, request, &KubernetesQueue::new(pods), &drained),
        _ => recheck_in_reservation(home, request, inventory, &drained),
    }
}

/// The run that is in the reason; without one, the newest that names the part in it.
fn blaming_run(runs: &Path, inventory: &Inventory, node: &str, reason: &str) -> Result<String, String> {
    let run = grounds::run_of_reason(reason).map(str::to_owned);
    let run = run.or_else(|| grounds::run_that_names(runs, &inventory.name, node, reason));
    run.ok_or_else(|| "no stored run is named by its reason".to_owned())
}

/// What it blames the node for.
fn grounds_of(runs: &Path, inventory: &Inventory, node: &str, run: &str) -> Result<Grounds, String> {
    let grounds = grounds::cases_that_blame(runs, run, node)?;
    run_cluster::note_unrecorded(&runs.join(run), inventory);
    Ok(grounds)
}

/// A node that is run on again.
struct DrainedNode<'a> {
    node: &'a str,
    partner: &'a str,
    reason: &'a str,
    grounds: Grounds,
}

/// Why a node stays where it is, and the exit code.
struct Stays {
    why: String,
    code: i32,
}

impl Stays {
    fn inconclusive(why: String) -> Stays {
        Stays { why, code: exit_code::INCONCLUSIVE }
    }
}

impl DrainedNode<'_> {
    /// Runs the suite on it. Nothing where that passed, and judged what it is blamed for: the run begins after the node was
    /// read as drained.
    fn run(&self, home: &Home, request: &RecheckRequest, more: RunOptions) -> Option<Stays> {
        let options = RunOptions {
            suites: vec![request.suite.clone()],
            inventory: request.inventory.clone(),
            nodes: Some(format!("{},{}", self.node, self.partner)),
            on_failure: Some("nothing".to_owned()),
            recipe_path: request.recipe_path.clone(),
            ssh_fanout: request.ssh_fanout,
            ..more
        };
        let suite = Path::new(&request.suite).file_stem().and_then(|stem| stem.to_str());
        let id = store::new_run_id(suite.unwrap_or("recheck"));
        let code = plan_and_run_as(home, &options, Some(&id));
        if code != exit_code::PASSED {
            let why = format!("its re-check ended with exit code {code}");
            let code = if code == exit_code::FAILED { code } else { exit_code::INCONCLUSIVE };
            return Some(Stays { why, code });
        }
        let why = match past::run(&home.path().join("runs").join(&id)) {
            Ok(run) => self.grounds.check(&run, self.node).err()?,
            Err(why) => format!("but cannot be read: {why}"),
        };
        Some(Stays::inconclusive(format!("its re-check has passed, {why}")))
    }

    /// What is printed once its run is over, and the exit code.
    fn concluded(&self, stays: Option<Stays>) -> i32 {
        let DrainedNode { node, reason, .. } = self;
        match stays {
            None => {
                println!("resumed {node}: its re-check has passed, it was drained for: {reason}");
                exit_code::PASSED
            }
            Some(Stays { why, code }) => {
                println!("{node} stays drained, {why}: {reason}");
                code
            }
        }
    }
}

/// The node stays cordoned all the while: only pods of this run bear it.
fn recheck_in_pods(
    home: &Home,
    request: &RecheckRequest,
    queue: &KubernetesQueue,
    drained: &DrainedNode,
) -> i32 {
    let DrainedNode { node, partner, reason, .. } = drained;
    println!("re-check of {node} with {partner}; {node} stays cordoned for others");
    let more = RunOptions { bears: drain::BORNE_BY_RECHECKS, ..RunOptions::default() };
    let stays = drained.run(home, request, more);
    if stays.is_none() {
        let put_back = new_runtime(false).and_then(|runtime| runtime.block_on(queue.put_back(node, reason)));
        if let Err(why) = put_back {
            println!("{node} passed its re-check and is not put back: {why}");
            return exit_code::INCONCLUSIVE;
        }
    }
    drained.concluded(stays)
}

fn recheck_in_reservation(
    home: &Home,
    request: &RecheckRequest,
    inventory: &Inventory,
    drained: &DrainedNode,
) -> i32 {
    let DrainedNode { node, partner, reason, .. } = drained;
    let held =
        with_slurm(inventory, request.ssh_fanout, async |reach| drain::hold(reach, node, partner).await);
    let held = match held.and_then(|held| held) {
        Ok(held) => held,
        Err(why) => {
            println!("{node} was not re-checked: {why}");
            return exit_code::INCONCLUSIVE;
        }
    };
    println!("re-check of {node} with {partner}, in reservation `{}`", held.reservation);
    let more = RunOptions { reservation: Some(held.reservation.clone()), ..RunOptions::default() };
    let stays = match held.reason == *reason {
        true => drained.run(home, request, more),
        false => Some(Stays::inconclusive(format!("its reason is another one meanwhile: {}", held.reason))),
    };
    let has_passed = stays.is_none();
    let released = with_slurm(inventory, request.ssh_fanout, async |reach| {
        drain::release(reach, &held, has_passed).await
    });
    match released.and_then(|released| released) {
        Err(why) => {
            println!("{node}: {why}");
            exit_code::INCONCLUSIVE
        }
        Ok(()) => drained.concluded(stays),
    }
}
