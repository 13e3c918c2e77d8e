//! Trainings that hang or lose a rank on simulated clusters: whether a run names the rank, and blames no other.

use super::play::play;
use config::inventory::{Instances, Inventory};
use config::suite::Suite;
use model::artefact::Culprit;
use model::fault::NodeFault;
use plan::{self, Request};
use recipes::catalogue::Catalogue;
use sim::noise;
use std::collections::BTreeMap;
use std::path::Path;
use store::Store;

/// What is read once for all runs.
pub struct Hangs {
    instances: Instances,
    suite: Suite,
}

/// What a rank does. The first is seen by its end, the others hold up all ranks.
pub const KINDS: [&str; 5] = ["dies", "stalls", "stops calling", "other collective", "other size"];

/// Those that a simulated cluster has.
pub const LAUNCHERS: [&str; 2] = ["slurm", "ssh"];

const NODES: u64 = 4;
const RANKS_PER_NODE: u64 = 8;

const SUITE: &str = "instance = \"p5\"\nabout = \"a training in which one rank goes wrong\"\n\n[[case]]\nname = \"train\"\n\
                     placement = \"all\"\nrecipes = [\"training_log\"]\nlimit_s = 3600\n\
                     workload = { kind = \"fsdp\", steps = 6, stall_s = 60 }\n\n[[case.assert]]\n\
                     metric = \"train.steps_missing\"\nequals = 0\n";

/// Whom a run names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// The rank at fault with its node and GPU, and no other; of a rank that died its node.
    Rank,
    /// No rank and no node.
    Nothing,
    /// A rank or node without a fault. Where a rank calls something else no node has one.
    Innocent,
}

/// The rank at fault.
struct Injected {
    kind: String,
    fault: String,
    node: String,
    /// Among all ranks; the simulator draws by itself which rank of a node stalls or dies.
    rank: Option<u64>,
    /// The first rank of its node.
    first: u64,
}

impl Hangs {
    /// With the profiles of the project's instances.
    pub fn read(project: &Path) -> Result<Hangs, String> {
        let instances = Instances::load(project).map_err(|diagnostics| diagnostics.to_string())?;
        let suite = Suite::read(SUITE, "suites/hangs.toml", &Catalogue::built_in());
        Ok(Hangs { instances, suite: suite.map_err(|diagnostics| diagnostics.to_string())? })
    }

    /// One whole run in `folder`, which must be empty: a kind of `KINDS` on nodes of a launcher of `LAUNCHERS`.
    pub fn run(&self, kind: &str, launcher: &str, seed: u64, folder: &Path) -> Result<Named, String> {
        let injected = draw(kind, seed);
        let text = format!(
            "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"p5-[001-{NODES:03}]\"\n\n[reach]\nvia = \"{launcher}\"\n"
        );
        let inventory = Inventory::read(&text, "inventory/hangs.toml", &self.instances)
            .map_err(|diagnostics| diagnostics.to_string())?;
        let request = Request {
            run_id: format!("hangs-{launcher}-{seed}"),
            seed,
            nodes: inventory.nodes.clone(),
            settings: BTreeMap::new(),
            sim_faults: vec![injected.fault.clone()],
            limit_s: None,
            reservation: None,
            catalogue: Catalogue::built_in(),
            max_fail: None,
            sources: Vec::new(),
            sets: BTreeMap::new(),
            evidence: None,
            programs: BTreeMap::new(),
        };
        let plan = plan::plan(std::slice::from_ref(&self.suite), &inventory, None, request)
            .map_err(|diagnostics| diagnostics.join("; "))?;
        let store =
            Store::create_in(folder, &plan.run_id).map_err(|error| error.to_string())?.simulated(true);
        let faults = vec![NodeFault::parse(&injected.fault)?];
        let (finished, _) = play(&plan, &inventory, faults, seed, &store)?;
        let verdicts = finished.cases.iter().flat_map(|case| &case.verdicts);
        let messages: Vec<&str> = verdicts.map(|verdict| verdict.message.as_str()).collect();
        Ok(named(&injected, &finished.summary.culprits, &messages))
    }
}

fn draw(kind: &str, seed: u64) -> Injected {
    let mut draws = noise::stream(seed, &["hangs", kind]);
    let (node, rank) = (draws.whole() % NODES, draws.whole() % RANKS_PER_NODE);
    let first = node * RANKS_PER_NODE;
    let (fault, is_drawn) = match kind {
        "dies" => ("rank-dies".to_owned(), false),
        "stalls" => ("hang".to_owned(), false),
        "stops calling" => (format!("desync@{rank}"), true),
        "other collective" => (format!("mismatch@{rank}"), true),
        _ => (format!("mismatch-size@{rank}"), true),
    };
    let node = format!("p5-{:03}", node + 1);
    let fault = format!("{node}:{fault}");
    Injected { kind: kind.to_owned(), fault, node, rank: is_drawn.then_some(first + rank), first }
}

