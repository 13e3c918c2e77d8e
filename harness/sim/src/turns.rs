//! An allocation of Slurm that jobs share, as `allocation.sh` keeps it: the jobs that were given their turn run in it one
//! after the other. It has no clock of its own; `slurm` moves it on.

use super::execution::Execution;
use super::over::{How, Over, TableCache, ends};
use job::script::Turns as Planned;
use std::collections::BTreeMap;
use std::rc::Rc;

pub(crate) struct Turns {
    idle_s: f64,
    /// Folders and time limits, as the script has them.
    jobs: Vec<(String, f64)>,
    /// Turns that were given, and when.
    given: BTreeMap<u32, (f64, Next)>,
    turn: u32,
    current: Option<Current>,
    /// Since when nothing runs in it.
    free_s: f64,
    closed_s: Option<f64>,
}

pub(crate) struct Next {
    pub folder: String,
    pub limit_s: f64,
    pub execution: Rc<Execution>,
}

struct Current {
    next: Next,
    start_s: f64,
    interrupted_s: Option<f64>,
}

/// What a turn came to: what it left, and the word on it; nothing where it was begun only.
pub(crate) struct Step {
    pub folder: String,
    pub over: Option<(Over, String)>,
}

/// Between two looks into its folder.
const LOOKS_S: f64 = 0.5;

impl Turns {
    pub(crate) fn new(planned: &Planned) -> Turns {
        let jobs = planned.jobs.iter().map(|turn| (turn.folder.clone(), turn.limit_s as f64)).collect();
        Turns {
            idle_s: planned.idle_s as f64,
            jobs,
            given: BTreeMap::new(),
            turn: 1,
            current: None,
            free_s: 0.0,
            closed_s: None,
        }
    }

    /// The folder and the time limit of a job, by its number.
    pub(crate) fn job(&self, number: usize) -> Option<(String, f64)> {
        self.jobs.get(number.checked_sub(1)?).cloned()
    }

    pub(crate) fn give(&mut self, turn: u32, now_s: f64, next: Next) {
        self.given.entry(turn).or_insert((now_s, next));
    }

    pub(crate) fn close(&mut self, now_s: f64) {
        self.closed_s.get_or_insert(now_s);
    }

    pub(crate) fn begin(&mut self, now_s: f64) {
        self.free_s = now_s;
    }

    /// Whether the job that lies there runs now.
    pub(crate) fn runs(&self, folder: &str) -> bool {
        self.current.as_ref().is_some_and(|current| current.next.folder == folder)
    }

    /// What runs in a folder, and since when.
    pub(crate) fn running_in(&self, folder: &str) -> Option<(&Execution, f64)> {
        let current = self.current.as_ref().filter(|current| current.next.folder == folder)?;
        Some((&*current.next.execution, current.start_s))
    }

    pub(crate) fn interrupt(&mut self, now_s: f64) {
        if let Some(current) = &mut self.current {
            current.interrupted_s.get_or_insert(now_s);
        }
    }

    /// When the allocation ends without further action, but for its own limit.
    pub(crate) fn will_end(&self) -> Option<(f64, How)> {
        match &self.current {
            Some(current) => Some(current.ends()).filter(|(_, how)| takes_all(*how)),
            None if self.given.contains_key(&self.turn) => None,
            None => Some(match self.closed_s {
                Some(closed_s) => (closed_s.max(self.free_s) + LOOKS_S, How::Exit(0)),
                None => (self.free_s + self.idle_s, How::Exit(0)),
            }),
        }
    }

    /// When the next job in it begins or ends.
    pub(crate) fn next_s(&self) -> Option<f64> {
        match &self.current {
            Some(current) => Some(current.ends()).filter(|(_, how)| !takes_all(*how)).map(|(at, _)| at),
            None => self.given.get(&self.turn).map(|(given_s, _)| given_s.max(self.free_s) + LOOKS_S),
        }
    }

    /// Lets happen what happens by then.
    pub(crate) fn step(&mut self, id: u64, now_s: f64) -> Option<Step> {
        let at = self.next_s().filter(|at| *at <= now_s)?;
        match self.current.take() {
            Some(current) => {
                let (_, how) = current.ends();
                self.free_s = at;
                Some(current.over(id, at, how))
            }
            None => {
                let (_, next) = self.given.remove(&self.turn)?;
                self.turn += 1;
                let folder = next.folder.clone();
                self.current = Some(Current { next, start_s: at, interrupted_s: None });
                Some(Step { folder, over: None })
            }
        }
    }

    /// Ends what runs in it: with the allocation, or by itself.
    pub(crate) fn end(&mut self, id: u64, now_s: f64, how: How) -> Option<Step> {
        let current = self.current.take()?;
        self.free_s = now_s;
        Some(current.over(id, now_s, how))
    }

    /// What runs in it.
    pub(crate) fn execution(&self) -> Option<&Rc<Execution>> {
        self.current.as_ref().map(|current| &current.next.execution)
    }
}

/// What ends a job in it ends all of it.
fn takes_all(how: How) -> bool {
    matches!(how, How::NodeFail | How::Preempted)
}

impl Current {
    fn ends(&self) -> (f64, How) {
        ends(&self.next.execution, self.start_s, self.next.limit_s, self.interrupted_s)
    }

    fn over(self, id: u64, end_s: f64, how: How) -> Step {
        let word = match how {
            How::Exit(code) => format!("exited {code}\n"),
            How::Signal(signal) => format!("signal {signal}\n"),
            How::TimeLimit => "limit\n".to_owned(),
            _ => "asked\n".to_owned(),
        };
        let over = Over {
            id,
            folder: self.next.folder.clone(),
            execution: self.next.execution,
            start_s: self.start_s,
            run_s: end_s - self.start_s,
            how,
            interrupted_s: self.interrupted_s.map(|at| at - self.start_s),
            reports: TableCache::default(),
        };
        Step { folder: self.next.folder, over: Some((over, word)) }
    }
}
