//! Runs whole simulated clusters with drawn suites and drawn faults, one per seed, and checks only invariants:
//! what a run must never do. A seed that breaks one is replayed by its number.

mod broken;
pub mod day_one;
mod draw;
pub mod hangs;
mod play;

pub use broken::{Left, broken};
pub use draw::{Drawn, draw};

use config::inventory::{Instances, Inventory};
use config::suite::Suite;
use metric::Metrics;
use model::artefact::CaseVerdict;
use model::fault::NodeFault;
use plan::{self, Request};
use recipes::catalogue::Catalogue;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use store::Store;

/// The result of one seed.
#[derive(Debug)]
pub struct Swept {
    /// The injected faults.
    pub faults: Vec<NodeFault>,
    /// How many the plan has.
    pub jobs: usize,
    /// How many the summary counts.
    pub assertions: u32,
    /// Of the run.
    pub exit_code: i32,
    /// The invariants that did not hold.
    pub broken: Vec<String>,
}

/// Runs one seed in `folder`, which must be empty. `tamper` may change a verdict before it is looked at: a test plants
/// its bug there.
pub fn sweep(
    seed: u64,
    instances: &Instances,
    folder: &Path,
    tamper: &dyn Fn(&mut CaseVerdict),
) -> Result<Swept, String> {
    let drawn = draw(seed);
    let suite = Suite::read(&drawn.suite, "suites/drawn.toml", &Catalogue::built_in())
        .map_err(|diagnostics| format!("the drawn suite is refused: {diagnostics}\n{}", drawn.suite))?;
    let inventory =
        Inventory::read(&drawn.inventory, "inventory/drawn.toml", instances).map_err(|diagnostics| {
            format!("the drawn inventory is refused: {diagnostics}\n{}", drawn.inventory)
        })?;
    let faults: Vec<NodeFault> =
        drawn.faults.iter().map(|text| NodeFault::parse(text)).collect::<Result<_, String>>()?;
    let request = Request {
        run_id: format!("seed-{seed}"),
        seed,
        nodes: inventory.nodes.clone(),
        settings: BTreeMap::new(),
        sim_faults: drawn.faults.clone(),
        limit_s: drawn.limit_s,
        reservation: None,
        catalogue: Catalogue::built_in(),
        max_fail: drawn.max_fail,
        sources: Vec::new(),
        sets: BTreeMap::new(),
        evidence: None,
        programs: BTreeMap::new(),
    };
    let plan = plan::plan(&[suite], &inventory, None, request).map_err(|diagnostics| {
        format!("the drawn plan is refused: {}\n{}", diagnostics.join("; "), drawn.suite)
    })?;
    let store = Store::create_in(folder, &plan.run_id).map_err(|error| error.to_string())?.simulated(true);
    let (mut finished, violations) = play::play(&plan, &inventory, faults.clone(), seed, &store)?;
    finished.cases.iter_mut().for_each(tamper);
    let events: Vec<Value> = store.lines("events.jsonl").map_err(|error| error.to_string())?;
    let metrics: Vec<Metrics> = finished.cases.iter().map(|case| metrics_of(&store, &case.case)).collect();
    let left = Left {
        plan: &plan,
        faults: &faults,
        events: &events,
        cases: &finished.cases,
        metrics: &metrics,
        summary: &finished.summary,
        violations: &violations,
    };
    let broken = broken(&left);
    Ok(Swept {
        faults,
        jobs: plan.cases.iter().map(|case| case.jobs.len()).sum(),
        assertions: finished.summary.counts.total,
        exit_code: finished.summary.exit_code,
        broken,
    })
}

/// The metrics of a case as stored; empty if there are none.
fn metrics_of(store: &Store, case: &str) -> Metrics {
    let bytes = std::fs::read(store.case(case).join("metrics.parquet")).unwrap_or_default();
    recipes::parquet::from_parquet(&bytes).unwrap_or_default()
}
