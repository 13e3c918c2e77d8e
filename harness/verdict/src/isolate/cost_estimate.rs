//! What an isolation will cost, before it starts: the same strategy, played against fleets with no fault and with two.

use super::model::{Fault, Model};
use super::named::{Conclusion, Place};
use super::trial::Fleet;
use super::{Answer, Next, next};

/// What a whole isolation took.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Played {
    /// Rounds of runs side by side.
    pub rounds: usize,
    /// Runs of all rounds together.
    pub runs: usize,
    /// Nodes of all runs together.
    pub node_runs: usize,
    /// How it ended; in `CostEstimate::worst` that of the best case.
    pub conclusion: Conclusion,
}

/// Plays a whole isolation against the model.
pub fn play(model: &mut Model) -> Played {
    let mut played = Played::default();
    let mut answers: Vec<Answer> = Vec::new();
    loop {
        match next(model.fleet, &answers, played.rounds) {
            Next::Done(conclusion) => {
                played.conclusion = conclusion;
                return played;
            }
            Next::Round(trials) => {
                played.rounds += 1;
                played.runs += trials.len();
                played.node_runs += trials.iter().map(|trial| trial.nodes.len()).sum::<usize>();
                answers.extend(trials.iter().map(|trial| model.answer(trial)));
            }
        }
    }
}

/// The fewest and the most of a number of plays: no fault at little noise, two faults at much.
#[derive(Debug, Clone, PartialEq)]
pub struct CostEstimate {
    /// A fleet without faults and with noise of 1 %.
    pub best: Played,
    /// The largest counts over all plays: two faults, noise of 5 %.
    pub worst: Played,
}

/// Plays that are looked at for the worst case.
const PLAYS: u64 = 40;

/// Estimates the cost of an isolation of this fleet; the same fleet gives the same estimate.
pub fn cost_estimate(fleet: &Fleet) -> CostEstimate {
    let best = play(&mut Model::new(fleet, Vec::new(), 0.01, 1));
    let mut worst = best.clone();
    for seed in 0..PLAYS {
        let mut model = Model::new(fleet, Vec::new(), 0.05, seed);
        let nodes = fleet.nodes() as u64;
        let mut at = || (model.whole() % nodes) as usize;
        let (one, other) = (at(), at());
        model.faults = vec![
            Fault { place: Place::Nic(one, 0), left: 0.8 },
            Fault { place: Place::Gpu(other, 0), left: 0.8 },
        ];
        let played = play(&mut model);
        worst.rounds = worst.rounds.max(played.rounds);
        worst.runs = worst.runs.max(played.runs);
        worst.node_runs = worst.node_runs.max(played.node_runs);
    }
    CostEstimate { best, worst }
}
