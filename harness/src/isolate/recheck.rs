//! `--resume-drained`: nodes that the harness drained, back in their queue once they have passed a run. How Slurm and
//! Kubernetes are asked stands in `cluster::drain`.

use super::drain::{refused, with_slurm};
use crate::library::Library;
use crate::own_recipes;
use crate::session::execution::new_runtime;
use crate::session::planning::to_lines;
use crate::session::{RunOptions, load, plan_and_run, report_error};
use cluster::drain::{self, KubernetesQueue, NodeState, Queue};
use cluster::interrupt;
use config::inventory::{Inventory, ReachBy};
use model::artefact::Launcher;
use model::exit_code;
use std::collections::BTreeMap;
use std::path::PathBuf;
use store::Home;

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

/// Of all nodes. In Slurm those are drained again first that a harness which was ended had put back.
fn node_states(
    request: &RecheckRequest,
    inventory: &Inventory,
    nodes: &[String],
) -> Result<Vec<(String, NodeState)>, String> {
    if let ReachBy::Kubernetes(pods) = &inventory.reach {
        return new_runtime(false)?.block_on(KubernetesQueue::new(pods).show_all());
    }
    with_slurm(inventory, request.ssh_fanout, async |reach| {
        for node in nodes {
            drain::take_up(reach, node).await.map_err(|why| format!("{node}: {why}"))?;
        }
        drain::show_all(reach).await
    })?
}

fn recheck_all(home: &Home, request: &RecheckRequest, inventory: &Inventory, nodes: &[String]) -> i32 {
    let queue = if inventory.reach.launcher() == Launcher::Kubernetes { "Kubernetes" } else { "Slurm" };
    let all: BTreeMap<String, NodeState> = match node_states(request, inventory, nodes) {
        Ok(all) => all.into_iter().collect(),
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
    let is_good = |partner: &&String| {
        *partner != node && all.get(*partner).is_some_and(|shown| shown.is_idle() && shown.reason.is_none())
    };
    let Some(partner) = inventory.nodes.iter().find(is_good) else {
        println!("{node} stays drained: no other node is idle to run with it");
        return exit_code::INCONCLUSIVE;
    };
    match (&inventory.reach, all.get(node).and_then(NodeState::ours)) {
        (ReachBy::Kubernetes(pods), Some(reason)) => {
            recheck_in_pods(home, request, &KubernetesQueue::new(pods), node, partner, reason)
        }
        _ => recheck_in_reservation(home, request, inventory, node, partner),
    }
}

fn options(request: &RecheckRequest, node: &str, partner: &str) -> RunOptions {
    RunOptions {
        suites: vec![request.suite.clone()],
        inventory: request.inventory.clone(),
        nodes: Some(format!("{node},{partner}")),
        on_failure: Some("nothing".to_owned()),
        recipe_path: request.recipe_path.clone(),
        ssh_fanout: request.ssh_fanout,
        ..RunOptions::default()
    }
}

/// What is printed once its run is over, and the exit code.
fn concluded(node: &str, reason: &str, run: i32) -> i32 {
    if run == exit_code::PASSED {
        println!("resumed {node}: its re-check has passed, it was drained for: {reason}");
        return run;
    }
    println!("{node} stays drained, its re-check ended with exit code {run}: {reason}");
    if run == exit_code::FAILED { run } else { exit_code::INCONCLUSIVE }
}

/// The node stays cordoned all the while: only pods of this run bear it.
fn recheck_in_pods(
    home: &Home,
    request: &RecheckRequest,
    queue: &KubernetesQueue,
    node: &str,
    partner: &str,
    reason: &str,
) -> i32 {
    println!("re-check of {node} with {partner}; {node} stays cordoned for others");
    let options = RunOptions { bears: drain::BORNE_BY_RECHECKS, ..options(request, node, partner) };
    let code = plan_and_run(home, &options);
    if code == exit_code::PASSED {
        let put_back = new_runtime(false).and_then(|runtime| runtime.block_on(queue.put_back(node, reason)));
        if let Err(why) = put_back {
            println!("{node} passed its re-check and is not put back: {why}");
            return exit_code::INCONCLUSIVE;
        }
    }
    concluded(node, reason, code)
}

fn recheck_in_reservation(
    home: &Home,
    request: &RecheckRequest,
    inventory: &Inventory,
    node: &str,
    partner: &str,
) -> i32 {
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
    let options =
        RunOptions { reservation: Some(held.reservation.clone()), ..options(request, node, partner) };
    let code = plan_and_run(home, &options);
    let has_passed = code == exit_code::PASSED;
    let released = with_slurm(inventory, request.ssh_fanout, async |reach| {
        drain::release(reach, &held, has_passed).await
    });
    match released.and_then(|released| released) {
        Err(why) => {
            println!("{node}: {why}");
            exit_code::INCONCLUSIVE
        }
        Ok(()) => concluded(node, &held.reason, code),
    }
}
