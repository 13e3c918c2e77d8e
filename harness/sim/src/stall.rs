//! A simulated job that stalls, and is asked for what its ranks know.

use super::World;
use super::flight_recorder;
use super::ras;
use super::steps::NO_OVERLAP;
use cluster::reach::Answer;
use cluster::reach::stall_request::{self, RankDump, Ras, StallRequest};
use job::ras::ASKED;

/// Whether a command asks a job that stalls.
pub(crate) fn is_request(argv: &[String]) -> bool {
    StallRequest::read(argv).is_some() || StallRequest::read_step(argv).is_some()
}

/// The answer to a command that asks a job; nothing where it is any other. Over ssh only the node that is asked hears of it.
pub(crate) fn answer(world: &mut World, argv: &[String], host: Option<&str>) -> Option<Answer> {
    let (request, id) = match StallRequest::read_step(argv) {
        Some((id, request)) => (request, Some(id)),
        None => (StallRequest::read(argv)?, None),
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
        for (rank, bytes) in
            flight_recorder::dumps(&world.cluster, world.epoch_s + start_s, execution, run_s, at)
        {
            ranks.push(RankDump { rank, bytes: Some(bytes.len() as u64) });
            files.push((job::flight_recorder::dump(rank), bytes));
        }
        files.push((job::flight_recorder::request(node), stall_request::render(node, &ranks).into_bytes()));
        if request.ras != Ras::Off {
            let asks = request.ras == Ras::Reports && at < ASKED;
            let reports = ras::reports(&world.cluster, execution, run_s).filter(|_| asks);
            // That of docker0 is the same on each node.
            let more = if world.cluster.world.docker0 { "address 172.17.0.1\n" } else { "" };
            let text = format!("address {}\n{more}{}", ras::address(at), reports.unwrap_or_default());
            files.push((job::ras::file(node), text.into_bytes()));
        }
    }
    for (name, bytes) in files {
        world.files.insert(format!("{folder}/{name}"), bytes);
    }
    Some(Answer::ok(""))
}
