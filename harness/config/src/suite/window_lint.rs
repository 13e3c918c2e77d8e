//! Step windows and capture ranges that cannot work, reported before the launch: beyond the last step, closed only
//! after the program's end, opened by a program without a profiler or in one of many sessions only, or set for ranks
//! that each start a job of their own.

use super::{Case, Placement, Suite};
use crate::diagnostic::Diagnostic;
use job::profile::{Ranks, Window};
use job::window::{calls_on_rank_zero, last_step, own_start};

/// Errors, and windows that are probably not meant.
#[derive(Debug, Default)]
pub struct WindowReport {
    /// What cannot work.
    pub diagnostics: Vec<Diagnostic>,
    /// What is probably not meant.
    pub warnings: Vec<Diagnostic>,
}

/// Of every case whose command line is known.
pub fn lint(suite: &Suite) -> WindowReport {
    let mut report = WindowReport::default();
    for case in &suite.cases {
        let Some(argv) = case.workload.known_arguments() else { continue };
        let at = |message: String, suggestion: &str| {
            let message = format!("case `{}`: {message}", case.name);
            Diagnostic::at(&suite.file, case.line, 1, message).suggest(suggestion)
        };
        report.diagnostics.extend(beyond(case, &argv).map(|(message, suggestion)| at(message, suggestion)));
        report.warnings.extend(unwatched(case, &argv).map(|(message, suggestion)| at(message, suggestion)));
        report.warnings.extend(silent(case, &argv).map(|(message, suggestion)| at(message, suggestion)));
        report.warnings.extend(own_jobs(case, &argv).map(|(message, suggestion)| at(message, suggestion)));
    }
    report
}

/// The last step, counted from 0, and the words that say so.
fn last(case: &Case, argv: &[String]) -> Option<(u64, String)> {
    match case.workload.steps() {
        Some(steps) => Some((u64::from(steps).checked_sub(1)?, format!("steps = {steps}"))),
        None => last_step(argv),
    }
}

fn beyond(case: &Case, argv: &[String]) -> Option<(String, &'static str)> {
    let Window::Steps(window) = &case.profile.as_ref()?.window else { return None };
    let (last, words) = last(case, argv)?;
    let steps = window.steps;
    let suggestion = "steps are counted from 0";
    if steps.first > last {
        let message = format!("`steps` begin after the last step {last} (`{words}`): {steps}");
        return Some((message, suggestion));
    }
    // What stops at the last step may look at that after the program broke off.
    (steps.last > last).then(|| {
        let message = format!("`steps` end after the last step {last} (`{words}`): {steps}");
        (message, suggestion)
    })
}

/// A program that calls the profiler, without a profiler, or with one that does not wait for the call.
fn unwatched(case: &Case, argv: &[String]) -> Option<(String, &'static str)> {
    let (_, words) = own_start(argv)?;
    match case.profile.as_ref().map(|profile| &profile.window) {
        None => Some((
            format!("the program calls the profiler (`{words}`), but the case has no `profile`"),
            "write `[case.profile]` with `capture = \"cudaProfilerApi\"`",
        )),
        Some(Window::CudaProfilerApi) => None,
        Some(Window::Steps(_)) => Some((
            format!("the program opens a capture range itself (`{words}`), in addition to `steps`"),
            "remove one of them",
        )),
        Some(_) => Some((
            format!("the program calls the profiler (`{words}`), but the profile does not wait for it"),
            "write `capture = \"cudaProfilerApi\"`",
        )),
    }
}

/// Sessions of nsys that wait for a profiler which rank 0 alone calls: all but its own end without a report.
fn silent(case: &Case, argv: &[String]) -> Option<(String, &'static str)> {
    let profile = case.profile.as_ref().filter(|profile| profile.window == Window::CudaProfilerApi)?;
    let one_node = matches!(case.placement, Placement::Each | Placement::Nodes(1));
    let one_session = match &profile.ranks {
        Ranks::None => true,
        Ranks::OnePerNode => one_node,
        Ranks::List(ranks) => ranks.len() == 1,
        Ranks::All | Ranks::Every(_) => one_node && case.workload.tasks_per_node() == Some(1),
    };
    let words = calls_on_rank_zero(argv).filter(|_| !one_session)?;
    Some((
        format!(
            "several nsys sessions wait for the profiler, but `{words}` calls it on rank 0 only: the others write no report"
        ),
        "use `steps` instead of `capture`, which opens the window of each session, or `ranks = \"rank0\"`",
    ))
}

/// Tasks that each start processes of their own are as many jobs side by side, on the same GPUs.
fn own_jobs(case: &Case, argv: &[String]) -> Option<(String, &'static str)> {
    let tasks = case.workload.tasks_per_node()?;
    let starts = |name: &str| argv.iter().any(|word| word.rsplit('/').next() == Some(name));
    let launcher =
        ["torchrun", "torch.distributed.launch", "torch.distributed.run", "accelerate", "deepspeed"]
            .into_iter()
            .find(|name| starts(name))?;
    if tasks > 1 {
        return Some((
            format!("each of {tasks} tasks per node starts its own `{launcher}` job"),
            "set `tasks_per_node = 1`: the launcher starts the processes of its node",
        ));
    }
    let alone = argv.iter().any(|word| word == "--standalone");
    (alone && !matches!(case.placement, Placement::Each | Placement::Nodes(1))).then(|| {
        (
            format!("`{launcher} --standalone` makes each node a separate job"),
            "name the nodes and a rendezvous, or set `placement = \"each\"`",
        )
    })
}
