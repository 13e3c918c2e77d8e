//! PyTorch's flight recorder of a simulated training: the dump of each
//! rank that is asked, and what its node reports of the request.

mod dump;
mod pickle;

use super::World;
use super::active_faults::Ending;
use super::cluster::Cluster;
use super::execution::Execution;
use super::over::{How, Over};
use super::work::noise_of;
use cluster::reach::Answer;
use cluster::reach::flight_dumps::{self, DumpRequest, RankDump};
use job::flight_recorder::{self, DUMP};

/// What srun prints that does not know the option.
const NO_OVERLAP: &str = "srun: unrecognized option '--overlap'\nTry \"srun --help\" for more information\n";

/// Whether a command asks the ranks of a job for dumps.
pub(crate) fn is_request(argv: &[String]) -> bool {
    DumpRequest::read(argv).is_some() || DumpRequest::read_step(argv).is_some()
}

/// The answer to a command that asks the ranks of a job for dumps; nothing where it is any other. Over ssh only the ranks of
/// the node that is asked hear of it.
pub(crate) fn answer(world: &mut World, argv: &[String], host: Option<&str>) -> Option<Answer> {
    let (request, id) = match DumpRequest::read_step(argv) {
        Some((id, request)) => (request, Some(id)),
        None => (DumpRequest::read(argv)?, None),
    };
    if let Some(id) = id {
        if !world.cluster.world.overlap {
            return Some(Answer::failed(1, NO_OVERLAP));
        }
        if id.parse().ok().and_then(|id| world.slurm.job(id)).is_none() {
            return Some(Answer::failed(
                1,
                "srun: error: Unable to confirm allocation: Invalid job id specified\n",
            ));
        }
    } else if host != request.node {
        return None;
    }
    let folder = request.folder.to_owned();
    let running = world.slurm.running_in(&folder).or_else(|| world.ssh.running_in(&folder));
    let Some((execution, start_s)) = running else { return Some(Answer::ok("")) };
    let run_s = world.now_s - start_s;
    let mut files = Vec::new();
    for (at, node) in execution.nodes.iter().enumerate() {
        if request.node.is_some_and(|wanted| wanted != node) {
            continue;
        }
        let mut ranks = Vec::new();
        for (rank, bytes) in dumps(&world.cluster, world.epoch_s + start_s, execution, run_s, at) {
            ranks.push(RankDump { rank, bytes: Some(bytes.len() as u64) });
            files.push((flight_recorder::dump(rank), bytes));
        }
        files.push((flight_recorder::request(node), flight_dumps::render(node, &ranks).into_bytes()));
    }
    for (name, bytes) in files {
        world.files.insert(format!("{folder}/{name}"), bytes);
    }
    Some(Answer::ok(""))
}

/// Those of the ranks of one node that answer.
fn dumps(
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
    let mut noise = noise_of(cluster, &execution.case, &execution.job, "flight recorder");
    let ranks_per_node = execution.training.as_ref().map_or(1, |training| training.ranks_per_node);
    let drawn = (noise.whole() % u64::from(ranks_per_node.max(1))) as u32;
    let number = |(node, rank): (usize, u32)| node as u32 * ranks_per_node + rank;
    let odd = execution.active_faults.mismatch().map(number);
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
