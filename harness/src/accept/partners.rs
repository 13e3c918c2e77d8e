//! Which nodes are taken for good: those that the user names, or those of the last passing run.

use super::messages;
use base::nodeset;
use config::inventory::Inventory;
use store::{self, Home, Stored};

const NONE: &str = "none";

/// The partners, and why they are taken for good.
pub(crate) fn choose(
    home: &Home,
    inventory: &Inventory,
    nodes: &[String],
    named: Option<&str>,
) -> Result<(Vec<String>, String), String> {
    let among = || (Vec::new(), "each other: no node is known to be good".to_owned());
    let others: Vec<String> = inventory.nodes.iter().filter(|node| !nodes.contains(node)).cloned().collect();
    match named {
        Some(NONE) => Ok(among()),
        Some(range) => {
            let partners = inventory.select(Some(range), None).map_err(|why| format!("--partners: {why}"))?;
            match partners.iter().find(|node| nodes.contains(node)) {
                Some(both) => Err(messages::partner_is_new(both)),
                None => {
                    let vouched =
                        format!("{}, which were named as known to be good", nodeset::fold(&partners));
                    Ok((partners, vouched))
                }
            }
        }
        None if others.is_empty() => Ok(among()),
        None => vouched_for(home, inventory, &others)
            .ok_or_else(|| messages::no_partners(&inventory.name, &others)),
    }
}

/// By the newest run on this cluster in which every assertion passed.
fn vouched_for(home: &Home, inventory: &Inventory, others: &[String]) -> Option<(Vec<String>, String)> {
    home.runs().iter().rev().find_map(|folder| {
        if store::is_foreign(folder) {
            return None;
        }
        let stored = Stored::open(folder).ok()?;
        let summary: model::artefact::Summary = store::read_json(&folder.join("summary.json")).ok()?;
        let has_passed = summary.exit_code == model::exit_code::PASSED && summary.counts.pass > 0;
        if summary.inventory != inventory.name || !has_passed || stored.plan.replayed_from.is_some() {
            return None;
        }
        let took_part = |node: &&String| {
            let mut jobs = stored.plan.cases.iter().flat_map(|case| &case.jobs);
            jobs.any(|job| job.nodes.contains(node))
        };
        let good: Vec<String> = others.iter().filter(took_part).cloned().collect();
        (!good.is_empty()).then(|| {
            let vouched = format!("{}, which passed run {}", nodeset::fold(&good), summary.run_id);
            (good, vouched)
        })
    })
}
