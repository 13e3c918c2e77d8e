//! Which nodes take part in a round: each in one run at most, good ones beside those in question, and runs of good nodes
//! alone where a shape has nothing to be compared with. `nodes`, `parts` and `links` decide which runs are wanted.

use super::State;
use super::trial::{Aim, Fleet, Shape, Trial};
use std::collections::{BTreeMap, BTreeSet};

/// A run that is wanted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Want {
    /// What the run is to show.
    pub aim: Aim,
    /// The nodes that it is about.
    pub core: Vec<usize>,
    /// Which other nodes take part.
    pub beside: Beside,
}

/// Who else takes part.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Beside {
    /// No other node.
    Alone,
    /// Good nodes, up to so many in all; of the same group where it has enough.
    Good(usize),
    /// Good nodes of these groups, as many of each, so many in all.
    From(Vec<usize>, usize),
}

/// Values that a shape needs beside the one that is judged.
const PEERS: usize = 3;
/// Beyond these a level is known well enough.
const MOST_PEERS: usize = 8;

/// The runs of the next round, as they are placed on nodes.
pub(crate) struct Round<'a> {
    state: &'a State<'a>,
    free: BTreeSet<usize>,
    trials: Vec<Trial>,
}

impl<'a> Round<'a> {
    /// A round without runs, in which every node is free.
    pub(crate) fn new(state: &'a State<'a>) -> Round<'a> {
        Round { state, free: (0..state.fleet.nodes()).collect(), trials: Vec::new() }
    }

    /// Not where a node is taken in this round already: it is wanted again in the next.
    pub(crate) fn place(&mut self, want: &Want) {
        if !want.core.iter().all(|node| self.free.contains(node)) {
            return;
        }
        let tries = self.state.weighed.answered.get(&want.aim).copied().unwrap_or_default();
        let mut nodes = want.core.clone();
        match &want.beside {
            Beside::Alone => {}
            Beside::Good(all) => {
                let wanted = all.saturating_sub(nodes.len());
                match self.partners(want, wanted, tries) {
                    Some(partners) => nodes.extend(partners),
                    None => return,
                }
            }
            Beside::From(groups, all) => match self.spread(groups, *all, tries) {
                Some(spread) => nodes = spread,
                None => return,
            },
        }
        let shape = shape(self.state.fleet, &want.aim, &nodes);
        self.take(Trial { aim: want.aim.clone(), shape, nodes });
    }

    fn take(&mut self, trial: Trial) {
        for node in &trial.nodes {
            self.free.remove(node);
        }
        self.trials.push(trial);
    }

    /// Good nodes that are free, others than the last time.
    fn partners(&self, want: &Want, wanted: usize, tries: usize) -> Option<Vec<usize>> {
        if wanted == 0 {
            return Some(Vec::new());
        }
        let fleet = self.state.fleet;
        let home = want.core.first().map(|node| fleet.group(*node));
        let met: BTreeSet<usize> = self
            .state
            .answers
            .iter()
            .filter(|answer| answer.trial.aim == want.aim)
            .flat_map(|answer| answer.trial.nodes.iter().copied())
            .collect();
        let free = || {
            self.free
                .iter()
                .copied()
                .filter(|node| self.state.good.contains(node) && !want.core.contains(node))
        };
        let near: Vec<usize> = free().filter(|node| Some(fleet.group(*node)) == home).collect();
        let far: Vec<usize> = free().filter(|node| Some(fleet.group(*node)) != home).collect();
        let (new, old): (Vec<usize>, Vec<usize>) = near.iter().partition(|node| !met.contains(node));
        // Those that it has not met first; then again those of its group, since a run across groups is of another shape.
        let all: Vec<usize> = match near.len() >= wanted {
            true => new.into_iter().chain(old).collect(),
            false => near.into_iter().chain(turned(far, tries)).collect(),
        };
        (all.len() >= wanted).then(|| all.into_iter().take(wanted).collect())
    }

    fn spread(&self, groups: &[usize], all: usize, tries: usize) -> Option<Vec<usize>> {
        let fleet = self.state.fleet;
        let mut free: BTreeMap<usize, Vec<usize>> = groups.iter().map(|group| (*group, Vec::new())).collect();
        for node in self.free.iter().filter(|node| self.state.good.contains(node)) {
            if let Some(of_group) = free.get_mut(&fleet.group(*node)) {
                of_group.push(*node);
            }
        }
        let mut sources: Vec<_> = groups
            .iter()
            .filter_map(|group| Some(turned(free.remove(group)?, tries * all).into_iter()))
            .collect();
        let mut nodes = Vec::new();
        loop {
            for source in &mut sources {
                if nodes.len() == all {
                    return Some(nodes);
                }
                nodes.push(source.next()?);
            }
        }
    }

    /// The round, with good nodes by themselves wherever a shape lacks peers.
    pub(crate) fn ended(mut self) -> Vec<Trial> {
        let mut wanted: BTreeMap<Shape, usize> = BTreeMap::new();
        for trial in &self.trials {
            *wanted.entry(trial.shape).or_default() += 1;
        }
        for (shape, asked) in wanted {
            let have = self.state.weighed.healthy.get(&shape).copied().unwrap_or_default();
            for _ in 0..controls(shape, asked, have, &self.trials, self.state) {
                if let Some(nodes) = self.good_ones(shape) {
                    self.take(Trial { aim: Aim::Control, shape, nodes });
                }
            }
        }
        self.trials
    }

    fn good_ones(&self, shape: Shape) -> Option<Vec<usize>> {
        let fleet = self.state.fleet;
        let free: Vec<usize> =
            self.free.iter().copied().filter(|node| self.state.good.contains(node)).collect();
        let of_group = |group: usize| free.iter().copied().filter(move |node| fleet.group(*node) == group);
        let groups = fleet.all_groups();
        match shape {
            Shape::Inside | Shape::Gpus => free.first().map(|node| vec![*node]),
            Shape::Nics => {
                let near = groups.iter().find(|group| of_group(**group).count() >= 2);
                let nodes: Vec<usize> = match near {
                    Some(group) => of_group(*group).take(2).collect(),
                    None => free.iter().copied().take(2).collect(),
                };
                (nodes.len() == 2).then_some(nodes)
            }
            Shape::Together { nodes, across: false } => {
                let group = groups.iter().find(|group| of_group(**group).count() >= nodes)?;
                Some(of_group(*group).take(nodes).collect())
            }
            Shape::Together { nodes, across: true } => {
                let chosen: Vec<usize> =
                    free.iter().copied().rev().take(nodes - 1).chain(free.first().copied()).collect();
                (chosen.len() == nodes && fleet.spans(&chosen)).then_some(chosen)
            }
        }
    }
}

