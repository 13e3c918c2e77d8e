//! One bisection: the runs so far, and the next pair until there is nothing more to run.

use super::measured::{Compared, Numbers};
use super::{earlier, messages};
use cluster::interrupt;
use config::inventory::Stack;
use job::script::GpuRequest;
use model::artefact::Source;
use recipes::catalogue::Catalogue;
use std::collections::{BTreeMap, BTreeSet};
use store::{Home, Store};
use verdict::bisect::record::{BisectionScope, EarlierRun, RunStack};
use verdict::bisect::{self, Conclusion, Next, Posterior, StackRun};

/// A stack that failed so often, and more often than it ran, does not run: a failure may be a node's or a queue's.
const FAILURES: usize = 2;

pub(super) enum Stopped {
    Interrupted(i32),
    /// The next run would need this many node-hours.
    Budget(f64),
    Machinery(String),
}

/// A run that is over.
pub(super) struct Done {
    pub id: String,
    pub pair: usize,
    pub stack: RunStack,
    pub is_interrupted: bool,
    /// Why it ended early, where it did.
    pub why: Option<String>,
    /// Nothing where not all of it was measured.
    pub numbers: Option<Numbers>,
    pub versions: BTreeMap<String, BTreeSet<String>>,
}

/// How a bisection ended.
pub(super) enum Ending {
    Alike,
    /// A step between two stacks that run; stacks between them do not.
    Step {
        after: usize,
        before: usize,
        alone: Option<Alone>,
    },
    Several {
        after: usize,
        before: usize,
    },
    /// So many pairs did not suffice.
    Pairs,
    /// The good or the bad stack does not run.
    Broken(RunStack),
}

/// Whether the setting that was found makes the same difference alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Alone {
    /// By so much, as a difference of logarithms, with its standard error.
    Same(f64, f64),
    No,
    /// Not known: pairs ran out, or it does not run.
    Open,
}

pub(super) struct Bisection {
    pub home: Home,
    pub scope: BisectionScope,
    pub stacks: Vec<Stack>,
    pub compared: Compared,
    pub catalogue: Catalogue,
    pub ssh_fanout: u32,
    /// How jobs ask Slurm for GPUs, where the inventory leaves it open and it is not by GRES.
    pub gpus: Option<GpuRequest>,
    pub done: Vec<Done>,
    pub node_seconds: f64,
    pub simulated: bool,
    /// The files of the first plan: all runs are made from the same.
    pub sources: Vec<Source>,
    /// The first run, so that no other process goes on with the bisection.
    pub held: Option<Store>,
}

impl Bisection {
    pub(super) fn node_hours(&self) -> f64 {
        self.node_seconds / 3600.0
    }

    pub(super) fn first(&self) -> &str {
        self.done.first().map_or("latest", |done| &done.id)
    }

    /// Pairs that were begun.
    pub(super) fn pairs(&self) -> usize {
        self.done.iter().map(|done| done.pair).max().unwrap_or_default()
    }

    pub(super) fn settings(&self, stack: RunStack) -> Stack {
        let of = |number: usize| self.stacks.get(number).cloned().unwrap_or_default();
        match stack {
            RunStack::Ordered(number) => of(number),
            RunStack::Control => of(0),
            RunStack::Alone => {
                let changed = self.found().map(|(after, before)| (of(after), of(before)));
                changed.map_or_else(Stack::default, |(after, before)| {
                    after.differing(&before).iter().fold(of(0), |stack, name| stack.with(name, &before))
                })
            }
        }
    }

    /// The two stacks that the step lies between, once it is found.
    fn found(&self) -> Option<(usize, usize)> {
        let running = self.running();
        let runs = self.ordered(&running);
        match bisect::next(running.len(), &runs, &Posterior::new(running.len(), &runs)) {
            Next::Done(Conclusion::Step { after }) => Some((*running.get(after)?, *running.get(after + 1)?)),
            _ => None,
        }
    }

    fn failures(&self, stack: RunStack) -> usize {
        self.done
            .iter()
            .filter(|done| done.stack == stack && done.numbers.is_none() && !done.is_interrupted)
            .count()
    }

    pub(super) fn failures_of(&self, number: usize) -> usize {
        self.failures(RunStack::Ordered(number))
    }

    /// A number of the bad stack that is clearly lower than that of the good one, though the mean of all is not.
    pub(super) fn worst_number(&self) -> Option<String> {
        let of = |number: usize| {
            let runs = self.done.iter().filter(move |done| done.stack == RunStack::Ordered(number));
            runs.filter_map(|done| done.numbers.as_ref()).collect::<Vec<_>>()
        };
        self.compared.worst_number(&of(0), &of(self.stacks.len() - 1))
    }

    fn is_broken(&self, stack: RunStack) -> bool {
        let ran = self.done.iter().filter(|done| done.stack == stack && done.numbers.is_some()).count();
        self.failures(stack) >= FAILURES.max(ran + 1)
    }

    /// The stacks in order, without those that do not run.
    pub(super) fn running(&self) -> Vec<usize> {
        (0..self.stacks.len()).filter(|number| !self.is_broken(RunStack::Ordered(*number))).collect()
    }