fn named(injected: &Injected, culprits: &[Culprit], messages: &[&str]) -> Named {
    let of_program = injected.kind.starts_with("other");
    let mut placed: Vec<(u64, &str, u64)> = messages.iter().flat_map(|text| placed_ranks(text)).collect();
    let mut blamed: Vec<&str> = Vec::new();
    for culprit in culprits {
        if let Culprit::Culprit { node, evidence, .. } = culprit {
            blamed.push(node);
            placed.extend(placed_ranks(evidence));
        }
    }
    let is_own = |(rank, node, gpu): &(u64, &str, u64)| {
        *node == injected.node
            && injected.first.checked_add(*gpu) == Some(*rank)
            && injected.rank.is_none_or(|own| own == *rank)
    };
    let is_guilty = |node: &&str| *node == injected.node && !of_program;
    if !placed.iter().all(is_own) || !blamed.iter().all(is_guilty) {
        return Named::Innocent;
    }
    let is_named = match injected.kind.as_str() {
        "dies" => !blamed.is_empty(),
        _ => !placed.is_empty() && (of_program || !blamed.is_empty()),
    };
    if is_named { Named::Rank } else { Named::Nothing }
}

/// Each `rank 11 (p5-002 GPU 3)` of a text.
fn placed_ranks(text: &str) -> Vec<(u64, &str, u64)> {
    text.split("rank ").skip(1).filter_map(placed_rank).collect()
}

fn placed_rank(rest: &str) -> Option<(u64, &str, u64)> {
    let (rank, rest) = rest.split_once(" (")?;
    let (node, gpu) = rest.split_once(')')?.0.split_once(" GPU ")?;
    Some((rank.parse().ok()?, node, gpu.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn injected(kind: &str) -> Injected {
        let rank = (!["dies", "stalls"].contains(&kind)).then_some(13);
        Injected { kind: kind.to_owned(), fault: String::new(), node: "p5-002".to_owned(), rank, first: 8 }
    }

    fn culprit(node: &str) -> Culprit {
        let (node, part, evidence) = (node.to_owned(), "node".to_owned(), "x".to_owned());
        Culprit::Culprit { node, part, evidence, code: None }
    }

    const OWN: &str = "hang: rank 13 (p5-002 GPU 5) did not enter all_gather #2; 31 ranks wait";
    const SUSPECTS: &str = "suspects p5-001 p5-002";

    #[test]
    fn only_the_rank_at_fault_counts_as_named() {
        let own = || vec![culprit("p5-002")];
        for (kind, culprits, message, expected) in [
            ("stalls", own(), OWN, Named::Rank),
            ("stops calling", own(), OWN, Named::Rank),
            ("other size", vec![], OWN, Named::Rank),
            ("dies", own(), "task 1: Killed", Named::Rank),
            ("stalls", vec![], SUSPECTS, Named::Nothing),
            ("stalls", own(), SUSPECTS, Named::Nothing),
            ("dies", vec![], SUSPECTS, Named::Nothing),
            ("other size", vec![], "hang: rank 13 called with 2", Named::Nothing),
            // Another node, another rank, a rank that is not where it says; a node that runs a wrong program.
            ("stalls", vec![culprit("p5-003")], OWN, Named::Innocent),
            ("stops calling", own(), "rank 12 (p5-002 GPU 4) did not enter", Named::Innocent),
            ("stalls", own(), "rank 13 (p5-002 GPU 4) did not enter", Named::Innocent),
            ("stalls", own(), "rank 5 (p5-001 GPU 5) did not enter", Named::Innocent),
            ("other collective", own(), OWN, Named::Innocent),
        ] {
            assert_eq!(named(&injected(kind), &culprits, &[message]), expected, "{kind} {message}");
        }
    }

    #[test]
    fn each_kind_is_named_under_each_launcher() {
        let hangs =
            Hangs::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).expect("the project's files");
        for launcher in LAUNCHERS {
            for kind in KINDS {
                let folder = tempfile::tempdir().expect("a folder");
                let named = hangs.run(kind, launcher, 1, folder.path()).expect("a run");
                assert_eq!(named, Named::Rank, "{kind} over {launcher}: {}", draw(kind, 1).fault);
            }
        }
    }
}
