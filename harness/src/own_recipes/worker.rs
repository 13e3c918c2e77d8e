//! Runs queries of users in processes of their own, so that one that would fill the memory or never end is ended, and
//! nothing else with it. `recipes::own` defines questions and answers.

use crate::limited::{self, Failed};
use recipes::own::{self, Engine, Limits};
use std::sync::{Condvar, Mutex, PoisonError};

/// The verb by which the program starts itself; no person types it.
pub(crate) const VERB: &str = "answer-query";

/// The number of queries that run at once, regardless of the number of open reports.
const AT_ONCE: usize = 4;
/// A result has a limit of rows; this is far above what they need.
const ANSWER: u64 = 4 << 30;

struct Workers {
    running: Mutex<usize>,
    ended: Condvar,
}

static WORKERS: Workers = Workers { running: Mutex::new(0), ended: Condvar::new() };

/// The engine that runs the queries of users. Tests of this package have no program to start.
pub(crate) fn engine() -> &'static dyn Engine {
    if cfg!(test) { &own::Here } else { &WORKERS }
}

impl Engine for Workers {
    fn answer(&self, question: Vec<u8>, limits: &Limits) -> Result<Vec<u8>, String> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let mut running = self
            .ended
            .wait_while(running, |running| *running >= AT_ONCE)
            .unwrap_or_else(PoisonError::into_inner);
        *running += 1;
        drop(running);
        let answer = ask(question, limits);
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.ended.notify_one();
        answer
    }
}

fn ask(question: Vec<u8>, limits: &Limits) -> Result<Vec<u8>, String> {
    let Limits { memory, seconds, .. } = *limits;
    // One thread: sums of fractions come out the same wherever they are made.
    let of_process = limited::Limits { memory, seconds, threads: 1, answer: ANSWER };
    limited::ask(VERB, question, &of_process).map_err(|failed| match failed {
        Failed::NotStarted(error) => format!("cannot start a process for the query: {error}"),
        Failed::Timeout => format!("the query exceeded `limits.seconds`: {seconds} s"),
        Failed::Memory => format!("the query exceeded `limits.memory`: {} MiB", memory >> 20),
        Failed::Answer => format!("the query's result is larger than {} GiB", ANSWER >> 30),
        Failed::Message(line) => line,
        Failed::Silent(status) => format!("the process of the query died without a message: {status}"),
    })
}

pub(crate) fn serve(words: &[String]) -> i32 {
    limited::serve(VERB, words, own::answer)
}
