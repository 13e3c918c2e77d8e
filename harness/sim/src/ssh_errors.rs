//! Error output of mpirun and of the shells of nodes for jobs over ssh, where srun would print it under Slurm. Only the
//! lines that name what went wrong are simulated.

use super::active_faults::Ending;
use super::over::{How, Over};
use super::spread::Spread;
use super::training::waited;
use super::work::{Table, Work};

/// The stderr of a job's mpirun.
pub(crate) fn by_mpirun(over: &Over) -> String {
    let execution = &over.execution;
    let name = |node: usize| execution.nodes.get(node).map_or("", String::as_str);
    let per_node = match &execution.work {
        Work::Tables(tables) => {
            let ranks: u32 = tables.iter().map(|table| table.ranks / table.options.gpus.max(1)).sum();
            (ranks / execution.nodes.len().max(1) as u32).max(1)
        }
        _ => 1,
    };
    let exits = |rank: u32, code: i32| {
        format!(
            "mpirun detected that one or more processes exited with non-zero status\n\
             \x20 Process name: [[30211,1],{rank}]\n  Exit code:    {code}\n"
        )
    };
    let ended_itself = matches!(over.how, How::Exit(_));
    match (execution.active_faults.ending, &execution.work) {
        (Some((Ending::RankDies, node)), _) if ended_itself => {
            let rank = node as u32 * per_node + per_node / 2;
            let pid = 4000 + rank;
            format!(
                "mpirun noticed that process rank {rank} with PID {pid} on node {} exited on signal 9 (Killed).\n",
                name(node)
            )
        }
        (Some((Ending::DiskFull, node)), _) if ended_itself => {
            let error = format!("[{}] write error: No space left on device\n", name(node));
            error + &exits(node as u32 * per_node, 1)
        }
        (Some((Ending::NodeFails, node)), _) if over.how == How::NodeFail && node > 0 => {
            format!(
                "ORTE has lost communication with a remote daemon.\n\
                 \x20 HNP daemon   : [[30211,0],0] on node {}\n  Remote daemon: [[30211,0],{node}] on node {}\n",
                name(0),
                name(node)
            )
        }
        _ if !ended_itself => String::new(),
        (_, Work::Command { stderr, .. }) => stderr.clone(),
        (_, Work::Tables(tables)) if tables.iter().any(Table::has_wrong) => exits(0, 1),
        _ => String::new(),
    }
}

/// What the process of one node wrote to its stderr, where each node runs its own.
pub(crate) fn by_process(over: &Over, node: usize) -> String {
    let execution = &over.execution;
    let ails = |how| execution.active_faults.fails_by(how) == Some(node) && matches!(over.how, How::Exit(_));
    match &execution.work {
        _ if ails(Ending::DiskFull) => "write error: No space left on device\n".to_owned(),
        Work::Gpus(_) if ails(Ending::RankDies) => "gpus.sh: line 14:  4711 Killed\n".to_owned(),
        Work::Command { .. } if execution.active_faults.fails_by(Ending::Desync).is_some() => {
            let ended_itself = matches!(over.how, How::Exit(_));
            let waiting = over.desync().filter(|_| ended_itself);
            waiting.map(|(training, rank)| waited(training, rank, Some(node))).unwrap_or_default()
        }
        Work::Command { stderr, .. } => stderr.clone(),
        _ => String::new(),
    }
}

/// What the shell of a node's script said.
pub(crate) fn by_shell(over: &Over, node: usize) -> String {
    let execution = &over.execution;
    let is_own = matches!(over.how, How::Exit(_)) && !matches!(execution.work, Work::Gpus(_));
    match execution.active_faults.ending {
        Some((Ending::RankDies, at)) if at == node && is_own && execution.spread == Spread::Each => {
            "job.sh: line 21:  4711 Killed\n".to_owned()
        }
        _ => String::new(),
    }
}
