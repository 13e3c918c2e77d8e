//! A fleet with known faults that answers runs: the nominal rate times the worst factor of all that a run uses, times
//! noise of its own. Strategies are measured by it, and their cost is estimated by it.

use super::named::Place;
use super::trial::{Answer, Fleet, Found, Shape, Trial};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A fault of the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fault {
    /// The part that is slow.
    pub place: Place,
    /// The part of the rate that is left.
    pub left: f64,
}

/// A fleet with its faults and the state of its noise.
pub struct Model<'a> {
    /// The nodes, and how many GPUs and NICs each has.
    pub fleet: &'a Fleet,
    /// All act at the same time; a run takes the worst of those it uses.
    pub faults: Vec<Fault>,
    /// The standard deviation of the logarithm of a run's value.
    pub noise: f64,
    random: ChaCha8Rng,
}

impl<'a> Model<'a> {
    /// The same seed gives the same answers in the same order.
    pub fn new(fleet: &'a Fleet, faults: Vec<Fault>, noise: f64, seed: u64) -> Model<'a> {
        Model { fleet, faults, noise, random: ChaCha8Rng::seed_from_u64(seed) }
    }

    /// The values that such a run would measure; each call draws new noise.
    pub(crate) fn answer(&mut self, trial: &Trial) -> Answer {
        let parts = match trial.shape {
            Shape::Gpus => self.fleet.gpus,
            Shape::Nics => self.fleet.nics,
            _ => 1,
        };
        let values = (0..parts)
            .map(|part| Some(nominal(trial.shape) * self.left(trial, part) * self.factor()))
            .collect();
        Answer { trial: trial.clone(), found: Found::Values(values) }
    }

    /// The value of a collective on these nodes, for strategies of another make.
    pub fn together(&mut self, nodes: &[usize]) -> f64 {
        let shape = match nodes.len() {
            1 => Shape::Inside,
            _ => Shape::Together { nodes: nodes.len(), across: self.fleet.spans(nodes) },
        };
        let trial = Trial { aim: super::Aim::Control, shape, nodes: nodes.to_vec() };
        self.left(&trial, 0) * self.factor()
    }

    fn left(&self, trial: &Trial, part: usize) -> f64 {
        let uses = |place: &Place| self.uses(trial, part, place);
        self.faults.iter().filter(|fault| uses(&fault.place)).map(|fault| fault.left).fold(1.0, f64::min)
    }

    fn uses(&self, trial: &Trial, part: usize, place: &Place) -> bool {
        let has = |node: &usize| trial.nodes.contains(node);
        let across = |a: &usize, b: &usize| {
            let groups = || trial.nodes.iter().map(|node| self.fleet.group(*node));
            groups().any(|group| group == *a) && groups().any(|group| group == *b)
        };
        match (trial.shape, place) {
            (_, Place::Node(node)) => has(node),
            (Shape::Together { .. } | Shape::Inside, Place::Gpu(node, _) | Place::NvLink(node)) => has(node),
            (Shape::Gpus, Place::Gpu(node, gpu)) => has(node) && *gpu == part,
            (Shape::Together { .. }, Place::Nic(node, _)) => has(node),
            (Shape::Nics, Place::Nic(node, nic)) => has(node) && *nic == part,
            (Shape::Together { .. } | Shape::Nics, Place::Port(node)) => has(node),
            (Shape::Together { .. } | Shape::Nics, Place::Link(a, b)) => across(a, b),
            _ => false,
        }
    }

    /// A random number, from the generator that makes the noise.
    pub(crate) fn whole(&mut self) -> u64 {
        self.random.next_u64()
    }

    /// From 0 up to, and without, 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.whole() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn factor(&mut self) -> f64 {
        let (a, b) = (1.0 - self.fraction(), self.fraction());
        (self.noise * (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()).exp()
    }
}

/// Unknown to the strategy, and another for each shape.
fn nominal(shape: Shape) -> f64 {
    match shape {
        Shape::Together { nodes, across } => {
            480.0 * (nodes as f64).powf(-0.12) * if across { 0.85 } else { 1.0 }
        }
        Shape::Inside => 470.0,
        Shape::Gpus => 1300.0,
        Shape::Nics => 12.0,
    }
}
