//! Which nodes are taken for good: those that the user names, or those of the last passing run.

use super::delivery::VouchingRun;
use super::messages;
use base::nodeset;
use config::inventory::Inventory;
use metric::Role;
use model::artefact::Status;
use recipes::recipe;
use std::collections::{BTreeMap, BTreeSet};
use store::{self, Home, Stored, vetting};
use verdict::history::hardware::{self, Hardware};
use verdict::history::past::{self, RunKind};
use verdict::history::suspects;

const NONE: &str = "none";

/// Who is compared with.
#[derive(Default)]
pub(crate) struct Partners {
    pub nodes: Vec<String>,
    /// Why they are taken for good.
    pub vouched: String,
    /// Nothing where a person named them.
    pub vouching: Option<VouchingRun>,
}

/// What stored runs of the cluster show of its nodes.
#[derive(Default)]
struct StoredRuns {
    /// Those that a run blames and none has cleared.
    suspects: BTreeSet<String>,
    /// By the newest probe of each.
    hardware: BTreeMap<String, Hardware>,
}

pub(crate) fn choose(
    home: &Home,
    inventory: &Inventory,
    nodes: &[String],
    named: Option<&str>,
) -> Result<Partners, String> {
    let among =
        || Partners { vouched: "each other: no node is known to be good".to_owned(), ..Partners::default() };
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
                    Ok(Partners { nodes: partners, vouched, vouching: None })
                }
            }
        }
        None if others.is_empty() => Ok(among()),
        None => {
            let known = StoredRuns::read(home, inventory)?;
            vouched_for(home, inventory, &others, &known)
                .ok_or_else(|| messages::no_partners(&inventory.name, &others))
        }
    }
}

impl StoredRuns {
    fn read(home: &Home, inventory: &Inventory) -> Result<StoredRuns, String> {
        let folder = home.path().join("runs");
        if !folder.is_dir() {
            return Ok(StoredRuns::default());
        }
        let kind = if inventory.is_simulated() { RunKind::Simulated } else { RunKind::Real };
        let past = past::read(&folder)?;
        let hardware = hardware::newest(&past, inventory.is_simulated(), &inventory.name);
        let past = past.only(kind);
        let open = suspects::suspects(&past).into_iter().filter(|suspect| suspect.is_open());
        let own = open.filter(|suspect| suspect.component.inventory == inventory.name);
        Ok(StoredRuns { suspects: own.map(|suspect| suspect.component.node).collect(), hardware })
    }
}

/// Nodes that passed together with others in what joins them.
fn did_well(stored: &Stored) -> BTreeSet<String> {
    let mut nodes = BTreeSet::new();
    for case in &stored.plan.cases {
        let Ok(Some(verdict)) = stored.verdict(&case.name) else { continue };
        let passed = case.assertions.iter().zip(&verdict.verdicts).filter(|(assertion, verdict)| {
            recipe::has_role(&assertion.metric, Role::BetweenNodes) && verdict.status == Status::Pass
        });
        let passed: BTreeSet<&String> = passed.flat_map(|(assertion, _)| &assertion.jobs).collect();
        let jobs = case.jobs.iter().filter(|job| job.nodes.len() > 1 && passed.contains(&job.name));
        nodes.extend(jobs.flat_map(|job| job.nodes.iter().cloned()));
    }
    nodes
}

/// By the newest run on this cluster in which every assertion passed, and which measured what joins nodes. A run on
/// simulated nodes says nothing of real ones.
fn vouched_for(
    home: &Home,
    inventory: &Inventory,
    others: &[String],
    known: &StoredRuns,
) -> Option<Partners> {
    home.runs().iter().rev().find_map(|folder| {
        if store::is_foreign(folder) || vetting::refused(folder).is_some() {
            return None;
        }
        let stored = Stored::open(folder).ok()?;
        let summary: model::artefact::Summary = store::read_json(&folder.join("summary.json")).ok()?;
        let has_passed = summary.exit_code == model::exit_code::PASSED && summary.counts.pass > 0;
        let is_of_cluster = summary.inventory == inventory.name
            && stored.plan.simulated == inventory.is_simulated()
            && summary.simulated == inventory.is_simulated()
            && RunKind::from_plan(&stored.plan) != RunKind::Canary;
        if !is_of_cluster || !has_passed || stored.plan.replayed_from.is_some() {
            return None;
        }
        let passed = did_well(&stored);
        let (blamed, good): (Vec<String>, Vec<String>) = others
            .iter()
            .filter(|node| passed.contains(*node))
            .cloned()
            .partition(|node| known.suspects.contains(node));
        // What cannot be read says of no hardware that it is other.
        let then =
            stored.probe().ok().flatten().map(|probe| hardware::read_probe(&probe)).unwrap_or_default();
        let unvouched = hardware::unvouched(&good, &then, &known.hardware);
        let nodes: Vec<String> = good.into_iter().filter(|node| !unvouched.other.contains(node)).collect();
        (!nodes.is_empty()).then(|| {
            let vouched = messages::vouched(&nodes, &summary.run_id, &blamed, &unvouched);
            let hardware = then.into_iter().filter(|(node, _)| nodes.contains(node)).collect();
            let vouching = Some(VouchingRun { run: summary.run_id, hardware });
            Partners { nodes, vouched, vouching }
        })
    })
}