    /// The runs of the stacks in order, by their place among those that run.
    pub(super) fn ordered(&self, running: &[usize]) -> Vec<StackRun> {
        let place = |number: usize| running.iter().position(|one| *one == number);
        let mut runs = self.stack_runs(&|stack| match stack {
            RunStack::Ordered(number) => place(number),
            RunStack::Control | RunStack::Alone => None,
        });
        let earlier = self.scope.earlier.iter().filter(|run| self.changed_since(run, usize::MAX).is_none());
        runs.extend(earlier.filter_map(|run| {
            Some(StackRun { pair: 0, stack: place(run.stack)?, value: run.value, is_earlier: true })
        }));
        runs
    }

    /// What of its software was another when an earlier run was made, by the runs of the first `pairs` pairs.
    pub(super) fn changed_since(&self, run: &EarlierRun, pairs: usize) -> Option<String> {
        let mut measured = self.done.iter().filter(|done| done.pair <= pairs && done.numbers.is_some());
        measured.find_map(|done| {
            let is_own_stack = done.stack == RunStack::Ordered(run.stack);
            earlier::changed(run, &self.scope.earlier, &done.versions, is_own_stack)
        })
    }

    /// Those of the setting that was found, and of the good stack beside it.
    pub(super) fn alone_runs(&self) -> Vec<StackRun> {
        self.stack_runs(&|stack| match stack {
            RunStack::Control => Some(0),
            RunStack::Alone => Some(1),
            RunStack::Ordered(_) => None,
        })
    }

    fn stack_runs(&self, place: &dyn Fn(RunStack) -> Option<usize>) -> Vec<StackRun> {
        let run = |done: &Done| {
            let value = self.compared.level(done.numbers.as_ref()?);
            Some(StackRun { pair: done.pair, stack: place(done.stack)?, value, is_earlier: false })
        };
        self.done.iter().filter_map(run).collect()
    }

    /// Pairs until there is nothing more to run.
    pub(super) fn go(&mut self) -> Result<Ending, Stopped> {
        loop {
            if let Some(code) = interrupt::asked() {
                return Err(Stopped::Interrupted(code));
            }
            let last = self.stacks.len() - 1;
            for end in [0, last] {
                let stack = RunStack::Ordered(end);
                if self.is_broken(stack) {
                    return Ok(Ending::Broken(stack));
                }
            }
            let running = self.running();
            let runs = self.ordered(&running);
            let name = |at: usize| running.get(at).copied().unwrap_or(last);
            let pair = match bisect::next(running.len(), &runs, &Posterior::new(running.len(), &runs)) {
                Next::Done(Conclusion::Alike) => return Ok(Ending::Alike),
                Next::Done(Conclusion::Several { after }) => {
                    return Ok(Ending::Several { after: name(after), before: name(after + 1) });
                }
                Next::Done(Conclusion::Step { after }) => {
                    let (after, before) = (name(after), name(after + 1));
                    // From the good stack on, it was alone already.
                    if !self.scope.by_setting || after == 0 || before != after + 1 {
                        return Ok(Ending::Step { after, before, alone: None });
                    }
                    match self.alone() {
                        Some(alone) => return Ok(Ending::Step { after, before, alone: Some(alone) }),
                        None => [RunStack::Control, RunStack::Alone],
                    }
                }
                Next::Pair(pair) => pair.map(|at| RunStack::Ordered(name(at))),
            };
            if self.pairs() >= self.scope.pairs {
                return Ok(Ending::Pairs);
            }
            self.run_pair(pair)?;
            messages::pair(self, &running);
        }
    }

    /// What its pairs show of the setting alone; nothing where more are needed.
    fn alone(&self) -> Option<Alone> {
        if self.is_broken(RunStack::Alone) || self.is_broken(RunStack::Control) {
            return Some(Alone::Open);
        }
        let runs = self.alone_runs();
        let posterior = Posterior::new(2, &runs);
        match bisect::next(2, &runs, &posterior) {
            Next::Done(Conclusion::Alike) => Some(Alone::No),
            Next::Done(_) => Some(Alone::Same(posterior.size.0, posterior.size.1)),
            Next::Pair(_) if self.pairs() >= self.scope.pairs => Some(Alone::Open),
            Next::Pair(_) => None,
        }
    }

    /// One run of each, every other pair the other way round.
    fn run_pair(&mut self, pair: [RunStack; 2]) -> Result<(), Stopped> {
        // A pair that a process did not end is ended first.
        let begun = self.pairs();
        let of_begun: Vec<RunStack> =
            self.done.iter().filter(|done| done.pair == begun).map(|done| done.stack).collect();
        let (number, rest) = match of_begun.as_slice() {
            [one] if pair.contains(one) => {
                (begun, pair.iter().copied().filter(|stack| stack != one).collect::<Vec<_>>())
            }
            _ => (begun + 1, pair.to_vec()),
        };
        let is_turned = number % 2 == 0;
        let order: Vec<RunStack> = match is_turned {
            true => rest.into_iter().rev().collect(),
            false => rest,
        };
        for stack in order {
            self.run(number, stack)?;
            if let Some(code) = interrupt::asked() {
                return Err(Stopped::Interrupted(code));
            }
        }
        Ok(())
    }
}
