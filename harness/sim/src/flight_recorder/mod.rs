//! PyTorch's flight recorder of a simulated training: the dump of each rank that is asked.

mod dump;
mod pickle;

use super::active_faults::Ending;
use super::cluster::Cluster;
use super::execution::Execution;
use super::noise::Noise;
use super::over::{How, Over};
use super::work::noise_of;
use job::flight_recorder::DUMP;

/// Those of the ranks of one node that answer.
pub(crate) fn dumps(
    cluster: &Cluster,
    epoch_s: f64,
    execution: &Execution,
    run_s: f64,
    node: usize,
) -> Vec<(u32, Vec<u8>)> {
    let Some(training) = &execution.training else { return Vec::new() };
    if !execution.recorder.is_some_and(|recorder| recorder.has_pipes) || run_s < execution.work_from_s {
        return Vec::new();
    }
    let first = node as u32 * training.ranks_per_node;
    let ranks = first..first + training.ranks_per_node;
    let all = recorded(cluster, epoch_s, execution, run_s);
    ranks.filter_map(|rank| Some((rank, all.dump(rank)?))).collect()
}

/// The dump that a rank left when it gave up.
pub(crate) fn given_up(cluster: &Cluster, epoch_s: f64, over: &Over, name: &str) -> Option<Vec<u8>> {
    let rank: u32 = name.strip_prefix(DUMP)?.parse().ok()?;
    let gave_up = over.desync().is_some() && matches!(over.how, How::Exit(_));
    let is_asked = over.execution.recorder.is_some_and(|recorder| recorder.on_timeout);
    if !gave_up || !is_asked {
        return None;
    }
    recorded(cluster, epoch_s + over.start_s, &over.execution, over.run_s).dump(rank)
}

fn recorded<'a>(cluster: &Cluster, epoch_s: f64, execution: &'a Execution, run_s: f64) -> dump::Recorded<'a> {
    let ranks_per_node = execution.training.as_ref().map_or(1, |training| training.ranks_per_node);
    let (drawn, noise) = draw(cluster, execution);
    let number = |(node, rank): (usize, u32)| node as u32 * ranks_per_node + rank;
    let odd = execution.active_faults.odd_call();
    let odd = odd.map(|odd| (number((odd.node, odd.rank)), odd.differs_in));
    let silent = match execution.active_faults.ending {
        Some((Ending::Hang, _)) if odd.is_some() => None,
        Some((Ending::Hang, node)) => Some(number((node, drawn))),
        Some((Ending::Desync, _)) => execution.active_faults.desync().map(number),
        _ => None,
    };
    let moment = dump::Moment {
        epoch_s: epoch_s + execution.work_from_s,
        worked_s: run_s.min(execution.work_to_s) - execution.work_from_s,
        silent,
        odd,
    };
    dump::Recorded::new(moment, execution, noise)
}

/// The rank that stops on a node whose training hangs, by its number there.
pub(crate) fn stopped(cluster: &Cluster, execution: &Execution) -> u32 {
    draw(cluster, execution).0
}

fn draw(cluster: &Cluster, execution: &Execution) -> (u32, Noise) {
    let mut noise = noise_of(cluster, &execution.case, &execution.job, "flight recorder");
    let ranks = execution.training.as_ref().map_or(1, |training| training.ranks_per_node.max(1));
    ((noise.whole() % u64::from(ranks)) as u32, noise)
}
