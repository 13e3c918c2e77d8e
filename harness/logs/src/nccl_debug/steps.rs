//! Calls by the step of a training: programs write a step's line when it has ended, so what was called since the line
//! before is of the step whose line comes next. Logs of ranks that are mixed with each other shift some calls by a
//! line.

use super::call::{OPERATIONS, Operation};
use super::operations::Sum;
use super::tables::OfStep;

/// Of more steps the rest is left out, and counted in a finding.
pub(super) const MOST: usize = 1 << 14;

#[derive(Debug)]
pub(super) struct Steps {
    since: Vec<Sum>,
    all: Vec<(u64, u64, Vec<Sum>)>,
    last: Option<u64>,
    pub beyond: u64,
}

impl Default for Steps {
    fn default() -> Self {
        Steps { since: vec![Sum::default(); OPERATIONS.len()], all: Vec::new(), last: None, beyond: 0 }
    }
}

impl Steps {
    pub(super) fn call(&mut self, operation: Operation, bytes: Option<u64>) {
        if let Some(sum) = self.since.get_mut(operation as usize) {
            sum.add(bytes);
        }
    }

    /// The line of a step; other ranks write it too, and a bar writes it again and again: the first one ends the step.
    pub(super) fn ends(&mut self, step: u64, line: u64) {
        if self.last == Some(step) {
            return;
        }
        self.last = Some(step);
        let since = std::mem::replace(&mut self.since, vec![Sum::default(); OPERATIONS.len()]);
        if self.all.len() < MOST {
            self.all.push((step, line, since));
        } else {
            self.beyond += 1;
        }
    }

    /// Another stream begins: what was called at the end of the one before is of no step.
    pub(super) fn begin(&mut self) {
        self.since = vec![Sum::default(); OPERATIONS.len()];
        self.last = None;
    }

    pub(super) fn table(&self) -> Vec<OfStep> {
        let rows = |(step, line, sums): &(u64, u64, Vec<Sum>)| -> Vec<OfStep> {
            let called = OPERATIONS.into_iter().zip(sums).filter(|(_, sum)| sum.calls > 0);
            let (step, line) = (*step, *line);
            called
                .map(|(operation, sum)| OfStep {
                    step,
                    line,
                    operation,
                    calls: sum.calls,
                    bytes: sum.bytes(),
                })
                .collect()
        };
        self.all.iter().flat_map(rows).collect()
    }
}
