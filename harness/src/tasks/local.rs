//! Reports of jobs are read on this machine, too, but not by the process that judges: a report that fills the memory,
//! never ends or makes a library panic costs its own node's reports, and nothing else.

use super::job_work::JobWork;
use super::shares;
use crate::limited::{self, Failed, Limits};
use crate::memory;
use crate::own_recipes;
use crate::panics;
use model::artefact::PlannedRecipe;
use recipes::recipe::{ExtractStore, FileRole, JobInput};
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The verb by which the program starts itself; no person types it.
pub(crate) const VERB: &str = "read-reports";

/// More processes would only wait for the disk.
const MOST_AT_ONCE: usize = 8;
/// Reports of unknown nodes that one process reads.
const TOGETHER: usize = 8;
const SECONDS: u64 = 3600;
/// What one process may take: its part of three quarters of the machine, within these.
const LEAST_MEMORY: u64 = 4 << 30;
const MOST_MEMORY: u64 = 16 << 30;
/// What recipes take of reports is small beside them.
const ANSWER: u64 = 1 << 30;

#[derive(Serialize, Deserialize)]
struct Question {
    own: Vec<PlannedRecipe>,
    work: JobWork,
    share: Vec<usize>,
}

/// The extracts that these recipes, which read reports, take of those of these jobs; for a report that could not be read,
/// the reason.
pub(crate) fn extract(jobs: Vec<JobInput>, recipes: &[String], own: &[PlannedRecipe]) -> ExtractStore {
    let questions: Vec<Question> =
        jobs.into_iter().flat_map(|job| job_questions(job, recipes, own)).collect();
    let kept = Mutex::new(ExtractStore::default());
    if questions.is_empty() || recipes.is_empty() {
        return ExtractStore::default();
    }
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let at_once = cores.min(MOST_AT_ONCE).min(questions.len());
    let limits = Limits {
        memory: share_of_memory(at_once),
        seconds: SECONDS,
        threads: cores / at_once,
        answer: ANSWER,
    };
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(question) = questions.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let answer = ask(question, &limits);
                    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Err(why) = answer.and_then(|bytes| kept.add(&bytes)) {
                        question.work.lose(&mut kept, &question.share, &why);
                    }
                }
            });
        }
    });
    kept.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// One for the reports of each node.
fn job_questions(job: JobInput, recipes: &[String], own: &[PlannedRecipe]) -> Vec<Question> {
    let nodes: Vec<Option<String>> =
        job.files_of(FileRole::NsysExport).map(|report| report.node.clone()).collect();
    let question = |share: Vec<usize>| {
        let mut job = job.clone();
        let mut number = 0..;
        job.files.retain(|file| {
            file.role != FileRole::NsysExport || number.next().is_some_and(|at| share.contains(&at))
        });
        Question {
            own: own.to_vec(),
            work: JobWork::new(recipes, vec![job]),
            share: (0..share.len()).collect(),
        }
    };
    shares(&nodes, TOGETHER).into_iter().map(question).collect()
}

fn ask(question: &Question, limits: &Limits) -> Result<Vec<u8>, String> {
    let bytes = serde_json::to_vec(question).map_err(|error| error.to_string())?;
    limited::ask(VERB, bytes, limits).map_err(|failed| message_of(failed, limits))
}

/// Why reports could not be read.
pub(super) fn message_of(failed: Failed, limits: &Limits) -> String {
    match failed {
        Failed::NotStarted(error) => format!("cannot start a process to read it: {error}"),
        Failed::Timeout => format!("not read within {} min", SECONDS / 60),
        Failed::Memory => format!(
            "reading it needs more than {} GiB of memory: `--analyze-on slurm` reads it on nodes",
            limits.memory >> 30
        ),
        Failed::Answer => format!("its result is larger than {} GiB", ANSWER >> 30),
        Failed::Message(line) => line,
        Failed::Silent(status) => format!("the process that read it ended: {status}"),
    }
}

/// Of the machine's memory; the least where that is not known.
fn share_of_memory(at_once: usize) -> u64 {
    let bytes = memory::total_bytes().unwrap_or(0);
    (bytes / 4 * 3 / at_once as u64).clamp(LEAST_MEMORY, MOST_MEMORY)
}

/// Entry of the process that reads reports for another, within limits of memory and time.
pub(crate) fn serve(words: &[String]) -> i32 {
    limited::serve(VERB, words, |question| {
        let read = panics::caught(VERB, || read(question));
        read.unwrap_or_else(|why| Err(internal_error(&why)))
    })
}

pub(super) fn internal_error(why: &str) -> String {
    format!("internal error while it was read: {}", why.escape_debug())
}

pub(super) fn read(question: &[u8]) -> Result<Vec<u8>, String> {
    let Question { own, work, share } =
        serde_json::from_slice(question).map_err(|error| error.to_string())?;
    work.read(&share, &own_recipes::catalogue_of_plan(&own)?)
}
