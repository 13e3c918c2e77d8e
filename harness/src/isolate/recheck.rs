//! `--resume-drained`: nodes that the harness drained, back in Slurm's queue once they have passed a run. How Slurm is asked
//! stands in `cluster::drain`.

use super::drain::{refused, with_slurm};
use crate::library::Library;
use crate::own_recipes;
use crate::session::planning::to_lines;
use crate::session::{RunOptions, load, plan_and_run, report_error};
use cluster::drain::{self, NodeState};
use cluster::interrupt;
use config::inventory::Inventory;
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

fn recheck_all(home: &Home, request: &RecheckRequest, inventory: &Inventory, nodes: &[String]) -> i32 {
    let asked = with_slurm(inventory, request.ssh_fanout, async |reach| {
        for node in nodes {
            drain::take_up(reach, node).await.map_err(|why| format!("{node}: {why}"))?;
        }
        drain::show_all(reach).await
    });
    let all: BTreeMap<String, NodeState> = match asked.and_then(|shown| shown) {
        Ok(all) => all.into_iter().collect(),
        Err(why) => return report_error(&why),
    };
    let mut code = exit_code::PASSED;
    let mut ours = 0;
    for node in nodes {
        let Some(shown) = all.get(node) else {
            println!("{node}: Slurm has no such node");
            code = exit_code::graver(code, exit_code::INCONCLUSIVE);
            continue;
        };
        if !shown.is_draining() {
            continue;
        }
        if shown.ours().is_none() {
            println!("{node} stays drained, its reason in Slurm is not the harness's: {shown}");
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
    let options = RunOptions {
        suites: vec![request.suite.clone()],
        inventory: request.inventory.clone(),
        nodes: Some(format!("{node},{partner}")),
        reservation: Some(held.reservation.clone()),
        on_failure: Some("nothing".to_owned()),
        recipe_path: request.recipe_path.clone(),
        ssh_fanout: request.ssh_fanout,
        ..RunOptions::default()
    };
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
        Ok(()) if has_passed => {
            println!("resumed {node}: its re-check has passed, it was drained for: {}", held.reason);
            exit_code::PASSED
        }
        Ok(()) => {
            println!("{node} stays drained, its re-check ended with exit code {code}: {}", held.reason);
            if code == exit_code::FAILED { code } else { exit_code::INCONCLUSIVE }
        }
    }
}
