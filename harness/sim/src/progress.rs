//! How far jobs that run have come, for whoever asks whether they get on: outputs grow while ranks work, and stand still where
//! they hang.

use super::World;
use super::course::Course;
use super::work::Work;
use cluster::reach::Answer;
use cluster::reach::progress::{Progress, render};

pub(crate) fn answer(world: &World, folders: &[&str]) -> Answer {
    let one = |folder: &&str| {
        let running = world.slurm.running_in(folder).or_else(|| world.ssh.running_in(folder));
        let progress = running.map(|(course, start_s)| of(course, world.now_s - start_s));
        render(&progress.unwrap_or_default())
    };
    Answer::ok(folders.iter().map(one).collect::<String>())
}

/// So long after its start.
fn of(course: &Course, run_s: f64) -> Progress {
    let is_silent = matches!(course.work, Work::Flows(..))
        || (course.training.is_none() && matches!(course.work, Work::Command { .. }));
    let worked_s = run_s.min(course.work_to_s) - course.work_from_s;
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
