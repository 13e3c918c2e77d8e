//! The message of a preflight that no node answered, which blames no node; printed before anything is launched.

use crate::report::{last_lines, narrow};
use base::nodeset;
use base::text::show;
use cluster::reach::pods::cluster_known;
use config::inventory::{Inventory, ReachBy};
use model::artefact::Probe;
use std::collections::{BTreeMap, BTreeSet};
use std::io::stderr;
use verdict::judge::common_failure::normalised;

/// Prints the message and the last line of a run that ends with exit code 3.
pub(crate) fn print(text: &str) {
    let text = format!("{text}INCONCLUSIVE: nothing was launched (exit 3)\n");
    eprint!("{}", narrow::fit(&text, stderr()));
}

/// The answers, where no node was probed; `None` if at least one was, or is known to Slurm.
fn answers<'a>(probe: &'a Probe, inventory: &Inventory) -> Option<Vec<&'a String>> {
    let planner = inventory.reach.planner();
    let silent: Vec<&String> = probe.nodes.iter().filter_map(|node| node.unprobed.as_ref()).collect();
    // Nodes that are only busy do not answer either; jobs wait for them.
    let is_busy = |why: &&String| planner.is_busy(why);
    let all = !silent.is_empty() && silent.len() == probe.nodes.len() && !silent.iter().any(is_busy);
    all.then_some(silent)
}

/// What to check where no node answered.
pub(crate) fn check(probe: &Probe, inventory: &Inventory) -> Option<String> {
    answers(probe, inventory)?;
    let cluster = match &inventory.reach {
        ReachBy::Kubernetes(reach) => Some(cluster_known(reach)),
        _ => None,
    };
    Some(inventory.reach.planner().check_when_silent(cluster.as_ref()))
}

/// `None` if at least one node answered, or is known to Slurm.
pub(crate) fn text(probe: &Probe, inventory: &Inventory) -> Option<String> {
    let silent = answers(probe, inventory)?;
    let check = check(probe, inventory)?;
    let names: Vec<&String> = probe.nodes.iter().map(|node| &node.node).collect();
    let all: BTreeSet<&str> = names.iter().map(|name| name.as_str()).collect();
    // What most nodes got for an answer, once.
    let mut kinds: BTreeMap<String, (usize, &String)> = BTreeMap::new();
    for why in silent {
        kinds.entry(normalised(why, &all)).or_insert((0, why)).0 += 1;
    }
    let most =
        kinds.values().max_by_key(|(times, _)| *times).map(|(_, why)| why.as_str()).unwrap_or_default();
    let lines: Vec<String> =
        most.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect();
    let nodes = nodeset::fold(&names);
    Some(format!(
        "error: no answer from any node, nothing was launched, no node is blamed: {}\n{}check: {check}\n\
         `--no-probe` launches without asking\n",
        show(&nodes),
        last_lines(&lines)
    ))
}
