//! Which part makes runs slow, found with few of them: groups side by side, then what failed in smaller groups, then
//! one node with good partners, then its parts. It decides and names; what runs and how it is measured is left to others.
//!
//! No state is kept between rounds: `next` is a function of the fleet and of all answers so far, so that an interrupted
//! isolation can be resumed from its answers.

pub(crate) mod allot;
pub mod code;
pub mod cost_estimate;
pub mod evidence;
pub mod fault_sampling;
pub mod fleetwide;
pub mod links;
pub mod model;
pub mod named;
pub mod nodes;
pub mod observations;
pub mod outcome;
pub mod parts;
pub mod round;
pub(crate) mod siblings;
pub mod trial;
pub mod weigh;

#[cfg(test)]
mod explained_tests;
#[cfg(test)]
mod link_tests;
#[cfg(test)]
mod message_tests;
#[cfg(test)]
mod probes_tests;
#[cfg(test)]
mod round_tests;
#[cfg(test)]
mod rounds_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod weigh_tests;

pub use named::{Conclusion, Named, Place};
pub use trial::{Aim, Answer, Fleet, Found, Trial};

use allot::{Round, Want};
use std::collections::BTreeSet;
use weigh::Weighed;

/// What comes next: runs side by side on disjoint nodes, or the end.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Runs to make side by side; never empty.
    Round(Vec<Trial>),
    /// There is nothing more to try.
    Done(Conclusion),
}

/// The most rounds of one isolation.
const MOST_ROUNDS: usize = 60;

/// `answers` are those of all rounds so far, in their order; `rounds` is how many these were.
pub fn next(fleet: &Fleet, answers: &[Answer], rounds: usize) -> Next {
    let weighed = Weighed::from_answers(answers);
    let mut state = State::new(fleet, answers, weighed);
    nodes::pursue(&mut state);
    let still_looking = !state.wants.is_empty();
    parts::pursue(&mut state);
    if !still_looking {
        links::pursue(&mut state);
    }
    let mut round = Round::new(&state);
    for want in &state.wants {
        round.place(want);
    }
    let trials = round.ended();
    if trials.is_empty() || rounds >= MOST_ROUNDS {
        if !state.wants.is_empty() {
            let left = state.wants.iter().map(|want| want.aim.clone()).collect::<BTreeSet<_>>();
            state.open.extend(left.iter().map(|aim| format!("not run: {aim}")));
        }
        return Next::Done(state.conclusion());
    }
    Next::Round(trials)
}

/// What is known, and what is to be known yet.
pub(crate) struct State<'a> {
    /// The nodes and their topology groups.
    pub fleet: &'a Fleet,
    /// Of all rounds so far, in their order.
    pub answers: &'a [Answer],
    /// The same answers, weighed.
    pub weighed: Weighed,
    /// Nodes that were in a run of several nodes that went well.
    pub good: BTreeSet<usize>,
    /// Runs for the next round; earlier ones get their nodes first.
    pub wants: Vec<Want>,
    /// Faults that are proven so far.
    pub named: Vec<Named>,
    /// Nodes that are proven slow, with the remaining fraction of the rate.
    pub convicted: Vec<(usize, f64)>,
    /// Nodes that look slow without proof, or without a part that explains it.
    pub suspects: BTreeSet<usize>,
    /// What stayed open.
    pub open: Vec<String>,
    /// What was found and may hide something else.
    pub notes: Vec<String>,
}

impl<'a> State<'a> {
    fn new(fleet: &'a Fleet, answers: &'a [Answer], weighed: Weighed) -> State<'a> {
        State {
            fleet,
            answers,
            weighed,
            good: BTreeSet::new(),
            wants: Vec::new(),
            named: Vec::new(),
            convicted: Vec::new(),
            suspects: BTreeSet::new(),
            open: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn conclusion(mut self) -> Conclusion {
        self.named.sort_by_key(|named| named.place);
        let convicted = self.convicted.iter().map(|(node, _)| *node);
        for node in self.named.iter().filter_map(|named| named.place.node()).chain(convicted) {
            self.good.remove(&node);
        }
        Conclusion {
            good: self.good.difference(&self.suspects).copied().collect(),
            named: self.named,
            suspects: self.suspects.into_iter().collect(),
            open: self.open,
            notes: self.notes,
            looked_for: self.weighed.looked_for(),
            spread: self.weighed.spread,
        }
    }
}
