//! The first day of a fleet, simulated: published figures as the only baselines, noise from run to run and from node to
//! node, and a low value now and then. Healthy fleets and drawn faults, each a whole run of a suite.

use super::play::play;
use crate::accept;
use config::baseline::Baselines;
use config::inventory::{Instances, Inventory};
use config::suite::Suite;
use model::artefact::acceptance::Acceptance;
use model::artefact::{Culprit, Summary};
use model::fault::NodeFault;
use plan::{self, Request};
use recipes::catalogue::Catalogue;
use sim::noise::{self, Noise};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use store::Store;

/// What is read once for all runs.
pub struct DayOne {
    instances: Instances,
    suite: Suite,
    baselines: Baselines,
}

/// 2 % from run to run, 1 % from node to node, every 200th value 10 % low.
const WORLD: &str = "run_noise = \"2 %\"\nnode_noise = \"1 %\"\noutlier_every = 200\n";

impl DayOne {
    /// From the project's folder: a suite of it, and the published figures of p5 as those of its simulated counterpart.
    pub fn read(project: &Path, suite: &str) -> Result<DayOne, String> {
        let text = |path: &str| {
            std::fs::read_to_string(project.join(path)).map_err(|error| format!("{path}: {error}"))
        };
        let instances = Instances::load(project).map_err(|diagnostics| diagnostics.to_string())?;
        let file = format!("suites/{suite}.toml");
        let mut suite = Suite::read(&text(&file)?, &file, &Catalogue::built_in())
            .map_err(|diagnostics| diagnostics.to_string())?;
        // Of what these test there are no published figures: such cases are alike on any day.
        suite.cases.retain(|case| !case.where_installed);
        let published = text("baselines/p5.toml")?.replacen(
            "instance = \"p5\"",
            "instance = \"sim-p5\"\nsimulated = true",
            1,
        );
        let baselines = Baselines::read(&published, "baselines/sim-p5.toml", &Catalogue::built_in());
        Ok(DayOne { instances, suite, baselines: baselines.map_err(|diagnostics| diagnostics.to_string())? })
    }

    /// So many nodes of `sim-p5` under Slurm, from `p5-001` on.
    pub fn inventory(&self, nodes: usize) -> Result<Inventory, String> {
        let text = format!(
            "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"p5-[001-{nodes:03}]\"\n\n[reach]\nvia = \"slurm\"\n\n\
             [world]\n{WORLD}"
        );
        Inventory::read(&text, "inventory/day-one.toml", &self.instances)
            .map_err(|diagnostics| diagnostics.to_string())
    }

    /// All nodes of such a fleet as a delivery in `folder`, which must be empty: who is accepted, rejected, not decided.
    pub fn accept(&self, nodes: usize, seed: u64, folder: &Path) -> Result<Acceptance, String> {
        accept::accept_all(folder, &self.suite, self.inventory(nodes)?, &self.baselines, seed)
    }

    /// One whole run in `folder`, which must be empty.
    pub fn run(&self, nodes: usize, faults: &[String], seed: u64, folder: &Path) -> Result<Summary, String> {
        let inventory = self.inventory(nodes)?;
        let request = Request {
            run_id: format!("day-one-{nodes}-{seed}"),
            seed,
            nodes: inventory.nodes.clone(),
            settings: BTreeMap::new(),
            sim_faults: faults.to_vec(),
            limit_s: None,
            reservation: None,
            catalogue: Catalogue::built_in(),
            max_fail: None,
            sources: Vec::new(),
            sets: BTreeMap::new(),
            evidence: None,
            programs: BTreeMap::new(),
        };
        let suites = std::slice::from_ref(&self.suite);
        let plan = plan::plan(suites, &inventory, Some(&self.baselines), request)
            .map_err(|diagnostics| diagnostics.join("; "))?;
        let faults: Vec<NodeFault> =
            faults.iter().map(|text| NodeFault::parse(text)).collect::<Result<_, String>>()?;
        let store =
            Store::create_in(folder, &plan.run_id).map_err(|error| error.to_string())?.simulated(true);
        Ok(play(&plan, &inventory, faults, seed, &store)?.0.summary)
    }
}

/// Faults to inject, and the culprits that a run must name: a node and any of these parts.
#[derive(Debug, Clone)]
pub struct Injected {
    /// As `--sim-fault` takes them, such as `p5-002:gpu-slow=0.60@3`.
    pub faults: Vec<String>,
    /// For each culprit its node, and parts any one of which names it.
    pub guilty: Vec<(String, BTreeSet<String>)>,
}

