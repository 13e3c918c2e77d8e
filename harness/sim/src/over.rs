//! How a job ends, and what the files of one that is over are made from.

use super::active_faults::Ending;
use super::execution::{Execution, Own};
use super::training::Training;
use std::cell::RefCell;
use std::rc::Rc;

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// By itself, with this exit code.
    Exit(i32),
    /// Its batch script died of a signal.
    Signal(i32),
    /// At its time limit.
    TimeLimit,
    /// Somebody ended it, such as by scancel.
    Cancelled,
    /// One of its nodes failed.
    NodeFail,
    /// Slurm took its nodes away.
    Preempted,
}

/// A job that is over, and ran: what its files are made from.
pub struct Over {
    /// Job id; 0 in a stand-in program.
    pub id: u64,
    /// The job's folder.
    pub folder: String,
    /// What it did.
    pub execution: Rc<Execution>,
    /// In seconds from the epoch that its files are stamped by.
    pub start_s: f64,
    /// From its start to its end, in seconds.
    pub run_s: f64,
    /// How it ended.
    pub how: How,
    /// In seconds from its start.
    pub interrupted_s: Option<f64>,
    /// The tables of the report that was read last.
    pub reports: TableCache,
}

impl Over {
    /// The training and the rank that stopped, where that is what ended the job.
    pub(crate) fn desync(&self) -> Option<(&Training, u32)> {
        let training = self.execution.training.as_ref()?;
        self.execution.active_faults.fails_by(Ending::Desync)?;
        let (node, rank) = self.execution.active_faults.desync()?;
        Some((training, node as u32 * training.ranks_per_node + rank))
    }
}

/// The tables of one report, kept for who asks for them one after the other.
#[derive(Default)]
pub struct TableCache(RefCell<Option<(u32, Rc<NamedTables>)>>);

impl TableCache {
    /// Those of a rank, made where they are not the last that were asked for.
    pub(crate) fn for_rank(&self, rank: u32, make: impl FnOnce() -> NamedTables) -> Rc<NamedTables> {
        let mut kept = self.0.borrow_mut();
        match kept.as_ref() {
            Some((of, tables)) if *of == rank => tables.clone(),
            _ => {
                let tables = Rc::new(make());
                *kept = Some((rank, tables.clone()));
                tables
            }
        }
    }
}

/// Files of an exported report, by name.
pub type NamedTables = Vec<(String, Vec<u8>)>;

/// What an interrupted job takes to end.
const WINDS_UP_S: f64 = 1.0;

/// When a job that runs will end without further action, and how.
pub(crate) fn ends(
    execution: &Execution,
    start_s: f64,
    limit_s: f64,
    interrupted_s: Option<f64>,
) -> (f64, How) {
    let by_limit = (start_s + limit_s, How::TimeLimit);
    let own = execution.ends_s.map(|seconds| (start_s + seconds, How::from(execution.end)));
    // A rank that hangs heeds no signal that it may ignore.
    let heeds = execution.ends_s.is_some();
    let asked = interrupted_s.filter(|_| heeds).map(|at| (at + WINDS_UP_S, How::Signal(2)));
    own.into_iter().chain(asked).fold(by_limit, |a, b| if b.0 < a.0 { b } else { a })
}

impl From<Own> for How {
    fn from(own: Own) -> How {
        match own {
            Own::Exit(code) => How::Exit(code),
            Own::NodeFail => How::NodeFail,
            Own::Preempted => How::Preempted,
        }
    }
}
