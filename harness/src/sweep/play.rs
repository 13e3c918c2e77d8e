//! A plan on a simulated cluster, from its start to its end.

use crate::pipeline::{self, Finished, World};
use crate::report::{Mode, Progress};
use cluster::reach::openssh::FANOUT;
use cluster::reach::slurm_calls::SlurmCalls;
use cluster::run::Clock;
use config::inventory::Inventory;
use model::artefact::Plan;
use model::fault::NodeFault;
use recipes::catalogue::Catalogue;
use sim::SimulatedReach;
use std::collections::BTreeMap;
use store::Store;

/// The results, and what the cluster itself found wrong with how it was used.
pub(super) fn play(
    plan: &Plan,
    inventory: &Inventory,
    faults: Vec<NodeFault>,
    seed: u64,
    store: &Store,
) -> Result<(Finished, Vec<String>), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let reach = SimulatedReach::new(inventory, seed, faults, BTreeMap::new())?;
        let calls = SlurmCalls::new(&reach, inventory.paths.slurm.as_deref());
        let clock = Clock::starting_at(SimulatedReach::epoch_unix_s(seed) as f64);
        let world = World {
            reach: &calls,
            clock,
            release: &|folder| reach.release(folder),
            history: None,
            on: None,
            catalogue: &Catalogue::built_in(),
            replan: None,
            at_once: FANOUT,
            on_case: None,
        };
        let finished = pipeline::run(plan, world, store, &mut Progress::new(Mode::Silent)).await;
        Ok((finished.map_err(|error| error.to_string())?, reach.violations()))
    })
}