/// Kinds of fault that cost 20 to 60 %.
pub const KINDS: [&str; 12] = [
    "gpu",
    "two gpus",
    "nic",
    "four nics",
    "half of the nics",
    "port",
    "no gdrdma",
    "nvlink",
    "node",
    "gpu and nic",
    "gpu here, nic there",
    "nvlink of two nodes",
];

/// One of a kind on one or two of so many nodes, drawn by a seed.
pub fn draw(kind: &str, nodes: usize, nics: &[String], seed: u64) -> Injected {
    let mut draws = noise::stream(seed, &["day-one", kind]);
    let one = 1 + draws.whole() as usize % nodes;
    let other = 1 + (one + draws.whole() as usize % (nodes - 1)) % nodes;
    let [one, other] = [one, other].map(|n| format!("p5-{n:03}"));
    let left = |draws: &mut Noise| format!("{:.2}", draws.between(0.4, 0.8));
    let gpu = draws.whole() as usize % 8;
    let nic = draws.whole() as usize % nics.len();
    let mut made = Injected { faults: Vec::new(), guilty: Vec::new() };
    let gpus: BTreeSet<String> = (0..8).map(|gpu| format!("gpu{gpu}")).collect();
    let node: BTreeSet<String> = ["node".to_owned()].into();
    match kind {
        "gpu" | "two gpus" => {
            for gpu in [gpu, (gpu + 3) % 8].into_iter().take(if kind == "gpu" { 1 } else { 2 }) {
                made.faults.push(format!("{one}:gpu-slow={}@{gpu}", left(&mut draws)));
                made.guilty.push((one.clone(), [format!("gpu{gpu}")].into()));
            }
        }
        "nic" | "four nics" | "half of the nics" => {
            let (from, n) = match kind {
                "nic" => (nic, 1),
                "four nics" => (nic / 4 * 4, 4),
                _ => (0, nics.len() / 2),
            };
            let left = left(&mut draws);
            for nic in nics.iter().skip(from).take(n) {
                made.faults.push(format!("{one}:nic-slow={left}@{nic}"));
                made.guilty.push((one.clone(), [nic.clone()].into()));
            }
        }
        "port" | "no gdrdma" => {
            let left = left(&mut draws);
            let fault = if kind == "port" { format!("port-slow={left}") } else { "no-gdrdma".to_owned() };
            made.faults.push(format!("{one}:{fault}"));
            // All NICs of a node are one fault.
            made.guilty.push((one, ["fabric".to_owned()].into()));
        }
        "nvlink" | "nvlink of two nodes" => {
            for at in [one, other].into_iter().take(if kind == "nvlink" { 1 } else { 2 }) {
                made.faults.push(format!("{at}:nvlink-slow={}", left(&mut draws)));
                made.guilty.push((at, node.clone()));
            }
        }
        "node" => {
            made.faults.push(format!("{one}:node-slow={}", left(&mut draws)));
            made.guilty.push((one, gpus.union(&node).cloned().collect()));
        }
        _ => {
            let at = if kind == "gpu and nic" { one.clone() } else { other };
            let nic = &nics[nic];
            made.faults.push(format!("{one}:gpu-slow={}@{gpu}", left(&mut draws)));
            made.faults.push(format!("{at}:nic-slow={}@{nic}", left(&mut draws)));
            made.guilty.push((one, [format!("gpu{gpu}")].into()));
            made.guilty.push((at, [nic.clone()].into()));
        }
    }
    made
}

/// How a run's summary compares with the injected faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Of the run.
    pub exit_code: i32,
    /// Every guilty node with a guilty part.
    pub all_named: bool,
    /// A part without a fault.
    pub innocent_named: bool,
    /// Any culprit.
    pub anybody_named: bool,
}

/// Compares the culprits of a run with the injected faults.
pub fn outcome(summary: &Summary, injected: &Injected) -> Outcome {
    let named: Vec<(&str, &str)> = summary
        .culprits
        .iter()
        .filter_map(|culprit| match culprit {
            Culprit::Culprit { node, part, .. } => Some((node.as_str(), part.as_str())),
            Culprit::Suspects { .. } | Culprit::Fleet { .. } => None,
        })
        .collect();
    let is_named = |(node, parts): &(String, BTreeSet<String>)| {
        named.iter().any(|(at, part)| at == node && parts.contains(*part))
    };
    let is_innocent = |(at, _): &(&str, &str)| !injected.guilty.iter().any(|(node, _)| node.as_str() == *at);
    Outcome {
        exit_code: summary.exit_code,
        all_named: injected.guilty.iter().all(is_named),
        innocent_named: named.iter().any(is_innocent),
        anybody_named: !named.is_empty(),
    }
}
