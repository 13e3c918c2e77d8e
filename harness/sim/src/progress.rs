//! How far jobs that run have come, for whoever asks whether they get on: outputs grow while ranks work, and stand
//! still where they hang.

use super::World;
use super::execution::Execution;
use super::work::Work;
use cluster::reach::Answer;
use cluster::reach::progress::{Progress, render};

pub(crate) fn answer(world: &World, folders: &[&str]) -> Answer {
    let one = |folder: &&str| {
        let running = world.slurm.running_in(folder).or_else(|| world.ssh.running_in(folder));
        let progress = running.map(|(execution, start_s)| progress_after(execution, world.now_s - start_s));
        render(&progress.unwrap_or_default())
    };
    Answer::ok(folders.iter().map(one).collect::<String>())
}

/// So long after its start.
fn progress_after(execution: &Execution, run_s: f64) -> Progress {
    let is_silent = matches!(execution.work, Work::Flows(..))
        || (execution.training.is_none() && matches!(execution.work, Work::Command { .. }));
    let worked_s = run_s.min(execution.work_to_s) - execution.work_from_s;
    if worked_s < 0.0 {
        return Progress::default();
    }
    // The head of a table comes first, then its rows.
    let lines = 1 + (worked_s * 4.0) as u64;
    let counters = format!("{}", (worked_s * 10.0) as u64);
    match is_silent {
        true => Progress { counters, ..Progress::default() },
        false => Progress { bytes: lines * 80, counters, last: format!("line {lines}") },
    }
}
