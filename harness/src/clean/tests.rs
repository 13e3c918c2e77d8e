//! What is told of answers of a queue and of nodes that cannot be asked.

use super::*;
use crate::reach::{Answer, Command, ReachError, Wait};
use std::cell::RefCell;

/// A queue that holds two jobs until they are cancelled; or that gives no answer.
struct Queue {
    answers: bool,
    heeds: bool,
    /// Of the first job.
    folder: String,
    cancelled: RefCell<Vec<String>>,
}

impl Reach for Queue {
    fn exec<'a>(&'a self, _: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        Box::pin(async move {
            let words: Vec<&str> = command.argv.iter().map(String::as_str).collect();
            match words.as_slice() {
                ["squeue", ..] if !self.answers => {
                    Ok(Answer::failed(1, "Unable to contact slurm controller"))
                }
                ["squeue", ..] => {
                    let gone = self.cancelled.borrow();
                    // The second was renamed by whoever submitted it, and the third is somebody else's.
                    let folder = &self.folder;
                    let lines = [
                        "7|RUNNING|n1|run.c.a|/elsewhere".to_owned(),
                        format!("8|PENDING||mine|{folder}2"),
                        format!("9|RUNNING|n2|run.c.aa|{folder}3"),
                    ];
                    let there = lines
                        .iter()
                        .filter(|line| !gone.iter().any(|id| line.starts_with(&format!("{id}|"))));
                    Ok(Answer::ok(there.map(|line| format!("{line}\n")).collect::<String>()))
                }
                ["scancel", ids @ ..] => {
                    if self.heeds {
                        self.cancelled.borrow_mut().extend(ids.iter().map(|id| (*id).to_owned()));
                    }
                    Ok(Answer::ok(""))
                }
                ["bash", "-c", ..] => Ok(Answer::ok("told\n")),
                _ => Err(ReachError::NoProgram { host: "here".into(), program: words.join(" ") }),
            }
        })
    }
    fn put<'a>(&'a self, _: &'a Host, path: &'a str, _: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        Box::pin(async move { Err(ReachError::NotFound { path: path.into() }) })
    }
    fn get<'a>(&'a self, _: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        Box::pin(async move { Err(ReachError::NotFound { path: path.into() }) })
    }
}

fn cleaned(answers: bool, heeds: bool, ends: bool) -> (Cleaned, Vec<String>) {
    let mut plan = crate::report::fixture::plan();
    plan.launcher = Launcher::Slurm;
    plan.run_id = "run".into();
    plan.cases.truncate(1);
    plan.cases[0].name = "c".into();
    plan.cases[0].jobs.truncate(1);
    let mut other = plan.cases[0].jobs[0].clone();
    (plan.cases[0].jobs[0].name, other.name) = ("a".into(), "b".into());
    let folder = other.folder.clone();
    other.folder += "2";
    plan.cases[0].jobs.push(other);
    let queue = Queue { answers, heeds, folder, cancelled: RefCell::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let cleaned = runtime.expect("a runtime").block_on(clean(&plan, &queue, ends));
    (cleaned, queue.cancelled.into_inner())
}

#[test]
fn jobs_of_the_run_are_found_by_name_or_folder_and_ended_by_number_and_no_others() {
    let (cleaned, cancelled) = cleaned(true, true, true);
    let found: Vec<_> = cleaned.found.iter().map(|left| (left.which.as_str(), left.job.as_str())).collect();
    assert_eq!(found, [("8", "c/b"), ("7", "c/a")]);
    assert_eq!((cleaned.left.len(), cleaned.unasked.len()), (0, 0));
    assert_eq!(cancelled, ["8", "7"]);
}

#[test]
fn what_heeds_nobody_is_left_and_telling_ends_nothing() {
    let (heedless, _) = cleaned(true, false, true);
    assert_eq!(heedless.left.len(), 2);
    let (told, cancelled) = cleaned(true, true, false);
    assert_eq!((told.left.len(), cancelled.len()), (2, 0));
}

#[test]
fn a_queue_that_cannot_be_asked_is_not_an_empty_one() {
    let (cleaned, _) = cleaned(false, true, true);
    assert!(cleaned.left.is_empty());
    assert!(cleaned.unasked["queue"].contains("Unable to contact"), "{cleaned:?}");
}