/// So many runs of good nodes.
fn controls(shape: Shape, asked: usize, have: usize, trials: &[Trial], state: &State) -> usize {
    let of_shape = || trials.iter().filter(|trial| trial.shape == shape);
    // Where one thing is tried again and again, the level must become known as well as it.
    let tries = of_shape()
        .filter_map(|trial| state.weighed.answered.get(&trial.aim).copied())
        .max()
        .unwrap_or_default();
    match shape {
        // Each run of these has the values of all GPUs or NICs of a node; one that is slow as a whole needs another.
        Shape::Gpus => usize::from(have == 0 || (tries >= 2 && have < state.fleet.gpus * tries.min(4))),
        Shape::Nics => usize::from(have == 0),
        Shape::Inside if have == 0 => PEERS,
        Shape::Inside => usize::from(have < PEERS.max(2 * tries).min(MOST_PEERS)),
        Shape::Together { .. } => {
            // The first runs of all, and links, have only each other.
            if state.good.is_empty() || of_shape().any(|trial| matches!(trial.aim, Aim::Groups(_))) {
                return 0;
            }
            match have {
                0 => (PEERS + 1).saturating_sub(asked).max(1),
                have => usize::from(have < PEERS.max(2 * tries).min(MOST_PEERS)),
            }
        }
    }
}

/// The shape of a run with this aim on these nodes.
pub(crate) fn shape(fleet: &Fleet, aim: &Aim, nodes: &[usize]) -> Shape {
    match aim {
        Aim::Inside(_) => Shape::Inside,
        Aim::Gpus(_) => Shape::Gpus,
        Aim::Nics(_) => Shape::Nics,
        Aim::Set(_) | Aim::Node(_) | Aim::Groups(_) | Aim::Control => {
            Shape::Together { nodes: nodes.len(), across: fleet.spans(nodes) }
        }
    }
}

fn turned(mut nodes: Vec<usize>, by: usize) -> Vec<usize> {
    if !nodes.is_empty() {
        let by = by % nodes.len();
        nodes.rotate_left(by);
    }
    nodes
}
